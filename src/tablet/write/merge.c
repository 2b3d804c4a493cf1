/*
** Merges the rows of a tablet's range with the delta, in order of rowid. Folding writes the result
** as new tablets. A query reads it while the delta is not folded.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <string.h>

struct wl_merge {
  wl_tablets *t;
  const int *cols;
  int n_cols;
  wl_i32 limit;
  size_t cap;
  /* The tablet; n_rows is 0 if there is none. */
  wl_i32 n_rows, slot;
  wl_i64 rowid; /* the rowid at slot */
  const wl_u8 *dead;
  wl_cached_segment **segments; /* [n_cols] */
  wl_cached_segment *rowids;
  /* The scans of t_delta and t_gone, and the rowids at which they stand. */
  sqlite3_stmt *delta, *gone;
  bool has_delta, has_gone;
  wl_i64 delta_rowid, gone_rowid;
};

wl_status wl_tablets_in_range(wl_tablets *t, wl_shadow which, wl_i64 lo, wl_i64 hi, wl_i64 *n,
                              wl_i64 *least, wl_i64 *most, wl_error *err) {
  sqlite3_stmt *s;
  *n = *least = *most = 0;
  wl_status rc = wl_tablets_stmt(t, which, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, lo);
  sqlite3_bind_int64(s, 2, hi);
  int st = wl_tablets_step(t, s);
  if (st == SQLITE_ROW) {
    *n = sqlite3_column_int64(s, 0);
    *least = sqlite3_column_int64(s, 1);
    *most = sqlite3_column_int64(s, 2);
  } else {
    rc = wl_tablets_error(t, st, err);
  }
  sqlite3_reset(s);
  return rc;
}

wl_status wl_merge_needed(wl_tablets *t, int i, bool *out, wl_error *err) {
  wl_i64 lo, hi, n = 0, least, most;
  wl_status rc = WL_OK;
  wl_tablets_range(t, i, &lo, &hi);
  if (t->n_delta) rc = wl_tablets_in_range(t, WL_SH_DELTA_RANGE, lo, hi, &n, &least, &most, err);
  if (!rc && !n && t->n_gone)
    rc = wl_tablets_in_range(t, WL_SH_GONE_RANGE, lo, hi, &n, &least, &most, err);
  *out = n > 0;
  return rc;
}

static wl_status step_rowid(wl_merge *m, sqlite3_stmt *s, bool *has, wl_i64 *rowid, wl_error *err) {
  int st = wl_tablets_step(m->t, s);
  *has = st == SQLITE_ROW;
  if (*has) *rowid = sqlite3_column_int64(s, 0);
  return *has || st == SQLITE_DONE ? WL_OK : wl_tablets_error(m->t, st, err);
}

/* Moves slot to the next live row of the tablet, and sets rowid. */
static void skip_dead_rows(wl_merge *m) {
  while (m->slot < m->n_rows && m->dead && (m->dead[m->slot >> 3] >> (m->slot & 7) & 1)) m->slot++;
  if (m->slot < m->n_rows) m->rowid = (wl_i64)wl_cached_value(m->rowids, m->slot).v;
}

wl_status wl_merge_open(wl_tablets *t, int i, const int *cols, int n_cols, wl_merge **out,
                        wl_error *err) {
  wl_merge *m = wl_mem_zalloc(sizeof *m);
  wl_i64 lo = WL_I64_MIN, hi = WL_I64_MAX;
  *out = NULL;
  if (!m) return wl_nomem(err);
  m->t = t;
  m->cols = cols;
  m->n_cols = n_cols;
  m->limit = WL_TABLET_ROWS;
  m->cap = SIZE_MAX;
  m->segments = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof(wl_cached_segment *));
  wl_status rc = m->segments ? WL_OK : wl_nomem(err);
  if (i < t->n_tablets) {
    wl_tablets_range(t, i, &lo, &hi);
    m->n_rows = t->tablets[i].n_rows;
    m->dead = t->tablets[i].dead;
    for (int k = 0; k < n_cols && !rc; k++)
      rc = wl_tablets_segment(t, i, cols[k], &m->segments[k], err);
    if (!rc) rc = wl_tablets_segment(t, i, t->n_cols, &m->rowids, err);
  }
  if (!rc) rc = wl_tablets_scan(t, WL_SH_DELTA_SCAN, lo, hi, &m->delta, err);
  if (!rc) rc = wl_tablets_scan(t, WL_SH_GONE_SCAN, lo, hi, &m->gone, err);
  if (!rc) rc = step_rowid(m, m->delta, &m->has_delta, &m->delta_rowid, err);
  if (!rc) rc = step_rowid(m, m->gone, &m->has_gone, &m->gone_rowid, err);
  if (rc) {
    wl_merge_close(m);
    return rc;
  }
  skip_dead_rows(m);
  *out = m;
  return WL_OK;
}

