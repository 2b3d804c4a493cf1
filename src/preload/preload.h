/*
** The preload library. It defines SQLite's functions under their own names. With LD_PRELOAD the
** dynamic linker finds these before SQLite's, and a program that knows nothing of warplite runs its
** large queries natively.
**
** The application's handle is always SQLite's own statement. Each execution is decided at its first
** step, with the bound values. If SQLite runs it, every call goes on to SQLite. If warplite runs
** it, the original stays at rest, and step and column functions answer from warplite's batches.
**
** Invariants:
** 1. SQLite is reached through wl_sqlite only (real.h), and nothing here refers to its symbols.
** 2. A statement has a record if the application prepared it, it is a SELECT, and there is room.
**    Functions that get a statement without a record just call SQLite.
** 3. wl_n_awake counts statements that run natively or have ended natively and were not reset, and
**    connections whose error is that of a native step. While it is 0, bind and column functions do
**    nothing but call SQLite.
** 4. A record is used as SQLite's rules allow for its statement: by one thread at a time, or under
**    the connection's mutex, which step, reset and finalize take.
*/
#ifndef WL_PRELOAD_H
#define WL_PRELOAD_H

#include "preload/real.h"
#include "preload/handles.h"
#include "api/native.h"
#include "value/value.h"

typedef int wl_authorizer_fn(void *, int, const char *, const char *, const char *, const char *);

/* What SQLite's own run of a text has shown. */
typedef enum wl_verdict {
  WL_UNKNOWN_TEXT,
  WL_CHEAP_TEXT, /* SQLite needs few steps for it. It is not asked about again */
  WL_COSTLY_TEXT
} wl_verdict;

enum { WL_VERDICTS = 256, WL_NO_RESULT = -1 };

/* What errcode and errmsg of a connection return, if the last call ran natively. */
typedef struct wl_last_result {
  atomic_int code; /* WL_NO_RESULT: SQLite answers */
  char message[WL_NATIVE_TEXT];
} wl_last_result;

/* An open connection. It lives until it is closed and its last statement with a record is gone. */
typedef struct wl_connection {
  sqlite3 *db;
  const wl_sqlite *real;
  sqlite3_mutex *mutex;
  atomic_int n_refs;
  atomic_int n_running; /* native statements of this connection */
  atomic_int n_interrupts;
  atomic_int n_events; /* interrupts and statements that may have rolled back */
  atomic_bool off;     /* warplite runs nothing, because it cannot be opened */
  bool opened;         /* libwarplite knows the connection */
  atomic_bool closing; /* sqlite3_close_v2() was called */
  atomic_bool extended_codes;
  /* the application's authorizer */
  wl_authorizer_fn *authorizer;
  void *authorizer_arg;
  _Atomic(void *) asked_through; /* libwarplite's record of it, or NULL */
  atomic_int n_questions, n_ignored;
  /* what the application has set or defined */
  atomic_uint trace_mask;
  int (*trace)(unsigned, void *, void *, void *);
  void *trace_arg;
  atomic_bool traces_otherwise; /* sqlite3_trace() or sqlite3_profile() is on */
  atomic_int progress_steps;
  int (*progress)(void *);
  void *progress_arg;
  atomic_int n_functions; /* functions, collations and modules */
  atomic_int n_impure;    /* those of them that need not give the same result for each call */
  wl_last_result result;
  /* whether its files are large enough to matter */
  atomic_bool small;
  atomic_int n_until_measured, changes_seen;
  _Atomic uint64_t verdicts[WL_VERDICTS];
} wl_connection;

typedef enum wl_state {
  WL_AT_REST,   /* not started, or SQLite has finished it */
  WL_IN_SQLITE, /* SQLite runs it and has returned a row */
  WL_RUNNING,   /* it runs natively and is on a row */
  WL_ENDED      /* it ran natively and has ended, but was not reset */
} wl_state;

/* A value of the current row that was converted, so that its memory must last. */
typedef struct wl_row_cell {
  wl_i64 text_of, mirror_of; /* the row's stamp for which text or mirror are valid */
  wl_i64 blob_of;            /* the row's stamp for which its text was read as a blob */
  char *text;
  wl_u32 n_text, size;
  sqlite3_stmt *mirror; /* SELECT ?1 with the value, on its row */
} wl_row_cell;

/* A statement of the application. */
typedef struct wl_statement {
  sqlite3_stmt *stmt;
  wl_connection *conn;
  uint64_t hash; /* of its text */
  wl_state state;
  wl_verdict verdict;
  bool ignored; /* the authorizer answered IGNORE: SQLite runs it */
  bool unreset; /* SQLite has run it and it was not reset, so a reset sets the connection's error */
  int n_steps;  /* SQLite's count of virtual machine steps when it was last read */
  int n_unread; /* executions since then */
  bool asked;   /* libwarplite has left the execution to SQLite, and wants to know what it takes */
  int n_extra_runs; /* runs that the application did not ask for */
  int failed;       /* WL_ENDED: the error code, or SQLITE_OK */
  /* while it runs natively */
  wl_native_run *run;
  wl_native_rows rows;
  wl_i64 row, stamp;
  int n_events; /* the connection's count when it last looked */
  int n_columns;
  int n_on_row;  /* n_columns while it is on a native row, else 0 */
  int n_mirrors; /* cells whose mirror is valid for this row */
  wl_row_cell *cells;
  struct wl_report_text *report; /* where its execution is counted, or NULL */
  double started;
} wl_statement;

