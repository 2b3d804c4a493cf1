/*
** What warplite keeps for one SQLite connection, and how the parts of the interface share it.
**
** Invariants:
** 1. One wl_conn per sqlite3*, found through a process-wide table; it goes when SQLite
**    destroys the module that owns it, which is when the connection closes.
** 2. All calls come under the connection's own threading rules: SQLite's mutex is held
**    inside callbacks, and the public calls take it.
** 3. reason always begins with "cpu", "gpu" or "sqlite", then ": ".
*/
#ifndef WL_CONN_H
#define WL_CONN_H

#include "base/authorizer.h"
#include "plan/place.h"
#include "exec/query.h"
#include "sql/bind.h"
#include "exec/run.h"

enum { WL_LOG_SIZE = 256 };

/* Why a statement is left to SQLite whose authorizer put NULL, or nothing, in some place of it. */
#define WL_IGNORED "the authorizer answers IGNORE"

typedef struct wl_log_entry {
  wl_i64 id;
  char *sql;
  char engine[8];
  char reason[420];
  wl_i64 n_rows;
  double ms;
} wl_log_entry;

/* A statement text, parsed and bound, kept for its next run. */
typedef struct wl_sqltext {
  struct wl_sqltext *next;
  wl_u64 hash;
  char *sql;
  size_t n_sql;
  int refs;
  wl_arena arena;
  wl_stmt *stmt;
  wl_query *query;
  wl_plan_facts facts; /* what SQLite would do */
  bool settled;        /* wl_sqltext_settle was called */
  wl_status unsettled; /* … and said no, … */
  char *why;           /* … for this reason, in the arena */
  int *arg_params;     /* parameter index of each argument of the rewritten text */
  int n_args;
  wl_u32 n_text_changes; /* of a text without a table: as wl_store_text_like_ours said */
  wl_u64 labels;         /* wl_answer_labels() of it, or 0: not asked for yet */
} wl_sqltext;

/* Sees a ROLLBACK that ends running statements (watch.c). */
typedef struct wl_watch {
  sqlite3_stmt *helper;
  bool on_row;
  int n_watching;
  wl_i64 n_aborts;
} wl_watch;

typedef struct wl_conn {
  struct wl_conn *next;
  sqlite3 *db;
  wl_store *store;
  wl_settings set;
  char reason[512];
  char errmsg[512];
  wl_log_entry log[WL_LOG_SIZE];
  wl_i64 n_logged;
  wl_sqltext *texts; /* most recent first */
  int n_texts;
  struct wl_change *changes; /* that have run and may run again; the latest first */
  bool ready;                /* everything is registered */
  bool kept;                 /* the keeper is connected: helper statements may live */
  bool preparing;     /* inside warplite_prepare: virtual tables are planned for the first time */
  char (*shapes)[32]; /* names of the modules registered so far */
  int n_shapes, size_shapes;
  sqlite3_stmt *tick;      /* stepped so that interrupts and progress handlers act */
  double last_tick;
  wl_watch watch;
  sqlite3_stmt *keep;     /* one statement kept in progress while streams are open … */
  int n_streams;          /* … so that an interrupt is not forgotten between batches */
  struct wl_notes *notes; /* while EXPLAIN ANALYZE runs a statement: where it is noted */
} wl_conn;

/* The connection's state; enables warplite on it first if need be. NULL: out of memory or
** settings in the environment that cannot be applied (message in *err). */
wl_conn *wl_conn_get(sqlite3 *db, wl_error *err);
wl_conn *wl_conn_find(sqlite3 *db);
bool wl_api_bind(const sqlite3_api_routines *api); /* false: no SQLite to be found */
/* Whether SQLite's own sqlite3_set_authorizer() is ours, in this program. */
bool wl_authorizer_linked(void);

