/*
** The virtual table module `tablet`: what SQLite itself sees of a tablet table. Reading is by
** cursor.c, writing by row.c; a transaction's end comes to table.c.
*/
#include "tablet/vtab.h"
#include "base/mem.h"
#include "tablet/append.h"
#include "tablet/cursor.h"
#include "tablet/dmlrow.h"
#include "tablet/walk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct table {
  sqlite3_vtab base;
  wl_tablets *t;
} table;

typedef struct cursor {
  sqlite3_vtab_cursor base;
  wl_rows rows;
  wl_bound *bounds;
  int n_bounds;
  wl_walk walk;  /* on: the rows are those that it gives … */
  wl_i64 lo, hi; /* … and whose rowids lie here */
} cursor;

static int fail(sqlite3_vtab *v, const wl_error *err) {
  sqlite3_free(v->zErrMsg);
  v->zErrMsg = sqlite3_mprintf("%s", err->text);
  return err->code ? (int)err->code : SQLITE_ERROR;
}

/* ---- life */

static int connect(sqlite3 *db, bool create, int argc, const char *const *argv, sqlite3_vtab **out,
                   char **msg) {
  wl_error err = {0};
  wl_tablets *t = NULL;
  table *v = sqlite3_malloc(sizeof *v);
  if (!v) return SQLITE_NOMEM;
  memset(v, 0, sizeof *v);
  wl_status rc = wl_tablets_open(db, argv[1], argv[2], create, argv + 3, argc - 3, &t, &err);
  if (rc) {
    *msg = sqlite3_mprintf("%s", err.text);
    sqlite3_free(v);
    return rc == WL_NOT_TAKEN ? SQLITE_ERROR : (int)rc;
  }
  char *sql = wl_decl_vtab_sql(&t->arena, t->decl, t->name);
  int st = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
  if (!st) st = sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  if (!st) st = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  if (st) {
    *msg = sqlite3_mprintf("%s", sqlite3_errmsg(db));
    wl_tablets_close(t);
    sqlite3_free(v);
    return st;
  }
  v->t = t;
  *out = &v->base;
  return SQLITE_OK;
}

static int xcreate(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                   char **msg) {
  (void)aux;
  return connect(db, true, argc, argv, out, msg);
}

static int xconnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **msg) {
  (void)aux;
  return connect(db, false, argc, argv, out, msg);
}

static int xdisconnect(sqlite3_vtab *v) {
  wl_tablets_close(((table *)v)->t);
  sqlite3_free(v);
  return SQLITE_OK;
}

static int xdestroy(sqlite3_vtab *v) {
  wl_error err = {0};
  if (wl_tablets_destroy(((table *)v)->t, &err)) return fail(v, &err);
  return xdisconnect(v);
}

static int xrename(sqlite3_vtab *v, const char *name) {
  wl_error err = {0};
  return wl_tablets_rename(((table *)v)->t, name, &err) ? fail(v, &err) : SQLITE_OK;
}

static int xshadow_name(const char *suffix) {
  return wl_tablets_shadow_name(suffix);
}

/* ---- transactions */

static int xbegin(sqlite3_vtab *v) {
  (void)v;
  return SQLITE_OK;
}

static int xsync(sqlite3_vtab *v) {
  wl_tablets *t = ((table *)v)->t;
  wl_error err = {0};
  sqlite3_int64 last = sqlite3_last_insert_rowid(t->db);
  wl_status rc = wl_tablets_sync(t, &err);
  sqlite3_set_last_insert_rowid(t->db, last);
  return rc ? fail(v, &err) : SQLITE_OK;
}

static int xcommit(sqlite3_vtab *v) {
  wl_tablets_committed(((table *)v)->t);
  return SQLITE_OK;
}

static int xrollback(sqlite3_vtab *v) {
  wl_tablets_rolled_back(((table *)v)->t, true);
  return SQLITE_OK;
}

static int xsavepoint(sqlite3_vtab *v, int n) {
  (void)v;
  (void)n;
  return SQLITE_OK;
}

static int xrollback_to(sqlite3_vtab *v, int n) {
  (void)n;
  wl_tablets_rolled_back(((table *)v)->t, false);
  return SQLITE_OK;
}

