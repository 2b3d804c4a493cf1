/*
** Writes one row: checks the constraints, then writes the delta and the keys. The checks are in
** SQLite's order: NOT NULL, CHECK, the rowid, the keys.
**
** Invariants:
** 1. Everything that might be malformed is read before the first write of a row, because SQLite
**    makes no savepoint for a statement of one row.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include "value/conv.h"
#include <stdio.h>
#include <string.h>

/* ---- values */

wl_status wl_row_default(wl_tablets *t, int col, wl_val *out, wl_error *err) {
  const wl_decl_column *c = &t->decl->cols[col];
  sqlite3_stmt *s = NULL;
  *out = wl_null();
  if (!c->dflt) return WL_OK;
  wl_status safe = wl_default_check(t, col, err);
  if (safe) return safe;
  char *sql = sqlite3_mprintf("SELECT (%s)", c->dflt);
  int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc) rc = sqlite3_step(s);
  wl_status st = WL_OK;
  if (rc == SQLITE_ROW) {
    wl_val v = wl_sqlite_column(s, 0);
    if (v.t >= WL_T_TEXT) {
      wl_u8 *p = wl_scratch(&t->values, v.n);
      if (p && v.n) memcpy(p, wl_bytes(v), v.n);
      v.v = (wl_u64)(size_t)p;
      if (!p) st = wl_nomem(err);
    }
    *out = v;
  } else {
    st = wl_tablets_error(t, rc, err);
  }
  sqlite3_finalize(s);
  return st;
}

wl_status wl_row_defaults(wl_tablets *t, wl_val *values, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < t->n_cols && !rc; i++) {
    const wl_decl_column *c = &t->decl->cols[i];
    if (c->not_null && values[i].t == WL_T_NULL && c->dflt && i != t->decl->rowid_col)
      rc = wl_row_default(t, i, &values[i], err);
  }
  return rc;
}

/* The first NOT NULL column with a NULL, or -1. With replace, where defaults have replaced NULLs,
** columns without a default are checked first. */
static int first_null(const wl_tablets *t, const wl_val *values, bool replace) {
  const wl_decl *d = t->decl;
  for (int pass = replace ? 0 : 1; pass < 2; pass++)
    for (int i = 0; i < t->n_cols; i++)
      if (d->cols[i].not_null && i != d->rowid_col && values[i].t == WL_T_NULL &&
          (pass || !d->cols[i].dflt))
        return i;
  return -1;
}

wl_status wl_row_check(wl_tablets *t, wl_val *values, wl_i64 rowid, bool replace, wl_violation *out,
                       wl_error *err) {
  const wl_decl *d = t->decl;
  memset(out, 0, sizeof *out);
  out->key = -2;
  if (!t->values.conv) {
    wl_status rc = wl_conv_take(&t->values.conv, err);
    if (rc) return rc;
  }
  t->fault = WL_FAULT_NONE;
  for (int i = 0; i < t->n_cols; i++)
    if (i != d->rowid_col)
      values[i] = wl_store_affinity(&t->values, d->cols[i].affinity, values[i]);
  if (t->fault) return wl_nomem(err);
  int null = first_null(t, values, replace);
  if (null >= 0) {
    out->code = SQLITE_CONSTRAINT_NOTNULL;
    sqlite3_snprintf((int)sizeof out->text, out->text, "NOT NULL constraint failed: %s.%s", t->name,
                     d->cols[null].name);
    return WL_OK;
  }
  int broken;
  wl_status rc = wl_checker_row(t, values, rowid, &broken, err);
  if (!rc && broken >= 0) {
    out->code = SQLITE_CONSTRAINT_CHECK;
    sqlite3_snprintf((int)sizeof out->text, out->text, "CHECK constraint failed: %s",
                     d->checks[broken].name);
  }
  return rc;
}

/* ---- finding rows */

typedef enum row_place { NOWHERE, IN_DELTA, IN_TABLET } row_place;

