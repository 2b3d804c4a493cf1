/*
** UNIQUE constraints in bulk: that no two rows have one key is found by sorting them, that none
** stands in the table already by looking; then they are written in their own order, which a b-tree
** likes best.
*/
#include "base/mem.h"
#include "tablet/write/bulk.h"
#include <stdlib.h>
#include <string.h>

typedef struct sorting {
  const wl_decl_key *key;
  int n_cols;     /* of the key */
  wl_val *values; /* [rows][n_cols] */
} sorting;

static int compare_keys(const void *x, const void *y, void *arg) {
  const sorting *s = arg;
  wl_i64 a = *(const wl_i64 *)x, b = *(const wl_i64 *)y;
  for (int k = 0; k < s->n_cols; k++) {
    int c =
        wl_cmp_val(s->values[a * s->n_cols + k], s->values[b * s->n_cols + k], s->key->colls[k]);
    if (c) return c;
  }
  return a < b ? -1 : a > b;
}

static bool same_key(const sorting *s, wl_i64 a, wl_i64 b) {
  for (int k = 0; k < s->n_cols; k++)
    if (wl_cmp_val(s->values[a * s->n_cols + k], s->values[b * s->n_cols + k], s->key->colls[k]))
      return false;
  return true;
}

static bool null_key(const sorting *s, wl_i64 row) {
  for (int k = 0; k < s->n_cols; k++)
    if (s->values[row * s->n_cols + k].t == WL_T_NULL) return true;
  return false;
}

/* The keys of the rows, and the rows without NULLs in order of theirs. */
static wl_status sort_keys(wl_tablets *t, int key, const wl_bulk_rows *r, sorting *s,
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

static void bind_key(sqlite3_stmt *q, const sorting *s, wl_i64 row) {
  for (int k = 0; k < s->n_cols; k++)
    wl_sqlite_bind(q, k + 1, s->values[row * s->n_cols + k], SQLITE_STATIC);
}

/* The first row that has the key of one before it, or of one of the table. */
static wl_status first_clash(wl_tablets *t, int key, const sorting *s, const wl_i64 *order,
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

static wl_status put_keys(wl_tablets *t, int key, const sorting *s, const wl_i64 *order, wl_i64 n,
                          const wl_bulk_rows *r, wl_error *err) {
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
    sorting s = {0};
    wl_i64 *order = NULL, n, before = *row;
    rc = sort_keys(t, k, r, &s, &order, &n, err);
    if (!rc) rc = first_clash(t, k, &s, order, n, row, err);
    if (*row < before) *key = k;
    wl_mem_free(s.values);
    wl_mem_free(order);
  }
  return rc;
}

wl_status wl_bulk_put_keys(wl_tablets *t, const wl_bulk_rows *r, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    sorting s = {0};
    wl_i64 *order = NULL, n;
    rc = sort_keys(t, k, r, &s, &order, &n, err);
    if (!rc) rc = put_keys(t, k, &s, order, n, r, err);
    wl_mem_free(s.values);
    wl_mem_free(order);
  }
  return rc;
}

wl_status wl_bulk_unkey(wl_tablets *t, int tablet, const wl_i64 *rowids, const wl_i32 *slots,
                        wl_i64 n, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    wl_held_segment **held = wl_mem_zalloc((size_t)key->n * sizeof(wl_held_segment *));
    sqlite3_stmt *q = NULL;
    if (!held) return wl_nomem(err);
    for (int i = 0; i < key->n && !rc; i++)
      rc = wl_tablets_segment(t, tablet, key->cols[i], &held[i], err);
    if (!rc) rc = wl_tablets_key_stmt(t, k, WL_KEY_DELETE, &q, err);
    for (wl_i64 r = 0; r < n && !rc; r++) {
      bool null = false;
      for (int i = 0; i < key->n; i++) {
        wl_val v = key->cols[i] == t->decl->rowid_col ? wl_int(rowids[r])
                                                      : wl_held_value(held[i], slots[r]);
        null |= v.t == WL_T_NULL;
        wl_sqlite_bind(q, i + 1, v, SQLITE_STATIC);
      }
      if (!null) rc = wl_tablets_run(t, q, err);
    }
    if (q) {
      sqlite3_reset(q);
      sqlite3_clear_bindings(q);
    }
    for (int i = 0; i < key->n; i++) wl_held_drop(held[i]);
    wl_mem_free(held);
  }
  return rc;
}
