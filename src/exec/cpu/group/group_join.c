/*
** Joins the groups of all workers and turns them into columns; see group.h. Every step is divided
** among the threads: by hash (or by range of the direct array), then by range of the result.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <stdatomic.h>
#include <string.h>

enum { FEW = 8192, STRETCH = 16384, FILL = 2048 };

/* ---- joining */

typedef struct group_joining {
  const wl_grouping *plan;
  wl_groups **from; /* [n_from] */
  int n_from;
  int parts; /* 1: all parts go into one table */
  joined *out;
  atomic_llong n_groups; /* number of groups in all parts so far */
  wl_stop *stop;
} group_joining;

enum { READ = 4096 }; /* entries read from disk at once */

static wl_status join_run(group_joining *j, group_table *t, wl_arena *arena, const wl_u8 *e,
                          wl_i64 n) {
  const wl_grouping *p = j->plan;
  enum { AHEAD = 16 };
  wl_u64 hash[AHEAD];
  wl_status rc = WL_OK;
  for (wl_i64 at = 0; at < n && !rc; at += AHEAD) {
    int m = n - at < AHEAD ? (int)(n - at) : AHEAD;
    if (wl_group_room(p, t, m)) return WL_NOMEM;
    for (int i = 0; i < m; i++) {
      hash[i] = wl_group_hash_entry(p, e + (size_t)i * p->width);
      __builtin_prefetch(&t->slots[hash[i] & (t->n_slots - 1)]);
    }
    for (int i = 0; i < m && !rc; i++, e += p->width) {
      wl_u64 slot;
      wl_i64 have = wl_group_look(p, t, hash[i], e, &slot);
      if (have >= 0) {
        rc = wl_group_join(p, arena, entry_at(p, t, have), e);
        continue;
      }
      memcpy(entry_at(p, t, t->n), e, p->width);
      t->slots[slot] = (hash[i] & ~0xffffffffULL) | (wl_u64)(++t->n);
    }
  }
  return rc;
}

/* Checks that the joined groups fit into memory. n_new: groups that came to a part just now. */
static wl_status check_room(group_joining *j, const group_table *t, wl_i64 n_new) {
  const wl_grouping *p = j->plan;
  long long all = atomic_fetch_add(&j->n_groups, n_new) + n_new;
  if (j->out->count_only) all = t->n * p->n_workers; /* finished parts are freed */
  return p->left && all * p->group_bytes > p->left ? WL_NOT_TAKEN : WL_OK;
}

/* Joins entries [from, to) of a run, which may be on disk. */
static wl_status join_stretch(group_joining *j, const wl_groups *w, const group_run *r, wl_i64 from,
                              wl_i64 to, int worker, long part, wl_u8 **room) {
  const wl_grouping *p = j->plan;
  group_table *t = &j->out->tables[part];
  wl_status rc = WL_OK;
  for (wl_i64 at = from; at < to && !rc && !wl_stop_now(j->stop, worker); at += READ) {
    wl_i64 n = to - at < READ ? to - at : READ, before = t->n;
    const wl_u8 *e = r->entries + (size_t)at * p->width;
    if (!r->entries) {
      if (!*room) *room = wl_mem_alloc(READ * p->width + 1);
      if (!*room) return WL_NOMEM;
      rc = wl_group_read(w, r, at, at + n, *room);
      e = *room;
    }
    if (!rc) rc = join_run(j, t, &j->out->arenas[part], e, n);
    if (!rc) rc = check_room(j, t, t->n - before);
  }
  return rc;
}

/* Joins a list of words, each of which is an entry. */
static wl_status join_words(group_joining *j, const wl_groups *w, int worker, long part, int list) {
  group_table *t = &j->out->tables[part];
  const word_chunk *at = NULL;
  wl_status rc = WL_OK;
  wl_i64 n;
  for (const wl_u64 *words; !rc && (words = wl_group_words(w, list, &at, &n));) {
    wl_i64 before = t->n;
    if (wl_stop_now(j->stop, worker)) break;
    rc = join_run(j, t, &j->out->arenas[part], (const wl_u8 *)words, n);
    if (!rc) rc = check_room(j, t, t->n - before);
  }
  return rc;
}