static wl_status has_rowid(wl_tablets *t, wl_shadow which, wl_i64 rowid, bool *out, wl_error *err) {
  sqlite3_stmt *s;
  *out = false;
  wl_status rc = wl_tablets_stmt(t, which, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, rowid);
  int st = wl_tablets_step(t, s);
  *out = st == SQLITE_ROW;
  if (st != SQLITE_ROW && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  return rc;
}

/* Finds a live row of a tablet; *slot is -1 if there is none. Does not look at t_gone. */
static wl_status find_in_tablet(wl_tablets *t, wl_i64 rowid, int *tablet, wl_i32 *slot,
                                wl_error *err) {
  *slot = -1;
  *tablet = wl_tablets_place(t, rowid);
  if (*tablet < 0) return WL_OK;
  wl_status rc = wl_tablets_slot(t, *tablet, rowid, slot, err);
  if (!rc && *slot >= 0 && wl_tablet_is_dead(&t->tablets[*tablet], *slot)) *slot = -1;
  return rc;
}

static wl_status find_row(wl_tablets *t, wl_i64 rowid, row_place *where, int *tablet, wl_i32 *slot,
                          wl_error *err) {
  bool yes = false;
  wl_status rc = WL_OK;
  *where = NOWHERE;
  *slot = -1;
  if (t->n_delta) rc = has_rowid(t, WL_SH_DELTA_HAS, rowid, &yes, err);
  if (yes) *where = IN_DELTA;
  if (rc || yes) return rc;
  rc = find_in_tablet(t, rowid, tablet, slot, err);
  if (rc || *slot < 0) return rc;
  if (t->n_gone) rc = has_rowid(t, WL_SH_GONE_HAS, rowid, &yes, err);
  if (!rc && !yes) *where = IN_TABLET;
  return rc;
}

static wl_status copy_text(wl_tablets *t, wl_val *v, wl_error *err) {
  if (v->t < WL_T_TEXT) return WL_OK;
  wl_u8 *p = wl_scratch(&t->values, v->n);
  if (!p) return wl_nomem(err);
  if (v->n) memcpy(p, wl_bytes(*v), v->n);
  v->v = (wl_u64)(size_t)p;
  return WL_OK;
}

static wl_status read_row(wl_tablets *t, wl_i64 rowid, wl_val *values, const bool *wanted,
                          bool *found, wl_error *err) {
  row_place where;
  int tablet;
  wl_i32 slot;
  wl_status rc = find_row(t, rowid, &where, &tablet, &slot, err);
  *found = !rc && where != NOWHERE;
  if (!*found) return rc;
  sqlite3_stmt *s = NULL;
  if (where == IN_DELTA) {
    rc = wl_tablets_stmt(t, WL_SH_DELTA_GET, &s, err);
    if (rc) return rc;
    sqlite3_bind_int64(s, 1, rowid);
    int st = wl_tablets_step(t, s);
    if (st != SQLITE_ROW) rc = wl_tablets_error(t, st, err);
  }
  for (int i = 0; i < t->n_cols && !rc; i++) {
    values[i] = wl_null();
    if (wanted && !wanted[i]) continue;
    if (i == t->decl->rowid_col) {
      values[i] = wl_int(rowid);
    } else if (s) {
      values[i] = wl_sqlite_column(s, i + 1);
      rc = copy_text(t, &values[i], err);
    } else {
      wl_cached_segment *h;
      rc = wl_tablets_segment(t, tablet, i, &h, err);
      if (rc) break;
      values[i] = wl_cached_value(h, slot);
      rc = copy_text(t, &values[i], err);
      wl_cached_drop(h);
    }
  }
  if (s) sqlite3_reset(s);
  return rc;
}

wl_status wl_row_get(wl_tablets *t, wl_i64 rowid, wl_val *values, bool *found, wl_error *err) {
  wl_status rc = wl_tablets_refresh(t, err);
  return rc ? rc : read_row(t, rowid, values, NULL, found, err);
}

void wl_row_begin(wl_tablets *t) {
  wl_scratch_reset(&t->values);
}

/* Finds the largest rowid. *any is false if there are no rows. */
static wl_status find_largest_rowid(wl_tablets *t, wl_i64 *out, bool *any, wl_error *err) {
  *any = false;
  if (t->n_delta) {
    sqlite3_stmt *s;
    wl_status rc = wl_tablets_stmt(t, WL_SH_DELTA_MAX, &s, err);
    if (rc) return rc;
    int st = wl_tablets_step(t, s);
    if (st == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_INTEGER) {
      *out = sqlite3_column_int64(s, 0);
      *any = true;
    } else if (st != SQLITE_ROW) {
      rc = wl_tablets_error(t, st, err);
    }
    sqlite3_reset(s);
    if (rc) return rc;
  }
  for (int i = t->n_tablets - 1; i >= 0; i--) {
    const wl_tablet *a = &t->tablets[i];
    if (*any && a->hi <= *out) return WL_OK;
    if (!a->dead && !t->n_gone) {
      *out = a->hi;
      *any = true;
      return WL_OK;
    }
    wl_cached_segment *h;
    wl_status rc = wl_tablets_segment(t, i, t->n_cols, &h, err);
    for (wl_i32 k = a->n_rows - 1; k >= 0 && !rc; k--) {
      if (wl_tablet_is_dead(a, k)) continue;
      wl_i64 rowid = (wl_i64)wl_cached_value(h, k).v;
      bool gone = false;
      if (*any && rowid <= *out) {
        wl_cached_drop(h);
        return WL_OK;
      }
      if (t->n_gone) rc = has_rowid(t, WL_SH_GONE_HAS, rowid, &gone, err);
      if (rc || gone) continue;
      *out = rowid;
      *any = true;
      wl_cached_drop(h);
      return WL_OK;
    }
    wl_cached_drop(h);
    if (rc) return rc;
  }
  return WL_OK;
}

wl_status wl_row_new_rowid(wl_tablets *t, wl_i64 *out, wl_error *err) {
  wl_i64 most = 0;
  bool any;
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc && t->largest_version == t->version) {
    any = true;
    most = t->largest_rowid;
  } else if (!rc) {
    rc = find_largest_rowid(t, &most, &any, err);
  }
  if (rc) return rc;
  bool full = any && most == WL_I64_MAX;
  *out = any && !full ? most + 1 : 1;
  t->next_rowid = *out;
  t->next_version = full ? 0 : t->version;
  if (full) { /* tries random rowids until one is free, as SQLite does */
    row_place where = IN_DELTA;
    for (int k = 0; k < 100 && where != NOWHERE && !rc; k++) {
      int tablet;
      wl_i32 slot;
      sqlite3_randomness((int)sizeof *out, out);
      *out &= WL_I64_MAX >> 1;
      ++*out;
      rc = find_row(t, *out, &where, &tablet, &slot, err);
    }
    if (!rc && where != NOWHERE) rc = wl_fail(err, WL_FULL, "database or disk is full");
  }
  return rc;
}

