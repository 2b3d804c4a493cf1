/*
** An answer: a statement being run, natively or by SQLite. Which of the two is asked of wl_route()
** when it starts.
*/
#ifndef WL_ANSWER_H
#define WL_ANSWER_H

#include "route/route.h"
#include "exec/run.h"

/* What SQLite needs to go on where the native run cannot (handover.c). */
typedef struct wl_handover_state {
  wl_i64 n_given; /* rows of the batches so far */
  wl_seen *seen;  /* the tables as the run saw them */
  int n_seen;
  sqlite3_value **args; /* copies of the arguments */
  int n_args;
  bool simple;   /* over one table: SQLite's plan shows its order */
  bool done;     /* SQLite's statement goes on behind the rows given */
  wl_error late; /* SQLite's error, once the rows before it have been given */
} wl_handover_state;

typedef struct wl_answer {
  wl_conn *conn;
  char *sql;
  wl_run *run;        /* NULL: SQLite runs it */
  sqlite3_stmt *stmt; /* SQLite's, also once a native run was handed over */
  int n_cols;
  double started;
  wl_i64 n_rows;
  char reason[WL_REASON_SIZE]; /* the engine and why, once it has started */
  wl_batch *first;             /* the first batch, which is made when the answer is opened */
  bool has_first;              /* it is to be given next; NULL: there are no rows */
  bool failed;                 /* it was running natively when it failed */
  bool unlogged;               /* no line in the log */
  wl_handover_state over;
} wl_answer;

/* Starts a statement (WL_AT_START), and makes its first batch. mask: NULL, or its authorizer's
** answers; then the request refuses it. */
wl_status wl_answer_open(wl_conn *c, const wl_request *q, const wl_mask *mask, wl_answer *out,
                         wl_error *err) WL_MUST;
/* Starts it in SQLite, for a reason that wl_route() gave. stmt: NULL, or it is prepared already. */
wl_status wl_answer_open_sqlite(wl_conn *c, const wl_request *q, const char *reason,
                                sqlite3_stmt *stmt, wl_answer *out, wl_error *err) WL_MUST;
/* Prepares SQLite's statement of an answer, with its arguments. */
wl_status wl_answer_sqlite(wl_answer *a, sqlite3_value **args, int n_args, const wl_mask *mask,
                           wl_error *err) WL_MUST;
void wl_answer_close(wl_answer *a); /* one that is all zero is fine */
/* A native answer's next batch, or NULL at the end. */
wl_status wl_answer_next(wl_answer *a, wl_batch **out, wl_error *err) WL_MUST;

/* The names of its columns, hashed, and never 0: a statement that was prepared with others shows
** wrong ones, which nothing can change. */
wl_u64 wl_stmt_labels(sqlite3_stmt *s);
wl_status wl_answer_labels(wl_answer *a, wl_u64 *out, wl_error *err) WL_MUST;

/* ---- handover.c */
/* Keeps what a handover may need; args are copied. */
wl_status wl_handover_keep(wl_answer *a, sqlite3_value **args, int n_args, wl_error *err) WL_MUST;
/* Has SQLite go on behind the rows given; err says why, and becomes the error if it cannot. */
wl_status wl_handover(wl_answer *a, wl_error *err) WL_MUST;
/* SQLite's next rows as a batch like the run's. */
wl_status wl_handover_next(wl_answer *a, wl_batch **out, wl_error *err) WL_MUST;
void wl_handover_close(wl_answer *a);

#endif
