/*
** The order in which groups are emitted: sorts the list of entries by the words or values of their
** keys, or by their first rows. See group_impl.h.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <string.h>

enum { STRETCH = 16384 };

typedef struct ordering {
  const wl_finishing *f;
  const joined *j;
  wl_u64 **words;
  const wl_key_layout *layout; /* of values; NULL: the entries have the words */
  bool by_first;
} ordering;

/* Computes words of keys that are values, for groups [from, to). */
static void words_of_values(const ordering *o, wl_i64 from, wl_i64 to) {
  for (int w = 0; w < o->layout->n_words; w++)
    memset(o->words[w] + from, 0, (size_t)(to - from) * sizeof **o->words);
  for (int k = 0; k < o->layout->n_parts; k++) {
    const wl_key_part *part = &o->layout->parts[k];
    wl_u64 *words = o->words[part->word];
    for (wl_i64 i = from; i < to; i++)
      words[i] = wl_key_append(part, words[i],
                               wl_key_first_code(part, wl_group_key(o->f, o->j, i, part->key)));
  }
}

static wl_status words_task(void *arg, int worker, long part, wl_error *err) {
  ordering *o = arg;
  (void)worker, (void)err;
  enum { BLOCK = 256 }; /* entries that stay in the cache */
  const wl_grouping *p = o->j->plan;
  wl_i64 from = (wl_i64)part * STRETCH, to = from + STRETCH < o->j->n ? from + STRETCH : o->j->n;
  for (wl_i64 i = from; i < to && o->layout; i += BLOCK)
    words_of_values(o, i, i + BLOCK < to ? i + BLOCK : to);
  for (wl_i64 i = from; i < to && !o->layout; i++) {
    wl_u8 *e = o->j->entries[i];
    if (o->by_first) o->words[0][i] = (wl_u64)*entry_first(p, e);
    for (int k = 0; k < p->words.n_words && !o->by_first; k++)
      o->words[k][i] = ((wl_u64 *)(void *)e)[k];
  }
  return WL_OK;
}

static void key_values(const void *arg, int key, const wl_u32 *rows, int n, wl_val *out) {
  const ordering *o = arg;
  if (o->j->plan->mode == MODE_VALUES)
    for (int i = 0; i < n; i++) __builtin_prefetch(&entry_values(o->j->entries[rows[i]])[key]);
  for (int i = 0; i < n; i++) out[i] = wl_group_key(o->f, o->j, rows[i], key);
}

static int by_values(const void *arg, wl_u32 a, wl_u32 b) {
  const ordering *o = arg;
  return wl_group_compare_keys(o->f, o->j, a, b);
}

/* Lays out keys that are values, up to the first that is of any type. Returns whether that is all
** of them. */
static bool lay_out_values(const wl_grouping *p, wl_key_layout *l) {
  for (int k = 0; k < p->n_keys; k++) {
    const wl_key *key = &p->p->keys[k];
    unsigned flags = key->desc ? WL_KEY_DESC | WL_KEY_NULL_LAST : 0;
    if (l->n_words >= WL_MAX_WORDS) return false;
    if (key->reg.type == WL_R_TEXT)
      wl_key_layout_add_text(l, k, p->colls[k], flags);
    else if (!wl_key_layout_add(l, k, key->reg, &key->domain, flags)) {
      wl_key_layout_add_prefix(l, k, p->colls[k], flags);
      return false;
    }
  }
  return true;
}

/* A stretch of the list of entries in its new order. */
typedef struct rearranging {
  const joined *j;
  const wl_u32 *order;
  wl_u8 **entries;
  wl_u32 *places, *numbers; /* or NULL */
} rearranging;

static wl_status rearrange_task(void *arg, int worker, long part, wl_error *err) {
  rearranging *r = arg;
  (void)worker, (void)err;
  wl_i64 from = (wl_i64)part * STRETCH, to = from + STRETCH < r->j->n ? from + STRETCH : r->j->n;
  for (wl_i64 i = from; i < to; i++) r->entries[i] = r->j->entries[r->order[i]];
  for (wl_i64 i = from; i < to && r->places; i++) r->places[i] = r->j->places[r->order[i]];
  for (wl_i64 i = from; i < to && r->numbers; i++) r->numbers[i] = r->j->numbers[r->order[i]];
  return WL_OK;
}

