/*
** DISTINCT and ORDER BY over collected batches; see order.h. It sorts places (batch, row) and
** copies the rows once, at the end.
*/
#include "exec/order.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "base/threads.h"
#include "column/column.h"
#include "exec/cpu/encode.h"
#include "exec/sort.h"
#include "plan/cut.h"
#include "value/hash.h"
#include <stdlib.h>
#include <string.h>

enum { STRETCH = 1 << 14 };

/* A row of the collected batches. */
typedef struct row_place {
  wl_u32 batch, row;
} row_place;

typedef struct rows {
  const wl_program *p;
  const wl_reg *regs;
  wl_batch **batches;
  int n_batches;
  row_place *at; /* [n] */
  wl_i64 n;
  int threads;
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
} rows;

/* Checks for an interrupt every 2^20 rows. */
static wl_status ask(const rows *r, wl_i64 i, wl_error *err) {
  return (i & 0xfffff) == 0xfffff && r->check ? r->check(r->check_arg, err) : WL_OK;
}

static wl_val value(const rows *r, row_place at, int col) {
  return wl_batch_value(r->batches[at.batch], r->regs, col, at.row);
}

/* ---- keys as words */

typedef struct encoding {
  const rows *r;
  const wl_key_layout *layout;
  const wl_order *order; /* what the keys are; NULL: key k is column k */
  wl_u64 **words;        /* [n_words][r->n] */
} encoding;

/* Encodes the keys of a range of rows. */
static void encode_task(void *arg, int worker, long task) {
  const encoding *e = arg;
  (void)worker;
  const rows *r = e->r;
  wl_i64 from = (wl_i64)task * STRETCH, to = from + STRETCH < r->n ? from + STRETCH : r->n;
  wl_u64 v[WL_VECTOR];
  wl_u32 len[WL_VECTOR];
  wl_u8 t[WL_VECTOR];
  for (wl_i64 at = from; at < to; at += WL_VECTOR) {
    int n = to - at < WL_VECTOR ? (int)(to - at) : WL_VECTOR;
    for (int k = 0; k < e->layout->n_parts; k++) {
      const wl_key_part *part = &e->layout->parts[k];
      int col = e->order ? e->order[part->key].result : part->key;
      for (int i = 0; i < n; i++) {
        wl_val x = value(r, r->at[at + i], col);
        v[i] = x.t == WL_T_NULL ? 0 : x.v;
        len[i] = x.n;
        t[i] = x.t;
      }
      /* the types serve as tags of ANY, and as NULL or not of numbers */
      wl_u8 type = part->kind == WL_PART_PREFIX ? WL_R_ANY : r->regs[col].type;
      wl_vec q = {.type = type, .stride = 1, .v = v, .n = len, .t = part->null ? t : NULL};
      bool first = k == 0 || part[-1].word != part->word;
      wl_encode_part(part, first, &q, n, e->words[part->word] + at);
    }
  }
}

static void free_words(wl_u64 **words, int n_words) {
  for (int k = 0; words && k < n_words; k++) wl_mem_free(words[k]);
  wl_mem_free(words);
}

/* Computes the words of all rows. The caller frees them, also after a failure. */
static wl_status make_words(const rows *r, const wl_key_layout *l, const wl_order *order,
                            wl_u64 ***out, wl_error *err) {
  wl_u64 **words = *out = wl_mem_zalloc(((size_t)l->n_words + 1) * sizeof *words);
  for (int k = 0; k < l->n_words && words; k++)
    if (!(words[k] = wl_mem_alloc((size_t)r->n * sizeof **words + 1))) return wl_nomem(err);
  if (!words) return wl_nomem(err);
  encoding e = {r, l, order, words};
  wl_threads_run(r->threads, (r->n + STRETCH - 1) / STRETCH, encode_task, &e);
  return WL_OK;
}

/* ---- DISTINCT: keeps the first of equal rows. It compares words if all columns are numbers. */

typedef struct distinct_rows {
  rows *r;
  int n_words; /* 0: values are compared */
  wl_u64 **words;
  wl_u32 *first; /* words: the row, as the words count it, of each row that stays */
} distinct_rows;

static wl_u64 hash_row(const distinct_rows *d, wl_i64 i) {
  const rows *r = d->r;
  wl_u64 h = 0;
  for (int k = 0; k < d->n_words; k++) h = wl_hash_mix(h, d->words[k][i]);
  for (int k = 0; k < r->p->n_given && !d->n_words; k++)
    h = wl_hash_mix(h, wl_hash_val(value(r, r->at[i], k), r->p->distinct_colls[k]));
  return h;
}

