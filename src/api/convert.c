/*
** warplite_convert('t') turns an ordinary table into a tablet table of the same name, or a tablet
** table into an ordinary one, with its rows, rowids and constraints. The text between the
** parentheses of the CREATE statement stays the same.
**
**   to a tablet table   rename t away, CREATE VIRTUAL TABLE t, copy, drop the old one
**   to an ordinary one  CREATE TABLE under another name, copy, drop t, rename the new one to t
**
** Only ordinary tables are renamed. Views refer to tables by name and must not change, so SQLite is
** told to rename without changing them (legacy_alter_table).
**
** Invariants:
** 1. Everything happens inside one savepoint (wl_schema_make_change).
** 2. What the other kind of table cannot have is refused before anything changes, or by the module
**    when the table is created (tablet/table/declare.c).
*/
#include "api/functions.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "sql/lex.h"
#include "warplite.h"
#include <stdlib.h>
#include <string.h>

typedef struct convert {
  sqlite3 *db;
  char *schema, *name;  /* owned */
  char *sql;            /* owned; its CREATE statement */
  char *body;           /* owned; the text between its parentheses */
  wl_schema_change job; /* job.other: the temporary name of one of the two tables */
  bool is_tablet;
  sqlite3_int64 n_rows;
} convert;

/* Copies the texts of a query's first row with wl_mem_strdup(), NULL for NULL. *found: there is a
** row. */
static wl_status ask(convert *v, char *sql, char **out, int n, bool *found, wl_error *err) {
  sqlite3_stmt *stmt = NULL;
  wl_status status = WL_OK;
  *found = false;
  for (int i = 0; i < n; i++) out[i] = NULL;
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_prepare_v2(v->db, sql, -1, &stmt, NULL);
  if (!rc && sqlite3_step(stmt) == SQLITE_ROW) {
    *found = true;
    for (int i = 0; i < n; i++) {
      const char *z = (const char *)sqlite3_column_text(stmt, i);
      if (z && !(out[i] = wl_mem_strdup(z))) status = wl_nomem(err);
    }
  }
  int rc2 = sqlite3_finalize(stmt);
  sqlite3_free(sql);
  if (!status && (rc || rc2)) status = wl_schema_failed(&v->job, rc ? rc : rc2, err);
  return status;
}

/* ---- the table */

static wl_status no_table(const char *text, wl_error *err) {
  return wl_fail(err, WL_ERROR, "warplite_convert: no such table: %.200s", text);
}

/* Finds "table" or "schema.table", in the order in which SQLite looks. */
static wl_status find(convert *v, const char *text, wl_error *err) {
  char *row[6];
  bool found;
  const char *format =
      "SELECT l.schema, l.name, l.type, l.wr, l.strict FROM pragma_table_list AS l "
      "JOIN pragma_database_list AS d ON d.name = l.schema WHERE l.name = %Q "
      "COLLATE NOCASE AND %s ORDER BY d.seq <> 1, d.seq LIMIT 1";
  wl_status rc = ask(v, sqlite3_mprintf(format, text, "1"), row, 5, &found, err);
  const char *dot = strchr(text, '.');
  if (!rc && !found && dot) {
    char *where = sqlite3_mprintf("l.schema = '%.*q' COLLATE NOCASE", (int)(dot - text), text);
    char *sql = where ? sqlite3_mprintf(format, dot + 1, where) : NULL;
    sqlite3_free(where);
    rc = ask(v, sql, row, 5, &found, err);
  }
  if (rc || !found) return rc ? rc : no_table(text, err);
  v->schema = row[0];
  v->name = row[1];
  const char *type = row[2], *why = NULL;
  if (!type || strcmp(type, "view") == 0)
    why = "it is a view";
  else if (strcmp(type, "shadow") == 0)
    why = "it belongs to another table";
  else if (sqlite3_strnicmp(v->name, "sqlite_", 7) == 0)
    why = "it is a table of SQLite itself";
  else if (row[3] && *row[3] == '1')
    why = "it is WITHOUT ROWID";
  else if (row[4] && *row[4] == '1')
    why = "it is STRICT";
  if (why)
    rc = wl_fail(err, WL_ERROR, "warplite_convert: %.100s cannot be converted: %s", text, why);
  for (int i = 2; i < 5; i++) wl_mem_free(row[i]);
  if (rc) return rc;
  rc =
      ask(v,
          sqlite3_mprintf("SELECT sql FROM \"%w\".sqlite_schema WHERE type = 'table' AND name = %Q",
                          v->schema, v->name),
          &v->sql, 1, &found, err);
  if (!rc && (!found || !v->sql)) rc = no_table(text, err);
  return rc;
}