/* ---- uniqueness */

static wl_val key_value(const wl_tablets *t, int col, const wl_val *values, wl_i64 rowid) {
  return col == t->decl->rowid_col ? wl_int(rowid) : values[col];
}

/* Whether a key contains a NULL. Such a key is never equal to another. */
static bool key_is_null(const wl_tablets *t, const wl_decl_key *k, const wl_val *values,
                        wl_i64 rowid) {
  bool null = false;
  for (int i = 0; i < k->n; i++) null |= key_value(t, k->cols[i], values, rowid).t == WL_T_NULL;
  return null;
}

wl_status wl_row_find_key(wl_tablets *t, int key, const wl_val *values, wl_i64 rowid, bool *found,
                          wl_i64 *out, wl_error *err) {
  const wl_decl_key *k = &t->decl->keys[key];
  sqlite3_stmt *s;
  *found = false;
  wl_status rc = wl_tablets_key_stmt(t, key, WL_KEY_FIND, &s, err);
  if (rc) return rc;
  for (int i = 0; i < k->n; i++)
    wl_sqlite_bind(s, i + 1, key_value(t, k->cols[i], values, rowid), SQLITE_STATIC);
  int st = wl_tablets_step(t, s);
  if (st == SQLITE_ROW) {
    *found = true;
    *out = sqlite3_column_int64(s, 0);
  } else if (st != SQLITE_DONE) {
    rc = wl_tablets_error(t, st, err);
  }
  sqlite3_reset(s);
  return rc;
}

