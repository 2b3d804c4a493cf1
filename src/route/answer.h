/*
** An answer is a running statement, run natively or by SQLite. wl_route() chooses between them when
** the statement starts.
*/
#ifndef WL_ANSWER_H
#define WL_ANSWER_H

#include "route/route.h"
#include "exec/run.h"

/* What SQLite needs to continue a statement that the native engine cannot finish (handover.c). */
typedef struct wl_handover_state {
  wl_i64 n_given; /* rows in the batches returned so far */
  wl_seen *seen;  /* the table versions that the run read */
  int n_seen;
  sqlite3_value **args; /* copies of the arguments */
  int n_args;
  bool scans_table; /* wl_query_scans_table: SQLite's plan shows the order of rows */
  bool done;        /* SQLite's statement has passed the rows that were returned */
  wl_error late;    /* SQLite's error, raised after the rows before it have been returned */
} wl_handover_state;

typedef struct wl_answer {
  wl_conn *conn;
  char *sql;
  wl_run *run;        /* NULL: SQLite runs it */
  sqlite3_stmt *stmt; /* SQLite's statement, also after a handover */
  int n_cols;
  double started;
  wl_i64 n_rows;
  char reason[WL_REASON_SIZE]; /* engine and reason, set when it has started */
  wl_batch *first;             /* the first batch, computed on opening; NULL: there are no rows */
  bool has_first;              /* first is the next batch to return */
  bool failed;                 /* the native run failed with an error of its own */
  bool unlogged;               /* write no line to the log */
  wl_handover_state over;
} wl_answer;

/* Starts a statement (WL_AT_START) and computes its first batch. mask: the authorizer's answers, or
** NULL. With a mask the request must name a reason to refuse the statement. At WL_AT_EXECUTE the
** answer has neither a run nor a statement if SQLite is to run it. */
wl_status wl_answer_open(wl_conn *c, const wl_request *q, const wl_mask *mask, wl_answer *out,
                         wl_error *err) WL_MUST;
/* Starts a statement in SQLite, for a reason that wl_route() gave. stmt: the statement if it has
** been prepared, or NULL. */
wl_status wl_answer_open_sqlite(wl_conn *c, const wl_request *q, const char *reason,
                                sqlite3_stmt *stmt, wl_answer *out, wl_error *err) WL_MUST;
/* Prepares SQLite's statement for an answer and binds its arguments. */
wl_status wl_answer_sqlite(wl_answer *a, sqlite3_value **args, int n_args, const wl_mask *mask,
                           wl_error *err) WL_MUST;
void wl_answer_close(wl_answer *a); /* accepts an all-zero answer */
/* The same, but returns the run, which the caller closes. Batches with dictionaries need it. */
wl_run *wl_answer_finish(wl_answer *a) WL_MUST;
/* Returns the next batch of a native answer, or NULL at the end. */
wl_status wl_answer_next(wl_answer *a, wl_batch **out, wl_error *err) WL_MUST;

/* The hash of the statement's column names (wl_stmt_labels), as they are now. */
wl_status wl_answer_labels(wl_answer *a, wl_u64 *out, wl_error *err) WL_MUST;

/* ---- handover.c */
/* Keeps what a handover may need. Copies the arguments. */
wl_status wl_handover_keep(wl_answer *a, sqlite3_value **args, int n_args, wl_error *err) WL_MUST;
/* Lets SQLite continue after the rows that were returned. err gives the cause, and becomes the
** error if the handover is not possible. */
wl_status wl_handover(wl_answer *a, wl_error *err) WL_MUST;
/* Returns SQLite's next rows in a batch of the run's format. */
wl_status wl_handover_next(wl_answer *a, wl_batch **out, wl_error *err) WL_MUST;
void wl_handover_close(wl_answer *a);

#endif
