/*
** xFilter: uses the values of the constraints to decide where the cursor begins and which tablets
** it may skip. SQLite may compare with an affinity that it does not tell us. If that would convert
** a value to another type, the constraint is not used. SQLite tests every row again anyway.
*/
#include "base/mem.h"
#include "tablet/vtab/vtab_impl.h"
#include <stdlib.h>
#include <string.h>

void wl_tablet_drop_bounds(wl_tablet_cursor *c) {
  for (int i = 0; i < c->n_bounds; i++)
    if (c->bounds[i].v.t >= WL_T_TEXT) wl_mem_free((void *)(size_t)c->bounds[i].v.v);
  wl_mem_free(c->bounds);
  c->bounds = NULL;
  c->n_bounds = 0;
}

/* Narrows [*lo, *hi] to the integers that may meet the constraint. For an equality the range must
** be exact, because SQLite reads only the first row. */
static void narrow_rowids(char op, sqlite3_value *v, wl_i64 *lo, wl_i64 *hi) {
  int type = sqlite3_value_numeric_type(v);
  double r = type == SQLITE_FLOAT ? sqlite3_value_double(v) : 0;
  bool whole = r >= -9223372036854775808.0 && r < 9223372036854775808.0 && (double)(wl_i64)r == r;
  if (type == SQLITE_NULL || (op == '=' && (!whole || type >= SQLITE_TEXT))) {
    *lo = 1;
    *hi = 0;
  } else if (type == SQLITE_INTEGER || (op == '=' && type == SQLITE_FLOAT)) {
    wl_i64 x = type == SQLITE_FLOAT ? (wl_i64)r : sqlite3_value_int64(v);
    bool below = op == '<' && x == WL_I64_MIN, above = op == '>' && x == WL_I64_MAX;
    if (below || above) {
      *lo = 1;
      *hi = 0;
      return;
    }
    if (op == '<') x--;
    if (op == '>') x++;
    if (op != '<' && op != 'l' && x > *lo) *lo = x;
    if (op != '>' && op != 'g' && x < *hi) *hi = x;
  } else if (type == SQLITE_FLOAT) {
    /* rows near the ends of the range are read, and SQLite tests them */
    if (r <= -9.2e18 || r >= 9.2e18) return;
    if (op != '<' && op != 'l' && (wl_i64)r - 1 > *lo) *lo = (wl_i64)r - 1;
    if (op != '>' && op != 'g' && (wl_i64)r + 1 < *hi) *hi = (wl_i64)r + 1;
  }
}

/* Whether a value can be used as an upper bound of texts. If it came from a column of numeric
** affinity, which SQLite does not tell us, every text that is a number is below it. Such texts
** begin with a byte below ':', so they are below it in text order, too, if it begins with ':' or a
** larger byte. A literal or a parameter is no such column. */
static bool is_ceiling(sqlite3_value *v, bool literal) {
  if (sqlite3_value_type(v) != SQLITE_TEXT || literal || sqlite3_value_frombind(v)) return true;
  const unsigned char *p = sqlite3_value_text(v);
  return p && *p >= ':';
}

static wl_status add_bound(wl_tablet_cursor *c, int col, char op, sqlite3_value *v, bool *empty,
                           wl_error *err) {
  const wl_decl_column *d = &c->rows.t->decl->cols[col];
  if (sqlite3_value_type(v) == SQLITE_NULL) {
    *empty = true;
    return WL_OK;
  }
  if (d->affinity >= 'C') sqlite3_value_numeric_type(v);
  wl_val x = wl_sqlite_val(v);
  /* A TEXT column converts a number that it is compared with to a text. SQLite does that. */
  if (x.t == WL_T_BLOB || (d->affinity == 'B' && x.t != WL_T_TEXT)) return WL_OK;
  if (d->affinity == 'A' && x.t == WL_T_TEXT && d->coll != WL_COLL_BINARY) return WL_OK;
  if (x.t == WL_T_TEXT) {
    wl_u8 *copy = wl_mem_alloc((size_t)x.n + 1);
    if (!copy) return wl_nomem(err);
    if (x.n) memcpy(copy, wl_bytes(x), x.n);
    x.v = (wl_u64)(size_t)copy;
  }
  c->bounds[c->n_bounds++] = (wl_bound){col, op, x};
  return WL_OK;
}

