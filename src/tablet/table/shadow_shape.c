/*
** Checks that the shadow tables are what they must be: ordinary tables with the columns that our
** statements name, and nothing attached to them. If somebody has tampered with the file, there may
** be a view, a virtual table or a trigger instead, which could run any code of its own.
**
** Invariants:
** 1. Where possible the check asks SQLite about the schema that it has parsed
**    (sqlite3_table_column_metadata refuses views). The text of sqlite_schema can be forged, so it
**    is only an additional check. If something passes both and still calls us back, wl_tablets_step
**    stops it.
*/
#include "tablet/table/table_impl.h"
#include <stdio.h>
#include <string.h>

/* The columns of each shadow table. The other columns of t_delta are c0, c1 and so on. If the first
** column is id, it is the INTEGER PRIMARY KEY. */
static const struct shadow_shape {
  const char *suffix;
  const char *columns[9];
} shapes[] = {
    {"info", {"k", "v"}},
    {"tablet", {"id", "lo", "hi", "n_rows", "n_dead", "head", "dead", "sum"}},
    {"segment", {"id", "data"}},
    {"dict", {"id", "sum", "data"}},
    {"gone", {"id"}},
    {"delta", {"id"}},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static wl_status wrong_shape(wl_tablets *t, const char *table, const char *what, wl_error *err) {
  return wl_tablets_corrupt(t, -1, -1, err, "%.100s %s: restore it from a backup", table, what);
}

/* Checks a column of an ordinary table. is_key: it must be the rowid. */
static wl_status check_column(wl_tablets *t, const char *table, const char *column, bool is_key,
                              wl_error *err) {
  const char *type = NULL;
  int key = 0;
  int rc =
      sqlite3_table_column_metadata(t->db, t->schema, table, column, &type, NULL, NULL, &key, NULL);
  if (rc == SQLITE_ERROR) return wrong_shape(t, table, "does not have its columns", err);
  if (rc) return wl_tablets_error(t, rc, err);
  if (is_key && (!key || !type || sqlite3_stricmp(type, "INTEGER") != 0))
    return wrong_shape(t, table, "has the wrong key", err);
  return WL_OK;
}

static wl_status check_exists(wl_tablets *t, const char *table, wl_error *err) {
  int rc =
      sqlite3_table_column_metadata(t->db, t->schema, table, NULL, NULL, NULL, NULL, NULL, NULL);
  if (rc == SQLITE_ERROR) return wrong_shape(t, table, "is missing or is not a table", err);
  return rc ? wl_tablets_error(t, rc, err) : WL_OK;
}

static wl_status check_table(wl_tablets *t, const struct shadow_shape *x, wl_error *err) {
  char *table = sqlite3_mprintf("%s_%s", t->name, x->suffix);
  char column[16];
  if (!table) return wl_nomem(err);
  wl_status rc = check_exists(t, table, err);
  for (int i = 0; !rc && x->columns[i]; i++)
    rc = check_column(t, table, x->columns[i], i == 0 && strcmp(x->columns[0], "id") == 0, err);
  if (!rc && strcmp(x->suffix, "delta") == 0) { /* our statements name the columns before it */
    snprintf(column, sizeof column, "c%d", t->n_cols - 1);
    rc = check_column(t, table, column, false, err);
  }
  sqlite3_free(table);
  return rc;
}

static wl_status check_key(wl_tablets *t, int k, wl_error *err) {
  char *table = sqlite3_mprintf("%s_key%d", t->name, k);
  char column[16];
  if (!table) return wl_nomem(err);
  wl_status rc = check_exists(t, table, err);
  for (int i = 0; !rc && i < t->decl->keys[k].n; i++) {
    snprintf(column, sizeof column, "k%d", i);
    rc = check_column(t, table, column, false, err);
  }
  if (!rc) rc = check_column(t, table, "id", false, err);
  sqlite3_free(table);
  return rc;
}

/* Whether a suffix is that of one of this table's shadow tables. */
static bool is_ours(const wl_tablets *t, const char *suffix) {
  char name[16];
  for (int i = 0; i < N_SHAPES; i++)
    if (sqlite3_stricmp(suffix, shapes[i].suffix) == 0) return true;
  for (int k = 0; k < t->decl->n_keys; k++) {
    snprintf(name, sizeof name, "key%d", k);
    if (sqlite3_stricmp(suffix, name) == 0) return true;
  }
  return false;
}

/* Checks one entry of sqlite_schema. We never create an index or a trigger on a shadow table, or
** anything else in its place. */
static wl_status check_entry(wl_tablets *t, sqlite3_stmt *s, wl_error *err) {
  const char *type = (const char *)sqlite3_column_text(s, 0);
  const char *name = (const char *)sqlite3_column_text(s, 1);
  const char *table = (const char *)sqlite3_column_text(s, 2);
  const char *sql = (const char *)sqlite3_column_text(s, 3);
  int n = (int)strlen(t->name);
  if (!type || !table || sqlite3_strnicmp(table, t->name, n) != 0 || table[n] != '_' ||
      !is_ours(t, table + n + 1))
    return WL_OK;
  if (strcmp(type, "trigger") == 0 || strcmp(type, "index") == 0)
    return wl_tablets_corrupt(t, -1, -1, err, "%s %.60s on %.60s does not belong there: drop it",
                              type, name ? name : "?", table);
  if (strcmp(type, "table") != 0 || !sql || sqlite3_strnicmp(sql, "CREATE TABLE", 12) != 0)
    return wrong_shape(t, table, "is not an ordinary table", err);
  return WL_OK;
}

/* The query calls no functions, because an authorizer may deny any of them. */
static wl_status check_schema(wl_tablets *t, wl_error *err) {
  sqlite3_stmt *s = NULL;
  char *sql =
      sqlite3_mprintf("SELECT type, name, tbl_name, sql FROM \"%w\".sqlite_schema", t->schema);
  int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (rc == SQLITE_AUTH) return WL_OK; /* the authorizer denies it: skip this check */
  wl_status st = rc ? wl_tablets_error(t, rc, err) : WL_OK;
  while (!st && (rc = sqlite3_step(s)) == SQLITE_ROW) st = check_entry(t, s, err);
  if (!st && rc != SQLITE_DONE) st = wl_tablets_error(t, rc, err);
  sqlite3_finalize(s);
  return st;
}

wl_status wl_tablets_check_shapes(wl_tablets *t, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < N_SHAPES && !rc; i++) rc = check_table(t, &shapes[i], err);
  for (int k = 0; k < t->decl->n_keys && !rc; k++) rc = check_key(t, k, err);
  return rc ? rc : check_schema(t, err);
}
