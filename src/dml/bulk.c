/*
** Makes a change in bulk: the columns of its rows become tablets directly. dml/run.c handles
** constraints that need a check of every row, RETURNING, and small numbers of rows, row by row.
*/
#include "dml/run.h"
#include "base/mem.h"
#include <string.h>

/*
** When a bulk change is faster, as a number of rows that the delta could take in the same time
** (about 2 us each; measured with 500,000 rows in a file). Deleting a row costs the delta half of
** that. Each tablet with patches or deleted rows costs a row of the directory.
**
** An INSERT in bulk makes a new tablet each time, even for few rows. If the tablets have
** FULL_ENOUGH rows on average after it, LEAST_NEW rows are enough. Otherwise LEAST_SCATTERED are
** needed.
*/
enum {
  PER_PATCH = 2,     /* patching a segment */
  PER_NUMBERS = 200, /* reading, changing and writing a segment of numbers */
  PER_TEXTS = 5000,  /* the same for a segment of texts */
  PER_DELETED = 16,  /* a tablet of which rows are deleted */
  PER_UPDATED = 2,   /* a tablet of which rows are updated */
  PER_LOOK = 8,      /* rows of the delta that are looked at in the time of one that is written */
  LEAST = 16,
  MOST = 16384,          /* a delta of this size costs queries more than it saves */
  LEAST_NEW = 64,        /* rows of an INSERT that leaves tablets full enough */
  FULL_ENOUGH = 16384,   /* rows of a tablet on average */
  LEAST_SCATTERED = 4096 /* rows of any other INSERT */
};

wl_status wl_running_default(wl_running *r, int col, wl_val *out, wl_error *err) {
  const wl_decl_column *c = &r->m->decl->cols[col];
  *out = wl_null();
  if (!c->dflt) return WL_OK;
  if (r->known[col]) {
    *out = r->defaults[col];
    return WL_OK;
  }
  wl_status rc = wl_row_default(r->m->t, col, out, err);
  if (rc || !c->constant) return rc;
  wl_val v = *out;
  if (v.t >= WL_T_TEXT) {
    char *copy = wl_arena_alloc(r->texts, (size_t)v.n + 1);
    if (!copy) return wl_nomem(err);
    if (v.n) memcpy(copy, wl_bytes(v), v.n);
    v.v = (wl_u64)(size_t)copy;
  }
  r->defaults[col] = *out = v;
  r->known[col] = true;
  return WL_OK;
}

static bool in_key(const wl_decl *d, int col) {
  for (int k = 0; k < d->n_keys; k++)
    for (int i = 0; i < d->keys[k].n; i++)
      if (d->keys[k].cols[i] == col) return true;
  return false;
}

/* Reads the integers of a column. WL_NOT_TAKEN unless they are strictly ascending. If they increase
** by one and first is not NULL, only *first is set. */
static wl_status rising(wl_running *r, int col, wl_i64 *first, wl_error *err) {
  const wl_column *c = r->rows.cols[col];
  bool by_one;
  if (!wl_column_rises(c, &by_one)) return wl_not_taken(err, "its rowids are not ascending");
  if (first) *first = (wl_i64)wl_column_value(c, 0).v;
  if (first && by_one) return WL_OK;
  r->rowids = wl_mem_alloc(((size_t)r->rows.n + 1) * sizeof *r->rowids);
  if (!r->rowids) return wl_nomem(err);
  wl_column_integers(c, r->rowids);
  return WL_OK;
}

static void forget_rowids(wl_running *r) {
  wl_mem_free(r->rowids);
  r->rowids = NULL;
}

/* ---- INSERT */

/* Makes a column that repeats one value. */
static wl_status constant_column(wl_val v, wl_i64 n, wl_column **out, wl_error *err) {
  wl_builder *b;
  wl_status rc = wl_builder_open(&b, err);
  for (wl_i64 i = 0; i < n && !rc; i++)
    if (wl_builder_add(b, v)) rc = wl_nomem(err);
  if (!rc) rc = wl_builder_finish(b, out, err);
  wl_builder_close(b);
  return rc;
}

