/*
** See cursor.h.
*/
#include "tablet/read/cursor.h"
#include "base/mem.h"
#include <string.h>

wl_status wl_row_reader_open(wl_row_reader *r, wl_tablets *t, wl_error *err) {
  memset(r, 0, sizeof *r);
  r->t = t;
  r->end = true;
  r->segments = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof(wl_cached_segment *));
  return r->segments ? WL_OK : wl_nomem(err);
}

static void drop_segments(wl_row_reader *r) {
  for (int i = 0; r->segments && i < r->t->n_cols; i++) {
    wl_cached_drop(r->segments[i]);
    r->segments[i] = NULL;
  }
  wl_cached_drop(r->rowids);
  r->rowids = NULL;
}

static void close_scans(wl_row_reader *r) {
  wl_tablets_unscan(r->t, WL_SH_DELTA_SCAN, r->delta, r->epoch);
  wl_tablets_unscan(r->t, WL_SH_GONE_SCAN, r->gone, r->epoch);
  r->delta = r->gone = NULL;
}

static void end_scan(wl_row_reader *r) {
  drop_segments(r);
  close_scans(r);
  r->end = true;
}

void wl_row_reader_close(wl_row_reader *r) {
  if (!r->t) return;
  end_scan(r);
  wl_mem_free(r->segments);
  r->segments = NULL;
}

/* ---- zone maps */

static wl_u64 text_prefix(wl_val v) {
  wl_u64 p = 0;
  for (wl_u32 i = 0; i < 8; i++) p = p << 8 | (i < v.n ? wl_bytes(v)[i] : 0);
  return p;
}

/* Whether a value between lo and hi may meet the bound. */
static bool range_may_meet(wl_val lo, wl_val hi, const wl_bound *b) {
  int low = wl_cmp_val(lo, b->v, 0), high = wl_cmp_val(hi, b->v, 0);
  switch (b->op) {
  case '=': return low <= 0 && high >= 0;
  case '<': return low < 0;
  case 'l': return low <= 0;
  case '>': return high > 0;
  default: return high >= 0;
  }
}

/* Whether a row of the zone may meet the bound. */
static bool zone_may_meet(const wl_zone *z, const wl_bound *b) {
  unsigned numbers = WL_M(WL_T_INT) | WL_M(WL_T_REAL);
  unsigned mask = z->domain.mask;
  if (b->v.t == WL_T_INT || b->v.t == WL_T_REAL) {
    if (mask & ~(numbers | WL_M(WL_T_NULL))) return true; /* texts and blobs may meet it, too */
    if (mask & WL_M(WL_T_INT) && range_may_meet(wl_int(z->domain.lo), wl_int(z->domain.hi), b))
      return true;
    return mask & WL_M(WL_T_REAL) &&
           range_may_meet(wl_real(z->domain.flo), wl_real(z->domain.fhi), b);
  }
  if (b->v.t == WL_T_TEXT) {
    if (mask & ~(WL_M(WL_T_TEXT) | WL_M(WL_T_NULL))) return true;
    if (!(mask & WL_M(WL_T_TEXT))) return false;
    wl_u64 p = text_prefix(b->v);
    if (b->op == '=') return p >= z->t_lo && p <= z->t_hi;
    return b->op == '<' || b->op == 'l' ? z->t_lo <= p : z->t_hi >= p;
  }
  return true;
}

static bool tablet_may_match(const wl_row_reader *r, const wl_tablet *a) {
  if (a->lo > r->hi || a->hi < r->lo) return false;
  for (int i = 0; i < r->n_bounds; i++)
    if (!zone_may_meet(&a->zones[r->bounds[i].col], &r->bounds[i])) return false;
  return true;
}

/* ---- tablets */

/* Moves to the first live slot at or after r->slot, in this tablet or in the next that may match.
 */
