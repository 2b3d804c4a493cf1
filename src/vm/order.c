/*
** DISTINCT and ORDER BY over collected batches; see order.h. Rows are sorted as places (batch,
** row) and copied once, at the end.
*/
#include "vm/order.h"
#include "base/mem.h"
#include "store/column.h"
#include "vm/hash.h"
#include <stdlib.h>
#include <string.h>

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
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
} rows;

/* Every so many rows: does the user want it to end? */
static wl_status pause(const rows *r, wl_i64 i, wl_error *err) {
  return (i & 0xfffff) == 0xfffff && r->check ? r->check(r->check_arg, err) : WL_OK;
}

static wl_val value(const rows *r, place at, int col) {
  return wl_batch_value(r->batches[at.batch], r->regs, col, at.row);
}

/* ---- DISTINCT: of equal rows the first stays */

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

/* ---- ORDER BY: radix sorts where the keys are numbers, else a merge sort; both stable */

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

static wl_status merge_sort(rows *r, wl_error *err) {
  place *other = wl_mem_alloc((size_t)(r->n + 1) * sizeof *other);
  if (!other) return wl_nomem(err);
  wl_status rc = WL_OK;
  wl_i64 merged = 0;
  for (wl_i64 width = 1; width < r->n && !rc; width *= 2) {
    for (wl_i64 lo = 0; lo < r->n; lo += 2 * width) {
      wl_i64 mid = lo + width < r->n ? lo + width : r->n,
             hi = lo + 2 * width < r->n ? lo + 2 * width : r->n;
      wl_i64 i = lo, j = mid, k = lo;
      if (mid >= hi || compare(r, r->at[mid - 1], r->at[mid]) <= 0) {
        memcpy(other + lo, r->at + lo, (size_t)(hi - lo) * sizeof *other);
        continue;
      }
      while (i < mid && j < hi && !rc) {
        rc = pause(r, merged++, err);
        other[k++] = compare(r, r->at[j], r->at[i]) < 0 ? r->at[j++] : r->at[i++];
      }
      while (i < mid) other[k++] = r->at[i++];
      while (j < hi) other[k++] = r->at[j++];
    }
    place *t = r->at;
    r->at = other;
    other = t;
  }
  wl_mem_free(other);
  return rc;
}

typedef struct keyed {
  wl_u64 key;
  place at;
} keyed;

/* A number as bits whose unsigned order is the sort order. */
static wl_u64 sortable(wl_val v, const wl_order *o) {
  wl_u64 k;
  if (v.t == WL_T_INT) {
    k = v.v ^ (1ULL << 63);
  } else {
    double d = wl_as_f64(v.v);
    k = wl_f64_bits(d == 0.0 ? 0.0 : d);
    k = k >> 63 ? ~k : k | 1ULL << 63;
  }
  return o->desc ? ~k : k;
}

/* By one key, all integers or all reals: stable, eight bits at a time, NULLs set apart. */
static wl_status radix_sort(rows *r, const wl_order *o, wl_error *err) {
  size_t n = (size_t)r->n, m = 0, n_null = 0;
  keyed *a = wl_mem_alloc((n + 1) * sizeof *a), *b = wl_mem_alloc((n + 1) * sizeof *b);
  place *nulls = wl_mem_alloc((n + 1) * sizeof *nulls);
  wl_u32(*counts)[256] = wl_mem_zalloc(sizeof(wl_u32[8][256]));
  wl_status rc = a && b && nulls && counts ? WL_OK : wl_nomem(err);
  for (size_t i = 0; i < n && !rc; i++) {
    rc = pause(r, (wl_i64)i, err);
    wl_val v = value(r, r->at[i], o->result);
    if (v.t == WL_T_NULL) {
      nulls[n_null++] = r->at[i];
      continue;
    }
    a[m].key = sortable(v, o);
    a[m].at = r->at[i];
    for (int d = 0; d < 8; d++) counts[d][a[m].key >> 8 * d & 255]++;
    m++;
  }
  for (int d = 0; d < 8 && !rc; d++) {
    if (m && counts[d][a[0].key >> 8 * d & 255] == m) continue; /* one digit for all */
    wl_u32 sum = 0;
    for (int k = 0; k < 256; k++) {
      wl_u32 c = counts[d][k];
      counts[d][k] = sum;
      sum += c;
    }
    for (size_t i = 0; i < m; i++) b[counts[d][a[i].key >> 8 * d & 255]++] = a[i];
    keyed *t = a;
    a = b;
    b = t;
  }
  if (!rc) {
    size_t at = o->nulls_last ? 0 : n_null;
    for (size_t i = 0; i < m; i++) r->at[at + i] = a[i].at;
    memcpy(r->at + (o->nulls_last ? m : 0), nulls, n_null * sizeof *nulls);
  }
  wl_mem_free(a);
  wl_mem_free(b);
  wl_mem_free(nulls);
  wl_mem_free(counts);
  return rc;
}