/* Finds the rowids of the new rows, which must be ascending and above all existing ones. */
static wl_status place_rows(wl_running *r, wl_error *err) {
  const wl_change *m = r->m;
  wl_tablets *t = m->t;
  int n_tablets = wl_tablets_count(t);
  bool empty = !n_tablets && !wl_tablets_has_delta(t);
  const wl_column *given = m->rowid_from >= 0 ? r->rows.cols[m->rowid_from] : NULL;
  bool told = given && given->domain.mask & ~(1 << WL_T_NULL);
  wl_i64 n = r->rows.n, least = 1;
  wl_status rc = empty ? WL_OK : wl_row_new_rowid(t, &least, err);
  r->first = least;
  if (!rc && told) rc = rising(r, m->rowid_from, &r->first, err);
  if (rc) return rc;
  if (!told && r->first > WL_I64_MAX - n) return wl_not_taken(err, "no rowids are left");
  if (!empty && r->first < least)
    return wl_not_taken(err, "its rowids are not above the existing ones");
  if (n_tablets && r->first <= wl_tablets_at(t, n_tablets - 1)->hi)
    return wl_not_taken(err, "the last tablet ends with deleted rows");
  return WL_OK;
}

static wl_status bulk_insert(wl_running *r, wl_error *err) {
  const wl_change *m = r->m;
  int n_cols = m->decl->n_cols;
  wl_column **cols = NULL;
  if (m->n_clauses) return wl_not_taken(err, "ON CONFLICT");
  for (int i = 0; i < n_cols; i++)
    if (m->from[i] < 0 && m->decl->cols[i].dflt && !m->decl->cols[i].constant)
      return wl_not_taken(err, "the default of column %.100s is not a constant",
                          m->decl->cols[i].name);
  wl_status rc = wl_source_rows_columns(&r->rows, err);
  if (!rc) rc = place_rows(r, err);
  if (rc) goto done;
  cols = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof *cols);
  if (!cols) rc = wl_nomem(err);
  for (int i = 0; i < n_cols && !rc; i++) {
    if (i == m->decl->rowid_col) continue;
    if (m->from[i] >= 0) {
      cols[i] = wl_column_hold(r->rows.cols[m->from[i]]);
      continue;
    }
    wl_val v;
    rc = wl_running_default(r, i, &v, err);
    if (!rc) rc = constant_column(v, r->rows.n, &cols[i], err);
  }
  r->refusal.dry = r->rows.late.code && m->d->conflict <= WL_CONFLICT_ABORT;
  if (!rc)
    rc = wl_bulk_append(m->t, r->rows.n, cols, r->rowids, r->first, m->conn->set.threads,
                        &r->refusal, err);
  for (int i = 0; i < n_cols && cols; i++) wl_column_drop(cols[i]);
done:
  wl_mem_free(cols);
  return rc;
}

/* ---- UPDATE and DELETE */

static wl_status bulk_update(wl_running *r, wl_error *err) {
  const wl_change *m = r->m;
  if (m->live) return wl_not_taken(err, "new values may depend on rows changed earlier");
  for (int k = 0; k < m->n_sets; k++) {
    if (m->sets[k].col == WL_COL_ROWID || in_key(m->decl, m->sets[k].col))
      return wl_not_taken(err, "it changes a key");
  }
  int *set = wl_mem_alloc(((size_t)m->n_sets + 1) * sizeof *set);
  wl_status rc = set ? wl_source_rows_columns(&r->rows, err) : wl_nomem(err);
  for (int k = 0; k < m->n_sets && !rc; k++) set[k] = m->sets[k].col;
  if (!rc) rc = rising(r, 0, NULL, err);
  if (!rc)
    rc = wl_bulk_update(m->t, r->rowids, r->rows.n, set, m->n_sets, r->rows.cols + 1,
                        m->conn->set.threads, &r->refusal, err);
  wl_mem_free(set);
  return rc;
}

static wl_status bulk_delete(wl_running *r, wl_error *err) {
  wl_status rc = wl_source_rows_columns(&r->rows, err);
  if (!rc) rc = rising(r, 0, NULL, err);
  if (!rc) rc = wl_bulk_delete(r->m->t, r->rowids, r->rows.n, r->m->conn->set.threads, err);
  return rc;
}

/* ---- whether it is faster */