/* Computes the order of the entries. */
static wl_status sort_entries(const wl_finishing *f, const joined *j, bool by_first, wl_u32 *order,
                              wl_error *err) {
  const wl_grouping *p = j->plan;
  bool values = (p->mode == MODE_VALUES || p->p->n_finds) && !by_first;
  wl_arena arena;
  wl_arena_init(&arena);
  wl_key_layout l = {.parts = WL_NEW_N(&arena, wl_key_part, 2 * p->n_keys + 1)};
  bool ok = l.parts != NULL, exact = !values || (ok && lay_out_values(p, &l));
  int n_words = by_first ? 1 : values ? l.n_words : p->words.n_words;
  wl_u64 **words = wl_mem_zalloc((size_t)n_words * sizeof *words);
  for (int k = 0; k < n_words && ok; k++)
    ok = words && (words[k] = wl_mem_alloc((size_t)j->n * sizeof **words)) != NULL;
  wl_status rc = ok ? WL_OK : wl_nomem(err);
  ordering o = {f, j, words, values ? &l : NULL, by_first};
  wl_tasks tasks = {f->n_workers, (j->n + STRETCH - 1) / STRETCH, words_task, &o, f->stop};
  if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
  wl_sort s = {.n = j->n,
               .n_words = n_words,
               .words = words,
               .layout = o.layout,
               .values = key_values,
               .tie = exact ? NULL : by_values,
               .arg = &o,
               .threads = f->n_workers,
               .stop = f->stop};
  if (!rc) rc = wl_sort_rows(&s, order, err);
  for (int k = 0; words && k < n_words; k++) wl_mem_free(words[k]);
  wl_mem_free(words);
  wl_arena_close(&arena);
  return rc;
}

static wl_status put_in_order(const wl_finishing *f, joined *j, bool by_first, wl_error *err) {
  if (j->n <= 1) return WL_OK;
  wl_u32 *order = wl_mem_alloc((size_t)j->n * sizeof *order);
  wl_u8 **entries = wl_mem_alloc((size_t)j->n * sizeof *entries);
  wl_u32 *places = j->places ? wl_mem_alloc((size_t)j->n * sizeof *places) : NULL;
  wl_u32 *numbers = j->numbers ? wl_mem_alloc((size_t)j->n * sizeof *numbers) : NULL;
  bool ok = order && entries && (places || !j->places) && (numbers || !j->numbers);
  wl_status rc = ok ? sort_entries(f, j, by_first, order, err) : wl_nomem(err);
  if (!rc) {
    rearranging r = {j, order, entries, places, numbers};
    wl_tasks tasks = {f->n_workers, (j->n + STRETCH - 1) / STRETCH, rearrange_task, &r, f->stop};
    rc = wl_tasks_run(&tasks, NULL, err);
  }
  if (!rc) {
    wl_u8 **old = j->entries;
    j->entries = entries;
    entries = old;
    wl_u32 *was = j->places;
    j->places = places;
    places = was;
    was = j->numbers;
    j->numbers = numbers;
    numbers = was;
  }
  wl_mem_free(order);
  wl_mem_free(entries);
  wl_mem_free(places);
  wl_mem_free(numbers);
  return rc;
}

wl_status wl_group_put_in_order(const wl_finishing *f, joined *j, wl_error *err) {
  const wl_program *p = j->plan->p;
  bool sorted = j->plan->mode == MODE_DIRECT && !p->n_finds; /* places are in key order */
  wl_status rc = WL_OK;
  if (p->n_finds) rc = wl_group_compute_keys(f, j, err);
  if (!rc && (p->n_finds || !(p->by_first || sorted))) rc = put_in_order(f, j, false, err);
  if (!rc && p->n_finds) rc = wl_group_join_equal(f, j, err);
  if (!rc && p->by_first) rc = put_in_order(f, j, true, err);
  return rc;
}