/* Parses the CREATE statement: the kind of table, and its body. */
static wl_status take_apart(convert *v, wl_error *err) {
  wl_lexer lex;
  wl_token tok, last = {0, 0}, module = {0, 0};
  size_t open = 0;
  bool virtual_table = false, using = false;
  int k = 0;
  wl_lex_init(&lex, v->sql, strlen(v->sql));
  for (int kind; (kind = wl_lex_next(&lex, &tok)) != WL_LEX_END; k++) {
    if (kind == WL_LEX_ILLEGAL) break;
    if (k == 1) virtual_table = wl_lex_is(v->sql, tok, "VIRTUAL");
    if (using && !module.n) module = tok;
    if (virtual_table && !open && wl_lex_is(v->sql, tok, "USING")) using = true;
    if (v->sql[tok.pos] == '(' && tok.n == 1 && !open) open = tok.pos + 1;
    last = tok;
  }
  if (virtual_table && !wl_lex_is(v->sql, module, "TABLET"))
    return wl_fail(err, WL_ERROR,
                   "warplite_convert: %.100s cannot be converted: it is a virtual table of the "
                   "module %.*s",
                   v->name, (int)module.n, v->sql + module.pos);
  if (!open || !last.n || v->sql[last.pos] != ')' || last.pos < open)
    return wl_fail(err, WL_ERROR,
                   "warplite_convert: %.100s has a CREATE statement that warplite "
                   "cannot parse",
                   v->name);
  v->is_tablet = virtual_table;
  v->body = wl_mem_alloc(last.pos - open + 1);
  if (!v->body) return wl_nomem(err);
  memcpy(v->body, v->sql + open, last.pos - open);
  v->body[last.pos - open] = 0;
  return WL_OK;
}

/* Refuses an ordinary table with indexes, triggers or foreign keys. */
static wl_status refuse_more(convert *v, wl_error *err) {
  static const struct {
    /* %1 is the schema, %2 the name; selects the name of what prevents it */
    const char *what, *sql;
  } checks[] = {
      {"it has the index", "SELECT name FROM pragma_index_list(:t, :s) WHERE origin = 'c'"},
      {"it has the trigger",
       "SELECT name FROM (SELECT name, type, tbl_name FROM \"%w\".sqlite_schema UNION ALL SELECT "
       "name, type, tbl_name FROM temp.sqlite_schema) WHERE type = 'trigger' AND tbl_name = :t "
       "COLLATE NOCASE"},
      {"it has a foreign key to", "SELECT \"table\" FROM pragma_foreign_key_list(:t, :s)"},
      {"a foreign key refers to it from",
       "SELECT m.name FROM \"%w\".sqlite_schema m, pragma_foreign_key_list(m.name, :s) f WHERE "
       "m.type = 'table' AND m.rootpage > 0 AND f.\"table\" = :t COLLATE NOCASE"},
  };
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf(checks[i].sql, v->schema), what[100] = "";
    if (!sql) return wl_nomem(err);
    int rc = sqlite3_prepare_v2(v->db, sql, -1, &stmt, NULL);
    sqlite3_free(sql);
    if (!rc) {
      int t = sqlite3_bind_parameter_index(stmt, ":t"),
          s = sqlite3_bind_parameter_index(stmt, ":s");
      sqlite3_bind_text(stmt, t, v->name, -1, SQLITE_STATIC);
      if (s) sqlite3_bind_text(stmt, s, v->schema, -1, SQLITE_STATIC);
      if (sqlite3_step(stmt) == SQLITE_ROW)
        sqlite3_snprintf(sizeof what, what, "%s", sqlite3_column_text(stmt, 0));
    }
    int rc2 = sqlite3_finalize(stmt);
    if (rc || rc2) return wl_schema_failed(&v->job, rc ? rc : rc2, err);
    if (*what)
      return wl_fail(err, WL_ERROR, "warplite_convert: %.100s cannot be converted: %s %s", v->name,
                     checks[i].what, what);
  }
  return WL_OK;
}

/* ---- the conversion */

/* The columns to copy, with the rowid if it is not one of them but has a name. */
typedef struct columns {
  char *list;  /* freed with sqlite3_free() */
  char *order; /* the rowid's name, or "" if it has none; freed with sqlite3_free() */
} columns;