static wl_status join_task(void *arg, int worker, long part, wl_error *err) {
  group_joining *j = arg;
  (void)err; /* WL_NOT_TAKEN: the runner knows how much memory there is */
  wl_i64 n = 0;
  int first = j->parts == 1 ? 0 : (int)part, end = j->parts == 1 ? N_PARTS : first + 1;
  for (int w = 0; w < j->n_from; w++) {
    for (group_run *r = j->from[w]->runs; r; r = r->next) n += r->starts[end] - r->starts[first];
    for (int k = first; k < end && j->from[w]->lists; k++) n += j->from[w]->lists->n[k];
  }
  group_table *t = &j->out->tables[part];
  wl_status rc = WL_OK;
  wl_i64 guess = n < FEW || j->out->count_only ? n : n / 2;
  if (j->plan->left && guess * N_PARTS > j->plan->left / j->plan->group_bytes && guess > FEW)
    guess = FEW; /* take no more memory than needed */
  if (n) rc = wl_group_room(j->plan, t, guess);
  wl_u8 *room = NULL;
  for (int w = 0; w < j->n_from && !rc; w++)
    for (group_run *r = j->from[w]->runs; r && !rc; r = r->next)
      rc = join_stretch(j, j->from[w], r, r->starts[first], r->starts[end], worker, part, &room);
  for (int w = 0; w < j->n_from && !rc; w++)
    for (int k = first; k < end && !rc; k++) rc = join_words(j, j->from[w], worker, part, k);
  wl_mem_free(room);
  if (j->plan->n_sets == 0 || j->out->count_only) {
    wl_mem_free(t->slots); /* they are not needed any more */
    t->slots = NULL;
    t->n_slots = 0;
  }
  if (j->out->count_only) {
    wl_mem_free(t->entries);
    t->entries = NULL;
  }
  return rc;
}

/* Direct mode: joins a range of all workers' arrays into the first worker's array. */
static wl_status join_direct_task(void *arg, int worker, long part, wl_error *err) {
  group_joining *j = arg;
  (void)worker;
  (void)err;
  const wl_grouping *p = j->plan;
  wl_u64 from, to;
  wl_group_range(p, j->parts, part, &from, &to);
  wl_u8 *seen = j->from[0]->seen, *entries = j->from[0]->table.entries;
  wl_status rc = WL_OK;
  for (int w = 1; w < j->n_from && !rc; w++) {
    const wl_u8 *other = j->from[w]->seen, *source = j->from[w]->table.entries;
    if (p->width == 0) {
      for (wl_u64 i = from; i < to; i++) seen[i] |= other[i];
      continue;
    }
    for (wl_u64 i = from; i < to && !rc; i++) {
      if (!other[i]) continue;
      if (seen[i])
        rc = wl_group_join(p, &j->out->arenas[part], entries + i * p->width, source + i * p->width);
      else
        memcpy(entries + i * p->width, source + i * p->width, p->width);
      seen[i] = 1;
    }
  }
  wl_i64 n = 0;
  for (wl_u64 i = from; i < to; i++) n += seen[i];
  j->out->tables[part].n = n; /* for now: the number of groups in this range */
  return rc;
}

static wl_status list_task(void *arg, int worker, long part, wl_error *err) {
  group_joining *j = arg;
  (void)worker, (void)err;
  const wl_grouping *p = j->plan;
  wl_i64 at = 0;
  for (int k = 0; k < part; k++) at += j->out->tables[k].n;
  if (p->mode != MODE_DIRECT) {
    group_table *t = &j->out->tables[part];
    for (wl_i64 i = 0; i < t->n; i++) j->out->entries[at++] = entry_at(p, t, i);
    return WL_OK;
  }
  wl_u64 from, to;
  wl_group_range(p, j->parts, part, &from, &to);
  for (wl_u64 i = from; i < to; i++) {
    if (!j->out->seen[i]) continue;
    j->out->entries[at] = j->out->tables[0].entries + i * p->width;
    j->out->places[at++] = (wl_u32)i;
  }
  return WL_OK;
}