/* ---- planning. idxStr lists what each argument of xFilter is: a letter and numbers.
**   r<op>        a constraint on the rowid
**   k<key>       the next column of a key, all of which are given
**   z<op><col>;  a constraint that zone maps can use
**   w<op><col>;  the same, on the column of the key that is walked along
** idxNum is the key + 1 where one is looked up, -(key + 1) where one is walked along. Such a text
** begins with o or d where the rows come in the order of the key, rising or falling. Z and W are z
** and w where the value is a literal. */

static char op_letter(int op) {
  switch (op) {
  case SQLITE_INDEX_CONSTRAINT_EQ: return '=';
  case SQLITE_INDEX_CONSTRAINT_LT: return '<';
  case SQLITE_INDEX_CONSTRAINT_LE: return 'l';
  case SQLITE_INDEX_CONSTRAINT_GT: return '>';
  case SQLITE_INDEX_CONSTRAINT_GE: return 'g';
  default: return 0;
  }
}

static bool is_rowid(const wl_tablets *t, int col) {
  return col < 0 || col == t->decl->rowid_col;
}

/* col IN (SELECT …) compares by the affinities of both sides; when SQLite hands its values to us
 *one
 ** by one it forgets that of the SELECT, which matters where the column has none or TEXT. It is
 ** better not to be asked. */
static bool loses_affinity(const wl_tablets *t, const sqlite3_index_info *info, int i) {
  int col = info->aConstraint[i].iColumn;
  return !is_rowid(t, col) && col < t->n_cols && t->decl->cols[col].affinity < 'C' &&
         sqlite3_vtab_in((sqlite3_index_info *)info, i, -1);
}

/* The constraint that gives column col of a key by equality, or -1. */
static int key_constraint(const wl_tablets *t, const sqlite3_index_info *info, int col, int coll) {
  static const char *const names[] = {"BINARY", "NOCASE", "RTRIM"};
  for (int i = 0; i < info->nConstraint; i++) {
    if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
      continue;
    if (loses_affinity(t, info, i)) continue;
    int c = info->aConstraint[i].iColumn;
    if (c != col && !(c < 0 && col == t->decl->rowid_col)) continue;
    const char *name = sqlite3_vtab_collation((sqlite3_index_info *)info, i);
    if (name && sqlite3_stricmp(name, names[coll]) == 0) return i;
  }
  return -1;
}

static int whole_key(const wl_tablets *t, const sqlite3_index_info *info) {
  for (int k = 0; k < t->decl->n_keys; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    int n = 0;
    while (n < key->n && key_constraint(t, info, key->cols[n], key->colls[n]) >= 0) n++;
    if (n == key->n) return k;
  }
  return -1;
}

static bool is_literal(sqlite3_index_info *info, int i) {
  sqlite3_value *v = NULL;
  return sqlite3_vtab_rhs_value(info, i, &v) == SQLITE_OK && v;
}

/* A constraint on a column that a walk along a key can use: between values, under the key's
** collation. Its letter, or 0. */
static char walk_letter(const wl_tablets *t, const sqlite3_index_info *info, int i, int key) {
  static const char *const names[] = {"BINARY", "NOCASE", "RTRIM"};
  const wl_decl_key *k = &t->decl->keys[key];
  char op = op_letter(info->aConstraint[i].op);
  if (!op || op == '=' || !info->aConstraint[i].usable) return 0;
  if (info->aConstraint[i].iColumn != k->cols[0]) return 0;
  const char *name = sqlite3_vtab_collation((sqlite3_index_info *)info, i);
  return name && sqlite3_stricmp(name, names[k->colls[0]]) == 0 ? op : 0;
}

/* A key of one column that it is good to walk along, or -1: its order is asked for, or it is
** bounded from both sides. */
static int walked_key(const wl_tablets *t, const sqlite3_index_info *info, bool *ordered) {
  for (int k = 0; k < t->decl->n_keys; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    int col = key->cols[0], n_low = 0, n_high = 0;
    if (key->n != 1 || col == t->decl->rowid_col) continue;
    for (int i = 0; i < info->nConstraint; i++) {
      char op = walk_letter(t, info, i, k);
      n_low += op == '>' || op == 'g';
      n_high += op == '<' || op == 'l';
    }
    *ordered = info->nOrderBy == 1 && info->aOrderBy[0].iColumn == col &&
               key->colls[0] == t->decl->cols[col].coll;
    if (n_low + n_high && (*ordered || (n_low && n_high))) return k;
  }
  return -1;
}