static wl_status find_live_slot(wl_row_reader *r, wl_error *err) {
  wl_tablets *t = r->t;
  for (;;) {
    if (r->tablet >= t->n_tablets) {
      r->n_rows = 0;
      return WL_OK;
    }
    const wl_tablet *a = &t->tablets[r->tablet];
    if (!r->rowids) {
      if (!tablet_may_match(r, a)) {
        r->tablet++;
        r->slot = 0;
        continue;
      }
      wl_status rc = wl_tablets_segment(t, r->tablet, t->n_cols, &r->rowids, err);
      if (rc) return rc;
      r->n_rows = a->n_rows;
    }
    while (r->slot < r->n_rows && wl_tablet_is_dead(a, r->slot)) r->slot++;
    if (r->slot < r->n_rows) {
      r->slot_rowid = (wl_i64)wl_cached_value(r->rowids, r->slot).v;
      if (r->slot_rowid > r->hi) r->n_rows = 0;
      return WL_OK;
    }
    drop_segments(r);
    r->tablet++;
    r->slot = 0;
  }
}

/* Moves to the first live row of a tablet whose rowid is at least rowid. */
static wl_status seek_tablet_row(wl_row_reader *r, wl_i64 rowid, wl_error *err) {
  wl_tablets *t = r->t;
  drop_segments(r);
  r->layout = t->layout;
  r->slot = 0;
  r->n_rows = 0;
  r->tablet = wl_tablets_place(t, rowid);
  if (r->tablet < 0) r->tablet = 0;
  if (r->tablet < t->n_tablets && t->tablets[r->tablet].hi < rowid) r->tablet++;
  if (r->tablet < t->n_tablets && t->tablets[r->tablet].lo < rowid &&
      tablet_may_match(r, &t->tablets[r->tablet])) {
    wl_status rc = wl_tablets_segment(t, r->tablet, t->n_cols, &r->rowids, err);
    if (rc) return rc;
    wl_i32 lo = 0, hi = r->n_rows = t->tablets[r->tablet].n_rows;
    while (lo < hi) {
      wl_i32 mid = lo + (hi - lo) / 2;
      if ((wl_i64)wl_cached_value(r->rowids, mid).v < rowid)
        lo = mid + 1;
      else
        hi = mid;
    }
    r->slot = lo;
  }
  return find_live_slot(r, err);
}

static wl_status step_rowid(wl_row_reader *r, sqlite3_stmt *s, bool *has, wl_i64 *rowid,
                            wl_error *err) {
  int st = wl_tablets_step(r->t, s);
  *has = st == SQLITE_ROW;
  if (*has) *rowid = sqlite3_column_int64(s, 0);
  return *has || st == SQLITE_DONE ? WL_OK : wl_tablets_error(r->t, st, err);
}

/* Opens the scans of t_delta and t_gone, starting at rowid lo. An empty table is not scanned. */
static wl_status open_scans(wl_row_reader *r, wl_i64 lo, wl_error *err) {
  wl_status rc = WL_OK;
  close_scans(r);
  r->epoch = r->t->epoch;
  r->has_delta = r->has_gone = r->delta_used = false;
  if (r->t->n_delta) {
    rc = wl_tablets_scan(r->t, WL_SH_DELTA_SCAN, lo, r->hi, &r->delta, err);
    if (!rc) rc = step_rowid(r, r->delta, &r->has_delta, &r->delta_rowid, err);
  }
  if (!rc && r->t->n_gone) {
    rc = wl_tablets_scan(r->t, WL_SH_GONE_SCAN, lo, r->hi, &r->gone, err);
    if (!rc) rc = step_rowid(r, r->gone, &r->has_gone, &r->gone_rowid, err);
  }
  return rc;
}