/* Sets aside the groups of one worker. */
static wl_status set_aside_task(void *arg, int worker, long w, wl_error *err) {
  group_joining *j = arg;
  (void)worker, (void)err;
  wl_status rc = wl_group_set_aside(j->from[w]);
  wl_group_table_close(&j->from[w]->table);
  return rc;
}

/* Frees what a worker has set aside. */
static wl_status free_task(void *arg, int worker, long w, wl_error *err) {
  group_joining *j = arg;
  (void)worker, (void)err;
  wl_group_runs_free(j->from[w]);
  return WL_OK;
}

wl_status wl_group_join_all(const wl_finishing *f, const wl_grouping *plan, int set, joined *out,
                            wl_error *err) {
  memset(out, 0, sizeof *out);
  out->plan = plan;
  out->count_only = set >= 0 && plan->p->n_keys == 0 &&
                    f->plan->accs[plan->p->sets[set].acc].state == WL_STATE_COUNT;
  for (int k = 0; k < N_PARTS; k++) wl_arena_init(&out->arenas[k]);
  wl_groups **from = wl_mem_zalloc(((size_t)f->n_workers + 1) * sizeof *from);
  if (!from) return wl_nomem(err);
  group_joining j = {.plan = plan, .from = from, .parts = N_PARTS, .out = out, .stop = f->stop};
  atomic_init(&j.n_groups, 0);
  for (int w = 0; w < f->n_workers; w++) {
    if (!f->workers[w]) continue;
    from[j.n_from++] = set < 0 ? f->workers[w] : f->workers[w]->sets[set];
  }
  wl_status rc = WL_OK;
  wl_i64 total = 0;
  bool direct = plan->mode == MODE_DIRECT;
  if (j.n_from == 0) {
    wl_mem_free(from);
    return WL_OK;
  }
  if (plan->scatter) {
    rc = wl_group_join_scattered(f, plan, from, j.n_from, out, err);
  } else if (direct) {
    if (plan->n_direct < FEW) j.parts = 1;
    wl_tasks tasks = {f->n_workers, j.parts, join_direct_task, &j, f->stop};
    rc = wl_tasks_run(&tasks, NULL, err);
    out->tables[0].entries = from[0]->table.entries;
    out->seen = from[0]->seen;
    from[0]->table.entries = NULL;
    from[0]->seen = NULL;
  } else if (j.n_from == 1 && !from[0]->runs && !from[0]->lists) {
    out->tables[0] = from[0]->table;
    memset(&from[0]->table, 0, sizeof from[0]->table);
    j.parts = 1;
  } else {
    wl_tasks aside = {f->n_workers, j.n_from, set_aside_task, &j, f->stop};
    rc = wl_tasks_run(&aside, NULL, err);
    for (int w = 0; w < j.n_from; w++) total += from[w]->n_set_aside;
    bool done = false;
    if (!rc && out->count_only && plan->only_words)
      rc = wl_group_count_words(f, plan, from, j.n_from, out, &done, err);
    if (total < FEW && !done) j.parts = 1;
    wl_tasks tasks = {f->n_workers, j.parts, join_task, &j, f->stop};
    if (!rc && !done) rc = wl_tasks_run(&tasks, NULL, err);
    wl_tasks freeing = {f->n_workers, j.n_from, free_task, &j, f->stop};
    if (!rc) rc = wl_tasks_run(&freeing, NULL, err);
  }
  for (int k = 0; k < j.parts; k++) out->n += out->tables[k].n;
  if (!rc && out->n >= 0xffffffffLL)
    rc = wl_fail(err, WL_NOMEM, "out of memory: more than 2^32 groups");
  if (!rc && !out->count_only && !(set >= 0 && direct && plan->width == 0)) {
    out->entries = wl_mem_alloc((size_t)(out->n + 1) * sizeof *out->entries);
    if (direct) out->places = wl_mem_alloc((size_t)(out->n + 1) * sizeof *out->places);
    if (!out->entries || (direct && !out->places)) rc = wl_nomem(err);
    wl_tasks tasks = {f->n_workers, j.parts, list_task, &j, f->stop};
    if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
  }
  wl_mem_free(from);
  return rc;
}

