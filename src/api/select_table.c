/*
** The module `warplite`: a SELECT as a table, for tools that only know tables.
**
**     CREATE VIRTUAL TABLE temp.q USING warplite('SELECT name, sum(x) FROM t GROUP BY name');
**
** Invariants:
** 1. The table has the names and declared types of the statement's columns, as SQLite gives them
**    when the table is connected. A name that occurs twice gets a number, as in a view.
** 2. Each scan runs the statement again. wl_route() decides who runs it. If the names of its
**    columns have changed since, the scan fails and says so.
** 3. Such tables are TEMP tables. In a file, a stranger could leave a statement that runs with the
**    rights of the application.
*/
#include "api/functions.h"
#include "api/vtab.h"
#include "base/mem.h"
#include "base/vtab.h"
#include "sql/lex.h"
#include <pthread.h>
#include <string.h>

enum { MOST_NESTED = 20 }; /* tables whose statements read each other */

typedef struct select_table {
  sqlite3_vtab base;
  wl_conn *conn;
  char *sql;
  int n_cols;
  wl_u64 labels;
} select_table;

static void table_free(select_table *t) {
  sqlite3_free(t->sql);
  sqlite3_free(t->base.zErrMsg);
  sqlite3_free(t);
}

/* The statement: the module's arguments as they were written, without quotes. */
static char *statement_text(int argc, const char *const *argv) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  for (int i = 3; i < argc; i++) sqlite3_str_appendf(s, i > 3 ? ",%s" : "%s", argv[i]);
  char *text = sqlite3_str_finish(s);
  if (!text || (*text != '\'' && *text != '"')) return text;
  char quote = *text;
  size_t to = 0, from = 1;
  for (; text[from]; from++) {
    if (text[from] == quote && text[++from] != quote) break;
    text[to++] = text[from];
  }
  text[to] = 0;
  return text;
}

/* Whether there is nothing but space and comments. */
static bool is_blank(const char *tail) {
  wl_lexer lex;
  wl_token t;
  wl_lex_init(&lex, tail, strlen(tail));
  return wl_lex_next(&lex, &t) == WL_LEX_END;
}

static const char needs_text[] = "warplite needs a SELECT: USING warplite('SELECT ...')";

const char *wl_select_refused(sqlite3_stmt *s, const char *tail) {
  if (!s || !sqlite3_stmt_readonly(s) || sqlite3_column_count(s) == 0 || sqlite3_stmt_isexplain(s))
    return "needs a SELECT";
  if (!is_blank(tail)) return "needs one statement";
  return NULL;
}

const char *wl_select_no_table(sqlite3_stmt *s, const char *tail) {
  const char *why = wl_select_refused(s, tail);
  if (!why && sqlite3_bind_parameter_count(s) > 0) why = "needs a statement without parameters";
  return why;
}

/* Prepares the statement. NULL, with a message: it cannot be a table. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, wl_mask **mask, int *rc, char **msg) {
  sqlite3_stmt *s = NULL;
  const char *tail = "";
  *rc = wl_ask_prepare(db, sql, -1, &s, &tail, mask);
  if (*rc) {
    *msg = sqlite3_mprintf("%s", sqlite3_errmsg(db));
    return NULL;
  }
  const char *why = wl_select_no_table(s, tail);
  if (!why) return s;
  *rc = SQLITE_ERROR;
  *msg = s ? sqlite3_mprintf("a warplite table %s", why) : sqlite3_mprintf("%s", needs_text);
  sqlite3_finalize(s);
  return NULL;
}

/* The number that makes the name of column i different from those before; 0: it is. */
static int repeats(sqlite3_stmt *s, int i) {
  int n = 0;
  for (int k = 0; k < i; k++)
    n += sqlite3_stricmp(sqlite3_column_name(s, k), sqlite3_column_name(s, i)) == 0;
  return n;
}

static char *declaration(sqlite3_stmt *s) {
  sqlite3_str *text = sqlite3_str_new(NULL);
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    int n = repeats(s, i);
    sqlite3_str_appendf(text, i ? ",\"%w" : "CREATE TABLE x(\"%w", sqlite3_column_name(s, i));
    if (n) sqlite3_str_appendf(text, ":%d", n);
    sqlite3_str_appendall(text, "\"");
    wl_append_type(text, sqlite3_column_decltype(s, i));
  }
  sqlite3_str_appendall(text, ")");
  return sqlite3_str_finish(text);
}