/* The first row from i on whose rowid is greater than `last`. */
static wl_i64 past(const wl_source_rows *rows, wl_i64 i, wl_i64 last) {
  wl_i64 end = rows->n;
  while (i < end) {
    wl_i64 mid = i + (end - i) / 2;
    if ((wl_i64)wl_source_rows_value(rows, mid, 0).v <= last)
      i = mid + 1;
    else
      end = mid;
  }
  return i;
}

/* The cost of changing n rows of a tablet. A patch grows, and is applied when it is full. That is
** the same for the delta, which is folded, so it does not count. */
static wl_i64 tablet_cost(const wl_change *m, const wl_tablet *a, wl_i64 n) {
  wl_i64 cost = PER_UPDATED;
  if (m->d->kind == WL_DML_DELETE) return PER_DELETED;
  for (int k = 0; k < m->n_sets; k++) {
    int col = m->sets[k].col;
    if (col < 0) continue; /* the rowid, which is not changed in bulk */
    const wl_zone *z = &a->zones[col];
    bool texts = z->domain.mask & (1 << WL_T_TEXT | 1 << WL_T_BLOB) && !z->coded;
    cost += n <= wl_patch_limit(a) ? PER_PATCH : texts ? PER_TEXTS : PER_NUMBERS;
  }
  return cost;
}

/* For UPDATE and DELETE. The rows are sorted. */
static bool change_pays(const wl_running *r) {
  const wl_tablets *t = r->m->t;
  int n_tablets = wl_tablets_count(t);
  wl_i64 cost = LEAST, i = 0;
  if (r->rows.n >= MOST) return true;
  if (r->rows.n < LEAST) return false;
  if (r->m->d->kind == WL_DML_DELETE && wl_tablets_has_delta(t))
    return r->rows.n >= LEAST_SCATTERED;
  cost += wl_tablets_n_delta(t) / PER_LOOK;
  for (int k = 0; k < n_tablets && i < r->rows.n && cost <= r->rows.n; k++) {
    wl_i64 next = past(&r->rows, i, wl_tablets_at(t, k)->hi);
    if (next > i) cost += tablet_cost(r->m, wl_tablets_at(t, k), next - i);
    i = next;
  }
  return cost <= r->rows.n;
}

static bool insert_pays(const wl_running *r) {
  const wl_tablets *t = r->m->t;
  wl_i64 n = r->rows.n, n_rows = n;
  int n_tablets = wl_tablets_count(t);
  if (n < LEAST_NEW || n >= LEAST_SCATTERED) return n >= LEAST_SCATTERED;
  for (int k = 0; k < n_tablets; k++) n_rows += wl_tablets_at(t, k)->n_rows;
  return !n_tablets || n_rows >= (wl_i64)FULL_ENOUGH * (n_tablets + 1);
}

/* If it is known which row will fail, skips the rows before it, which need not be written. */
static void skip_to_refusal(wl_running *r) {
  wl_conflict how = r->m->d->conflict;
  wl_i64 row = r->refusal.row;
  if (how > WL_CONFLICT_ABORT) r->refusal.row = -1; /* each row has its own outcome */
  if (r->refusal.row < 0) return;
  r->at = row;
  if (r->m->d->kind != WL_DML_INSERT) return;
  /* For last_insert_rowid(), they have been inserted and undone. */
  if (row > 0) r->run.last_rowid = r->rowids ? r->rowids[row - 1] : r->first + row - 1;
  if (row < r->rows.n)
    r->first = r->rowids ? r->rowids[row] : r->first + row;
  else /* SQLite gets no later row that would set it */
    r->newest = r->run.last_rowid;
}

wl_status wl_running_bulk(wl_running *r, wl_error *err) {
  static wl_status (*const ways[])(wl_running *, wl_error *) = {bulk_insert, bulk_update,
                                                                bulk_delete};
  if (!(r->m->d->kind == WL_DML_INSERT ? insert_pays(r) : change_pays(r)))
    return WL_NOT_TAKEN; /* the usual case, which needs no reason */
  if (r->m->d->returning) return wl_not_taken(err, "RETURNING");
  wl_status rc = ways[r->m->d->kind](r, err);
  r->counting = rc == WL_OK;
  if (rc == WL_NOT_TAKEN) {
    skip_to_refusal(r);
    forget_rowids(r);
  }
  return rc;
}
