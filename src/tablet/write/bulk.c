/*
** Updates and deletes many rows at once. Where few rows of a segment change, the segment gets a
** patch (update_patch.c). Otherwise it is written again (rewrite.c). Deleting only sets bits.
** bulk_append.c appends rows.
**
** Invariants:
** 1. Everything that may refuse the change (constraints, rows that do not exist) is checked before
**    the first write.
*/
#include "tablet/write/bulk.h"
#include "base/mem.h"
#include <assert.h>
#include <string.h>

/* ---- finding the tablets of rows */

typedef struct tablet_part {
  int tablet;
  wl_i64 from, to; /* its rows: rowids[from..to) */
} tablet_part;

/* Splits ascending rowids by tablet. WL_NOT_TAKEN: a rowid is in no tablet. */
static wl_status split_by_tablet(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, tablet_part **out,
                                 int *n_parts, wl_error *err) {
  tablet_part *p = *out = wl_mem_alloc(((size_t)t->n_tablets + 1) * sizeof *p);
  *n_parts = 0;
  if (!p) return wl_nomem(err);
  for (wl_i64 i = 0; i < n;) {
    int k = wl_tablets_place(t, rowids[i]);
    if (k < 0 || rowids[i] > t->tablets[k].hi) return wl_not_taken(err, "a row does not exist");
    wl_i64 lo = i, hi = n; /* bisects for the first rowid after the tablet's last */
    while (lo < hi) {
      wl_i64 mid = lo + (hi - lo) / 2;
      if (rowids[mid] <= t->tablets[k].hi)
        lo = mid + 1;
      else
        hi = mid;
    }
    p[(*n_parts)++] = (tablet_part){k, i, lo};
    i = lo;
  }
  return WL_OK;
}

/* Finds the slots of n rowids. own: the tablet's rowids, or NULL if they have no gaps. False: a
** rowid is not in the tablet. */
static bool slots_of(const wl_tablet *a, const wl_segment *own, const wl_i64 *rowids, wl_i64 n,
                     wl_i32 *slots) {
  if (!own) { /* no gaps */
    for (wl_i64 i = 0; i < n; i++) slots[i] = (wl_i32)(rowids[i] - a->lo);
    return true;
  }
  wl_i32 at = 0;
  for (wl_i64 i = 0; i < n; i++, at++) {
    wl_i32 step = 1, end; /* the row is usually near, so the steps begin small */
    while (at + step < a->n_rows && (wl_i64)wl_segment_value(own, at + step).v < rowids[i]) {
      at += step;
      step *= 2;
    }
    end = at + step < a->n_rows ? at + step + 1 : a->n_rows;
    while (at < end) {
      wl_i32 mid = at + (end - at) / 2;
      if ((wl_i64)wl_segment_value(own, mid).v < rowids[i])
        at = mid + 1;
      else
        end = mid;
    }
    if (at == a->n_rows || (wl_i64)wl_segment_value(own, at).v != rowids[i]) return false;
    slots[i] = at;
  }
  return true;
}

static bool has_gaps(const wl_tablet *a) {
  return (wl_u64)a->hi - (wl_u64)a->lo != (wl_u64)a->n_rows - 1;
}

/* ---- updating */

typedef struct bulk_update {
  wl_tablets *t;
  /* The rows in tablets: their rowids, and which of the new values are theirs (NULL: value i is
   *that
   ** of row i). */
  const wl_i64 *rowids;
  wl_i64 *own_rowids, *rows;
  wl_i64 n;
  wl_i64 *in_delta; /* [n_in_delta] the other rows, by their new values */
  wl_i64 n_in_delta;
  const tablet_part *parts;
  int n_parts;
  wl_i32 **slots; /* [n_parts] */
  const int *set;
  int n_set;
  wl_column **cols; /* [n_set] */
  wl_u32 **codes;   /* [n_set] codes of cols to codes of the file; or NULL */
} bulk_update;

