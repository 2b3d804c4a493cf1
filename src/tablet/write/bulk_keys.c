/*
** UNIQUE constraints of many rows at once. Sorting the keys finds rows with the same key. A lookup
** finds keys that the table has already. Then the keys are written in sorted order, which is
** fastest for a b-tree.
*/
#include "base/mem.h"
#include "tablet/write/bulk.h"
#include <stdlib.h>
#include <string.h>

typedef struct key_sort {
  const wl_decl_key *key;
  int n_cols;     /* columns of the key */
  wl_val *values; /* [rows][n_cols] */
} key_sort;

static int compare_keys(const void *x, const void *y, void *arg) {
  const key_sort *s = arg;
  wl_i64 a = *(const wl_i64 *)x, b = *(const wl_i64 *)y;
  for (int k = 0; k < s->n_cols; k++) {
    int c =
        wl_cmp_val(s->values[a * s->n_cols + k], s->values[b * s->n_cols + k], s->key->colls[k]);
    if (c) return c;
  }
  return a < b ? -1 : a > b;
}

static bool same_key(const key_sort *s, wl_i64 a, wl_i64 b) {
  for (int k = 0; k < s->n_cols; k++)
    if (wl_cmp_val(s->values[a * s->n_cols + k], s->values[b * s->n_cols + k], s->key->colls[k]))
      return false;
  return true;
}

static bool null_key(const key_sort *s, wl_i64 row) {
  for (int k = 0; k < s->n_cols; k++)
    if (s->values[row * s->n_cols + k].t == WL_T_NULL) return true;
  return false;
}

/* Reads the keys of the rows, and sorts the rows whose keys have no NULL by their keys. */
static wl_status sort_keys(wl_tablets *t, int key, const wl_bulk_rows *r, key_sort *s,
                           wl_i64 **order, wl_i64 *n, wl_error *err) {
  s->key = &t->decl->keys[key];
  s->n_cols = s->key->n;
  s->values = wl_mem_alloc((size_t)r->n * (size_t)s->n_cols * sizeof *s->values + 1);
  *order = wl_mem_alloc((size_t)r->n * sizeof **order + 1);
  *n = 0;
  if (!s->values || !*order) return wl_nomem(err);
  for (wl_i64 i = 0; i < r->n; i++) {
    for (int k = 0; k < s->n_cols; k++) {
      int c = s->key->cols[k];
      s->values[i * s->n_cols + k] = c == t->decl->rowid_col
                                         ? wl_int(r->rowids ? r->rowids[i] : r->first + i)
                                         : wl_column_value(r->cols[c], i);
    }
    if (!null_key(s, i)) (*order)[(*n)++] = i;
  }
  qsort_r(*order, (size_t)*n, sizeof **order, compare_keys, s);
  return WL_OK;
}

static void bind_key(sqlite3_stmt *q, const key_sort *s, wl_i64 row) {
  for (int k = 0; k < s->n_cols; k++)
    wl_sqlite_bind(q, k + 1, s->values[row * s->n_cols + k], SQLITE_STATIC);
}

/* Sets *row to the first row, if it is before *row, whose key a row before it or a row of the table
** has. */
static wl_status find_duplicate(wl_tablets *t, int key, const key_sort *s, const wl_i64 *order,
                                wl_i64 n, wl_i64 *row, wl_error *err) {
  sqlite3_stmt *q;
  for (wl_i64 i = 1; i < n; i++)
    if (order[i] < *row && same_key(s, order[i - 1], order[i])) *row = order[i];
  if (!wl_tablets_any(t)) return WL_OK;
  wl_status rc = wl_tablets_key_stmt(t, key, WL_KEY_FIND, &q, err);
  for (wl_i64 i = 0; i < n && !rc; i++) {
    if (order[i] >= *row) continue;
    bind_key(q, s, order[i]);
    int st = wl_tablets_step(t, q);
    if (st == SQLITE_ROW) *row = order[i];
    if (st != SQLITE_ROW && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
    sqlite3_reset(q);
  }
  return rc;
}

static wl_status write_keys(wl_tablets *t, int key, const key_sort *s, const wl_i64 *order,
                            wl_i64 n, const wl_bulk_rows *r, wl_error *err) {
  sqlite3_stmt *q;
  wl_status rc = wl_tablets_key_stmt(t, key, WL_KEY_PUT, &q, err);
  for (wl_i64 i = 0; i < n && !rc; i++) {
    bind_key(q, s, order[i]);
    sqlite3_bind_int64(q, s->n_cols + 1, r->rowids ? r->rowids[order[i]] : r->first + order[i]);
    rc = wl_tablets_run(t, q, err);
  }
  if (!rc) sqlite3_clear_bindings(q);
  return rc;
}

wl_status wl_bulk_check_keys(wl_tablets *t, const wl_bulk_rows *r, wl_i64 *row, int *key,
                             wl_error *err) {
  wl_status rc = WL_OK;
  *row = r->n;
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    key_sort s = {0};
    wl_i64 *order = NULL, n, before = *row;
    rc = sort_keys(t, k, r, &s, &order, &n, err);
    if (!rc) rc = find_duplicate(t, k, &s, order, n, row, err);
    if (*row < before) *key = k;
    wl_mem_free(s.values);
    wl_mem_free(order);
  }
  return rc;
}

wl_status wl_bulk_put_keys(wl_tablets *t, const wl_bulk_rows *r, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    key_sort s = {0};
    wl_i64 *order = NULL, n;
    rc = sort_keys(t, k, r, &s, &order, &n, err);
    if (!rc) rc = write_keys(t, k, &s, order, n, r, err);
    wl_mem_free(s.values);
    wl_mem_free(order);
  }
  return rc;
}

wl_status wl_bulk_delete_keys(wl_tablets *t, int tablet, const wl_i64 *rowids, const wl_i32 *slots,
                              wl_i64 n, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    wl_cached_segment **segments = wl_mem_zalloc((size_t)key->n * sizeof(wl_cached_segment *));
    sqlite3_stmt *q = NULL;
    if (!segments) return wl_nomem(err);
    for (int i = 0; i < key->n && !rc; i++)
      rc = wl_tablets_segment(t, tablet, key->cols[i], &segments[i], err);
    if (!rc) rc = wl_tablets_key_stmt(t, k, WL_KEY_DELETE, &q, err);
    for (wl_i64 r = 0; r < n && !rc; r++) {
      bool null = false;
      for (int i = 0; i < key->n; i++) {
        wl_val v = key->cols[i] == t->decl->rowid_col ? wl_int(rowids[r])
                                                      : wl_cached_value(segments[i], slots[r]);
        null |= v.t == WL_T_NULL;
        wl_sqlite_bind(q, i + 1, v, SQLITE_STATIC);
      }
      if (!null) rc = wl_tablets_run(t, q, err);
    }
    if (q) {
      sqlite3_reset(q);
      sqlite3_clear_bindings(q);
    }
    for (int i = 0; i < key->n; i++) wl_cached_drop(segments[i]);
    wl_mem_free(segments);
  }
  return rc;
}
