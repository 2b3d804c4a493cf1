/*
** warplite_load(table) reads the columns of a table into memory, and warplite_unload(table) drops
** them. warplite_load(name, select) runs a SELECT and keeps its rows under a name: in a temporary
** tablet table, whose columns are then read into memory too. Queries use it like any other table,
** and DROP TABLE removes it.
**
** Invariants of warplite_load(name, select):
** 1. Names, types and rows are those of CREATE TEMP TABLE name AS select. SQLite itself computes
**    names and types, from an empty table of that kind.
** 2. Only a table of an earlier call is replaced. Its CREATE statement has a comment that says so.
**    It stays if anything fails, and the SELECT may read it.
** 3. The application is asked about that CREATE statement, and about DROP TABLE of a table that is
**    replaced. The statements that do the work are the library's own.
*/
#include "api/functions.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "sql/lex.h"
#include "warplite.h"
#include <string.h>

#define MARK "/* warplite_load */" /* in the CREATE statement of a staged table */

/* Finds "table" or "schema.table". */
static wl_status named_table(wl_conn *c, const char *text, wl_table **out, wl_error *err) {
  if (!text) return wl_fail(err, WL_ERROR, "warplite: a table name is needed");
  wl_status rc = wl_conn_keep_helpers(c, err);
  if (!rc) rc = wl_store_table(c->store, NULL, text, out, err);
  const char *dot = strchr(text, '.');
  if (rc == WL_NOT_TAKEN && dot) {
    char *schema = wl_mem_strdup(text);
    if (!schema) return wl_nomem(err);
    schema[dot - text] = 0;
    rc = wl_store_table(c->store, schema, dot + 1, out, err);
    wl_mem_free(schema);
  }
  if (rc == WL_NOT_TAKEN) {
    wl_error why = *err;
    rc = wl_fail(err, WL_ERROR, "warplite: %.200s cannot be loaded: %.200s", text, why.text);
  }
  return rc;
}

/* Reads all columns of a table. */
static wl_status load_columns(wl_conn *c, const char *name, wl_i64 *n_rows, wl_error *err) {
  wl_table *t = NULL;
  wl_snapshot snap = {0};
  bool changed;
  wl_status rc = named_table(c, name, &t, err);
  int *cols = NULL;
  if (!rc) {
    cols = wl_mem_alloc(((size_t)t->n_cols + 1) * sizeof *cols);
    if (!cols) rc = wl_nomem(err);
  }
  int k = 0;
  for (int i = 0; !rc && i < t->n_cols; i++)
    if (!t->cols[i].hidden) cols[k++] = i;
  if (!rc) rc = wl_source_begin(t->source, &changed, err);
  if (!rc) rc = wl_source_acquire(t->source, cols, k, &snap, err);
  wl_store_end(c->store);
  if (!rc && !wl_source_live_rows(t->source, n_rows)) *n_rows = snap.n_rows;
  wl_snapshot_release(&snap);
  wl_mem_free(cols);
  return rc;
}

void wl_load(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  wl_error err = {0};
  wl_i64 n_rows = 0;
  const char *name = (const char *)sqlite3_value_text(args[0]);
  if (load_columns(sqlite3_user_data(ctx), name, &n_rows, &err))
    wl_result_error(ctx, &err);
  else
    sqlite3_result_int64(ctx, n_rows);
}

void wl_unload(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  wl_conn *c = sqlite3_user_data(ctx);
  wl_error err = {0};
  wl_table *t = NULL;
  if (named_table(c, (const char *)sqlite3_value_text(args[0]), &t, &err)) {
    wl_result_error(ctx, &err);
    return;
  }
  int n_cols = 0;
  for (int i = -1; i < t->n_cols; i++) n_cols += wl_source_columns(t->source, &i, 1, NULL);
  wl_source_unload(t->source);
  sqlite3_result_int(ctx, n_cols);
}

/* ---- the rows of a SELECT */

typedef struct staging {
  wl_schema_change job;
  const char *sql;
  size_t n_sql;  /* without the semicolon at the end */
  bool replaces; /* there is a table of an earlier call */
  wl_i64 n_rows;
} staging;

