/*
** Starts a statement for interfaces that return its rows in batches: warplite_query() and
** sphyraena.h. wl_route() decides who runs it. If SQLite does, its rows are collected and come in
** batches too.
*/
#ifndef WL_OPEN_QUERY_H
#define WL_OPEN_QUERY_H

#include "api/bindings.h"
#include "route/answer.h"

/* A statement that has started. wl_answer_next() returns its rows. */
typedef struct wl_opened {
  struct wl_device_rows *stays; /* takes the rows if they can stay on the device; or NULL */
  wl_conn *conn;
  wl_answer answer; /* always has a run */
  int n_cols;
  char **names;
  char **types; /* declared types; NULL for an expression */
} wl_opened;

/* *o is all zero but for stays. The caller closes it in any case. */
wl_status wl_opened_open(wl_conn *c, const char *sql, const wl_bindings *b, wl_opened *o,
                         wl_error *err) WL_MUST;
void wl_opened_close(wl_opened *o); /* accepts an all-zero one */

/* Between these two calls one helper statement is in progress, so that SQLite does not forget an
** interrupt between two batches. They nest. */
void wl_streams_enter(wl_conn *c);
void wl_streams_leave(wl_conn *c);

#endif
