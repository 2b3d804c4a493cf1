/*
** The end of DISTINCT aggregates: adds each value of a set once to the accumulator of its group. If
** the order matters, it is the order of the rows where the values occurred first. See group_impl.h.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "value/conv.h"
#include "value/ops.h"
#include "value/scratch.h"
#include <string.h>

enum { STRETCH = 1 << 16, LOCAL_GROUPS = 1 << 16 };

typedef struct feeding {
  const joined *set;
  joined *groups;
  int acc, parts;
} feeding;

/* Finds the group of a value by the words or values that precede it in its entry. */
static wl_u8 *group_of(const feeding *f, wl_u8 *e, const wl_u64 *words) {
  const wl_grouping *s = f->set->plan, *g = f->groups->plan;
  if (g->p->n_keys == 0) return f->groups->tables[0].entries;
  if (s->mode == MODE_VALUES) {
    if (g->mode == MODE_VALUES) return wl_group_entry(f->groups, NULL, entry_values(e));
    wl_u64 w[WL_MAX_WORDS];
    for (int k = 0; k < g->words.n_words; k++) w[k] = entry_values(e)[k].v;
    return wl_group_entry(f->groups, w, NULL);
  }
  const wl_key_part *part = &s->words.parts[s->words.n_parts - 1];
  if (g->mode != MODE_DIRECT || part->word > 0) return wl_group_entry(f->groups, words, NULL);
  wl_u64 place = words[0] / part->span;
  return wl_group_entry(f->groups, &place, NULL);
}

static wl_status count_task(void *arg, int worker, long part, wl_error *err) {
  feeding *f = arg;
  (void)worker, (void)err;
  const wl_grouping *s = f->set->plan, *g = f->groups->plan;
  if (s->mode == MODE_DIRECT && s->width == 0) {
    /* Count a range of the array directly. */
    wl_u64 from = s->n_direct * (wl_u64)part / (wl_u64)f->parts,
           to = s->n_direct * (wl_u64)(part + 1) / (wl_u64)f->parts;
    wl_u64 span = g->p->n_keys ? s->words.parts[s->words.n_parts - 1].span : s->n_direct;
    for (wl_u64 i = from; i < to;) {
      wl_u64 group = i / span, end = (group + 1) * span < to ? (group + 1) * span : to;
      wl_i64 n = 0;
      for (; i < end; i++) n += f->set->seen[i];
      if (!n) continue;
      wl_u8 *e = wl_group_entry(f->groups, &group, NULL);
      __atomic_fetch_add((wl_i64 *)entry_state(g, e, f->acc), n, __ATOMIC_RELAXED);
    }
    return WL_OK;
  }
  wl_i64 from = (wl_i64)part * STRETCH,
         to = from + STRETCH < f->set->n ? from + STRETCH : f->set->n;
  for (wl_i64 i = from; i < to; i++) {
    wl_u8 *e = f->set->entries[i];
    wl_u64 place = f->set->places ? f->set->places[i] : 0;
    e = group_of(f, e, f->set->places ? &place : (const wl_u64 *)(const void *)e);
    if (e) __atomic_fetch_add((wl_i64 *)entry_state(g, e, f->acc), 1, __ATOMIC_RELAXED);
  }
  return WL_OK;
}

/* The value of a set's entry. */
static wl_val value_of(const wl_grouping *s, wl_u8 *e, const wl_u64 *words) {
  if (s->mode == MODE_VALUES) return entry_values(e)[s->n_keys - 1];
  return wl_key_layout_decode(&s->words, s->p->n_keys, words,
                              s->has_signs && *entry_signs(s, e) >> (s->p->n_keys & 63) & 1);
}

/* ---- sums of numbers without GROUP BY: on all threads, in any order */

typedef struct summing {
  const feeding *f;
  wl_u8 *states; /* one for each task */
  size_t n_bytes;
  wl_arena *arenas;
  wl_stop *stop;
} summing;

static wl_status sum_task(void *arg, int worker, long part, wl_error *err) {
  summing *m = arg;
  (void)worker, (void)err;
  const joined *set = m->f->set;
  const wl_agg_how *h = &m->f->groups->plan->accs[m->f->acc];
  wl_i64 from = (wl_i64)part * STRETCH, to = from + STRETCH < set->n ? from + STRETCH : set->n;
  wl_agg_in in = {.b = wl_null(), .arena = &m->arenas[part]};
  wl_status rc = WL_OK;
  for (wl_i64 i = from; i < to && !rc; i++) {
    wl_u64 place = set->places ? set->places[i] : 0;
    in.v = value_of(set->plan, set->entries[i],
                    set->places ? &place : (const wl_u64 *)(const void *)set->entries[i]);
    rc = wl_agg_add(h, m->states + (size_t)part * m->n_bytes, &in);
  }
  return rc;
}