static wl_i64 rows_about(const wl_tablets *t) {
  wl_i64 n = t->n_delta;
  for (int i = 0; i < t->n_tablets; i++) n += t->tablets[i].n_rows - t->tablets[i].n_dead;
  return n > 1 ? n : t->loaded ? 1 : 1000000;
}

static int xbest_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  const wl_tablets *t = ((table *)v)->t;
  sqlite3_str *s = sqlite3_str_new(t->db);
  int n = 0;
  bool one = false;
  double rows = (double)rows_about(t);
  for (int i = 0; i < info->nConstraint; i++) {
    char op = op_letter(info->aConstraint[i].op);
    if (!op || !info->aConstraint[i].usable || !is_rowid(t, info->aConstraint[i].iColumn)) continue;
    info->aConstraintUsage[i].argvIndex = ++n;
    sqlite3_str_appendf(s, "r%c", op);
    one |= op == '=';
    rows = op == '=' ? 1 : rows / 4 + 1;
  }
  int key = one ? -1 : whole_key(t, info);
  info->idxNum = key + 1;
  if (key >= 0) {
    const wl_decl_key *k = &t->decl->keys[key];
    for (int i = 0; i < k->n; i++) {
      int at = key_constraint(t, info, k->cols[i], k->colls[i]);
      if (info->aConstraintUsage[at].argvIndex) continue; /* the rowid is of the key: it is one */
      info->aConstraintUsage[at].argvIndex = ++n;
      sqlite3_str_appendf(s, "k%d;", k->cols[i]);
    }
    rows = 1;
  }
  double touched = rows;
  bool ordered = false;
  int walk = one || key >= 0 ? -1 : walked_key(t, info, &ordered);
  if (walk >= 0) info->idxNum = -(walk + 1);
  for (int i = 0; i < info->nConstraint && walk >= 0; i++) {
    char op = walk_letter(t, info, i, walk);
    if (!op) continue;
    info->aConstraintUsage[i].argvIndex = ++n;
    sqlite3_str_appendf(s, "%c%c%d;", is_literal(info, i) ? 'W' : 'w', op,
                        t->decl->keys[walk].cols[0]);
    touched = touched / 4 + 1;
  }
  for (int i = 0; i < info->nConstraint && rows > 1; i++) {
    char op = op_letter(info->aConstraint[i].op);
    int col = info->aConstraint[i].iColumn;
    if (!op || !info->aConstraint[i].usable || col < 0 || col >= t->n_cols ||
        info->aConstraintUsage[i].argvIndex)
      continue;
    if (sqlite3_vtab_in(info, i, -1)) continue; /* or the table would be scanned for each value */
    const char *coll = sqlite3_vtab_collation(info, i);
    if (t->decl->cols[col].affinity == 'B' && (!coll || sqlite3_stricmp(coll, "BINARY") != 0))
      continue;
    info->aConstraintUsage[i].argvIndex = ++n;
    sqlite3_str_appendf(s, "%c%c%d;", is_literal(info, i) ? 'Z' : 'z', op, col);
    touched = touched / (op == '=' ? 4 : 2) + 1;
  }
  int rc = sqlite3_str_errcode(s);
  char *list = sqlite3_str_finish(s);
  info->idxStr = !ordered || walk < 0
                     ? list
                     : sqlite3_mprintf("%s%z", info->aOrderBy[0].desc ? "d" : "o", list);
  info->needToFreeIdxStr = 1;
  if (rc) return rc;
  if (ordered && walk >= 0) {
    if (!info->idxStr) return SQLITE_NOMEM;
    info->orderByConsumed = 1;
  }
  /* Zone maps make a scan cheaper, but never so that two are: SQLite would read the parts of an OR
  ** one after the other, and no longer by rowid. */
  info->estimatedCost = rows <= 1 ? 3 : rows * 1.5 + touched * 0.5 + 10;
  info->estimatedRows = (sqlite3_int64)touched;
  /* a value compared with affinity may equal several keys: xFilter scans then */
  bool numeric = key >= 0;
  for (int i = 0; numeric && i < t->decl->keys[key].n; i++)
    numeric = t->decl->cols[t->decl->keys[key].cols[i]].affinity >= 'C';
  if (one || numeric) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  if (info->nOrderBy == 1 && is_rowid(t, info->aOrderBy[0].iColumn) && !info->aOrderBy[0].desc)
    info->orderByConsumed = 1;
  return SQLITE_OK;
}