/* Whether row i equals the row that stays at `stays`. */
static bool same(const distinct_rows *d, wl_u32 stays, wl_i64 i) {
  const rows *r = d->r;
  for (int k = 0; k < d->n_words; k++)
    if (d->words[k][d->first[stays]] != d->words[k][i]) return false;
  for (int k = 0; k < r->p->n_given && !d->n_words; k++)
    if (wl_cmp_val(value(r, r->at[stays], k), value(r, r->at[i], k), r->p->distinct_colls[k]) != 0)
      return false;
  return true;
}

static wl_status keep_distinct(distinct_rows *d, wl_u32 *slots, wl_u64 n_slots, wl_u64 *hashes,
                               wl_error *err) {
  rows *r = d->r;
  wl_i64 kept = 0;
  for (wl_i64 i = 0; i < r->n; i++) {
    wl_status rc = ask(r, i, err);
    if (rc) return rc;
    wl_u64 h = hash_row(d, i), s = h & (n_slots - 1);
    while (slots[s] && (hashes[slots[s] - 1] != h || !same(d, slots[s] - 1, i)))
      s = (s + 1) & (n_slots - 1);
    if (slots[s]) continue;
    r->at[kept] = r->at[i];
    if (d->first) d->first[kept] = (wl_u32)i;
    hashes[kept] = h;
    slots[s] = (wl_u32)++kept;
  }
  r->n = kept;
  return WL_OK;
}

static wl_status make_distinct(rows *r, wl_error *err) {
  distinct_rows d = {.r = r};
  wl_arena arena;
  wl_arena_init(&arena);
  wl_key_layout l = {.parts = WL_NEW_N(&arena, wl_key_part, 2 * r->p->n_given + 1)};
  wl_status rc = l.parts ? WL_OK : wl_nomem(err);
  bool numbers = !rc;
  for (int k = 0; k < r->p->n_given && numbers; k++) {
    wl_domain domain = wl_result_domain(&r->p->results[k]);
    numbers = wl_key_layout_add(&l, k, r->regs[k], &domain, 0) && l.n_words <= WL_MAX_WORDS;
  }
  wl_u64 n_slots = 1024;
  while (n_slots < (wl_u64)r->n * 2) n_slots *= 2;
  wl_u32 *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  wl_u64 *hashes = wl_mem_alloc((size_t)(r->n + 1) * sizeof *hashes);
  if (!rc && (!slots || !hashes)) rc = wl_nomem(err);
  if (!rc && numbers) {
    d.n_words = l.n_words;
    d.first = wl_mem_alloc((size_t)(r->n + 1) * sizeof *d.first);
    rc = d.first ? make_words(r, &l, NULL, &d.words, err) : wl_nomem(err);
  }
  if (!rc) rc = keep_distinct(&d, slots, n_slots, hashes, err);
  free_words(d.words, d.n_words);
  wl_mem_free(d.first);
  wl_mem_free(slots);
  wl_mem_free(hashes);
  wl_arena_close(&arena);
  return rc;
}

/* ---- ORDER BY: by words as far as they go, then by comparing */

static int compare(const rows *r, row_place a, row_place b) {
  for (int k = 0; k < r->p->n_order; k++) {
    const wl_order *o = &r->p->order[k];
    wl_val x = value(r, a, o->result), y = value(r, b, o->result);
    if (x.t == WL_T_NULL || y.t == WL_T_NULL) {
      if (x.t == y.t) continue;
      return (x.t == WL_T_NULL) == o->nulls_last ? 1 : -1;
    }
    int c = wl_cmp_val(x, y, o->coll);
    if (c) return o->desc ? -c : c;
  }
  return 0;
}

static int tie(const void *arg, wl_u32 a, wl_u32 b) {
  const rows *r = arg;
  return compare(r, r->at[a], r->at[b]);
}

/* Lays out the sort keys: numbers, and the start of the first key that is no number. Returns
** whether the words alone give the order. */
static bool lay_out_keys(const rows *r, wl_key_layout *l) {
  for (int k = 0; k < r->p->n_order; k++) {
    const wl_order *o = &r->p->order[k];
    wl_domain domain = wl_result_domain(&r->p->results[o->result]);
    unsigned flags = (o->desc ? WL_KEY_DESC : 0) | (o->nulls_last ? WL_KEY_NULL_LAST : 0);
    if (l->n_words >= WL_MAX_WORDS) return false;
    if (wl_key_layout_add(l, k, r->regs[o->result], &domain, flags)) continue;
    wl_key_layout_add_prefix(l, k, o->coll, flags);
    return false;
  }
  return true;
}