void wl_group_joined_close(joined *j) {
  for (int k = 0; k < N_PARTS; k++) {
    wl_group_table_close(&j->tables[k]);
    wl_arena_close(&j->arenas[k]);
  }
  wl_mem_free(j->seen);
  wl_mem_free(j->entries);
  wl_mem_free(j->places);
  wl_group_free_keys(j);
  memset(j, 0, sizeof *j);
}

wl_u8 *wl_group_entry(const joined *j, const wl_u64 *words, const wl_val *values) {
  const wl_grouping *p = j->plan;
  if (p->mode == MODE_DIRECT) return j->tables[0].entries + words[0] * p->width;
  wl_u64 slot, hash = p->mode == MODE_WORDS ? hash_words(words, p->words.n_words)
                                            : wl_group_hash_values(p, values);
  const wl_u8 *key = p->mode == MODE_WORDS ? (const wl_u8 *)words : (const wl_u8 *)values - 8;
  /* If there were few groups, the first table holds all of them. */
  for (int k = 0; k < 2; k++) {
    const group_table *t = &j->tables[k ? 0 : hash >> PART_SHIFT];
    if (!t->n_slots) continue;
    wl_i64 i = wl_group_look(p, t, hash, key, &slot);
    if (i >= 0) return entry_at(p, t, i);
  }
  return NULL;
}

/* ---- columns */

wl_status wl_srccols_make(const wl_reg *regs, int n_cols, wl_i64 n, wl_srccol **out, void **memory,
                          wl_error *err) {
  size_t rows = ((size_t)n + 63) & ~(size_t)63,
         head = ((size_t)n_cols * sizeof **out + 63) & ~63ULL;
  size_t bytes = head;
  for (int k = 0; k < n_cols; k++) bytes += rows * (8 + 4 + 1);
  wl_u8 *at = *memory = wl_mem_alloc(bytes);
  if (!at) return wl_nomem(err);
  wl_srccol *c = *out = (wl_srccol *)(void *)at;
  memset(c, 0, head);
  at += head;
  for (int k = 0; k < n_cols; k++) {
    c[k].reg = regs[k];
    c[k].v = (wl_u64 *)(void *)at;
    at += rows * 8;
    if (regs[k].type >= WL_R_TEXT) c[k].n = (wl_u32 *)(void *)at;
    at += rows * 4;
    if (regs[k].nullable || regs[k].type == WL_R_ANY) c[k].t = at;
    at += rows;
  }
  return WL_OK;
}

typedef struct group_filling {
  const wl_finishing *f;
  joined *j;
  wl_finished *out;
  wl_i64 n_tasks;
  wl_i64 *failed_at; /* [n_tasks]: the first group whose sum() overflows, or -1 */
} group_filling;

static wl_i64 bare_row(const wl_grouping *p, const wl_bare *b, wl_u8 *e) {
  if (b->acc < 0) return *entry_first(p, e);
  return wl_agg_row(&p->accs[b->acc], entry_state(p, e, b->acc));
}