/* Finds the slots of all parts. WL_NOT_TAKEN: a row does not exist. */
static wl_status find_slots(wl_tablets *t, const wl_i64 *rowids, const tablet_part *parts,
                            int n_parts, wl_i32 **slots, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < n_parts && !rc; i++) {
    const wl_tablet *a = &t->tablets[parts[i].tablet];
    wl_i64 n = parts[i].to - parts[i].from;
    wl_cached_segment *h = NULL;
    bool coded;
    slots[i] = wl_mem_alloc((size_t)n * sizeof **slots);
    if (!slots[i]) return wl_nomem(err);
    if (has_gaps(a)) rc = wl_tablets_segment(t, parts[i].tablet, t->n_cols, &h, err);
    if (!rc && !slots_of(a, h ? wl_cached_segment_of(h, &coded) : NULL, rowids + parts[i].from, n,
                         slots[i]))
      rc = wl_not_taken(err, "a row does not exist");
    wl_cached_drop(h);
  }
  return rc;
}

static void free_slots(wl_i32 **slots, int n) {
  for (int i = 0; slots && i < n; i++) wl_mem_free(slots[i]);
  wl_mem_free(slots);
}

/* Whether a CHECK may depend on a column that is set: its text contains the column's name. A CHECK
** that does not still holds, and SQLite does not evaluate it either. */
static bool checks_mention(const wl_tablets *t, const int *set, int n_set) {
  for (int i = 0; i < t->decl->n_checks; i++)
    for (int k = 0; k < n_set; k++)
      if (strcasestr(t->decl->checks[i].text, t->decl->cols[set[k]].name)) return true;
  return false;
}

/* Separates the rows that are in the delta from those in tablets. */
static wl_status split_by_delta(bulk_update *u, wl_error *err) {
  size_t size = (size_t)u->n * sizeof *u->rows;
  sqlite3_stmt *s = NULL;
  wl_i64 k = 0, n = 0;
  int st = SQLITE_DONE;
  u->own_rowids = wl_mem_alloc(size);
  u->rows = wl_mem_alloc(size);
  u->in_delta = wl_mem_alloc(size);
  if (!u->own_rowids || !u->rows || !u->in_delta) return wl_nomem(err);
  wl_status rc =
      wl_tablets_scan(u->t, WL_SH_DELTA_SCAN, u->rowids[0], u->rowids[u->n - 1], &s, err);
  while (!rc && (st = wl_tablets_step(u->t, s)) == SQLITE_ROW) {
    wl_i64 rowid = sqlite3_column_int64(s, 0);
    for (; k < u->n && u->rowids[k] < rowid; k++) u->rows[n++] = k;
    if (k < u->n && u->rowids[k] == rowid) u->in_delta[u->n_in_delta++] = k++;
  }
  if (!rc && st != SQLITE_DONE) rc = wl_tablets_error(u->t, st, err);
  sqlite3_finalize(s);
  for (; k < u->n; k++) u->rows[n++] = k;
  for (wl_i64 i = 0; i < n; i++) u->own_rowids[i] = u->rowids[u->rows[i]];
  u->rowids = u->own_rowids;
  u->n = n;
  return rc;
}

/* Changes the rows that are in the delta. all: the rowids of all rows. */
static wl_status update_delta(const bulk_update *u, const wl_i64 *all, wl_error *err) {
  wl_val *row = wl_mem_alloc(((size_t)u->t->n_cols + 1) * sizeof *row);
  wl_status rc = row ? WL_OK : wl_nomem(err);
  for (wl_i64 i = 0; i < u->n_in_delta && !rc; i++) {
    wl_i64 at = u->in_delta[i];
    bool found;
    wl_row_begin(u->t);
    rc = wl_row_get(u->t, all[at], row, &found, err);
    if (!rc && !found) rc = wl_tablets_corrupt(u->t, -1, -1, err, "a row of the delta is missing");
    for (int k = 0; k < u->n_set && !rc; k++) row[u->set[k]] = wl_column_value(u->cols[k], at);
    if (!rc) rc = wl_row_change(u->t, all[at], all[at], row, err);
  }
  wl_mem_free(row);
  return rc;
}