/* Reads the columns of whichever table is the ordinary one. */
static wl_status read_columns(convert *v, const char *table, columns *out, wl_error *err) {
  static const char *const names[] = {"rowid", "_rowid_", "oid"};
  sqlite3_stmt *stmt = NULL;
  bool taken[3] = {false, false, false};
  char *key = NULL;
  int n_keys = 0;
  sqlite3_str *list = sqlite3_str_new(v->db);
  /* An INTEGER PRIMARY KEY that has no index is the rowid. */
  char *sql = sqlite3_mprintf(
      "SELECT name, pk > 0, type = 'INTEGER' COLLATE NOCASE AND NOT EXISTS (SELECT 1 FROM "
      "pragma_index_list(%Q, %Q) WHERE origin = 'pk') FROM pragma_table_info(%Q, %Q)",
      table, v->schema, table, v->schema);
  int rc = sql ? sqlite3_prepare_v2(v->db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  while (!rc && sqlite3_step(stmt) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(stmt, 0);
    if (!name) continue;
    for (int i = 0; i < 3; i++)
      if (sqlite3_stricmp(name, names[i]) == 0) taken[i] = true;
    sqlite3_str_appendf(list, ", \"%w\"", name);
    if (!sqlite3_column_int(stmt, 1)) continue;
    n_keys++;
    if (sqlite3_column_int(stmt, 2) && !key) key = sqlite3_mprintf("\"%w\"", name);
  }
  int rc2 = sqlite3_finalize(stmt), k = 0;
  char *rest = sqlite3_str_finish(list);
  if (rc || rc2) {
    sqlite3_free(rest);
    sqlite3_free(key);
    return wl_schema_failed(&v->job, rc ? rc : rc2, err);
  }
  while (k < 3 && taken[k]) k++;
  if (key && n_keys == 1) {
    out->order = key;
    out->list = rest ? sqlite3_mprintf("%s", rest + 2) : NULL;
  } else {
    sqlite3_free(key);
    out->order = sqlite3_mprintf("%s", k < 3 ? names[k] : "");
    out->list =
        rest ? sqlite3_mprintf("%s%s", k < 3 ? names[k] : "", rest + (k < 3 ? 0 : 2)) : NULL;
  }
  sqlite3_free(rest);
  return out->list && out->order ? WL_OK : wl_nomem(err);
}

/* Copies all rows in the order of their rowids. warplite runs the statement, so a tablet table gets
** its rows in bulk. */
static wl_status copy(convert *v, const char *from, const char *to, wl_error *err) {
  sqlite3_stmt *stmt = NULL;
  columns c = {NULL, NULL};
  wl_status status = read_columns(v, v->job.other, &c, err);
  char *sql = NULL;
  if (status) goto done;
  if (v->is_tablet) /* a tablet table returns its rows in that order */
    sql = sqlite3_mprintf("INSERT INTO \"%w\".\"%w\"(%s) SELECT %s FROM \"%w\".\"%w\"", v->schema,
                          to, c.list, c.list, v->schema, from);
  else
    sql = sqlite3_mprintf(
        "INSERT INTO \"%w\".\"%w\"(%s) SELECT %s FROM \"%w\".\"%w\" NOT INDEXED%s%s", v->schema, to,
        c.list, c.list, v->schema, from, *c.order ? " ORDER BY " : "", c.order);
  if (!sql) {
    status = wl_nomem(err);
    goto done;
  }
  int rc = warplite_prepare(v->db, sql, -1, &stmt, NULL);
  if (!rc) {
    sqlite3_step(stmt);
    rc = sqlite3_finalize(stmt);
  }
  if (rc) status = wl_schema_failed(&v->job, rc, err);
  v->n_rows = sqlite3_changes64(v->db);
done:
  sqlite3_free(sql);
  sqlite3_free(c.list);
  sqlite3_free(c.order);
  return status;
}

static wl_status to_tablet(convert *v, wl_error *err) {
  wl_status rc = wl_schema_run(&v->job,
                               sqlite3_mprintf("ALTER TABLE \"%w\".\"%w\" RENAME TO \"%w\"",
                                               v->schema, v->name, v->job.other),
                               err);
  if (!rc)
    rc = wl_schema_run(&v->job,
                       sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\".\"%w\" USING tablet(%s)",
                                       v->schema, v->name, v->body),
                       err);
  if (!rc) rc = copy(v, v->job.other, v->name, err);
  if (!rc)
    rc = wl_schema_run(&v->job,
                       sqlite3_mprintf("DROP TABLE \"%w\".\"%w\"", v->schema, v->job.other), err);
  return rc;
}