static void describe_unique(const wl_tablets *t, int key, wl_violation *out) {
  const wl_decl_key *k = key < 0 ? NULL : &t->decl->keys[key];
  sqlite3_str *s = sqlite3_str_new(t->db);
  sqlite3_str_appendall(s, "UNIQUE constraint failed: ");
  if (!k)
    sqlite3_str_appendf(s, "%s.%s", t->name,
                        t->decl->rowid_col < 0 ? "rowid" : t->decl->cols[t->decl->rowid_col].name);
  for (int i = 0; k && i < k->n; i++)
    sqlite3_str_appendf(s, i ? ", %s.%s" : "%s.%s", t->name, t->decl->cols[k->cols[i]].name);
  char *text = sqlite3_str_finish(s);
  sqlite3_snprintf((int)sizeof out->text, out->text, "%s",
                   text ? text : "UNIQUE constraint failed");
  sqlite3_free(text);
  out->code = k && !k->primary          ? SQLITE_CONSTRAINT_UNIQUE
              : k                       ? SQLITE_CONSTRAINT_PRIMARYKEY
              : t->decl->rowid_col >= 0 ? SQLITE_CONSTRAINT_PRIMARYKEY
                                        : SQLITE_CONSTRAINT_ROWID;
}

wl_status wl_row_conflict(wl_tablets *t, const wl_val *values, wl_i64 rowid, const wl_i64 *skip,
                          wl_violation *out, wl_error *err) {
  row_place where = NOWHERE;
  int tablet;
  wl_i32 slot;
  memset(out, 0, sizeof *out);
  out->key = -2;
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc && !(skip && *skip == rowid)) rc = find_row(t, rowid, &where, &tablet, &slot, err);
  if (rc) return rc;
  if (where != NOWHERE) {
    out->key = -1;
    out->rowid = rowid;
    describe_unique(t, -1, out);
    return WL_OK;
  }
  for (int k = 0; k < t->decl->n_keys; k++) {
    bool found;
    if (key_is_null(t, &t->decl->keys[k], values, rowid)) continue;
    rc = wl_row_find_key(t, k, values, rowid, &found, &out->rowid, err);
    if (rc) return rc;
    if (!found || (skip && out->rowid == *skip)) continue;
    out->key = k;
    describe_unique(t, k, out);
    return WL_OK;
  }
  return WL_OK;
}

static wl_status write_keys(wl_tablets *t, int which, const wl_val *values, wl_i64 rowid,
                            wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    sqlite3_stmt *s;
    if (key_is_null(t, key, values, rowid)) continue;
    rc = wl_tablets_key_stmt(t, k, which, &s, err);
    if (rc) break;
    for (int i = 0; i < key->n; i++)
      wl_sqlite_bind(s, i + 1, key_value(t, key->cols[i], values, rowid), SQLITE_STATIC);
    if (which == WL_KEY_PUT) sqlite3_bind_int64(s, key->n + 1, rowid);
    rc = wl_tablets_run(t, s, err);
    sqlite3_clear_bindings(s);
  }
  return rc;
}

/* ---- writing */

static wl_status run_for_rowid(wl_tablets *t, wl_shadow which, wl_i64 rowid, wl_error *err) {
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_stmt(t, which, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, rowid);
  return wl_tablets_run(t, s, err);
}

static wl_status write_delta(wl_tablets *t, wl_i64 rowid, const wl_val *values, wl_error *err) {
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_stmt(t, WL_SH_DELTA_PUT, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, rowid);
  for (int i = 0; i < t->n_cols; i++)
    wl_sqlite_bind(s, i + 2, i == t->decl->rowid_col ? wl_null() : values[i], SQLITE_STATIC);
  rc = wl_tablets_run(t, s, err);
  sqlite3_clear_bindings(s);
  return rc;
}

wl_status wl_row_put(wl_tablets *t, wl_i64 rowid, const wl_val *values, wl_error *err) {
  wl_status rc = wl_tablets_refresh(t, err);
  bool gone = false;
  if (!rc && t->n_gone) rc = has_rowid(t, WL_SH_GONE_HAS, rowid, &gone, err);
  bool is_largest = t->next_rowid == rowid && t->next_version == t->version;
  if (!rc) rc = wl_tablets_touch(t, err);
  if (rc) return rc;
  if (gone) {
    rc = run_for_rowid(t, WL_SH_GONE_DELETE, rowid, err);
    if (!rc) t->n_gone--;
  }
  if (!rc) rc = write_delta(t, rowid, values, err);
  if (!rc) t->n_delta++;
  if (!rc) rc = write_keys(t, WL_KEY_PUT, values, rowid, err);
  if (!rc && is_largest) {
    t->largest_rowid = rowid;
    t->largest_version = t->version;
  }
  return rc;
}