/* Finds codes for the new texts of a column, if a segment that changes has codes. */
static wl_status find_codes(bulk_update *u, int k, wl_error *err) {
  bool coded = false, plain = false;
  for (int i = 0; i < u->n_parts; i++)
    coded |= u->t->tablets[u->parts[i].tablet].zones[u->set[k]].coded;
  if (!coded || !u->cols[k]->dict) return WL_OK;
  wl_status rc = wl_bulk_codes(u->t, u->set[k], u->cols[k], &u->codes[k], &plain, err);
  if (plain) {
    wl_mem_free(u->codes[k]);
    u->codes[k] = NULL;
  }
  return rc;
}

/* Patches segments of which few rows change. The others are added to list. */
static wl_status patch_parts(bulk_update *u, wl_rewrite *list, int *n, wl_error *err) {
  wl_patcher patcher;
  wl_status rc = wl_patcher_open(&patcher, u->t, err);
  if (rc) return rc;
  for (int k = 0; k < u->n_set && !rc; k++) {
    rc = find_codes(u, k, err);
    for (int i = 0; i < u->n_parts && !rc; i++) {
      const tablet_part *x = &u->parts[i];
      wl_rewrite w = {.tablet = x->tablet,
                      .col = u->set[k],
                      .values = u->cols[k],
                      .codes = u->codes[k],
                      .rows = u->rows ? u->rows + x->from : NULL,
                      .from = x->from,
                      .n = x->to - x->from,
                      .slots = u->slots[i]};
      bool done;
      rc = wl_patcher_rows(&patcher, &w, &done, err);
      if (!rc && !done) list[(*n)++] = w;
    }
  }
  wl_patcher_close(&patcher);
  return rc;
}

static wl_status update_parts(bulk_update *u, int n_threads, wl_error *err) {
  wl_tablets *t = u->t;
  wl_rewrite *list = wl_mem_alloc(((size_t)u->n_parts * (size_t)u->n_set + 1) * sizeof *list);
  u->codes = wl_mem_zalloc((size_t)u->n_set * sizeof *u->codes);
  int n = 0;
  wl_status rc = list && u->codes ? patch_parts(u, list, &n, err) : wl_nomem(err);
  if (!rc) rc = wl_rewrite_segments(t, list, n, n_threads, err);
  for (int i = 0; i < u->n_parts && !rc; i++)
    rc = wl_tablet_write_entry(t, &t->tablets[u->parts[i].tablet], err);
  for (int k = 0; u->codes && k < u->n_set; k++) wl_mem_free(u->codes[k]);
  wl_mem_free(u->codes);
  wl_mem_free(list);
  return rc;
}

