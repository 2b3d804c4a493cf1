/*
** ORDER BY without collecting the rows: the first pipeline runs twice. The first run computes only
** the filters and the sort keys, and stores each row's keys (as words) and number here. These are
** sorted. The second run takes the row numbers in their new order and makes the result columns.
** With a LIMIT, a worker keeps only rows that can be among the first.
**
** Invariants:
** 1. Ties come in row order.
** 2. The keys are numbers (value/keys.h) or texts of columns of the table, and nothing in the
**    pipeline makes text. Making text may fail, and an error must be raised also for a row that
**    LIMIT cuts off.
*/
#ifndef WL_SORTER_H
#define WL_SORTER_H

#include "base/stop.h"
#include "column/column.h"
#include "exec/cpu/vector.h"
#include "program/program.h"

typedef struct wl_sorter wl_sorter;

/* cols: the columns of the table. most: number of rows needed; < 0: all. */
wl_status wl_sorter_open(const wl_program *p, wl_column *const *cols, wl_i64 n_rows, wl_i64 most,
                         int threads, wl_sorter **out, wl_error *err) WL_MUST;
void wl_sorter_close(wl_sorter *s);
/* Upper bound of the bytes that it takes. */
wl_i64 wl_sorter_bytes(const wl_program *p, wl_i64 n_rows, wl_i64 most);

/* Adds rows of a tablet: their keys in the order of ORDER BY, and their numbers. A worker adds rows
** in order, and one worker adds all rows of a tablet. */
wl_status wl_sorter_add(wl_sorter *s, int worker, int tablet, const wl_vec *keys,
                        const wl_i64 *rows, int n) WL_MUST;

/* Sorts. *rows are the row numbers in order; the sorter owns them until it is closed. */
wl_status wl_sorter_finish(wl_sorter *s, int threads, wl_stop *stop, const wl_u32 **rows, wl_i64 *n,
                           wl_error *err) WL_MUST;

#endif