static wl_status read_keys_of(wl_tablets *t, wl_i64 rowid, wl_val *values, wl_error *err) {
  bool found, *wanted = NULL;
  if (!t->decl->n_keys) return WL_OK;
  wanted = wl_mem_zalloc((size_t)t->n_cols * sizeof *wanted);
  if (!wanted) return wl_nomem(err);
  for (int k = 0; k < t->decl->n_keys; k++)
    for (int i = 0; i < t->decl->keys[k].n; i++) wanted[t->decl->keys[k].cols[i]] = true;
  wl_status rc = read_row(t, rowid, values, wanted, &found, err);
  wl_mem_free(wanted);
  return rc;
}

/* Deletes a row without its keys. slot: the row's slot in its tablet, or -1. */
static wl_status remove_row(wl_tablets *t, wl_i64 rowid, row_place where, wl_i32 slot,
                            wl_error *err) {
  wl_status rc = WL_OK;
  if (where == IN_DELTA) {
    rc = run_for_rowid(t, WL_SH_DELTA_DELETE, rowid, err);
    if (!rc) t->n_delta--;
  }
  if (!rc && slot >= 0) { /* hides the row of the tablet */
    rc = run_for_rowid(t, WL_SH_GONE_PUT, rowid, err);
    if (!rc) t->n_gone++;
  }
  return rc;
}

wl_status wl_row_delete(wl_tablets *t, wl_i64 rowid, bool *found, wl_error *err) {
  row_place where;
  int tablet;
  wl_i32 slot;
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc) rc = find_row(t, rowid, &where, &tablet, &slot, err);
  *found = !rc && where != NOWHERE;
  if (!*found) return rc;
  rc = read_keys_of(t, rowid, t->old_row, err);
  if (!rc && where == IN_DELTA) rc = find_in_tablet(t, rowid, &tablet, &slot, err);
  if (!rc) rc = wl_tablets_touch(t, err);
  if (rc) return rc;
  rc = write_keys(t, WL_KEY_DELETE, t->old_row, rowid, err);
  return rc ? rc : remove_row(t, rowid, where, slot, err);
}

wl_status wl_row_change(wl_tablets *t, wl_i64 old, wl_i64 rowid, const wl_val *values,
                        wl_error *err) {
  row_place where;
  int tablet;
  wl_i32 slot;
  if (old != rowid) {
    bool found;
    wl_status rc = wl_row_delete(t, old, &found, err);
    return rc ? rc : wl_row_put(t, rowid, values, err);
  }
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc) rc = find_row(t, old, &where, &tablet, &slot, err);
  if (!rc && where == NOWHERE)
    rc = wl_fail(err, WL_ERROR, "table %s has no row with rowid %lld to update", t->name,
                 (long long)old);
  if (!rc) rc = read_keys_of(t, old, t->old_row, err);
  if (!rc) rc = wl_tablets_touch(t, err);
  if (rc) return rc;
  rc = write_keys(t, WL_KEY_DELETE, t->old_row, old, err);
  if (!rc) rc = write_delta(t, rowid, values, err);
  if (!rc) t->n_delta += where != IN_DELTA;
  return rc ? rc : write_keys(t, WL_KEY_PUT, values, rowid, err);
}

/* ---- for ON CONFLICT, which checks keys in its own order */

wl_status wl_row_there(wl_tablets *t, wl_i64 rowid, bool *out, wl_error *err) {
  row_place where = NOWHERE;
  int tablet;
  wl_i32 slot;
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc) rc = find_row(t, rowid, &where, &tablet, &slot, err);
  *out = !rc && where != NOWHERE;
  return rc;
}

void wl_row_say_unique(const wl_tablets *t, int key, wl_violation *out) {
  out->key = key;
  describe_unique(t, key, out);
}
