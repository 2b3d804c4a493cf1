/*
** warplite_check(): reads everything in a tablet table and reports the first inconsistency, or
** nothing. Checksums, counts and zone maps are computed again.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <string.h>

/* The table, and the first problem that was found. */
typedef struct table_check {
  wl_tablets *t;
  char *problem;
  bool no_memory; /* there was no memory for the text of a problem */
} table_check;

static void set_problem(table_check *c, const char *text) {
  if (c->problem) return;
  c->problem = sqlite3_mprintf("%s", text);
  c->no_memory |= !c->problem;
}

static void report(table_check *c, int col, wl_i64 tablet, const char *what) {
  wl_error err = {0};
  if (c->problem) return;
  (void)wl_tablets_corrupt(c->t, col, tablet, &err, "%s", what);
  set_problem(c, err.text);
}

/* Turns an error while reading into a problem of the table, if it is WL_CORRUPT. */
static wl_status record_corrupt(table_check *c, wl_status rc, wl_error *err) {
  if (rc != WL_CORRUPT) return rc;
  set_problem(c, err->text);
  return WL_OK;
}

static bool same_number(double a, double b) {
  return a == b || (a != a && b != b);
}

static bool same_domain(const wl_domain *a, const wl_domain *b) {
  return a->mask == b->mask && a->lo == b->lo && a->hi == b->hi && same_number(a->flo, b->flo) &&
         same_number(a->fhi, b->fhi);
}

static wl_u64 prefix_of(wl_val v) {
  wl_u64 p = 0;
  for (wl_u32 i = 0; i < 8; i++) p = p << 8 | (i < v.n ? wl_bytes(v)[i] : 0);
  return p;
}

/* Compares the zone map with the values. */
static void check_zone(table_check *c, const wl_tablet *a, int col, const wl_cached_segment *h) {
  const wl_zone *z = &a->zones[col];
  wl_domain d = wl_domain_nothing;
  wl_i32 n_nulls = 0;
  bool inside = true;
  for (wl_i32 i = 0; i < a->n_rows; i++) {
    wl_val code = wl_segment_value(&h->s, i), v = wl_cached_value(h, i);
    d.mask |= (wl_u8)WL_M(v.t);
    n_nulls += v.t == WL_T_NULL;
    if (code.t == WL_T_INT) {
      if ((wl_i64)code.v < d.lo) d.lo = (wl_i64)code.v;
      if ((wl_i64)code.v > d.hi) d.hi = (wl_i64)code.v;
    } else if (v.t == WL_T_REAL) {
      double r = wl_as_f64(v.v);
      if (r < d.flo) d.flo = r;
      if (r > d.fhi) d.fhi = r;
    }
    if (v.t == WL_T_TEXT && !z->coded) {
      wl_u64 p = prefix_of(v);
      inside &= p >= z->t_lo && p <= z->t_hi;
    }
  }
  /* The zone map of a patched segment may be wider than its rows. */
  bool patched = wl_tablet_patch(a, col) != NULL;
  wl_zone rows = {.domain = d, .coded = z->coded};
  if (!patched && n_nulls != z->n_nulls) report(c, col, a->id, "its count of NULLs is wrong");
  if (patched ? !wl_zone_covers(z, &rows) : !same_domain(&d, &z->domain))
    report(c, col, a->id, "its zone map does not fit its values");
  if (!inside) report(c, col, a->id, "its zone map does not fit its texts");
}

static void check_rowids(table_check *c, const wl_tablet *a, const wl_cached_segment *h) {
  int col = c->t->n_cols;
  wl_i64 last = 0;
  for (wl_i32 i = 0; i < a->n_rows && !c->problem; i++) {
    wl_val v = wl_cached_value(h, i);
    if (v.t != WL_T_INT || (i && (wl_i64)v.v <= last))
      report(c, col, a->id, "its rowids are not ascending");
    if (i == 0 && (wl_i64)v.v != a->lo) report(c, col, a->id, "its first rowid is wrong");
    last = (wl_i64)v.v;
  }
  if (last != a->hi) report(c, col, a->id, "its last rowid is wrong");
}

/* Whether a column of this affinity can have values of these types. */
static bool may_hold(char affinity, wl_u8 mask) {
  switch (affinity) {
  case 'B': return !(mask & (WL_M(WL_T_INT) | WL_M(WL_T_REAL)));
  case 'E': return !(mask & WL_M(WL_T_INT));
  default: return true;
  }
}

