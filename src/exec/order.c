/*
** DISTINCT and ORDER BY over collected batches; see order.h. It sorts places (batch, row) and
** copies the rows once, at the end.
*/
#include "exec/order.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "base/threads.h"
#include "column/column.h"
#include "exec/cpu/words.h"
#include "exec/cut.h"
#include "value/hash.h"
#include <stdlib.h>
#include <string.h>

enum { STRETCH = 1 << 14 };

/* A row of the collected batches. */
typedef struct place {
  wl_u32 batch, row;
} place;

typedef struct rows {
  const wl_program *p;
  const wl_reg *regs;
  wl_batch **batches;
  int n_batches;
  place *at; /* [n] */
  wl_i64 n;
  int threads;
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
} rows;

/* Checks for an interrupt every 2^20 rows. */
static wl_status pause(const rows *r, wl_i64 i, wl_error *err) {
  return (i & 0xfffff) == 0xfffff && r->check ? r->check(r->check_arg, err) : WL_OK;
}

static wl_val value(const rows *r, place at, int col) {
  return wl_batch_value(r->batches[at.batch], r->regs, col, at.row);
}

/* ---- DISTINCT: keeps the first of equal rows */

static bool same(const rows *r, place a, place b) {
  for (int k = 0; k < r->p->n_given; k++)
    if (wl_cmp_val(value(r, a, k), value(r, b, k), r->p->distinct_colls[k]) != 0) return false;
  return true;
}

static wl_status make_distinct(rows *r, wl_error *err) {
  wl_u64 n_slots = 1024;
  while (n_slots < (wl_u64)r->n * 2) n_slots *= 2;
  wl_u32 *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  wl_u64 *hashes = wl_mem_alloc((size_t)(r->n + 1) * sizeof *hashes);
  wl_status rc = slots && hashes ? WL_OK : wl_nomem(err);
  wl_i64 kept = 0;
  for (wl_i64 i = 0; i < r->n && !rc; i++) {
    rc = pause(r, i, err);
    wl_u64 h = 0;
    for (int k = 0; k < r->p->n_given; k++)
      h = wl_hash_mix(h, wl_hash_val(value(r, r->at[i], k), r->p->distinct_colls[k]));
    wl_u64 s = h & (n_slots - 1);
    while (slots[s] && (hashes[slots[s] - 1] != h || !same(r, r->at[slots[s] - 1], r->at[i])))
      s = (s + 1) & (n_slots - 1);
    if (slots[s]) continue;
    r->at[kept] = r->at[i];
    hashes[kept] = h;
    slots[s] = (wl_u32)++kept;
  }
  if (!rc) r->n = kept;
  wl_mem_free(slots);
  wl_mem_free(hashes);
  return rc;
}

/* ---- ORDER BY: by words if all keys are numbers; else by one word first, then by comparing */