static wl_status refuse(const char *why, wl_error *err) {
  return wl_fail(err, WL_ERROR, "warplite_load: %s", why);
}

/* Finds out whether the name can be used. */
static wl_status check_name(staging *s, wl_error *err) {
  sqlite3_stmt *q = NULL;
  wl_status status = WL_OK;
  const char *name = s->job.table;
  if (!name || !*name) return refuse("a name for the rows is needed", err);
  if (sqlite3_strnicmp(name, "warplite_", 9) == 0)
    return refuse("names that begin with warplite_ are warplite's own", err);
  int rc = sqlite3_prepare_v2(s->job.db,
                              "SELECT l.schema, l.type, t.sql FROM pragma_table_list AS l LEFT "
                              "JOIN temp.sqlite_schema AS t "
                              "ON l.schema = 'temp' AND t.name = l.name AND t.type = 'table' WHERE "
                              "l.name = ?1 COLLATE NOCASE",
                              -1, &q, NULL);
  if (rc) return wl_schema_failed(&s->job, rc, err);
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  while (!status && sqlite3_step(q) == SQLITE_ROW) {
    const char *sql = (const char *)sqlite3_column_text(q, 2);
    if (sql && strstr(sql, " USING tablet(" MARK))
      s->replaces = true;
    else
      status = wl_fail(err, WL_ERROR, "warplite_load: there is a %s %s.%.100s already",
                       sqlite3_stricmp((const char *)sqlite3_column_text(q, 1), "view") ? "table"
                                                                                        : "view",
                       sqlite3_column_text(q, 0), name);
  }
  rc = sqlite3_finalize(q);
  return !status && rc ? wl_schema_failed(&s->job, rc, err) : status;
}

/* Prepares a statement as the application's, to find errors and to ask the authorizer. */
static wl_status ask(const staging *s, char *sql, wl_error *err) {
  sqlite3_stmt *stmt = NULL;
  wl_mask *mask = NULL;
  int rc = sql ? wl_ask_prepare(s->job.db, sql, -1, &stmt, NULL, &mask) : SQLITE_NOMEM;
  bool ignored = wl_mask_ignores(mask);
  wl_mask_free(mask);
  sqlite3_finalize(stmt);
  sqlite3_free(sql);
  if (rc) return wl_schema_failed(&s->job, rc, err);
  if (ignored) return wl_fail(err, (wl_status)SQLITE_AUTH, "warplite_load: " WL_IGNORED);
  return WL_OK;
}

/* The length of the first statement of a text, without its semicolon. */
static size_t statement_length(const char *sql) {
  wl_lexer lex;
  wl_token t;
  size_t n = 0;
  wl_lex_init(&lex, sql, strlen(sql));
  while (wl_lex_next(&lex, &t) != WL_LEX_END && !(t.n == 1 && sql[t.pos] == ';')) n = t.pos + t.n;
  return n;
}

static wl_status check_select(staging *s, wl_error *err) {
  sqlite3_stmt *stmt = NULL;
  const char *tail = "";
  if (!s->sql) return refuse("a SELECT is needed", err);
  int rc = sqlite3_prepare_v2(s->job.db, s->sql, -1, &stmt, &tail);
  if (rc) return wl_schema_failed(&s->job, rc, err);
  const char *why = wl_select_no_table(stmt, tail);
  sqlite3_finalize(stmt);
  if (why) return wl_fail(err, WL_ERROR, "warplite_load %s", why);
  s->n_sql = statement_length(s->sql);
  /* A name that is in use would be an error. */
  const char *name = s->replaces ? "wl_change" : s->job.table;
  wl_status status =
      ask(s, sqlite3_mprintf("CREATE TEMP TABLE \"%w\" AS %.*s", name, (int)s->n_sql, s->sql), err);
  if (!status && s->replaces)
    status = ask(s, sqlite3_mprintf("DROP TABLE temp.\"%w\"", s->job.table), err);
  return status;
}