static wl_status check_tablet(table_check *c, int i, wl_error *err) {
  wl_tablets *t = c->t;
  wl_status rc = WL_OK;
  for (int col = 0; col <= t->n_cols && !rc && !c->problem; col++) {
    wl_cached_segment *h = NULL;
    const wl_tablet *a = &t->tablets[i];
    rc = record_corrupt(c, wl_tablets_segment(t, i, col, &h, err), err);
    if (rc || !h) continue;
    check_zone(c, a, col, h);
    if (col == t->n_cols || col == t->decl->rowid_col) {
      check_rowids(c, a, h);
    } else {
      const wl_decl_column *d = &t->decl->cols[col];
      if (d->not_null && a->zones[col].domain.mask & WL_M(WL_T_NULL)) /* dead rows obeyed it */
        report(c, col, a->id, "NULL in a NOT NULL column");
      if (!may_hold(d->affinity, a->zones[col].domain.mask))
        report(c, col, a->id, "it has values of a type that its affinity does not allow");
    }
    wl_cached_drop(h);
  }
  return rc;
}

static wl_status count_rows(table_check *c, const char *what, wl_i64 *out, wl_error *err) {
  wl_tablets *t = c->t;
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("SELECT count(*) FROM \"%w\".\"%w_%s\"", t->schema, t->name, what);
  int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc) rc = wl_tablets_step(t, s);
  if (rc == SQLITE_ROW) *out = sqlite3_column_int64(s, 0);
  wl_status st = rc == SQLITE_ROW ? WL_OK : wl_tablets_error(t, rc, err);
  sqlite3_finalize(s);
  return st;
}

