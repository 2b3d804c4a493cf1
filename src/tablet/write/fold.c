/*
** Folding moves the rows of t_delta and the rowids of t_gone into the tablets. It only changes
** tablets in whose ranges they lie. If rows of a tablet were only deleted, it only changes the
** delete bitmap.
**
** Invariants:
** 1. A range is read before it is written. Its rows in t_delta and t_gone are removed before the
**    next range begins. So if something cannot be read, the fold or optimize ends with every range
**    either done or unchanged, even without a savepoint around it.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <string.h>

/* A tablet with this many rows is not rewritten when rows are appended behind it. */
enum { FULL_ENOUGH = WL_TABLET_ROWS / 4 * 3 };

static void close_stages(wl_stage *stages, int n) {
  for (int k = 0; stages && k < n; k++) wl_stage_close(&stages[k]);
  wl_mem_free(stages);
}

static wl_status open_stages(int n, wl_stage **out, wl_error *err) {
  wl_stage *stages = *out = wl_mem_zalloc((size_t)n * sizeof *stages);
  wl_status rc = stages ? WL_OK : WL_NOMEM;
  for (int k = 0; k < n && !rc; k++) rc = wl_stage_open(&stages[k]);
  if (rc) {
    close_stages(stages, n);
    *out = NULL;
    return wl_nomem(err);
  }
  return WL_OK;
}

/* Writes the rows of a merge as new tablets, starting at place `at` of the directory. */
static wl_status write_merged(wl_tablets *t, wl_merge *m, int at, int *n_new, wl_stage *stages,
                              wl_error *err) {
  wl_i32 n = 0;
  wl_status rc;
  *n_new = 0;
  wl_merge_cap(m, wl_tablet_max_bytes(t));
  while (!(rc = wl_merge_next(m, stages, &n, err)) && n) {
    rc = wl_tablet_write_rows(t, at + *n_new, stages, err);
    if (rc) break;
    ++*n_new;
  }
  return rc;
}

/* How many rows each tablet gets, of total rows. They are spread evenly. The last range gets full
** tablets, because more rows will be appended to it. */
static wl_i32 rows_per_tablet(wl_i64 total, bool last) {
  wl_i64 parts = (total + WL_TABLET_ROWS - 1) / WL_TABLET_ROWS;
  return last || parts <= 1 ? WL_TABLET_ROWS : (wl_i32)((total + parts - 1) / parts);
}

