/*
** The sink of result rows: batches wait here until the caller of the run takes them. OFFSET and
** LIMIT cut the rows.
*/
#ifndef WL_SINK_ROWS_H
#define WL_SINK_ROWS_H

#include "exec/sink/batches.h"

typedef struct wl_rows_sink {
  wl_batch_sink base;
  wl_collected ready;
  wl_i64 to_skip, to_give; /* what is left of OFFSET and LIMIT; to_give < 0: no limit */
} wl_rows_sink;

/* budget: counts the rows that wait; NULL: they do not wait long. */
void wl_rows_sink_init(wl_rows_sink *s, const wl_program *last, wl_pool *pool, wl_budget *budget);
/* Takes out the next batch with rows. *out is NULL if there is none now. */
void wl_rows_sink_next(wl_rows_sink *s, wl_batch **out);
/* What OFFSET and LIMIT leave of the next n rows: rows [*skip, *skip + *left). */
void wl_rows_sink_cut(wl_rows_sink *s, wl_i64 n, wl_i64 *skip, wl_i64 *left);
/* How many more rows can be of use; -1: all. */
wl_i64 wl_rows_sink_needed(const wl_rows_sink *s);

#endif