struct wl_report_text;

extern WL_HIDDEN atomic_int wl_n_awake;   /* see invariant 3 */
extern WL_HIDDEN atomic_int wl_n_results; /* connections with a native result */
extern WL_HIDDEN bool wl_disabled;        /* a program with more rights than its user */
extern WL_HIDDEN bool wl_always;          /* WARPLITE_SET has route=always */

/* Whether anything native is going on in the process. If not, most functions just call SQLite. */
static inline bool wl_is_awake(void) {
  return atomic_load_explicit(&wl_n_awake, memory_order_relaxed) != 0;
}

static inline wl_connection *wl_connection_of(sqlite3 *db) {
  return wl_handles_find(&wl_connections, db);
}
static inline wl_statement *wl_statement_of(sqlite3_stmt *s) {
  void *record = wl_handles_find(&wl_statements, s);
  return WL_UNLIKELY(record == &wl_own_mark) ? NULL : record;
}
/* The record of a statement that is on a native row, or NULL. */
static inline wl_statement *wl_running_of(sqlite3_stmt *s) {
  if (WL_LIKELY(!wl_is_awake())) return NULL;
  wl_statement *t = wl_handles_find(&wl_statements, s);
  return t && t->state == WL_RUNNING ? t : NULL;
}

static inline void wl_enter(wl_connection *c) {
  if (c->mutex) c->real->api.mutex_enter(c->mutex);
}
static inline void wl_leave(wl_connection *c) {
  if (c->mutex) c->real->api.mutex_leave(c->mutex);
}

/* ---- library.c: libwarplite */
/* Opens it at the first call. NULL: it is missing or cannot be used. */
const wl_native_calls *wl_library(const wl_sqlite *real);
const wl_native_calls *wl_library_if_open(void);
/* Prints why warplite cannot run anything, if the user has asked for it. */
void wl_library_complain(const char *message);

/* ---- connection.c */
void wl_connection_drop(wl_connection *c);
void wl_connections_tell(const wl_native_calls *lib);
/* Whether the connection's files are too small for warplite to matter. */
bool wl_connection_is_small(wl_connection *c);

/* ---- verdict.c: what is known about texts */
wl_verdict wl_verdict_get(wl_connection *c, uint64_t hash);
void wl_verdict_set(wl_connection *c, uint64_t hash, wl_verdict v);
/* libwarplite has left an execution of the text to SQLite, or has run it. */
void wl_verdict_left(wl_connection *c, uint64_t hash);
void wl_verdict_ran(wl_connection *c, uint64_t hash);
/* Whether to ask about this execution of a costly text. A text that was left to SQLite is asked
** about less often: after 1, 3, and then always 7 executions. */
bool wl_verdict_asks(wl_connection *c, uint64_t hash);

/* ---- errors.c */
/* Sets what errcode and errmsg return. message NULL: SQLite's text for the code. Returns the code
** as the application wants it. */
int wl_set_result(wl_connection *c, int code, const char *message);
void wl_forget_result(sqlite3 *db);
void wl_connection_forget_result(wl_connection *c);
static inline void wl_forget_result_if(sqlite3 *db) {
  if (WL_UNLIKELY(wl_is_awake())) wl_forget_result(db);
}

/* ---- prepare.c */
/* Whether a text begins with a statement that can be a SELECT. */
bool wl_may_select(const char *sql, size_t n);

/* ---- decide.c */
enum { WL_COSTLY_STEPS = 8000, WL_COSTLY_IN_SMALL = 100000 };
/* Why SQLite runs all statements of the connection at present, or NULL. */
const char *wl_connection_left(const wl_connection *c);
enum { WL_N_LIFTED = 6 };
/* Lifts the connection's limits for warplite's own statements. */
void wl_limits_lift(const wl_connection *c, int saved[WL_N_LIFTED]);
void wl_limits_restore(const wl_connection *c, const int saved[WL_N_LIFTED]);
/* Decides who runs the execution that begins now, and takes the first step. */
int wl_first_step(wl_statement *t);
/* SQLite's run of a statement has ended. Notes now and then what it cost. */
void wl_sqlite_ended(wl_statement *t);
void wl_sqlite_cost(wl_statement *t); /* notes it now */

/* ---- step.c */
int wl_native_step(wl_statement *t);
int wl_interrupted(wl_statement *t);    /* ends an execution that was interrupted as it started */
void wl_native_finish(wl_statement *t); /* ends a native run; leaves WL_ENDED */
wl_statement *wl_statement_new(sqlite3_stmt *s); /* NULL: out of memory */
void wl_statement_give(wl_statement *t);         /* frees a record without a connection */
void wl_statement_free(wl_statement *t);
void wl_set_state(wl_statement *t, wl_state state); /* to or from WL_RUNNING and WL_ENDED */
/* The connection on which libwarplite is at work in this thread. Statements that run meanwhile, for
** example in a function of the application, are SQLite's. */
extern WL_HIDDEN _Thread_local wl_connection *wl_inside;
extern WL_HIDDEN _Thread_local int
    wl_silent; /* SQLite's messages to the log are ours, not for the user */

/* ---- report.c: `warplite run --explain` */
extern WL_HIDDEN bool wl_reporting;
void wl_report_start(wl_statement *t, const char *unasked); /* unasked: as in decide.c */
void wl_report_decided(wl_statement *t, const char *reason);
void wl_report_end(wl_statement *t);

#endif