/* Reads the columns of the table `other`, as a declaration. The caller frees it with
** sqlite3_free(). */
static wl_status read_columns(const staging *s, char **out, wl_error *err) {
  sqlite3_stmt *q = NULL;
  wl_status status = WL_OK;
  int rc = sqlite3_prepare_v2(s->job.db, "SELECT name, type FROM pragma_table_info(?1, 'temp')", -1,
                              &q, NULL);
  if (rc) return wl_schema_failed(&s->job, rc, err);
  sqlite3_bind_text(q, 1, s->job.other, -1, SQLITE_STATIC);
  sqlite3_str *list = sqlite3_str_new(s->job.db);
  while (!status && sqlite3_step(q) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(q, 0);
    if (name && sqlite3_stricmp(name, s->job.table) == 0)
      status =
          wl_fail(err, WL_ERROR,
                  "warplite_load: the column %.100s has the name of the table; give it another "
                  "with AS",
                  name);
    sqlite3_str_appendf(list, "%s\"%w\" %s", sqlite3_str_length(list) ? ", " : "", name,
                        sqlite3_column_text(q, 1));
  }
  rc = sqlite3_finalize(q);
  *out = sqlite3_str_finish(list);
  if (!status && rc) status = wl_schema_failed(&s->job, rc, err);
  return !status && !*out ? wl_nomem(err) : status;
}

/* Fills the table `other`. warplite runs the statement, so it gets its rows in bulk. */
static wl_status fill(staging *s, wl_error *err) {
  sqlite3_stmt *stmt = NULL;
  char *sql = sqlite3_mprintf("INSERT INTO temp.%s %.*s", s->job.other, (int)s->n_sql, s->sql);
  int rc = sql ? warplite_prepare(s->job.db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc) {
    sqlite3_step(stmt);
    rc = sqlite3_finalize(stmt);
  }
  s->n_rows = sqlite3_changes64(s->job.db);
  return rc ? wl_schema_failed(&s->job, rc, err) : WL_OK;
}

static wl_status stage(void *arg, wl_error *err) {
  staging *s = arg;
  const wl_schema_change *j = &s->job;
  char *columns = NULL;
  /* An empty table: SQLite runs the subquery as a coroutine, and LIMIT 0 never starts it. */
  wl_status rc =
      wl_schema_run(j,
                    sqlite3_mprintf("CREATE TEMP TABLE %s AS SELECT * FROM (%.*s\n) LIMIT 0",
                                    j->other, (int)s->n_sql, s->sql),
                    err);
  if (!rc) rc = read_columns(s, &columns, err);
  if (!rc) rc = wl_schema_run(j, sqlite3_mprintf("DROP TABLE temp.%s", j->other), err);
  if (!rc)
    rc = wl_schema_run(j,
                       sqlite3_mprintf("CREATE VIRTUAL TABLE temp.%s USING tablet(" MARK " %s)",
                                       j->other, columns),
                       err);
  sqlite3_free(columns);
  if (!rc) rc = fill(s, err);
  if (!rc && s->replaces)
    rc = wl_schema_run(j, sqlite3_mprintf("DROP TABLE temp.\"%w\"", j->table), err);
  if (!rc)
    rc = wl_schema_run(
        j, sqlite3_mprintf("ALTER TABLE temp.%s RENAME TO \"%w\"", j->other, j->table), err);
  return rc;
}

void wl_load_select(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  wl_error err = {0}, ignored = {0};
  wl_i64 n_loaded;
  staging s = {.job = {.db = sqlite3_context_db_handle(ctx),
                       .function = "warplite_load",
                       .schema = "temp",
                       .table = (const char *)sqlite3_value_text(args[0])},
               .sql = (const char *)sqlite3_value_text(args[1])};
  wl_status rc = check_name(&s, &err);
  if (!rc) rc = check_select(&s, &err);
  wl_own_begin();
  if (!rc) rc = wl_schema_make_change(&s.job, stage, &s, &err);
  /* The rows are kept by now. If the columns do not fit into memory, later queries say so. */
  if (!rc && load_columns(sqlite3_user_data(ctx), s.job.table, &n_loaded, &ignored)) n_loaded = 0;
  wl_own_end();
  if (rc)
    wl_result_error(ctx, &err);
  else
    sqlite3_result_int64(ctx, s.n_rows);
}