/* Numbers only: by each key in turn, the last first. Else by comparing. */
static wl_status sort(rows *r, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < r->p->n_order; k++)
    if (r->regs[r->p->order[k].result].type > WL_R_REAL || r->n >= 0xffffffff)
      return merge_sort(r, err);
  for (int k = r->p->n_order - 1; k >= 0 && !rc; k--) rc = radix_sort(r, &r->p->order[k], err);
  return rc;
}

/* ---- LIMIT: only the first rows need sorting */

/* Whether row i comes before row j; equal ones stay as they are. */
static bool before(const rows *r, wl_i64 i, wl_i64 j) {
  int c = compare(r, r->at[i], r->at[j]);
  return c ? c < 0 : i < j;
}

static int by_number(const void *a, const void *b) {
  wl_i64 x = *(const wl_i64 *)a, y = *(const wl_i64 *)b;
  return x < y ? -1 : x > y;
}

/* Keeps the k rows that come first, in scan order, by a heap whose root is the last of them. */
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

/* ---- rows out again, in their new order */

static wl_status copy_column(const rows *r, int k, wl_i64 from, wl_i64 n, wl_outcol *c) {
  wl_reg reg = r->regs[k];
  for (wl_i64 i = 0; i < n; i++) {
    wl_val v = value(r, r->at[from + i], k);
    if (v.t >= WL_T_TEXT || reg.type == WL_R_TEXT) {
      wl_u64 place = c->n_heap;
      wl_status rc = wl_outcol_room(c, v.n);
      if (rc) return rc;
      if (v.n) memcpy(c->heap + c->n_heap, wl_bytes(v), v.n);
      c->n_heap += v.n;
      if (reg.type == WL_R_TEXT) c->offsets[i + 1] = (wl_i32)c->n_heap;
      v.v = place;
    }
    if (c->v) c->v[i] = v.t == WL_T_NULL ? 0 : v.v;
    if (c->n) c->n[i] = v.n;
    if (c->t) c->t[i] = reg.type == WL_R_ANY ? v.t : v.t != WL_T_NULL;
  }
  return WL_OK;
}

static wl_status rebuild(const rows *r, wl_pool *pool, wl_i64 n, wl_batch **out, wl_error *err) {
  wl_i64 room = wl_pool_rows(pool);
  wl_batch **end = out;
  *out = NULL;
  for (wl_i64 at = 0; at < n; at += room) {
    wl_batch *b;
    wl_status rc = wl_batch_take(pool, &b, err);
    if (rc) return rc;
    *end = b;
    end = &b->next;
    b->n_rows = n - at < room ? n - at : room;
    for (int k = 0; k < r->p->n_given && !rc; k++)
      rc = copy_column(r, k, at, b->n_rows, &b->cols[k]);
    if (rc) return rc == WL_TOOBIG ? wl_fail(err, rc, "string or blob too big") : wl_nomem(err);
  }
  return WL_OK;
}

wl_status wl_order_batches(const wl_program *p, wl_pool *pool, wl_batch **list, wl_i64 most,
                           wl_status (*check)(void *arg, wl_error *err), void *check_arg,
                           wl_error *err) {
  rows r = {.p = p, .regs = wl_pool_regs(pool), .check = check, .check_arg = check_arg};
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
  if (!rc && p->n_order && most >= 0 && most < r.n / 8) rc = keep_first(&r, most, err);
  if (!rc && p->n_order && r.n > 1) rc = sort(&r, err);
  if (!rc) rc = rebuild(&r, pool, most >= 0 && most < r.n ? most : r.n, &out, err);
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
