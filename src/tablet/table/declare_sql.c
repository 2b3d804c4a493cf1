/*
** Writes a declaration as SQL, and compares it with how SQLite understands it; see declare.h.
*/
#include "tablet/table/declare.h"
#include "base/sqlite.h"
#include "value/collation.h"
#include <string.h>

/* Copies the finished string into the arena and frees it; NULL if there is no memory. */
static char *finish_text(wl_arena *arena, sqlite3_str *s) {
  char *text = sqlite3_str_finish(s);
  char *out = text ? wl_arena_strndup(arena, text, strlen(text)) : NULL;
  sqlite3_free(text);
  return out;
}

/* Appends the columns. The type is quoted, so that it stays one type whatever it contains. An empty
** type ("") has another affinity than no type. */
static void add_columns(sqlite3_str *s, const wl_decl *d, bool not_null) {
  for (int i = 0; i < d->n_cols; i++) {
    const wl_decl_column *c = &d->cols[i];
    sqlite3_str_appendf(s, i ? ", \"%w\"" : "\"%w\"", c->name);
    if (*c->type || c->affinity == 'C') sqlite3_str_appendf(s, " \"%w\"", c->type);
    if (i == d->rowid_col) sqlite3_str_appendall(s, " PRIMARY KEY");
    if (not_null && c->not_null) sqlite3_str_appendall(s, " NOT NULL");
    if (c->coll) sqlite3_str_appendf(s, " COLLATE %s", wl_collation_name(c->coll));
  }
}

/* Other keys are left out: SQLite would list them as indexes, which do not exist. */
char *wl_decl_vtab_sql(wl_arena *arena, const wl_decl *d, const char *table) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendall(s, "CREATE TABLE x(");
  add_columns(s, d, true);
  sqlite3_str_appendf(s, ", \"%w\" HIDDEN)", table);
  return finish_text(arena, s);
}

char *wl_decl_delta_sql(wl_arena *arena, const wl_decl *d) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  add_columns(s, d, false);
  return finish_text(arena, s);
}

/* The text as the user wrote it surely means the same. */
char *wl_decl_ordinary_sql(wl_arena *arena, const wl_decl *d) {
  return wl_arena_strndup(arena, d->source, strlen(d->source));
}

/* ---- how SQLite understands it */

static bool same_text(sqlite3_stmt *q, int i, const char *s) {
  const char *t = (const char *)sqlite3_column_text(q, i);
  return t && strcmp(t, s) == 0;
}

static int prepare(sqlite3 *db, sqlite3_stmt **q, const char *sql, const char *arg) {
  int rc = sqlite3_prepare_v2(db, sql, -1, q, NULL);
  return rc ? rc : sqlite3_bind_text(*q, 1, arg, -1, SQLITE_STATIC);
}

static wl_status sqlite_error(sqlite3 *db, int rc, wl_error *err) {
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return wl_fail(err, WL_ERROR, "%s", sqlite3_errmsg(db));
}

static wl_status disagrees(wl_error *err, const char *what) {
  return wl_fail(err, WL_ERROR, "SQLite and the tablet table disagree about %s", what);
}

static wl_status compare_columns(sqlite3 *db, const wl_decl *d, const char *table, wl_error *err) {
  sqlite3_stmt *q = NULL;
  wl_status st = WL_OK;
  int i = 0, step = SQLITE_DONE;
  int rc = prepare(db, &q, "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1)",
                   table);
  for (; !rc && !st && (step = sqlite3_step(q)) == SQLITE_ROW; i++) {
    const char *coll = NULL;
    if (i >= d->n_cols) break;
    const wl_decl_column *c = &d->cols[i];
    rc = sqlite3_table_column_metadata(db, "main", table, c->name, NULL, &coll, NULL, NULL, NULL);
    bool same = !rc && same_text(q, 0, c->name) && same_text(q, 1, c->type);
    same = same && sqlite3_column_int(q, 2) == c->not_null && sqlite3_column_int(q, 4) == 0;
    same = same && (i != d->rowid_col || sqlite3_column_int(q, 3) == 1);
    same = same && wl_collation_is(coll, c->coll);
    if (!rc && !same) st = disagrees(err, c->name);
  }
  sqlite3_finalize(q);
  if (!rc && !st && step != SQLITE_DONE && step != SQLITE_ROW) rc = step;
  if (!rc && !st && (i != d->n_cols || step != SQLITE_DONE)) st = disagrees(err, "the columns");
  return rc ? sqlite_error(db, rc, err) : st;
}

/* Whether an index has the columns of the key, and its collations unless k->colls is NULL. */
static int compare_key(sqlite3 *db, const wl_decl_key *k, const char *index, bool *same) {
  sqlite3_stmt *q = NULL;
  int i = 0;
  int rc = prepare(db, &q, "SELECT cid, coll FROM pragma_index_xinfo(?1) WHERE \"key\"", index);
  *same = true;
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *coll = (const char *)sqlite3_column_text(q, 1);
    *same = *same && i < k->n && sqlite3_column_int(q, 0) == k->cols[i] && coll &&
            (!k->colls || wl_collation_is(coll, k->colls[i]));
    i++;
    rc = SQLITE_OK;
  }
  *same = *same && i == k->n;
  sqlite3_finalize(q);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* SQLite lists indexes in the order in which it checks them. */
static wl_status compare_keys(sqlite3 *db, const wl_decl *d, const char *table, wl_error *err) {
  sqlite3_stmt *q = NULL;
  int i = 0;
  bool same = true;
  int rc = prepare(db, &q, "SELECT name, origin FROM pragma_index_list(?1)", table);
  while (!rc && same && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *index = (const char *)sqlite3_column_text(q, 0);
    wl_decl_key rowid = {.n = 1, .cols = (int[]){d->rowid_col}};
    bool is_rowid = false;
    rc = d->rowid_col < 0 ? SQLITE_OK : compare_key(db, &rowid, index, &is_rowid);
    if (rc || is_rowid) continue; /* the rowid is no key */
    same = i < d->n_keys && same_text(q, 1, d->keys[i].primary ? "pk" : "u");
    if (same) rc = compare_key(db, &d->keys[i], index, &same);
    i++;
  }
  sqlite3_finalize(q);
  if (rc && rc != SQLITE_DONE) return sqlite_error(db, rc, err);
  return same && i == d->n_keys ? WL_OK : disagrees(err, "the keys");
}

wl_status wl_declare_verify(const wl_decl *d, const char *table, wl_error *err) {
  sqlite3 *db = NULL;
  wl_status st = WL_OK;
  for (int i = 0; i < d->n_cols; i++)
    if (sqlite3_stricmp(d->cols[i].name, table) == 0)
      return wl_fail(err, WL_ERROR,
                     "a column of a tablet table cannot have the name of the table: %s", table);
  char *sql = sqlite3_mprintf("CREATE TABLE \"%w\"(%s)", table, d->source);
  int rc = sql ? sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL)
               : SQLITE_NOMEM;
  if (!rc) rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  if (rc) st = db ? sqlite_error(db, rc, err) : wl_nomem(err);
  if (!st) st = compare_columns(db, d, table, err);
  if (!st) st = compare_keys(db, d, table, err);
  sqlite3_free(sql);
  sqlite3_close(db);
  return st;
}