void wl_conn_reason(wl_conn *c, const char *engine, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* reason: as wl_conn_reason makes it; n_rows < 0: nobody counts them. */
void wl_conn_log(wl_conn *c, const char *reason, const char *sql, size_t n, wl_i64 n_rows,
                 double ms);
/* Makes sure that helper statements may be kept: WL_NOT_TAKEN while the database cannot be read. */
wl_status wl_conn_keep(wl_conn *c, wl_error *err) WL_MUST;
/* Steps the helper statement now and then: WL_INTERRUPT when the user wants it to end. */
wl_status wl_conn_check(void *conn, wl_error *err);
void wl_conn_quiet(wl_conn *c); /* finalizes every helper statement */

/* ---- texts */
/* The bound form of a statement's text, held. WL_NOT_TAKEN with the reason. */
wl_status wl_sqltext_get(wl_conn *c, const char *sql, size_t n, wl_sqltext **out,
                         wl_error *err) WL_MUST;
/* Finds the order that equal rows must come in, before the text is compiled: once, and only
** for a text that is not SQLite's anyway, for it takes some 30 us. WL_NOT_TAKEN if it cannot. */
wl_status wl_sqltext_settle(wl_conn *c, wl_sqltext *t, wl_error *err) WL_MUST;
void wl_sqltext_drop(wl_conn *c, wl_sqltext *t);
void wl_sqltext_flush(wl_conn *c);

/* ---- answers: a statement being run, natively or by SQLite */
typedef struct wl_answer {
  wl_conn *conn;
  char *sql;
  wl_run *run;        /* native, or … */
  sqlite3_stmt *stmt; /* … SQLite's */
  int n_cols;
  double started;
  wl_i64 n_rows;
  char reason[512]; /* the engine and why, once it has started */
  wl_batch *first;  /* the first batch, which is made when the answer is opened */
  bool primed;
  bool failed; /* it was running natively when it failed */
  bool quiet;  /* no line in the log */
  /* what SQLite needs to go on where the native run cannot (handover.c) */
  wl_i64 n_given; /* rows of the batches so far */
  wl_seen *seen;  /* the tables as the run saw them … */
  int n_seen;
  sqlite3_value **args; /* … and copies of the arguments */
  int n_args;
  bool simple;   /* over one table: SQLite's plan shows its order */
  bool handed;   /* stmt goes on behind the rows given */
  wl_error late; /* SQLite's error, once the rows before it have been given */
} wl_answer;

/* WL_NOT_TAKEN if the application has put a function of its own in place of one of SQLite's
** that the query uses, or without a query, of any. SQLite is asked each time (some 45 us), for
** nothing tells when one is added. */
wl_status wl_answer_functions(wl_conn *c, const wl_query *q, wl_error *err) WL_MUST;
/* The names of its columns, hashed, and never 0: a statement that was prepared
** with others shows wrong ones, which nothing can change. */
wl_u64 wl_stmt_labels(sqlite3_stmt *s);
wl_status wl_answer_labels(wl_answer *a, wl_u64 *out, wl_error *err) WL_MUST;
/* Starts it. args are the arguments of the rewritten text, in its order; borrowed.
** refused: NULL, or why SQLite must run it. mask: NULL, or its authorizer's answers. */
wl_status wl_answer_open(wl_conn *c, const char *sql, sqlite3_value **args, int n_args,
                         const char *refused, const wl_mask *mask, wl_answer *out,
                         wl_error *err) WL_MUST;
/* Starts it in SQLite. */
wl_status wl_answer_sqlite(wl_answer *a, sqlite3_value **args, int n_args, const wl_mask *mask,
                           wl_error *err) WL_MUST;
/* Loaded, compiled and placed, but not started: for EXPLAIN too. *env is what it runs with. */
wl_status wl_answer_ready(wl_conn *c, wl_sqltext *t, const wl_val *params, wl_query_env *env,
                          wl_ready *out, wl_placement *where, wl_error *err) WL_MUST;
/* Where a statement would go, before anything is loaded. */
wl_status wl_answer_place(wl_conn *c, wl_sqltext *t, wl_placement *out, wl_error *err) WL_MUST;
void wl_answer_close(wl_answer *a);
/* A native answer's next batch, or NULL at the end. */
wl_status wl_answer_next(wl_answer *a, wl_batch **out, wl_error *err) WL_MUST;
/* handover.c: keeps what a handover may need; args are copied. */
wl_status wl_handover_keep(wl_answer *a, sqlite3_value **args, int n_args, wl_error *err) WL_MUST;
/* Has SQLite go on behind the rows given; err says why, and becomes the error if it cannot. */
wl_status wl_handover(wl_answer *a, wl_error *err) WL_MUST;
/* SQLite's next rows as a batch like the run's. */
wl_status wl_handover_next(wl_answer *a, wl_batch **out, wl_error *err) WL_MUST;
void wl_handover_close(wl_answer *a);

/* ---- the pieces that wl_conn_get registers */
int wl_functions_register(wl_conn *c);
/* The SQL function warplite_convert(table [, 'tablet' | 'table']). */
void wl_convert(sqlite3_context *ctx, int n, sqlite3_value **args);
/* warplite_check(table). */
void wl_check(sqlite3_context *ctx, int n, sqlite3_value **args);
/* The name of the database that has a table of that name, as SQLite looks for it, sqlite3_free'd by
** the caller; NULL: there is none, or *rc is an error. */
char *wl_schema_of(sqlite3 *db, const char *name, int *rc);
int wl_tables_register(wl_conn *c);
int wl_vtab_register(wl_conn *c);

/* ---- native statements as virtual tables (vtab.c) */
/* The rewritten statement for a text, or NULL with the reason to leave it to SQLite. */
wl_status wl_vtab_prepare(wl_conn *c, wl_sqltext *t, sqlite3_stmt *original, sqlite3_stmt **out,
                          wl_error *err) WL_MUST;
/* Whether a module of that name has been registered; WL_NOT_TAKEN: no, and there is room for it at
** the end of c->shapes. */
wl_status wl_conn_shape(wl_conn *c, const char *name, wl_error *err) WL_MUST;
/* EXPLAIN and EXPLAIN QUERY PLAN of a text. */
wl_status wl_explain_prepare(wl_conn *c, const char *sql, size_t n, const wl_stmt *s,
                             sqlite3_stmt **out, wl_error *err) WL_MUST;
/* EXPLAIN ANALYZE: text is the statement without these words; stmt is SQLite's, of the same. */
wl_status wl_analyze_prepare(wl_conn *c, const char *text, size_t n, sqlite3_stmt *original,
                             sqlite3_stmt **out, wl_error *err) WL_MUST;
/* The text with these words made blank, so that places in it stay; NULL: it is something else. */
char *wl_analyze_text(const char *sql, int n_bytes);
int wl_explain_register(wl_conn *c);
/* The values that wl_args() took together; how many. */
int wl_vtab_bundle(sqlite3_value *v, sqlite3_value ***out);

/* ---- ROLLBACK under running statements (watch.c) */
/* A native statement begins to give rows; what wl_watch_aborted is to be told. */
wl_i64 wl_watch_open(wl_conn *c);
void wl_watch_close(wl_conn *c);
bool wl_watch_aborted(wl_conn *c, wl_i64 since);
/* Whether SQLite would read a table at the next step of that statement; else it gives rows that it
** has sorted already, and a ROLLBACK does not end it. */
bool wl_watch_matters(wl_conn *c, const char *sql);

/* ---- the connection's error (fail.c) */
/* Fails with a code and message of ours, so that sqlite3_errcode() and sqlite3_errmsg() give them.
** Returns the code. */
int wl_fail_prepare(sqlite3 *db, int code, const char *message);
/* What statements of our own left there is gone, as after a prepare that went well. */
void wl_clear_error(sqlite3 *db);

#endif