/* Looks up the row with this key. Sets *lo and *hi to its rowid, or to an empty range. */
static wl_status look_up(wl_tablet_cursor *c, int key, const wl_val *values, wl_i64 *lo, wl_i64 *hi,
                         wl_error *err) {
  wl_tablets *t = c->rows.t;
  wl_i64 rowid = 0;
  bool found = false;
  const wl_decl_key *k = &t->decl->keys[key];
  bool null = false;
  for (int i = 0; i < k->n; i++) null |= values[k->cols[i]].t == WL_T_NULL;
  wl_i64 own = t->decl->rowid_col >= 0 ? (wl_i64)values[t->decl->rowid_col].v : 0;
  wl_status rc = null ? WL_OK : wl_row_find_key(t, key, values, own, &found, &rowid, err);
  if (!found) {
    *lo = 1;
    *hi = 0;
  } else {
    if (rowid > *lo) *lo = rowid;
    if (rowid < *hi) *hi = rowid;
  }
  return rc;
}

/* Whether a key can be looked up with this value. The value may have an affinity that SQLite does
** not tell us. Then a number also equals texts, if the column has TEXT affinity or none. A text
** also equals numbers, if the column has none. */
static wl_status can_look_up(wl_tablets *t, int key, int col, wl_val v, bool *out, wl_error *err) {
  char affinity = t->decl->cols[col].affinity;
  bool number = v.t == WL_T_INT || v.t == WL_T_REAL;
  *out = affinity >= 'C' || !(number || (affinity == 'A' && v.t == WL_T_TEXT));
  if (*out || affinity == 'B' || t->decl->keys[key].cols[0] != col) return WL_OK;
  /* The key's first column has no affinity. Checks whether it has values of the other kind. */
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_key_stmt(t, key, number ? WL_KEY_TEXTS : WL_KEY_NUMBERS, &s, err);
  if (rc) return rc;
  int st = wl_tablets_step(t, s);
  *out = st == SQLITE_DONE;
  if (st != SQLITE_DONE && st != SQLITE_ROW) rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  return rc;
}

/* A walk may find 1 of WALK_SHARE rows, and at least WALK_LEAST. A scan is faster for more rows. */
enum { WALK_LEAST = 1000, WALK_SHARE = 50 };

/* Moves the cursor to the next row of the walk. */
static wl_status next_of_walk(wl_tablet_cursor *c, wl_error *err) {
  for (;;) {
    wl_i64 id = 0;
    bool end;
    wl_status rc = wl_walk_next(&c->walk, c->rows.t, &id, &end, err);
    if (rc) return rc;
    if (!end && (id < c->lo || id > c->hi)) continue;
    rc = wl_row_reader_start(&c->rows, end ? 1 : id, end ? 0 : id, NULL, 0, err);
    if (rc || end || !c->rows.end) return rc;
  }
}

/* Begins a walk along a key. *walks is false if the walk would be too long and the query does not
** ask for its order. */
static wl_status start_walk(wl_tablet_cursor *c, int key, char order, sqlite3_value *lower,
                            sqlite3_value *upper, bool *walks, wl_error *err) {
  wl_tablets *t = c->rows.t;
  wl_i64 most = wl_tablets_rows_about(t) / WALK_SHARE;
  int col = t->decl->keys[key].cols[0];
  sqlite3_value **ends[] = {&lower, &upper};
  *walks = true;
  for (int i = 0; i < 2; i++) {
    bool is = true;
    wl_status rc = WL_OK;
    if (!*ends[i]) continue;
    if (t->decl->cols[col].affinity >= 'C') sqlite3_value_numeric_type(*ends[i]);
    wl_val v = wl_sqlite_val(*ends[i]);
    if (v.t == WL_T_BLOB && t->decl->cols[col].affinity < 'C') is = false;
    if (is) rc = can_look_up(t, key, col, v, &is, err);
    if (rc) return rc;
    if (!is) *ends[i] = NULL;
  }
  *walks = order || (lower && upper);
  if (!*walks) return WL_OK;
  wl_status rc = wl_walk_start(&c->walk, t, key, order == 'd', lower, upper, err);
  if (!rc && !order)
    rc = wl_walk_gather(&c->walk, t, most > WALK_LEAST ? most : WALK_LEAST, walks, err);
  return rc;
}

