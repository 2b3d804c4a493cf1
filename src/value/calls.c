/*
** Runs SQLite's functions over a vector of rows; see calls.h.
*/
#include "value/calls.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/vtab.h"
#include "value/exchange.h"
#include "value/conv.h"
#include <string.h>

enum { N_CACHED = 16 };

/*
** SQLite's allocator may have one lock for the whole process, so a call should not allocate. When a
** function asks for a text that has no NUL at its end, SQLite makes a copy that has one. So
** arguments are given with a NUL, and results are read as bytes.
*/

/* Room for an argument with its NUL. */
typedef struct terminated {
  wl_u8 *p;
  size_t size;
} terminated;

/* A prepared statement, cached by its text and by which arguments vary. */
typedef struct cached_statement {
  char *sql;
  sqlite3_stmt *stmt;
} cached_statement;

struct wl_calls {
  sqlite3 *db;
  cached_statement cached[N_CACHED];
  int next; /* the slot that the next new statement takes */
  terminated terminated[WL_CALL_ARGS];
  /* state of the run in progress */
  wl_vctx *x;
  const wl_call_rows *rows;
  wl_val *out;
  int n_out;
  int n_quick;       /* calls since the last check whether to stop */
  double checked_at; /* time of that check */
  bool quick;        /* the latest calls were quick */
  bool stopped;
};

/* ---- the virtual table: its rows are the rows of the vector, its columns the arguments */

typedef struct calls_table {
  sqlite3_vtab base;
  wl_calls *calls;
} calls_table;

typedef struct calls_cursor {
  sqlite3_vtab_cursor base;
  wl_calls *calls;
  int row;
} calls_cursor;

static int xconnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **err) {
  (void)argc, (void)argv, (void)err;
  sqlite3_str *s = sqlite3_str_new(db);
  for (int k = 0; k < WL_CALL_ARGS; k++)
    sqlite3_str_appendf(s, "%sc%d", k ? "," : "CREATE TABLE x(", k + 1);
  sqlite3_str_appendall(s, ")");
  char *sql = sqlite3_str_finish(s);
  int rc = wl_vtab_new(db, sql, false, sizeof(calls_table), out);
  sqlite3_free(sql);
  if (!rc) ((calls_table *)*out)->calls = aux;
  return rc;
}
static int xbest_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  (void)v;
  info->estimatedCost = 1000;
  return SQLITE_OK;
}
static int xopen(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  int rc = wl_vtab_new_cursor(sizeof(calls_cursor), out);
  if (!rc) ((calls_cursor *)*out)->calls = ((calls_table *)v)->calls;
  return rc;
}
static int xfilter(sqlite3_vtab_cursor *p, int num, const char *str, int argc,
                   sqlite3_value **argv) {
  (void)num, (void)str, (void)argc, (void)argv;
  ((calls_cursor *)p)->row = 0;
  return SQLITE_OK;
}
/* Whether to stop. It goes by the clock, because a call may take a microsecond or a second. */
static bool stops(wl_calls *c) {
  enum { QUICK = 8, LONG_NS = 1000000 };
  const wl_call_rows *r = c->rows;
  if (!r->stops || (c->quick && ++c->n_quick < QUICK)) return false;
  double now = wl_clock_ns();
  c->quick = now - c->checked_at < LONG_NS;
  c->n_quick = 0;
  c->checked_at = now;
  c->stopped = r->stops(r->stops_arg);
  return c->stopped;
}

static int xnext(sqlite3_vtab_cursor *p) {
  calls_cursor *c = (calls_cursor *)p;
  c->row++;
  return stops(c->calls) ? SQLITE_INTERRUPT : SQLITE_OK;
}
static int xeof(sqlite3_vtab_cursor *p) {
  const calls_cursor *c = (calls_cursor *)p;
  return c->row >= c->calls->rows->n;
}
static int xrowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((calls_cursor *)p)->row;
  return SQLITE_OK;
}
/* The text with a NUL at its end, until the next row. NULL: it contains one, or there is no
** memory. */
static const char *terminate(terminated *room, wl_val text) {
  if (memchr(wl_bytes(text), 0, text.n)) return NULL;
  if (room->size <= text.n) {
    size_t size = (size_t)text.n + text.n / 2 + 64;
    wl_mem_free(room->p);
    room->p = wl_mem_alloc(size);
    room->size = room->p ? size : 0;
    if (!room->p) return NULL;
  }
  memcpy(room->p, wl_bytes(text), text.n);
  room->p[text.n] = 0;
  return (const char *)room->p;
}

static int xcolumn(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  const calls_cursor *c = (calls_cursor *)p;
  const wl_call_rows *r = c->calls->rows;
  wl_val v = r->args[(size_t)col * (size_t)r->n + (size_t)c->row];
  const char *text = v.t == WL_T_TEXT && v.n ? terminate(&c->calls->terminated[col], v) : NULL;
  if (text)
    sqlite3_result_text(ctx, text, -1, SQLITE_STATIC);
  else
    wl_sqlite_result(ctx, v, SQLITE_STATIC);
  return SQLITE_OK;
}

static sqlite3_module module = {.xConnect = xconnect,
                                .xBestIndex = xbest_index,
                                .xDisconnect = wl_vtab_free,
                                .xOpen = xopen,
                                .xClose = wl_vtab_free_cursor,
                                .xFilter = xfilter,
                                .xNext = xnext,
                                .xEof = xeof,
                                .xColumn = xcolumn,
                                .xRowid = xrowid};

/* ---- the aggregate that receives the results */