static int compare(const rows *r, place a, place b) {
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

typedef struct coding {
  const rows *r;
  wl_words words;
  bool numbers; /* all keys are numbers; else the word holds only the start of the first key */
  wl_u64 **out;
} coding;

/* Encodes the keys of a range of rows as words. */
static void code_task(void *arg, int worker, long task) {
  coding *c = arg;
  (void)worker;
  const rows *r = c->r;
  wl_i64 from = (wl_i64)task * STRETCH, to = from + STRETCH < r->n ? from + STRETCH : r->n;
  wl_u64 v[WL_VECTOR], word[WL_VECTOR];
  wl_u8 t[WL_VECTOR];
  for (wl_i64 at = from; at < to; at += WL_VECTOR) {
    int n = to - at < WL_VECTOR ? (int)(to - at) : WL_VECTOR;
    for (int p = 0; p < c->words.n_parts; p++) {
      const wl_part *part = &c->words.parts[p];
      int col = r->p->order[part->key].result;
      for (int i = 0; i < n; i++) {
        wl_val x = value(r, r->at[at + i], col);
        v[i] = x.t == WL_T_NULL ? 0 : x.v;
        t[i] = x.t != WL_T_NULL;
      }
      wl_vec q = {.type = r->regs[col].type, .stride = 1, .v = v, .t = part->null ? t : NULL};
      wl_words_part(part, p == 0 || c->words.parts[p - 1].word != part->word, &q, n, word);
      memcpy(c->out[part->word] + at, word, (size_t)n * 8);
    }
  }
}

/* Encodes the type of the first key and its first bytes. Rows that are equal in that are compared
** in full. */
static void hint_task(void *arg, int worker, long task) {
  coding *c = arg;
  (void)worker;
  const rows *r = c->r;
  const wl_order *o = &r->p->order[0];
  wl_i64 from = (wl_i64)task * STRETCH, to = from + STRETCH < r->n ? from + STRETCH : r->n;
  for (wl_i64 i = from; i < to; i++) {
    wl_val v = value(r, r->at[i], o->result);
    wl_u64 type = v.t == WL_T_REAL ? WL_T_INT : v.t, low = 0;
    if (v.t >= WL_T_TEXT)
      low = wl_sort_prefix(wl_bytes(v), v.n, v.t == WL_T_TEXT ? o->coll : WL_COLL_BINARY) >> 4;
    wl_u64 w = type << 60 | low;
    if (o->desc) w = ~w;
    if (v.t == WL_T_NULL) w = o->nulls_last ? ~0ULL : 0;
    c->out[0][i] = w;
  }
}

static int tie(const void *arg, wl_u32 a, wl_u32 b) {
  const rows *r = arg;
  return compare(r, r->at[a], r->at[b]);
}

static wl_status sort(rows *r, wl_error *err) {
  coding c = {.r = r, .numbers = true};
  wl_arena arena;
  wl_arena_init(&arena);
  c.words.parts = WL_NEW_N(&arena, wl_part, 2 * r->p->n_order + 1);
  c.out = WL_NEW_N(&arena, wl_u64 *, WL_MAX_WORDS + 1);
  wl_u32 *order = wl_mem_alloc((size_t)r->n * sizeof *order);
  place *at = wl_mem_alloc((size_t)r->n * sizeof *at);
  bool ok = c.words.parts && c.out && order && at;
  for (int k = 0; k < r->p->n_order && ok && c.numbers; k++) {
    const wl_order *o = &r->p->order[k];
    wl_domain domain = wl_result_domain(&r->p->results[o->result]);
    c.numbers =
        wl_words_key(&c.words, k, r->regs[o->result], &domain, o->desc, o->nulls_last, false);
  }
  int n_words = c.numbers ? c.words.n_words : 1;
  for (int k = 0; k < n_words && ok; k++)
    ok = (c.out[k] = wl_mem_alloc((size_t)r->n * sizeof **c.out)) != NULL;
  wl_status rc = ok && r->n < 0xffffffffLL ? WL_OK : wl_nomem(err);
  if (!rc) {
    wl_threads_run(r->threads, (r->n + STRETCH - 1) / STRETCH, c.numbers ? code_task : hint_task,
                   &c);
    wl_sort s = {.n = r->n,
                 .n_words = n_words,
                 .words = c.out,
                 .tie = c.numbers ? NULL : tie,
                 .tie_arg = r,
                 .threads = r->threads,
                 .check = r->check,
                 .check_arg = r->check_arg};
    rc = wl_sort_rows(&s, order, err);
  }
  if (!rc) {
    for (wl_i64 i = 0; i < r->n; i++) at[i] = r->at[order[i]];
    place *was = r->at;
    r->at = at;
    at = was;
  }
  for (int k = 0; c.out && k < n_words; k++) wl_mem_free(c.out[k]);
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
    rc = pause(r, i, err);
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

static bool look_alike(const rows *r, place a, place b) {
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
    for (wl_i64 j = 0; j < b->n_rows; j++) r.at[i++] = (place){(wl_u32)k, (wl_u32)j};
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