/* Makes the table of a statement. */
static int make(sqlite3 *db, select_table *t, char **msg) {
  int rc;
  wl_mask *mask = NULL;
  sqlite3_stmt *s = prepare(db, t->sql, &mask, &rc, msg);
  wl_mask_free(mask);
  if (!s) return rc;
  char *text = declaration(s);
  rc = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
  if (rc && text) *msg = sqlite3_mprintf("%s", sqlite3_errmsg(db));
  t->n_cols = sqlite3_column_count(s);
  t->labels = wl_stmt_labels(s);
  sqlite3_free(text);
  sqlite3_finalize(s);
  return rc;
}

/* is_new: CREATE VIRTUAL TABLE, which fails if the statement does. Otherwise the table exists, and
** must be connected even if its statement fails by now, or it could not be dropped. */
static int open_table(sqlite3 *db, wl_conn *c, int argc, const char *const *argv, bool is_new,
                      sqlite3_vtab **out, char **msg) {
  if (sqlite3_stricmp(argv[1], "temp") != 0) {
    *msg = sqlite3_mprintf("a warplite table must be temporary: CREATE VIRTUAL TABLE temp.%s",
                           argv[2]);
    return SQLITE_ERROR;
  }
  if (argc < 4) {
    *msg = sqlite3_mprintf("%s", needs_text);
    return SQLITE_ERROR;
  }
  select_table *t = sqlite3_malloc(sizeof *t);
  if (!t) return SQLITE_NOMEM;
  memset(t, 0, sizeof *t);
  t->conn = c;
  t->sql = statement_text(argc, argv);
  int rc = t->sql ? make(db, t, msg) : SQLITE_NOMEM;
  if (rc && rc != SQLITE_NOMEM && !is_new) {
    sqlite3_free(*msg);
    *msg = NULL;
    t->n_cols = 0;
    rc = sqlite3_declare_vtab(db, "CREATE TABLE x(error)");
  }
  if (rc)
    table_free(t);
  else
    *out = &t->base;
  return rc;
}

static int create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                  char **msg) {
  return open_table(db, aux, argc, argv, true, out, msg);
}
static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                   char **msg) {
  return open_table(db, aux, argc, argv, false, out, msg);
}

static int disconnect(sqlite3_vtab *v) {
  table_free((select_table *)v);
  return SQLITE_OK;
}

static int best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  (void)v;
  info->estimatedCost = 1e6;
  info->estimatedRows = 10000;
  return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *p, int idx, const char *str, int argc,
                  sqlite3_value **argv) {
  (void)idx;
  (void)str;
  (void)argc;
  (void)argv;
  select_table *t = (select_table *)p->pVtab;
  wl_conn *c = t->conn;
  wl_error err = {0};
  wl_mask *mask = NULL;
  wl_decision d = {0};
  char *msg = NULL;
  int rc = SQLITE_OK;
  if (c->n_nested >= MOST_NESTED) {
    wl_vtab_say(p->pVtab, "warplite tables are nested too deeply");
    return SQLITE_ERROR;
  }
  c->n_nested++;
  sqlite3_stmt *s = prepare(c->db, t->sql, &mask, &rc, &msg);
  if (s && (sqlite3_column_count(s) != t->n_cols || wl_stmt_labels(s) != t->labels)) {
    rc = SQLITE_ERROR;
    msg = sqlite3_mprintf("the columns of the statement have changed; drop the table and create it "
                          "again");
  }
  sqlite3_finalize(s);
  wl_request q = {.sql = t->sql, .n_sql = strlen(t->sql), .refused = mask ? WL_IGNORED : NULL};
  if (rc) {
    wl_vtab_say(p->pVtab, msg ? msg : "out of memory");
  } else {
    wl_status st = wl_route(c, &q, &d, &err);
    if (!st && d.engine == WL_ENGINE_SQLITE && !q.refused)
      q.refused = d.reason + strlen("sqlite: ");
    q.stage = WL_AT_START;
    rc = st ? wl_vtab_fail(p->pVtab, &err) : wl_native_start(p, c, &q, mask, t->n_cols, t->labels);
  }
  c->n_nested--;
  sqlite3_free(msg);
  wl_decision_close(&d);
  wl_mask_free(mask);
  return rc;
}

static sqlite3_module module;

static void make_module(void) {
  module = wl_native_module; /* the same cursors */
  module.xCreate = create;
  module.xConnect = connect;
  module.xDisconnect = module.xDestroy = disconnect;
  module.xBestIndex = best_index;
  module.xFilter = filter;
}

int wl_select_table_register(wl_conn *c) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_module);
  return sqlite3_create_module(c->db, "warplite", &module, c);
}