wl_status wl_bulk_update(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, const int *set, int n_set,
                         wl_column *const *cols, int n_threads, wl_refusal *refusal,
                         wl_error *err) {
  enum { FOLD_AT = 4096 }; /* a change of so many rows folds the delta, too */
  bulk_update u = {.t = t, .rowids = rowids, .n = n, .set = set, .n_set = n_set};
  tablet_part *parts = NULL;
  *refusal = (wl_refusal){.row = -1, .key = -2};
  for (int k = 0; k < n_set; k++) assert(set[k] != t->decl->rowid_col);
  if (n == 0) return WL_OK;
  if (checks_mention(t, set, n_set))
    return wl_not_taken(err, "a CHECK constraint on a column that is set");
  wl_i64 null = wl_bulk_first_null(t, set, n_set, cols, n);
  if (null < n) {
    refusal->row = null;
    return wl_not_taken(err, "a NULL in a NOT NULL column");
  }
  wl_status rc = n < FOLD_AT ? wl_tablets_refresh(t, err) : wl_tablets_fold(t, err);
  if (rc) return rc;
  u.cols = wl_mem_zalloc((size_t)n_set * sizeof *u.cols);
  if (!u.cols) rc = wl_nomem(err);
  for (int k = 0; k < n_set && !rc; k++)
    rc = wl_bulk_convert(t->decl->cols[set[k]].affinity, cols[k], &u.cols[k], err);
  if (!rc && t->n_delta) rc = split_by_delta(&u, err);
  if (!rc) rc = split_by_tablet(t, u.rowids, u.n, &parts, &u.n_parts, err);
  u.parts = parts;
  u.slots = rc ? NULL : wl_mem_zalloc(((size_t)u.n_parts + 1) * sizeof *u.slots);
  if (!rc && !u.slots) rc = wl_nomem(err);
  if (!rc) rc = find_slots(t, u.rowids, parts, u.n_parts, u.slots, err);
  if (!rc) rc = wl_tablets_touch(t, err);
  if (!rc) {
    t->defer_sums = true;
    rc = update_parts(&u, n_threads, err);
    if (!rc) rc = wl_tablets_write_sums(t, err);
    if (!rc) rc = update_delta(&u, rowids, err);
    t->defer_sums = false;
    if (rc) t->stale = true;
  }
  for (int k = 0; u.cols && k < n_set; k++) wl_column_drop(u.cols[k]);
  wl_mem_free(u.cols);
  wl_mem_free(u.own_rowids);
  wl_mem_free(u.rows);
  wl_mem_free(u.in_delta);
  free_slots(u.slots, u.n_parts);
  wl_mem_free(parts);
  return rc;
}

/* ---- deleting */

wl_status wl_bulk_delete(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, int n_threads,
                         wl_error *err) {
  tablet_part *parts = NULL;
  wl_i32 **slots = NULL;
  int n_parts = 0;
  (void)n_threads; /* setting bits needs no threads */
  if (n == 0) return WL_OK;
  wl_status rc = wl_tablets_fold(t, err);
  if (!rc) rc = split_by_tablet(t, rowids, n, &parts, &n_parts, err);
  if (!rc && !(slots = wl_mem_zalloc(((size_t)n_parts + 1) * sizeof *slots))) rc = wl_nomem(err);
  if (!rc) rc = find_slots(t, rowids, parts, n_parts, slots, err);
  if (!rc) {
    rc = wl_tablets_touch(t, err);
    t->layout++;
    t->defer_sums = true;
  }
  for (int i = n_parts - 1; i >= 0 && !rc; i--) { /* backwards, because tablets may be deleted */
    wl_tablet *a = &t->tablets[parts[i].tablet];
    rc = wl_bulk_delete_keys(t, parts[i].tablet, rowids + parts[i].from, slots[i],
                             parts[i].to - parts[i].from, err);
    if (!rc && !a->dead) a->dead = wl_mem_zalloc((size_t)(a->n_rows + 7) / 8);
    if (!rc && !a->dead) rc = wl_nomem(err);
    for (wl_i64 k = 0; k < parts[i].to - parts[i].from && !rc; k++) {
      wl_i32 slot = slots[i][k];
      a->n_dead += !wl_tablet_is_dead(a, slot);
      a->dead[slot >> 3] |= (wl_u8)(1 << (slot & 7));
    }
    if (!rc)
      rc = a->n_dead == a->n_rows ? wl_tablet_delete(t, parts[i].tablet, err)
                                  : wl_tablet_write_entry(t, a, err);
  }
  bool begun = t->defer_sums;
  t->defer_sums = false;
  if (!rc && begun) rc = wl_tablets_write_sums(t, err);
  if (rc && begun) t->stale = true;
  free_slots(slots, n_parts);
  wl_mem_free(parts);
  return rc;
}