/* ---- reading */

static int xopen(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  wl_error err = {0};
  cursor *c = sqlite3_malloc(sizeof *c);
  if (!c) return SQLITE_NOMEM;
  memset(c, 0, sizeof *c);
  if (wl_rows_open(&c->rows, ((table *)v)->t, &err)) {
    sqlite3_free(c);
    return fail(v, &err);
  }
  *out = &c->base;
  return SQLITE_OK;
}

static void drop_bounds(cursor *c) {
  for (int i = 0; i < c->n_bounds; i++)
    if (c->bounds[i].v.t >= WL_T_TEXT) wl_mem_free((void *)(size_t)c->bounds[i].v.v);
  wl_mem_free(c->bounds);
  c->bounds = NULL;
  c->n_bounds = 0;
}

static int xclose(sqlite3_vtab_cursor *p) {
  cursor *c = (cursor *)p;
  wl_walk_stop(&c->walk, c->rows.t);
  wl_rows_close(&c->rows);
  drop_bounds(c);
  sqlite3_free(c);
  return SQLITE_OK;
}

/* Narrows [*lo, *hi] to the integers that meet the constraint, as far as it is clear; of one by
** equality SQLite looks at the first row alone. */
static void narrow(char op, sqlite3_value *v, wl_i64 *lo, wl_i64 *hi) {
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
    /* what is near its ends is looked at and tested */
    if (r <= -9.2e18 || r >= 9.2e18) return;
    if (op != '<' && op != 'l' && (wl_i64)r - 1 > *lo) *lo = (wl_i64)r - 1;
    if (op != '>' && op != 'g' && (wl_i64)r + 1 < *hi) *hi = (wl_i64)r + 1;
  }
}

/* Whether a text is a bound of texts from above. If it came from a column of numeric affinity,
** which SQLite does not tell us, it is above every text that is a number, and these begin with a
** byte below ':'. A literal or a parameter is no such column. */
static bool is_ceiling(sqlite3_value *v, bool literal) {
  if (sqlite3_value_type(v) != SQLITE_TEXT || literal || sqlite3_value_frombind(v)) return true;
  const unsigned char *p = sqlite3_value_text(v);
  return p && *p >= ':';
}