/* Makes the next row of the delta or of a tablet the current one. */
static wl_status choose_row(wl_row_reader *r, wl_error *err) {
  wl_status rc = WL_OK;
  for (;;) {
    bool in_tablet = r->n_rows > 0;
    if (!in_tablet && !r->has_delta) {
      r->end = true;
      return WL_OK;
    }
    if (r->has_delta && (!in_tablet || r->delta_rowid <= r->slot_rowid)) {
      if (in_tablet && r->delta_rowid == r->slot_rowid) {
        r->slot++;
        rc = find_live_slot(r, err);
      }
      r->rowid = r->delta_rowid;
      r->in_delta = r->delta_used = true;
      return rc;
    }
    while (r->has_gone && r->gone_rowid < r->slot_rowid && !rc)
      rc = step_rowid(r, r->gone, &r->has_gone, &r->gone_rowid, err);
    if (rc) return rc;
    if (r->has_gone && r->gone_rowid == r->slot_rowid) {
      r->slot++;
      rc = find_live_slot(r, err);
      if (rc) return rc;
      continue;
    }
    r->rowid = r->slot_rowid;
    r->in_delta = false;
    r->at_tablet = r->tablet;
    r->at_slot = r->slot;
    r->at_layout = r->layout;
    return WL_OK;
  }
}

wl_status wl_row_reader_start(wl_row_reader *r, wl_i64 lo, wl_i64 hi, wl_bound *bounds,
                              int n_bounds, wl_error *err) {
  end_scan(r);
  r->lo = lo;
  r->hi = hi;
  r->bounds = bounds;
  r->n_bounds = n_bounds;
  wl_status rc = wl_tablets_refresh(r->t, err);
  if (rc || lo > hi) return rc;
  r->end = false;
  rc = open_scans(r, lo, err);
  if (!rc) rc = seek_tablet_row(r, lo, err);
  return rc ? rc : choose_row(r, err);
}

wl_status wl_row_reader_next(wl_row_reader *r, wl_error *err) {
  wl_status rc = WL_OK;
  if (r->end) return WL_OK;
  if (r->rowid >= r->hi) {
    r->end = true;
    return WL_OK;
  }
  if (r->t->stale) rc = wl_tablets_refresh(r->t, err);
  /* If tablets moved, or t_delta or t_gone is no longer empty, starts again after this row. */
  if (!rc &&
      (r->layout != r->t->layout || (!r->delta && r->t->n_delta) || (!r->gone && r->t->n_gone))) {
    rc = open_scans(r, r->rowid + 1, err);
    if (!rc) rc = seek_tablet_row(r, r->rowid + 1, err);
    return rc ? rc : choose_row(r, err);
  }
  if (!rc && r->in_delta) {
    r->delta_used = false;
    rc = step_rowid(r, r->delta, &r->has_delta, &r->delta_rowid, err);
  } else if (!rc) {
    r->slot++;
    rc = find_live_slot(r, err);
  }
  return rc ? rc : choose_row(r, err);
}

/* Finds the current row of a tablet again after tablets have moved. */
static wl_status find_again(wl_row_reader *r, wl_error *err) {
  wl_tablets *t = r->t;
  wl_status rc = wl_tablets_refresh(t, err);
  if (rc || r->at_layout == t->layout) return rc;
  drop_segments(r); /* r->layout is old, too, so wl_row_reader_next will seek again */
  r->at_slot = -1;
  r->at_layout = t->layout;
  r->at_tablet = wl_tablets_place(t, r->rowid);
  if (r->at_tablet < 0) return WL_OK;
  rc = wl_tablets_slot(t, r->at_tablet, r->rowid, &r->at_slot, err);
  if (!rc && r->at_slot >= 0 && wl_tablet_is_dead(&t->tablets[r->at_tablet], r->at_slot))
    r->at_slot = -1;
  return rc;
}

wl_status wl_row_reader_value(wl_row_reader *r, int col, wl_val *out, wl_error *err) {
  wl_status rc = WL_OK;
  *out = wl_null();
  if (col == r->t->decl->rowid_col || col == r->t->n_cols) {
    *out = wl_int(r->rowid);
  } else if (r->in_delta) {
    *out = wl_sqlite_column(r->delta, col + 1);
  } else {
    /* find_live_slot has not moved on since, so the segments belong to the current row's tablet */
    if (r->t->stale || r->at_layout != r->t->layout) rc = find_again(r, err);
    if (rc || r->at_slot < 0) return rc;
    if (!r->segments[col]) rc = wl_tablets_segment(r->t, r->at_tablet, col, &r->segments[col], err);
    if (!rc) *out = wl_cached_value(r->segments[col], r->at_slot);
  }
  return rc;
}