/* The database is in UTF-8, so the bytes of a text are the text. */
static wl_val result_of(sqlite3_value *v) {
  if (sqlite3_value_type(v) != SQLITE_TEXT) return wl_sqlite_val(v);
  const wl_u8 *p = sqlite3_value_blob(v); /* NULL if it is empty */
  return wl_text(p ? p : (const wl_u8 *)"", (wl_u32)sqlite3_value_bytes(v));
}

static void sink_step(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  wl_calls *c = sqlite3_user_data(ctx);
  (void)argc;
  wl_val *out = &c->out[c->n_out++], v = result_of(argv[0]);
  *out = wl_null();
  if (v.t >= WL_T_TEXT) {
    wl_u8 *to = wl_scratch(c->x, v.n);
    if (!to || wl_sqlite_lost(v)) {
      *c->x->fault = WL_FAULT_ROOM;
      sqlite3_result_error_nomem(ctx);
      return;
    }
    if (v.n) memcpy(to, wl_bytes(v), v.n);
    v.v = (wl_u64)(size_t)to;
  }
  *out = v;
}
static void sink_final(sqlite3_context *ctx) {
  (void)ctx;
}

/* ---- statements */

wl_calls *wl_calls_open(sqlite3 *db) {
  wl_calls *c = wl_mem_zalloc(sizeof *c);
  if (!c) return NULL;
  c->db = db;
  if (sqlite3_create_module(db, "wl_rows", &module, c) == SQLITE_OK &&
      sqlite3_create_function(db, "wl_sink", 1, SQLITE_UTF8, c, NULL, sink_step, sink_final) ==
          SQLITE_OK)
    return c;
  wl_mem_free(c);
  return NULL;
}

void wl_calls_close(wl_calls *c) {
  if (!c) return;
  for (int i = 0; i < N_CACHED; i++) {
    sqlite3_finalize(c->cached[i].stmt);
    wl_mem_free(c->cached[i].sql);
  }
  for (int k = 0; k < WL_CALL_ARGS; k++) wl_mem_free(c->terminated[k].p);
  wl_mem_free(c);
}

/* The text of the statement. Argument 3 becomes column c3 if it varies, and stays ?3 if it is the
** same for all rows. */
static char *statement(const wl_call_rows *r) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendall(s, "SELECT wl_sink(");
  for (const char *p = r->text; *p; p++) {
    if (*p != '?') {
      sqlite3_str_append(s, p, 1);
      continue;
    }
    int k = 0;
    for (; p[1] >= '0' && p[1] <= '9'; p++) k = k * 10 + (p[1] - '0');
    sqlite3_str_appendf(s, "%s%d", r->varies[k - 1] ? "c" : "?", k);
  }
  sqlite3_str_appendall(s, ") FROM wl_rows");
  return sqlite3_str_finish(s);
}

static sqlite3_stmt *find(wl_calls *c, const wl_call_rows *r) {
  char *sql = statement(r);
  for (int i = 0; sql && i < N_CACHED; i++)
    if (c->cached[i].sql && strcmp(c->cached[i].sql, sql) == 0) {
      sqlite3_free(sql);
      return c->cached[i].stmt;
    }
  cached_statement *k = &c->cached[c->next];
  c->next = (c->next + 1) % N_CACHED;
  sqlite3_finalize(k->stmt);
  wl_mem_free(k->sql);
  k->stmt = NULL;
  k->sql = sql ? wl_mem_strdup(sql) : NULL;
  if (!k->sql ||
      sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &k->stmt, NULL) != SQLITE_OK) {
    wl_mem_free(k->sql);
    k->sql = NULL;
  }
  sqlite3_free(sql);
  return k->stmt;
}

/* Whether a date function would read it as the current time. Date functions read up to a NUL. */
static bool is_now(wl_val a) {
  static const char *const words[] = {"now", "subsec", "subsecond"};
  const char *p = (const char *)wl_bytes(a);
  for (int k = 0; a.t >= WL_T_TEXT && k < 3; k++) {
    wl_u32 n = (wl_u32)strlen(words[k]);
    if (a.n >= n && sqlite3_strnicmp(p, words[k], (int)n) == 0 && (a.n == n || p[n] == 0))
      return true;
  }
  return false;
}

void wl_calls_run(wl_vctx *x, const wl_call_rows *rows, wl_val *out) {
  wl_calls *c = wl_conv_calls(x->conv);
  if (!c) {
    *x->fault = WL_FAULT_ROOM;
    return;
  }
  for (int k = 0; k < rows->n_args && rows->of_time; k++)
    for (int i = 0; i < (rows->varies[k] ? rows->n : 1); i++)
      if (is_now(rows->args[(size_t)k * (size_t)rows->n + (size_t)i])) *x->fault = WL_FAULT_SQL;
  sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, 1000000000); /* allows a long statement text */
  sqlite3_stmt *q = *x->fault || rows->n_args > WL_CALL_ARGS ? NULL : find(c, rows);
  if (!q) {
    *x->fault = WL_FAULT_SQL;
    return;
  }
  c->x = x;
  c->rows = rows;
  c->out = out;
  c->n_out = 0;
  c->stopped = false;
  sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, (int)x->max_text);
  sqlite3_limit(c->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, rows->max_pattern);
  int rc = sqlite3_clear_bindings(q);
  for (int k = 0; k < rows->n_args && !rc; k++)
    if (!rows->varies[k])
      rc = wl_sqlite_bind(q, k + 1, rows->args[(size_t)k * (size_t)rows->n], SQLITE_STATIC);
  if (!rc) rc = sqlite3_step(q);
  if (rc != SQLITE_ROW || c->n_out != rows->n)
    *x->fault = *x->fault == WL_FAULT_ROOM || rc == SQLITE_NOMEM ? WL_FAULT_ROOM : WL_FAULT_SQL;
  if (c->stopped) *x->fault = WL_FAULT_STOP;
  sqlite3_reset(q);
}