int wl_tablet_filter(sqlite3_vtab_cursor *p, int idx, const char *text, int argc,
                     sqlite3_value **argv) {
  wl_tablet_cursor *c = (wl_tablet_cursor *)p;
  wl_tablets *t = c->rows.t;
  wl_error err = {0};
  wl_i64 lo = WL_I64_MIN, hi = WL_I64_MAX;
  bool empty = false, can_use_key = true;
  wl_val *key = NULL;
  wl_status rc = WL_OK;
  sqlite3_value *lower = NULL, *upper = NULL;
  char order = text && (*text == 'o' || *text == 'd') ? *text++ : 0;
  bool walks = idx < 0;
  if (wl_tablets_inside_step(t)) rc = wl_tablets_reentered(t, &err);
  wl_walk_stop(&c->walk, t);
  wl_tablet_drop_bounds(c);
  c->bounds = wl_mem_zalloc(((size_t)argc + 1) * sizeof *c->bounds);
  key = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *key);
  if (!rc && (!c->bounds || !key)) rc = wl_nomem(&err);
  if (!rc) rc = wl_tablets_refresh(t, &err);
  for (int i = 0; i < argc && text && *text && !rc; i++) {
    char kind = *text++;
    if (kind == 'r') {
      narrow_rowids(*text++, argv[i], &lo, &hi);
      continue;
    }
    bool literal = kind == 'Z' || kind == 'W';
    if (literal) kind = kind == 'Z' ? 'z' : 'w';
    char op = kind == 'z' || kind == 'w' ? *text++ : '=';
    int col = (int)strtol(text, (char **)&text, 10);
    text++; /* the semicolon */
    if ((op == '<' || op == 'l') && t->decl->cols[col].affinity < 'C' &&
        !is_ceiling(argv[i], literal)) {
      continue;
    }
    if (kind == 'w') {
      *(op == '>' || op == 'g' ? &lower : &upper) = argv[i];
      empty |= sqlite3_value_type(argv[i]) == SQLITE_NULL;
      if (t->decl->keys[-idx - 1].colls[0] == WL_COLL_BINARY)
        rc = add_bound(c, col, op, argv[i], &empty, &err);
    } else if (kind == 'z') {
      rc = add_bound(c, col, op, argv[i], &empty, &err);
    } else {
      const wl_decl_column *d = &t->decl->cols[col];
      if (d->affinity >= 'C') sqlite3_value_numeric_type(argv[i]);
      key[col] = wl_sqlite_val(argv[i]);
      bool is = true;
      if (!wl_tablets_is_rowid(t, col)) rc = can_look_up(t, idx - 1, col, key[col], &is, &err);
      can_use_key &= is;
    }
  }
  if (!rc && idx > 0 && can_use_key) rc = look_up(c, idx - 1, key, &lo, &hi, &err);
  if (!rc && empty) {
    lo = 1;
    hi = 0;
  }
  c->lo = lo;
  c->hi = hi;
  if (!rc && walks && !empty) rc = start_walk(c, -idx - 1, order, lower, upper, &walks, &err);
  if (!rc && walks && !empty)
    rc = next_of_walk(c, &err);
  else if (!rc)
    rc = wl_row_reader_start(&c->rows, lo, hi, c->bounds, c->n_bounds, &err);
  wl_mem_free(key);
  return rc ? wl_vtab_fail(p->pVtab, &err) : SQLITE_OK;
}

int wl_tablet_next(sqlite3_vtab_cursor *p) {
  wl_tablet_cursor *c = (wl_tablet_cursor *)p;
  wl_error err = {0};
  wl_status rc =
      wl_walk_is_on(&c->walk) ? next_of_walk(c, &err) : wl_row_reader_next(&c->rows, &err);
  return rc ? wl_vtab_fail(p->pVtab, &err) : SQLITE_OK;
}