/* Checks t_gone: each rowid must be a live row of a tablet, and must not be in the delta. */
static wl_status check_gone(table_check *c, wl_error *err) {
  wl_tablets *t = c->t;
  sqlite3_stmt *s = NULL, *has = NULL;
  int st = SQLITE_DONE;
  wl_status rc = wl_tablets_scan(t, WL_SH_GONE_SCAN, WL_I64_MIN, WL_I64_MAX, &s, err);
  while (!rc && !c->problem && (st = wl_tablets_step(t, s)) == SQLITE_ROW) {
    wl_i64 rowid = sqlite3_column_int64(s, 0);
    wl_i32 slot = -1;
    int i = wl_tablets_place(t, rowid);
    if (i >= 0) rc = record_corrupt(c, wl_tablets_slot(t, i, rowid, &slot, err), err);
    if (slot < 0 || wl_tablet_is_dead(&t->tablets[i], slot))
      report(c, -1, -1, "a rowid is deleted that no tablet has");
    if (!rc) rc = wl_tablets_stmt(t, WL_SH_DELTA_HAS, &has, err);
    if (rc) break;
    sqlite3_bind_int64(has, 1, rowid);
    int there = wl_tablets_step(t, has);
    if (there == SQLITE_ROW) report(c, -1, -1, "a rowid is both deleted and in the delta");
    if (there != SQLITE_ROW && there != SQLITE_DONE) rc = wl_tablets_error(t, there, err);
    sqlite3_reset(has);
  }
  if (!rc && !c->problem && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  sqlite3_finalize(s);
  return rc;
}

/* Checks that no text is in a dictionary twice. */
static wl_status check_dict(table_check *c, int col, wl_error *err) {
  wl_tablets *t = c->t;
  const wl_file_dict *d = NULL;
  wl_status rc = record_corrupt(c, wl_tablets_dict(t, col, &d, err), err);
  if (rc || !d) return rc;
  wl_arena arena;
  wl_arena_init(&arena);
  wl_val *values = wl_mem_alloc((size_t)d->n * sizeof *values);
  wl_i32 *codes = wl_mem_alloc((size_t)d->n * sizeof *codes);
  const wl_dict *distinct = NULL;
  if (!values || !codes) rc = wl_nomem(err);
  for (wl_i32 i = 0; i < d->n && !rc; i++)
    values[i] = wl_text(d->heap + (wl_u32)d->places[i], (wl_u32)(d->places[i] >> 32));
  if (!rc && wl_dict_of(&arena, values, d->n, codes, &distinct)) rc = wl_nomem(err);
  if (!rc && distinct->n != d->n) report(c, col, -1, "a text is in its dictionary twice");
  wl_mem_free(values);
  wl_mem_free(codes);
  wl_arena_close(&arena);
  return rc;
}

/* Checks that the row's keys are in the key tables and lead back to the row. n[k] counts the keys
** that table k must have. */
static wl_status check_row(table_check *c, wl_i64 rowid, const wl_val *values, wl_i64 *n,
                           wl_error *err) {
  wl_tablets *t = c->t;
  wl_status rc = WL_OK;
  for (int k = 0; k < t->decl->n_keys && !rc && !c->problem; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    bool null = false, found = false;
    wl_i64 other = 0;
    for (int i = 0; i < key->n; i++)
      null |= key->cols[i] != t->decl->rowid_col && values[key->cols[i]].t == WL_T_NULL;
    if (null) continue;
    n[k]++;
    rc = wl_row_find_key(t, k, values, rowid, &found, &other, err);
    if (!rc && (!found || other != rowid))
      report(c, key->cols[0], -1, "a key does not lead to its row");
  }
  return rc;
}

static wl_status check_keys(table_check *c, wl_error *err) {
  wl_tablets *t = c->t;
  wl_status rc = WL_OK;
  if (!t->decl->n_keys) return WL_OK;
  wl_i64 *n = wl_mem_zalloc((size_t)t->decl->n_keys * sizeof *n);
  wl_val *values = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *values);
  int *cols = wl_mem_alloc(((size_t)t->n_cols + 1) * sizeof *cols);
  wl_stage *stages = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *stages);
  if (!n || !values || !cols || !stages) rc = wl_nomem(err);
  for (int k = 0; k <= t->n_cols && !rc; k++) {
    cols[k] = k;
    if (wl_stage_open(&stages[k])) rc = wl_nomem(err);
  }
  for (int i = 0; (i == 0 || i < t->n_tablets) && !rc && !c->problem; i++) {
    wl_merge *m = NULL;
    wl_i32 rows = 1;
    rc = wl_merge_open(t, i, cols, t->n_cols + 1, &m, err);
    while (!rc && rows && !c->problem) {
      rc = wl_merge_next(m, stages, &rows, err);
      for (wl_i32 r = 0; r < rows && !rc && !c->problem; r++) {
        for (int k = 0; k < t->n_cols; k++) values[k] = wl_stage_value(&stages[k], r);
        rc = check_row(c, (wl_i64)stages[t->n_cols].v[r], values, n, err);
      }
    }
    wl_merge_close(m);
  }
  for (int k = 0; k < t->decl->n_keys && !rc && !c->problem; k++) {
    char name[24];
    wl_i64 there = 0;
    sqlite3_snprintf((int)sizeof name, name, "key%d", k);
    rc = count_rows(c, name, &there, err);
    if (!rc && there != n[k]) report(c, t->decl->keys[k].cols[0], -1, "a key has no row");
  }
  for (int k = 0; stages && k <= t->n_cols; k++) wl_stage_close(&stages[k]);
  wl_mem_free(stages);
  wl_mem_free(cols);
  wl_mem_free(values);
  wl_mem_free(n);
  return rc;
}

wl_status wl_tablets_check(wl_tablets *t, char **problem, wl_error *err) {
  table_check c = {.t = t};
  wl_i64 n = 0;
  *problem = NULL;
  t->stale = true; /* forces everything to be read again */
  wl_cached_clear(t);
  for (int i = 0; i < t->n_cols; i++) {
    wl_dict_box_drop(t->dicts[i]);
    t->dicts[i] = NULL;
  }
  wl_status rc = record_corrupt(&c, wl_tablets_refresh(t, err), err);
  for (int i = 0; i < t->n_cols && !rc && !c.problem; i++) rc = check_dict(&c, i, err);
  for (int i = 0; i < t->n_tablets && !rc && !c.problem; i++) rc = check_tablet(&c, i, err);
  if (!rc && !c.problem) rc = check_gone(&c, err);
  if (!rc && !c.problem) rc = record_corrupt(&c, check_keys(&c, err), err);
  if (!rc && !c.problem) rc = count_rows(&c, "segment", &n, err);
  if (!rc && !c.problem && n != (wl_i64)t->n_tablets * (t->n_cols + (t->decl->rowid_col < 0)))
    report(&c, -1, -1, "it has segments that belong to no tablet");
  if (!rc && c.no_memory) rc = wl_nomem(err);
  *problem = c.problem;
  return rc;
}