static wl_status add_bound(cursor *c, int col, char op, sqlite3_value *v, bool *empty,
                           wl_error *err) {
  const wl_decl_column *d = &c->rows.t->decl->cols[col];
  if (sqlite3_value_type(v) == SQLITE_NULL) {
    *empty = true;
    return WL_OK;
  }
  if (d->affinity >= 'C') sqlite3_value_numeric_type(v);
  wl_val x = wl_sqlite_val(v);
  /* a TEXT column makes a number it is compared with a text: leave that to SQLite */
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

/* The row with the key that is given: lo = hi = its rowid, or nothing. */
static wl_status look_up(cursor *c, int key, const wl_val *values, wl_i64 *lo, wl_i64 *hi,
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

/* Whether a key can be looked up by a value as it is. What it is compared with may have an affinity
** that SQLite does not tell us of: a number then equals texts too, where the column has TEXT
** affinity or none, and a text equals numbers where it has none. */
static wl_status is_clear(wl_tablets *t, int key, int col, wl_val v, bool *out, wl_error *err) {
  char affinity = t->decl->cols[col].affinity;
  bool number = v.t == WL_T_INT || v.t == WL_T_REAL;
  *out = affinity >= 'C' || !(number || (affinity == 'A' && v.t == WL_T_TEXT));
  if (*out || affinity == 'B' || t->decl->keys[key].cols[0] != col) return WL_OK;
  /* the key's first column has no affinity: are there values of the other kind at all? */
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_key_stmt(t, key, number ? WL_KEY_TEXTS : WL_KEY_NUMBERS, &s, err);
  if (rc) return rc;
  int st = sqlite3_step(s);
  *out = st == SQLITE_DONE;
  if (st != SQLITE_DONE && st != SQLITE_ROW) rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  return rc;
}

enum { WALK_LEAST = 1000, WALK_SHARE = 50 }; /* rows that are better found one by one */

/* Stands on the next row of the walk. */
static wl_status walk_on(cursor *c, wl_error *err) {
  for (;;) {
    wl_i64 id = 0;
    bool end;
    wl_status rc = wl_walk_next(&c->walk, c->rows.t, &id, &end, err);
    if (rc) return rc;
    if (!end && (id < c->lo || id > c->hi)) continue;
    rc = wl_rows_start(&c->rows, end ? 1 : id, end ? 0 : id, NULL, 0, err);
    if (rc || end || !c->rows.end) return rc;
  }
}

/* Begins a walk along a key. *walks false: it would be too long, and nobody minds the order. */
static wl_status walk_start(cursor *c, int key, char order, sqlite3_value *lower,
                            sqlite3_value *upper, bool *walks, wl_error *err) {
  wl_tablets *t = c->rows.t;
  wl_i64 most = rows_about(t) / WALK_SHARE;
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
    if (is) rc = is_clear(t, key, col, v, &is, err);
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

static int xfilter(sqlite3_vtab_cursor *p, int idx, const char *text, int argc,
                   sqlite3_value **argv) {
  cursor *c = (cursor *)p;
  wl_tablets *t = c->rows.t;
  wl_error err = {0};
  wl_i64 lo = WL_I64_MIN, hi = WL_I64_MAX;
  bool empty = false, clear_key = true;
  wl_val *key = NULL;
  wl_status rc = WL_OK;
  sqlite3_value *lower = NULL, *upper = NULL;
  char order = text && (*text == 'o' || *text == 'd') ? *text++ : 0;
  bool walks = idx < 0;
  wl_walk_stop(&c->walk, t);
  drop_bounds(c);
  c->bounds = wl_mem_zalloc(((size_t)argc + 1) * sizeof *c->bounds);
  key = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *key);
  if (!c->bounds || !key) rc = wl_nomem(&err);
  for (int i = 0; i < argc && text && *text && !rc; i++) {
    char kind = *text++;
    if (kind == 'r') {
      narrow(*text++, argv[i], &lo, &hi);
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
      if (!is_rowid(t, col)) rc = is_clear(t, idx - 1, col, key[col], &is, &err);
      clear_key &= is;
    }
  }
  if (!rc) rc = wl_tablets_refresh(t, &err);
  if (!rc && idx > 0 && clear_key) rc = look_up(c, idx - 1, key, &lo, &hi, &err);
  if (!rc && empty) {
    lo = 1;
    hi = 0;
  }
  c->lo = lo;
  c->hi = hi;
  if (!rc && walks && !empty) rc = walk_start(c, -idx - 1, order, lower, upper, &walks, &err);
  if (!rc && walks && !empty)
    rc = walk_on(c, &err);
  else if (!rc)
    rc = wl_rows_start(&c->rows, lo, hi, c->bounds, c->n_bounds, &err);
  wl_mem_free(key);
  return rc ? fail(p->pVtab, &err) : SQLITE_OK;
}

static int xnext(sqlite3_vtab_cursor *p) {
  cursor *c = (cursor *)p;
  wl_error err = {0};
  wl_status rc = wl_walk_is_on(&c->walk) ? walk_on(c, &err) : wl_rows_next(&c->rows, &err);
  return rc ? fail(p->pVtab, &err) : SQLITE_OK;
}

static int xeof(sqlite3_vtab_cursor *p) {
  return ((cursor *)p)->rows.end;
}

static int xcolumn(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  cursor *c = (cursor *)p;
  wl_error err = {0};
  wl_val v;
  if (col >= c->rows.t->n_cols) return SQLITE_OK; /* the column of commands: NULL */
  if (wl_rows_value(&c->rows, col, &v, &err)) return fail(p->pVtab, &err);
  wl_sqlite_result(ctx, v, SQLITE_TRANSIENT);
  return SQLITE_OK;
}

static int xrowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((cursor *)p)->rows.rowid;
  return SQLITE_OK;
}

/* ---- writing */

static int violated(sqlite3_vtab *v, const wl_violation *x) {
  sqlite3_free(v->zErrMsg);
  v->zErrMsg = NULL;
  /* a row that is left out says nothing: SQLite would keep it for what fails later */
  if (sqlite3_vtab_on_conflict(((table *)v)->t->db) != SQLITE_IGNORE)
    v->zErrMsg = sqlite3_mprintf("%s", x->text);
  return x->code;
}

static int mismatch(sqlite3_vtab *v) {
  sqlite3_free(v->zErrMsg);
  v->zErrMsg = sqlite3_mprintf("datatype mismatch");
  return SQLITE_MISMATCH;
}

/* A value as a rowid. *is false: it is none. */
static wl_i64 as_rowid(sqlite3_value *v, bool *is) {
  int type = sqlite3_value_numeric_type(v);
  double r = type == SQLITE_FLOAT ? sqlite3_value_double(v) : 0;
  *is = type == SQLITE_INTEGER || (type == SQLITE_FLOAT && r > -9223372036854775808.0 &&
                                   r < 9223372036854775808.0 && (double)(wl_i64)r == r);
  return type == SQLITE_FLOAT && *is ? (wl_i64)r : sqlite3_value_int64(v);
}

/* 'optimize' and the like, written into the hidden column. */
static int command(table *v, sqlite3_value *arg, wl_error *err) {
  const char *text = (const char *)sqlite3_value_text(arg);
  wl_status rc;
  if (text && sqlite3_stricmp(text, "optimize") == 0)
    rc = wl_tablets_optimize(v->t, err);
  else if (text && sqlite3_stricmp(text, "fold") == 0)
    rc = wl_tablets_fold(v->t, err);
  else
    rc = wl_fail(err, WL_ERROR,
                 "table %.100s knows the commands 'optimize' and 'fold', not '%.100s'", v->t->name,
                 text ? text : "");
  return rc ? fail(&v->base, err) : SQLITE_OK;
}

/* Takes away every row that stands in the way of one that replaces it. */
static wl_status make_way(wl_tablets *t, const wl_val *values, wl_i64 rowid, const wl_i64 *skip,
                          wl_error *err) {
  for (;;) {
    wl_violation x;
    bool found;
    wl_status rc = wl_row_conflict(t, values, rowid, skip, &x, err);
    if (rc || !x.code) return rc;
    rc = wl_row_delete(t, x.rowid, &found, err);
    if (rc) return rc;
  }
}

/* Inserts a row, or changes the one at *old. */
static int write_row(table *v, const wl_i64 *old, sqlite3_value *rowid_arg, sqlite3_value **args,
                     sqlite3_int64 *out) {
  wl_tablets *t = v->t;
  wl_error err = {0};
  wl_violation x = {0};
  int policy = sqlite3_vtab_on_conflict(t->db);
  int alias = t->decl->rowid_col;
  wl_i64 rowid = 0;
  bool given = false, is = true, found = true;
  wl_row_begin(t);
  wl_status rc = wl_tablets_refresh(t, &err);
  wl_val *values = wl_mem_alloc(((size_t)t->n_cols + 1) * sizeof *values);
  if (!rc && !values) rc = wl_nomem(&err);
  /* UPDATE OR REPLACE may have taken the row away for one that came before it */
  if (!rc && old && policy == SQLITE_REPLACE) rc = wl_row_there(t, *old, &found, &err);
  if (rc || !found) goto done;
  /* UPDATE gives the rowid as it was where it is not set */
  if (rowid_arg && sqlite3_value_type(rowid_arg) != SQLITE_NULL) {
    rowid = as_rowid(rowid_arg, &is);
    given = !(old && is && rowid == *old && alias >= 0);
  } else if (old) {
    is = false;
  }
  if (is && !given && alias >= 0 && sqlite3_value_type(args[alias]) != SQLITE_NULL) {
    rowid = as_rowid(args[alias], &is);
    given = true;
  } else if (old && !given && alias >= 0) {
    is = false;
  }
  if (!is) {
    wl_mem_free(values);
    return mismatch(&v->base);
  }
  if (!old && !given) rc = wl_row_new_rowid(t, &rowid, &err);
  for (int i = 0; i < t->n_cols; i++)
    values[i] = i == alias ? wl_int(rowid) : wl_sqlite_val(args[i]);
  if (!rc && (!old || policy == SQLITE_REPLACE)) rc = wl_row_defaults(t, values, &err);
  if (!rc) rc = wl_row_check(t, values, rowid, policy == SQLITE_REPLACE, &x, &err);
  if (!rc && !x.code) {
    if (policy == SQLITE_REPLACE)
      rc = make_way(t, values, rowid, old, &err);
    else
      rc = wl_row_conflict(t, values, rowid, old, &x, &err);
  }
  if (!rc && !x.code) {
    rc = old ? wl_row_change(t, *old, rowid, values, &err) : wl_row_put(t, rowid, values, &err);
    *out = rowid;
  }
done:
  wl_mem_free(values);
  if (rc) return fail(&v->base, &err);
  return x.code ? violated(&v->base, &x) : SQLITE_OK;
}

/* Rows of warplite_append(). */
static int append(table *v, wl_append *a, sqlite3_int64 *rowid) {
  wl_error err = {0};
  wl_i64 last = 0;
  a->status = wl_append_rows(v->t, a->schema, a->rows, a->n_threads, &last, &err);
  *rowid = last;
  if (a->status == WL_NOT_TAKEN) err.code = (wl_status)SQLITE_CONSTRAINT;
  return a->status ? fail(&v->base, &err) : SQLITE_OK;
}

static int update(sqlite3_vtab *p, int argc, sqlite3_value **argv, sqlite3_int64 *rowid) {
  table *v = (table *)p;
  wl_error err = {0};
  bool found;
  if (argc == 1) {
    wl_row_begin(v->t);
    return wl_row_delete(v->t, sqlite3_value_int64(argv[0]), &found, &err) ? fail(p, &err)
                                                                           : SQLITE_OK;
  }
  bool insert = sqlite3_value_type(argv[0]) == SQLITE_NULL;
  sqlite3_value *hidden = argv[2 + v->t->n_cols];
  wl_append *rows = insert ? sqlite3_value_pointer(hidden, WL_APPEND_TYPE) : NULL;
  if (rows) return append(v, rows, rowid);
  if (insert && sqlite3_value_type(hidden) != SQLITE_NULL) return command(v, hidden, &err);
  wl_i64 old = insert ? 0 : sqlite3_value_int64(argv[0]);
  return write_row(v, insert ? NULL : &old, argv[1], argv + 2, rowid);
}

/* The shadow tables' rowids must not show in last_insert_rowid(). Where a row was inserted SQLite
** sets it after us. */
static int xupdate(sqlite3_vtab *p, int argc, sqlite3_value **argv, sqlite3_int64 *rowid) {
  wl_tablets *t = ((table *)p)->t;
  wl_dmlrun *run = t->run;
  /* millions of rows that are only to be counted: as little as can be */
  if (run && argc > 1 && run->at_once && run->kind != WL_DMLROW_FAILS &&
      sqlite3_value_int64(argv[2 + t->n_cols]) == run->token) {
    if (run->kind == WL_DMLROW_NEW) run->last_rowid = run->rowid;
    *rowid = run->last_rowid;
    return SQLITE_OK;
  }
  sqlite3 *db = ((table *)p)->t->db;
  const char *text = NULL;
  int code;
  /* first of all a row of a change that has been made: there may be millions to be counted */
  if (argc > 1 && sqlite3_value_type(argv[0]) == SQLITE_NULL &&
      wl_dmlrow_read(db, argv, argv[2 + ((table *)p)->t->n_cols], &code, rowid, &text)) {
    if (code) {
      sqlite3_free(p->zErrMsg);
      p->zErrMsg = sqlite3_mprintf("%s", text);
    }
    return code;
  }
  sqlite3_int64 last = sqlite3_last_insert_rowid(db);
  int rc = update(p, argc, argv, rowid);
  sqlite3_set_last_insert_rowid(db, last);
  return rc;
}

static sqlite3_module module = {
    .iVersion = 3,
    .xCreate = xcreate,
    .xConnect = xconnect,
    .xBestIndex = xbest_index,
    .xDisconnect = xdisconnect,
    .xDestroy = xdestroy,
    .xOpen = xopen,
    .xClose = xclose,
    .xFilter = xfilter,
    .xNext = xnext,
    .xEof = xeof,
    .xColumn = xcolumn,
    .xRowid = xrowid,
    .xUpdate = xupdate,
    .xBegin = xbegin,
    .xSync = xsync,
    .xCommit = xcommit,
    .xRollback = xrollback,
    .xRename = xrename,
    .xSavepoint = xsavepoint,
    .xRelease = xsavepoint,
    .xRollbackTo = xrollback_to,
    .xShadowName = xshadow_name,
};

int wl_tablet_register(sqlite3 *db) {
  return sqlite3_create_module_v2(db, "tablet", &module, NULL, NULL);
}