/* Fills a range of a key's column if the key is an integer without NULLs, which is one part of one
** word. False: it is not. */
static bool fill_integers(const group_filling *l, int key, wl_i64 from, wl_i64 to) {
  const wl_grouping *g = l->j->plan;
  const wl_key_part *part = NULL;
  for (int k = 0; k < g->words.n_parts && !part; k++)
    if (g->words.parts[k].key == key) part = &g->words.parts[k];
  wl_srccol *c = &l->out->cols[key];
  if (g->mode == MODE_VALUES || g->p->n_finds || !part || part->kind != WL_PART_INT || part->null ||
      c->t)
    return false;
  const wl_u64 below = part->below, span = part->span, base = wl_key_base(part);
  for (wl_i64 i = from; i < to; i++) {
    wl_u64 code = g->mode == MODE_DIRECT
                      ? l->j->places[i]
                      : ((const wl_u64 *)(const void *)l->j->entries[i])[part->word];
    if (below != 1) code /= below;
    if (span && code >= span) code %= span;
    c->v[i] = part->desc ? base - code : code + base;
  }
  return true;
}

/* Fills a range of the columns. An error ends the groups there: failed_at is the first group with
** one. */
static wl_status fill_task(void *arg, int worker, long task, wl_error *err) {
  group_filling *l = arg;
  (void)worker;
  const wl_grouping *g = l->j->plan;
  const wl_program *p = g->p;
  wl_i64 from = (wl_i64)task * FILL, to = from + FILL < l->j->n ? from + FILL : l->j->n;
  bool none = l->out->n == 1 && l->j->n == 0; /* the one group of an empty input */
  if (none) to = 1;
  wl_u8 **entries = l->j->entries;
  wl_status rc = WL_OK;
  l->failed_at[task] = -1;
  /* In key order, entries are spread over memory, so prefetch them. */
  for (wl_i64 i = from; i < to; i++)
    for (size_t b = 0; b < g->width; b += 64) __builtin_prefetch(entries[i] + b);
  for (int k = 0; k < p->n_keys; k++) {
    if (!none && fill_integers(l, k, from, to)) continue;
    for (wl_i64 i = from; i < to; i++)
      wl_srccol_put(&l->out->cols[k], i, wl_group_key(l->f, l->j, i, k));
  }
  for (int a = 0; a < p->n_aggs; a++)
    for (wl_i64 i = from; i < to; i++) {
      wl_val v = wl_null();
      wl_error why = {0};
      wl_status bad = wl_group_final(g, &p->aggs[a], entries[i], l->f->in_order, &v, &why);
      if (bad && (l->failed_at[task] < 0 || i < l->failed_at[task])) {
        l->failed_at[task] = i;
        *err = why;
        rc = bad;
      }
      wl_srccol_put(&l->out->cols[p->n_keys + a], i, v);
    }
  for (int k = 0; k < p->n_bares; k++)
    for (wl_i64 i = from; i < to; i++) {
      wl_val v = wl_null();
      if (!none)
        v = wl_column_stored(l->f->cols[p->bares[k].column], bare_row(g, &p->bares[k], entries[i]));
      wl_srccol_put(&l->out->cols[p->n_keys + p->n_aggs + k], i, v);
    }
  return rc;
}

/* The search for a sum() that may overflow, which depends on the order of rows. */
typedef struct doubt {
  const joined *j;
  int acc;
  atomic_bool unsure;
} doubt;

static wl_status doubt_task(void *arg, int worker, long part, wl_error *err) {
  doubt *d = arg;
  (void)worker, (void)err;
  const wl_grouping *g = d->j->plan;
  wl_i64 from = (wl_i64)part * STRETCH, to = from + STRETCH < d->j->n ? from + STRETCH : d->j->n;
  bool unsure = atomic_load_explicit(&d->unsure, memory_order_relaxed);
  for (wl_i64 i = from; i < to && !unsure; i++)
    unsure = wl_agg_unsure(&g->accs[d->acc], entry_state(g, d->j->entries[i], d->acc));
  if (unsure) atomic_store_explicit(&d->unsure, true, memory_order_relaxed);
  return WL_OK;
}