static wl_status sort(rows *r, wl_error *err) {
  wl_arena arena;
  wl_arena_init(&arena);
  wl_key_layout l = {.parts = WL_NEW_N(&arena, wl_key_part, 2 * r->p->n_order + 1)};
  wl_u32 *order = wl_mem_alloc((size_t)r->n * sizeof *order);
  row_place *at = wl_mem_alloc((size_t)r->n * sizeof *at);
  wl_u64 **words = NULL;
  bool ok = l.parts && order && at, exact = ok && lay_out_keys(r, &l);
  wl_status rc =
      ok && r->n < 0xffffffffLL ? make_words(r, &l, r->p->order, &words, err) : wl_nomem(err);
  if (!rc) {
    wl_sort s = {.n = r->n,
                 .n_words = l.n_words,
                 .words = words,
                 .tie = exact ? NULL : tie,
                 .tie_arg = r,
                 .threads = r->threads,
                 .check = r->check,
                 .check_arg = r->check_arg};
    rc = wl_sort_rows(&s, order, err);
  }
  if (!rc) {
    for (wl_i64 i = 0; i < r->n; i++) at[i] = r->at[order[i]];
    row_place *was = r->at;
    r->at = at;
    at = was;
  }
  free_words(words, l.n_words);
  wl_mem_free(order);
  wl_mem_free(at);
  wl_arena_close(&arena);
  return rc;
}

/* ---- LIMIT: only the first rows need sorting */

/* Whether row i comes before row j. Equal rows keep their order. */
static bool before(const rows *r, wl_i64 i, wl_i64 j) {
  int c = compare(r, r->at[i], r->at[j]);
  return c ? c < 0 : i < j;
}

static int by_number(const void *a, const void *b) {
  wl_i64 x = *(const wl_i64 *)a, y = *(const wl_i64 *)b;
  return x < y ? -1 : x > y;
}