static wl_status fold_deletes(wl_tablets *t, int i, wl_i64 lo, wl_i64 hi, wl_error *err) {
  wl_tablet *a = &t->tablets[i];
  sqlite3_stmt *s = NULL;
  int st = SQLITE_DONE;
  if (!a->dead) a->dead = wl_mem_zalloc((size_t)(a->n_rows + 7) / 8);
  if (!a->dead) return wl_nomem(err);
  wl_status rc = wl_tablets_scan(t, WL_SH_GONE_SCAN, lo, hi, &s, err);
  while (!rc && (st = wl_tablets_step(t, s)) == SQLITE_ROW) {
    wl_i32 slot;
    rc = wl_tablets_slot(t, i, sqlite3_column_int64(s, 0), &slot, err);
    if (rc || slot < 0 || wl_tablet_is_dead(a, slot)) continue;
    a->dead[slot >> 3] |= (wl_u8)(1 << (slot & 7));
    a->n_dead++;
  }
  if (!rc && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  sqlite3_finalize(s);
  if (rc) return rc;
  if (a->n_dead == 0) {
    wl_mem_free(a->dead);
    a->dead = NULL;
  }
  return a->n_dead == a->n_rows ? wl_tablet_delete(t, i, err) : wl_tablet_write_entry(t, a, err);
}

/* Deletes the range from t_delta and t_gone. */
static wl_status clear_range(wl_tablets *t, wl_i64 lo, wl_i64 hi, wl_i64 n_delta, wl_i64 n_gone,
                             wl_error *err) {
  wl_status rc = WL_OK;
  sqlite3_stmt *s;
  if (n_delta) rc = wl_tablets_stmt(t, WL_SH_DELTA_CLEAR, &s, err);
  if (!rc && n_delta) {
    sqlite3_bind_int64(s, 1, lo);
    sqlite3_bind_int64(s, 2, hi);
    rc = wl_tablets_run(t, s, err);
    t->n_delta -= n_delta;
  }
  if (!rc && n_gone) rc = wl_tablets_stmt(t, WL_SH_GONE_CLEAR, &s, err);
  if (!rc && n_gone) {
    sqlite3_bind_int64(s, 1, lo);
    sqlite3_bind_int64(s, 2, hi);
    rc = wl_tablets_run(t, s, err);
    t->n_gone -= n_gone;
  }
  return rc;
}

static wl_status fold_range(wl_tablets *t, int i, wl_stage *stages, const int *cols,
                            wl_error *err) {
  wl_i64 lo, hi, n_delta = 0, n_gone = 0, least = 0, most, unused;
  wl_merge *m = NULL;
  int n_new = 0;
  wl_tablets_range(t, i, &lo, &hi);
  wl_status rc = wl_tablets_in_range(t, WL_SH_DELTA_RANGE, lo, hi, &n_delta, &least, &most, err);
  if (!rc) rc = wl_tablets_in_range(t, WL_SH_GONE_RANGE, lo, hi, &n_gone, &unused, &most, err);
  if (rc || (!n_delta && !n_gone)) return rc;
  if (!n_delta) {
    rc = fold_deletes(t, i, lo, hi, err);
    return rc ? rc : clear_range(t, lo, hi, n_delta, n_gone, err);
  }
  const wl_tablet *a = &t->tablets[i];
  wl_i64 n_live = a->n_rows - a->n_dead;
  bool appended = least > a->hi && n_live >= FULL_ENOUGH && !n_gone;
  bool last = i + 1 == t->n_tablets;
  rc = wl_merge_open(t, appended ? t->n_tablets : i, cols, t->n_cols + 1, &m, err);
  if (!rc && appended) rc = wl_merge_within(m, lo, hi, err);
  if (!rc) {
    wl_merge_limit(m, rows_per_tablet(n_delta + (appended ? 0 : n_live), last && least > a->hi));
    rc = write_merged(t, m, i + 1, &n_new, stages, err);
  }
  wl_merge_close(m);
  if (!rc && !appended) rc = wl_tablet_delete(t, i, err);
  return rc ? rc : clear_range(t, lo, hi, n_delta, n_gone, err);
}

static int *all_columns(const wl_tablets *t) {
  int *cols = wl_mem_alloc(((size_t)t->n_cols + 1) * sizeof *cols);
  for (int k = 0; cols && k <= t->n_cols; k++) cols[k] = k;
  return cols;
}

wl_status wl_tablets_fold(wl_tablets *t, wl_error *err) {
  wl_stage *stages = NULL;
  wl_merge *m = NULL;
  int n_new;
  wl_status rc = wl_tablets_refresh(t, err);
  if (rc || (!t->n_delta && !t->n_gone)) return rc;
  int *cols = all_columns(t);
  if (!cols) return wl_nomem(err);
  rc = wl_tablets_touch(t, err);
  t->layout++;
  if (!rc) rc = open_stages(t->n_cols + 1, &stages, err);
  if (!rc && t->n_tablets == 0) {
    rc = wl_merge_open(t, 0, cols, t->n_cols + 1, &m, err);
    if (!rc) rc = write_merged(t, m, 0, &n_new, stages, err);
    wl_merge_close(m);
    if (!rc) rc = clear_range(t, WL_I64_MIN, WL_I64_MAX, t->n_delta, t->n_gone, err);
  } else {
    for (int i = t->n_tablets - 1; i >= 0 && !rc; i--) rc = fold_range(t, i, stages, cols, err);
  }
  if (rc) t->stale = true;
  close_stages(stages, t->n_cols + 1);
  wl_mem_free(cols);
  return rc;
}

/* Moves the rows of the tablets [from, from + n) into as few new tablets as possible. */
static wl_status rewrite_tablets(wl_tablets *t, int from, int n, wl_stage *in, wl_stage *out,
                                 const int *cols, int *n_new, wl_error *err) {
  wl_status rc = WL_OK;
  int width = t->n_cols + 1, at = from + n;
  size_t cap = wl_tablet_max_bytes(t);
  *n_new = 0;
  for (int i = from; i < from + n && !rc; i++) { /* writes nothing unless all can be read */
    for (int k = 0; k < width && !rc; k++) {
      wl_cached_segment *h;
      rc = wl_tablets_segment(t, i, k, &h, err);
      if (!rc) wl_cached_drop(h);
    }
  }
  for (int k = 0; k < width; k++) out[k].n = 0, out[k].n_heap = 0;
  for (int i = from; i < from + n && !rc; i++) {
    wl_merge *m = NULL;
    wl_i32 rows = 0;
    rc = wl_merge_open(t, i, cols, width, &m, err);
    if (!rc) rc = wl_merge_next(m, in, &rows, err);
    wl_merge_close(m);
    for (wl_i32 r = 0; r < rows && !rc; r++) {
      for (int k = 0; k < width && !rc; k++) {
        if (wl_stage_add(&out[k], wl_stage_value(&in[k], r))) rc = wl_nomem(err);
      }
      if (!rc && (out[0].n == WL_TABLET_ROWS || wl_tablet_is_full(out, width, cap))) {
        rc = wl_tablet_write_rows(t, at + (*n_new)++, out, err);
        for (int k = 0; k < width; k++) out[k].n = 0, out[k].n_heap = 0;
      }
    }
  }
  if (!rc && out[0].n) rc = wl_tablet_write_rows(t, at + (*n_new)++, out, err);
  for (int i = 0; i < n && !rc; i++) rc = wl_tablet_delete(t, from, err);
  return rc;
}

wl_status wl_tablets_optimize(wl_tablets *t, wl_error *err) {
  wl_stage *in = NULL, *out = NULL;
  wl_status rc = wl_tablets_fold(t, err);
  int *cols = rc ? NULL : all_columns(t);
  if (!rc && !cols) rc = wl_nomem(err);
  if (!rc) rc = open_stages(t->n_cols + 1, &in, err);
  if (!rc) rc = open_stages(t->n_cols + 1, &out, err);
  if (!rc) {
    rc = wl_tablets_touch(t, err);
    t->layout++;
  }
  for (int i = 0; i < t->n_tablets && !rc;) {
    const wl_tablet *a = &t->tablets[i];
    bool whole = a->n_dead == 0 && (a->n_rows == WL_TABLET_ROWS || i + 1 == t->n_tablets);
    if (whole) {
      i++;
      continue;
    }
    /* A run of tablets, up to and including the first whole one. Its length is limited. */
    int n = 1, n_new;
    while (i + n < t->n_tablets && n < 64 &&
           (t->tablets[i + n].n_dead || t->tablets[i + n].n_rows < WL_TABLET_ROWS ||
            t->tablets[i + n - 1].n_rows < WL_TABLET_ROWS))
      n++;
    rc = rewrite_tablets(t, i, n, in, out, cols, &n_new, err);
    /* The last new tablet may be short; then it is rewritten with those after it. */
    bool more = i + n_new < t->n_tablets;
    i += n_new;
    if (more && n_new && t->tablets[i - 1].n_rows < WL_TABLET_ROWS) i--;
  }
  if (!rc) rc = wl_tablets_fold_patches(t, err);
  for (int k = 0; k < t->n_cols && !rc; k++)
    if (k != t->decl->rowid_col) rc = wl_tablets_sort_dict(t, k, err);
  if (rc) t->stale = true;
  close_stages(in, t->n_cols + 1);
  close_stages(out, t->n_cols + 1);
  wl_mem_free(cols);
  return rc;
}