void wl_merge_limit(wl_merge *m, wl_i32 n_rows) {
  m->limit = n_rows;
}

void wl_merge_cap(wl_merge *m, size_t n_bytes) {
  m->cap = n_bytes;
}

static bool is_full(const wl_merge *m, const wl_stage *stages, wl_i32 n_rows) {
  return n_rows == m->limit || (m->cap != SIZE_MAX && wl_tablet_is_full(stages, m->n_cols, m->cap));
}

wl_status wl_merge_within(wl_merge *m, wl_i64 lo, wl_i64 hi, wl_error *err) {
  sqlite3_reset(m->delta);
  sqlite3_bind_int64(m->delta, 1, lo);
  sqlite3_bind_int64(m->delta, 2, hi);
  return step_rowid(m, m->delta, &m->has_delta, &m->delta_rowid, err);
}

void wl_merge_close(wl_merge *m) {
  if (!m) return;
  for (int k = 0; m->segments && k < m->n_cols; k++) wl_cached_drop(m->segments[k]);
  wl_mem_free(m->segments);
  wl_cached_drop(m->rowids);
  sqlite3_finalize(m->delta);
  sqlite3_finalize(m->gone);
  wl_mem_free(m);
}

static wl_status add_delta(wl_merge *m, wl_stage *stages) {
  wl_status rc = WL_OK;
  for (int k = 0; k < m->n_cols && !rc; k++) {
    int c = m->cols[k];
    bool is_rowid = c == m->t->n_cols || c == m->t->decl->rowid_col;
    rc = wl_stage_add(&stages[k],
                      is_rowid ? wl_int(m->delta_rowid) : wl_sqlite_column(m->delta, c + 1));
  }
  return rc;
}

static wl_status add_slot(wl_merge *m, wl_stage *stages) {
  wl_status rc = WL_OK;
  for (int k = 0; k < m->n_cols && !rc; k++)
    rc = wl_stage_add(&stages[k], wl_cached_value(m->segments[k], m->slot));
  return rc;
}

wl_status wl_merge_next(wl_merge *m, wl_stage *stages, wl_i32 *n_rows, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < m->n_cols; k++) {
    stages[k].n = 0;
    stages[k].n_heap = 0;
  }
  *n_rows = 0;
  while (!rc && !is_full(m, stages, *n_rows) && (m->has_delta || m->slot < m->n_rows)) {
    bool in_tablet = m->slot < m->n_rows;
    if (m->has_delta && (!in_tablet || m->delta_rowid <= m->rowid)) {
      if (in_tablet && m->delta_rowid == m->rowid) { /* the delta row replaces the tablet row */
        m->slot++;
        skip_dead_rows(m);
      }
      if (add_delta(m, stages)) return wl_nomem(err);
      ++*n_rows;
      rc = step_rowid(m, m->delta, &m->has_delta, &m->delta_rowid, err);
      continue;
    }
    while (m->has_gone && m->gone_rowid < m->rowid && !rc)
      rc = step_rowid(m, m->gone, &m->has_gone, &m->gone_rowid, err);
    if (!rc && !(m->has_gone && m->gone_rowid == m->rowid)) {
      if (add_slot(m, stages)) return wl_nomem(err);
      ++*n_rows;
    }
    m->slot++;
    skip_dead_rows(m);
  }
  return rc;
}