/* *done is false if an integer sum may overflow in some order: then only the row order can tell. */
static wl_status sum_values(const wl_finishing *fin, feeding *f, bool *done, wl_error *err) {
  const wl_grouping *g = f->groups->plan;
  const wl_agg_how *h = &g->accs[f->acc];
  size_t n = (size_t)((f->set->n + STRETCH - 1) / STRETCH);
  summing m = {.f = f, .n_bytes = (wl_agg_bytes(h->state) + 15) & ~(size_t)15, .stop = fin->stop};
  m.states = wl_mem_zalloc(n * m.n_bytes);
  m.arenas = wl_mem_zalloc(n * sizeof *m.arenas);
  wl_tasks tasks = {fin->n_workers, (long)n, sum_task, &m, fin->stop};
  wl_status rc = m.states && m.arenas ? wl_tasks_run(&tasks, NULL, err) : wl_nomem(err);
  void *to = entry_state(g, f->groups->tables[0].entries, f->acc);
  for (size_t k = 0; k < n && !rc; k++)
    if (wl_agg_merge(h, to, m.states + k * m.n_bytes, &f->groups->arenas[0])) rc = wl_nomem(err);
  *done = rc || !wl_agg_unsure(h, to);
  if (!*done) memset(to, 0, wl_agg_bytes(h->state));
  for (size_t k = 0; k < n && m.arenas; k++) wl_arena_join(&f->groups->arenas[0], &m.arenas[k]);
  wl_mem_free(m.states);
  wl_mem_free(m.arenas);
  return rc;
}

/* ---- other sums and concatenations */

/* Adds the values one by one, in row order. */
static wl_status feed_values(const wl_finishing *fin, feeding *f, wl_error *err) {
  const wl_grouping *s = f->set->plan, *g = f->groups->plan;
  const wl_acc *acc = &g->p->accs[f->acc];
  wl_i64 n = f->set->n;
  wl_u64 *rows = wl_mem_alloc((size_t)(n + 1) * sizeof *rows);
  wl_u32 *order = wl_mem_alloc((size_t)(n + 1) * sizeof *order), fault = WL_FAULT_NONE;
  wl_vctx ctx = {.fault = &fault, .max_text = fin->max_text};
  wl_status rc = rows && order ? wl_conv_take(&ctx.conv, err) : wl_nomem(err);
  if (!rc) {
    for (wl_i64 i = 0; i < n && !rc; i++) {
      rows[i] = (wl_u64)*entry_first(s, f->set->entries[i]);
      rc = wl_stop_at_row(fin->stop, i, err);
    }
    wl_sort sort = {
        .n = n, .n_words = 1, .words = &rows, .threads = fin->n_workers, .stop = fin->stop};
    if (!rc) rc = wl_sort_rows(&sort, order, err);
  }
  wl_val comma = wl_text((const wl_u8 *)",", 1);
  for (wl_i64 i = 0; i < n && !rc; i++) {
    wl_u8 *e = f->set->entries[order[i]];
    wl_u64 place = f->set->places ? f->set->places[order[i]] : 0;
    const wl_u64 *words = f->set->places ? &place : (const wl_u64 *)(const void *)e;
    wl_val v = value_of(s, e, words);
    wl_u8 *to = group_of(f, e, words);
    if (!to) continue;
    if (acc->distinct == WL_DISTINCT_CONCAT) {
      if (v.t != WL_T_BLOB && v.t != WL_T_TEXT) v = wl_op_ToText(&ctx, v, wl_null(), 0);
    } else if (v.t >= WL_T_TEXT) {
      v = wl_op_SumArg(&ctx, v, wl_null(), 0);
    }
    wl_agg_in in = {v, comma, 0, fin->max_text, &f->groups->arenas[0]};
    rc = fault ? WL_NOMEM : wl_agg_add(&g->accs[f->acc], entry_state(g, to, f->acc), &in);
    if ((i & 1023) == 1023) wl_scratch_reset(&ctx);
    if (!rc) rc = wl_stop_at_row(fin->stop, i, err);
    if (rc == WL_NOMEM) rc = wl_nomem(err);
    if (rc == WL_TOOBIG) rc = wl_fail(err, WL_TOOBIG, "string or blob too big");
  }
  wl_scratch_close(&ctx);
  wl_conv_give(ctx.conv);
  wl_mem_free(rows);
  wl_mem_free(order);
  return rc;
}

wl_status wl_group_feed_set(const wl_finishing *fin, int k, joined *groups, wl_error *err) {
  joined *set = wl_mem_zalloc(sizeof *set);
  if (!set) return wl_nomem(err);
  const wl_grouping *plan = fin->plan->sets[k];
  feeding f = {.set = set, .groups = groups, .acc = groups->plan->p->sets[k].acc};
  wl_status rc = wl_group_join_all(fin, plan, k, set, err);
  if (!rc && set->n) {
    const wl_agg_how *h = &groups->plan->accs[f.acc];
    if (h->state != WL_STATE_COUNT) {
      bool done = false;
      if (groups->plan->p->n_keys == 0 && h->state == WL_STATE_NUMBERS && plan->mode != MODE_VALUES)
        rc = sum_values(fin, &f, &done, err);
      if (!rc && !done) rc = feed_values(fin, &f, err);
    } else if (groups->plan->p->n_keys == 0) {
      *(wl_i64 *)entry_state(groups->plan, groups->tables[0].entries, f.acc) = set->n;
    } else {
      bool array = plan->mode == MODE_DIRECT && plan->width == 0;
      f.parts = array ? 64 : (int)((set->n + STRETCH - 1) / STRETCH);
      wl_tasks tasks = {fin->n_workers, f.parts, count_task, &f, fin->stop};
      rc = wl_tasks_run(&tasks, NULL, err);
    }
  }
  wl_group_joined_close(set);
  wl_mem_free(set);
  return rc;
}