/* Finds out whether some sum() may overflow. Distinct values are added in row order anyway. */
static wl_status find_unsure(const wl_finishing *f, const joined *j, bool *unsure, wl_error *err) {
  const wl_grouping *g = j->plan;
  wl_status rc = WL_OK;
  *unsure = false;
  for (int a = 0; a < g->p->n_aggs && !rc && !*unsure; a++) {
    int k = g->p->aggs[a].acc;
    if (g->p->aggs[a].final != WL_AGG_SUM || g->p->accs[k].op == WL_OP__AggDistinct) continue;
    doubt d = {.j = j, .acc = k};
    wl_tasks tasks = {f->n_workers, (j->n + STRETCH - 1) / STRETCH, doubt_task, &d, f->stop};
    rc = wl_tasks_run(&tasks, NULL, err);
    *unsure = d.unsure;
  }
  return rc;
}

static wl_status fill(const wl_finishing *f, joined *j, wl_finished *out, wl_error *err) {
  const wl_program *p = j->plan->p;
  int n_cols = p->n_keys + p->n_aggs + p->n_bares;
  wl_reg *regs = wl_mem_alloc(((size_t)n_cols + 1) * sizeof *regs);
  if (!regs) return wl_nomem(err);
  for (int k = 0; k < n_cols; k++)
    regs[k] = k < p->n_keys               ? p->keys[k].reg
              : k < p->n_keys + p->n_aggs ? p->aggs[k - p->n_keys].reg
                                          : p->bares[k - p->n_keys - p->n_aggs].reg;
  out->n = j->n;
  out->n_cols = n_cols;
  wl_u8 *empty = NULL, *list[1];
  if (j->n == 0 && p->one_group) {
    out->n = 1;
    list[0] = empty = wl_mem_zalloc(j->plan->width + 16);
  }
  group_filling l = {.f = f, .j = j, .out = out, .n_tasks = (out->n + FILL - 1) / FILL};
  l.failed_at = wl_mem_alloc(((size_t)l.n_tasks + 1) * sizeof *l.failed_at);
  wl_status rc = l.failed_at && (empty || out->n == j->n) ? WL_OK : wl_nomem(err);
  wl_u8 **entries = j->entries;
  if (empty) j->entries = list;
  if (!rc) rc = wl_srccols_make(regs, n_cols, out->n, &out->cols, &out->memory, err);
  if (!rc) out->n_bytes = out->n * n_cols * (8 + 4 + 1);
  wl_tasks tasks = {f->n_workers, l.n_tasks, fill_task, &l, f->stop};
  long n_done;
  bool failed = !rc && wl_tasks_run(&tasks, &n_done, &out->late);
  rc = wl_stop_or(f->stop, rc, err);
  if (!rc && failed) out->n = l.failed_at[n_done];
  j->entries = entries;
  wl_mem_free(empty);
  wl_mem_free(regs);
  wl_mem_free(l.failed_at);
  return rc;
}

wl_status wl_groups_finish(const wl_finishing *f, wl_finished *out, wl_error *err) {
  memset(out, 0, sizeof *out);
  joined *j = wl_mem_zalloc(sizeof *j);
  if (!j) return wl_nomem(err);
  wl_status rc = wl_group_join_all(f, f->plan, -1, j, err);
  out->joined = j;
  j->plan = f->plan;
  if (!rc && !f->in_order) rc = find_unsure(f, j, &out->again, err);
  if (rc || out->again) return rc;
  for (int k = 0; k < f->plan->n_sets && !rc; k++) rc = wl_group_feed_set(f, k, j, err);
  if (!rc) rc = wl_group_put_in_order(f, j, err);
  if (!rc) rc = fill(f, j, out, err);
  return rc;
}

void wl_finished_close(wl_finished *f) {
  wl_mem_free(f->memory);
  if (f->joined) wl_group_joined_close(f->joined);
  wl_mem_free(f->joined);
  memset(f, 0, sizeof *f);
}