/* Keeps the k rows that come first, in scan order. Uses a heap whose root is the last of them. */
static wl_status keep_first(rows *r, wl_i64 k, wl_error *err) {
  wl_i64 *heap = wl_mem_alloc((size_t)(k + 1) * sizeof *heap), n = 0;
  wl_status rc = heap ? WL_OK : wl_nomem(err);
  for (wl_i64 i = 0; i < r->n && !rc; i++) {
    rc = ask(r, i, err);
    wl_i64 at;
    if (n < k) {
      for (at = n++; at > 0 && before(r, heap[(at - 1) / 2], i); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    } else {
      if (k == 0 || !before(r, i, heap[0])) continue;
      for (at = 0; 2 * at + 1 < n;) {
        wl_i64 child = 2 * at + 1;
        if (child + 1 < n && before(r, heap[child], heap[child + 1])) child++;
        if (!before(r, i, heap[child])) break;
        heap[at] = heap[child];
        at = child;
      }
    }
    heap[at] = i;
  }
  if (!rc) {
    qsort(heap, (size_t)n, sizeof *heap, by_number);
    for (wl_i64 j = 0; j < n; j++) r->at[j] = r->at[heap[j]];
    r->n = n;
  }
  wl_mem_free(heap);
  return rc;
}

/* ---- copying the rows in their new order */

static wl_status copy_column(const rows *r, int k, wl_i64 from, wl_i64 n, wl_outcol *c) {
  wl_reg reg = r->regs[k];
  for (wl_i64 i = 0; i < n; i++) {
    wl_status rc = wl_outcol_put(c, reg, i, value(r, r->at[from + i], k));
    if (rc) return rc;
  }
  return WL_OK;
}

typedef struct rebuilding {
  const rows *r;
  wl_pool *pool;
  int n_cols; /* columns to copy */
  wl_i64 n;
  wl_batch **batches;
} rebuilding;

static wl_status rebuild_task(void *arg, int worker, long task, wl_error *err) {
  rebuilding *b = arg;
  (void)worker;
  wl_i64 room = wl_pool_rows(b->pool), at = room * task;
  wl_status rc = wl_batch_take(b->pool, &b->batches[task], err);
  if (!rc) b->batches[task]->n_rows = b->n - at < room ? b->n - at : room;
  for (int k = 0; k < b->n_cols && !rc; k++) {
    rc = copy_column(b->r, k, at, b->batches[task]->n_rows, &b->batches[task]->cols[k]);
    if (rc) rc = rc == WL_TOOBIG ? wl_fail(err, rc, "string or blob too big") : wl_nomem(err);
  }
  return rc;
}

static wl_status rebuild(const rows *r, wl_pool *pool, int n_cols, wl_i64 n, wl_batch **out,
                         wl_error *err) {
  wl_i64 room = wl_pool_rows(pool);
  size_t tasks = (size_t)((n + room - 1) / room);
  rebuilding b = {.r = r, .pool = pool, .n_cols = n_cols, .n = n};
  b.batches = wl_mem_zalloc((tasks + 1) * sizeof *b.batches);
  wl_tasks todo = {r->threads, (long)tasks, rebuild_task, &b, NULL};
  wl_status rc = b.batches ? wl_tasks_run(&todo, NULL, err) : wl_nomem(err);
  wl_batch **end = out;
  *out = NULL;
  for (size_t t = 0; t < tasks && b.batches; t++) {
    if (!b.batches[t]) continue;
    *end = b.batches[t]; /* also after a failure: the caller returns them to the pool */
    end = &b.batches[t]->next;
  }
  wl_mem_free(b.batches);
  return rc;
}

static bool look_alike(const rows *r, row_place a, row_place b) {
  for (int c = 0; c < r->p->n_given; c++) {
    wl_val x = value(r, a, c), y = value(r, b, c);
    if (x.t != y.t || wl_cmp_val(x, y, WL_COLL_BINARY) != 0) return false;
  }
  return true;
}

/* Whether a cut before row k separates rows that ORDER BY treats as equal but that differ in their
** results. all: no row was left out before. */
static bool cuts_ties(const rows *r, wl_i64 k, bool all) {
  if (k <= 0 || k >= r->n || compare(r, r->at[k - 1], r->at[k]) != 0) return false;
  if (!all) return true;
  for (wl_i64 i = k - 1; i >= 0 && compare(r, r->at[i], r->at[k]) == 0; i--)
    if (!look_alike(r, r->at[i], r->at[k])) return true;
  for (wl_i64 i = k + 1; i < r->n && compare(r, r->at[i], r->at[k]) == 0; i++)
    if (!look_alike(r, r->at[i], r->at[k])) return true;
  return false;
}

wl_status wl_order_batches(const wl_program *p, wl_pool *pool, wl_order_of of, wl_batch **list,
                           wl_i64 most, int threads, wl_status (*check)(void *arg, wl_error *err),
                           void *check_arg, wl_error *err) {
  rows r = {.p = p,
            .regs = wl_pool_regs(pool),
            .threads = threads,
            .check = check,
            .check_arg = check_arg};
  wl_batch *out = NULL;
  wl_status rc = WL_OK;
  for (wl_batch *b = *list; b; b = b->next) {
    r.n_batches++;
    r.n += b->n_rows;
  }
  r.batches = wl_mem_alloc((size_t)r.n_batches * sizeof *r.batches + 1);
  r.at = wl_mem_alloc((size_t)r.n * sizeof *r.at + 1);
  if (!r.batches || !r.at) rc = wl_nomem(err);
  wl_i64 i = 0;
  int k = 0;
  for (wl_batch *b = *list; b && !rc; b = b->next, k++) {
    r.batches[k] = b;
    for (wl_i64 j = 0; j < b->n_rows; j++) r.at[i++] = (row_place){(wl_u32)k, (wl_u32)j};
  }
  if (!rc && p->distinct) rc = make_distinct(&r, err);
  wl_i64 kept = wl_cut_needed(p->checks_cut, most);
  bool few = p->n_order && kept >= 0 && kept < r.n / 8, all = !few && of == WL_ORDER_ALL;
  if (!rc && few) rc = keep_first(&r, kept, err);
  if (!rc && p->n_order && r.n > 1) rc = sort(&r, err);
  if (!rc && of != WL_ORDER_SOME && p->checks_cut &&
      (cuts_ties(&r, most, all) || cuts_ties(&r, p->offset, all)))
    rc = wl_not_taken(err, "LIMIT cuts between rows that ORDER BY treats as equal");
  wl_i64 n = of == WL_ORDER_SOME ? kept : most; /* kept has one more row, to check the cut later */
  if (!rc)
    rc = rebuild(&r, pool, of == WL_ORDER_SOME ? p->n_results : p->n_given,
                 n >= 0 && n < r.n ? n : r.n, &out, err);
  while (*list) {
    wl_batch *b = *list;
    *list = b->next;
    wl_batch_give(b);
  }
  *list = out;
  wl_mem_free(r.batches);
  wl_mem_free(r.at);
  return rc;
}
