/*
** What sinks of rows have in common: pieces fill batches, which the sink takes in row order. Some
** sinks collect them.
*/
#ifndef WL_SINK_BATCHES_H
#define WL_SINK_BATCHES_H

#include "exec/sink/sink.h"

typedef struct wl_batch_sink {
  wl_sink sink;
  wl_pool *pool;
  int most;      /* most batches of a piece */
  wl_i64 needed; /* most rows that are needed of those to come; -1: all */
} wl_batch_sink;

/* Sets what all of them share. The caller sets take, finish, clear and close. */
void wl_batch_sink_init(wl_batch_sink *s, wl_pool *pool);

/* A list of batches. */
typedef struct wl_collected {
  wl_batch *first, **end;
  wl_i64 n_rows;
  wl_i64 n_bytes;    /* that sorting them takes, with two copies of the rows */
  wl_budget *budget; /* counts them; NULL: they are not counted */
  const char *what;  /* the rows in words, for the error message */
} wl_collected;

void wl_collected_init(wl_collected *c, const char *what, wl_budget *budget);
/* Appends a batch. Fails with WL_NOT_TAKEN if there is no room for it. */
wl_status wl_collected_add(wl_collected *c, wl_batch *b, wl_error *err) WL_MUST;
wl_batch *wl_collected_next(wl_collected *c); /* removes the first batch; NULL: there is none */
void wl_collected_clear(wl_collected *c);
/* Gives all batches to a sink. */
wl_status wl_collected_give(wl_collected *c, wl_sink *to, wl_error *err) WL_MUST;

/* A sink that collects all rows, and gives some of them to another sink after the last one. */
typedef struct wl_collecting_sink {
  wl_batch_sink base;
  const wl_program *p;
  wl_collected rows;
  int threads;
  wl_stop *stop;
  wl_sink *to; /* takes the rows that are left */
} wl_collecting_sink;

/* Sets all functions of the sink but finish. The caller has set p, threads, stop and to. */
void wl_collecting_sink_init(wl_collecting_sink *s, const char *what, wl_pool *pool,
                             wl_budget *budget);
/* Notes how many rows there are and what they hold. Called before they are reduced. */
void wl_collecting_sink_note(wl_collecting_sink *s);
/* Ends the sink: gives the rows of `out` on. rc: how it went so far. */
wl_status wl_collecting_sink_end(wl_collecting_sink *s, wl_status rc, wl_collected *out,
                                 wl_error *err) WL_MUST;

#endif