static wl_status to_ordinary(convert *v, wl_error *err) {
  wl_status rc = wl_schema_run(
      &v->job, sqlite3_mprintf("CREATE TABLE \"%w\".\"%w\"(%s)", v->schema, v->job.other, v->body),
      err);
  if (!rc) rc = copy(v, v->name, v->job.other, err);
  if (!rc)
    rc = wl_schema_run(&v->job, sqlite3_mprintf("DROP TABLE \"%w\".\"%w\"", v->schema, v->name),
                       err);
  if (!rc)
    rc = wl_schema_run(&v->job,
                       sqlite3_mprintf("ALTER TABLE \"%w\".\"%w\" RENAME TO \"%w\"", v->schema,
                                       v->job.other, v->name),
                       err);
  return rc;
}

static wl_status change(void *arg, wl_error *err) {
  convert *v = arg;
  return v->is_tablet ? to_ordinary(v, err) : to_tablet(v, err);
}

static wl_status count_rows(convert *v, wl_error *err) {
  char *text;
  bool found;
  wl_status rc = ask(v, sqlite3_mprintf("SELECT count(*) FROM \"%w\".\"%w\"", v->schema, v->name),
                     &text, 1, &found, err);
  if (!rc && text) v->n_rows = strtoll(text, NULL, 10);
  wl_mem_free(text);
  return rc;
}

/* Whether the authorizer allows the table to be read and dropped. It is asked here, and not about
** the statements that do the conversion: if it changed one of those, rows would be lost. */
static wl_status may_convert(convert *v, wl_error *err) {
  static const char *const texts[] = {"SELECT * FROM \"%w\".\"%w\"", "DROP TABLE \"%w\".\"%w\""};
  for (int k = 0; k < 2; k++) {
    sqlite3_stmt *stmt = NULL;
    wl_mask *mask = NULL;
    char *sql = sqlite3_mprintf(texts[k], v->schema, v->name);
    int rc = sql ? wl_ask_prepare(v->db, sql, -1, &stmt, NULL, &mask) : SQLITE_NOMEM;
    bool ignored = wl_mask_ignores(mask);
    wl_mask_free(mask);
    sqlite3_finalize(stmt);
    sqlite3_free(sql);
    if (rc) return wl_schema_failed(&v->job, rc, err);
    if (ignored) return wl_fail(err, (wl_status)SQLITE_AUTH, "warplite_convert: %s", WL_IGNORED);
  }
  return WL_OK;
}

/* want: "tablet", "table", or NULL for the other kind. */
static wl_status convert_table(convert *v, const char *text, const char *want, wl_error *err) {
  if (!text) return wl_fail(err, WL_ERROR, "warplite_convert: a table name is needed");
  if (want && sqlite3_stricmp(want, "tablet") && sqlite3_stricmp(want, "table"))
    return wl_fail(err, WL_ERROR,
                   "warplite_convert: the second argument must be 'tablet' or 'table', not "
                   "'%.100s'",
                   want);
  wl_status rc = find(v, text, err);
  if (!rc) rc = take_apart(v, err);
  if (!rc && want && v->is_tablet == (sqlite3_stricmp(want, "tablet") == 0))
    return count_rows(v, err);
  if (!rc && !v->is_tablet) rc = refuse_more(v, err);
  if (!rc) rc = may_convert(v, err);
  if (!rc) {
    wl_own_begin();
    v->job.schema = v->schema;
    v->job.table = v->name;
    rc = wl_schema_make_change(&v->job, change, v, err);
    wl_own_end();
  }
  return rc;
}

void wl_convert(sqlite3_context *ctx, int n, sqlite3_value **args) {
  wl_error err = {0};
  convert v = {.db = sqlite3_context_db_handle(ctx)};
  v.job = (wl_schema_change){.db = v.db, .function = "warplite_convert"};
  const char *text = (const char *)sqlite3_value_text(args[0]);
  const char *want = n > 1 ? (const char *)sqlite3_value_text(args[1]) : NULL;
  if (convert_table(&v, text, want, &err)) {
    wl_result_error(ctx, &err);
  } else {
    sqlite3_result_int64(ctx, v.n_rows);
  }
  wl_mem_free(v.schema);
  wl_mem_free(v.name);
  wl_mem_free(v.sql);
  wl_mem_free(v.body);
}
