/*
** ORDER BY without collecting the rows: the table's block runs twice. First only what the filters
** and the sort keys need, and each row leaves its keys as words and its number here; then,
** once these are sorted, the block runs over the row numbers in their new order and makes the
** result columns. With a LIMIT a worker keeps no more rows than can be among the first.
**
** Invariants:
** 1. Ties come in row order.
** 2. The keys are numbers (words.h), and nothing in the block makes text: what may fail for a
**    row that is not given must not be put off.
*/
#ifndef WL_SORTER_H
#define WL_SORTER_H

#include "exec/cpu/words.h"

typedef struct wl_sorter wl_sorter;

/* *out is NULL if the program is none for it. most: rows wanted, < 0: all. */
wl_status wl_sorter_open(const wl_program *p, int block, wl_i64 n_rows, wl_i64 most, int threads,
                         wl_sorter **out, wl_error *err) WL_MUST;
void wl_sorter_close(wl_sorter *s);
/* The most bytes that it may take. */
wl_i64 wl_sorter_bytes(const wl_program *p, wl_i64 n_rows, wl_i64 most);

/* Rows of a tablet: keys by place in ORDER BY, row numbers; a worker's rows come in order, and
** a tablet is one worker's. */
wl_status wl_sorter_add(wl_sorter *s, int worker, int tablet, const wl_vec *keys,
                        const wl_i64 *rows, int n) WL_MUST;

/* The row numbers in order; the sorter's, until it is closed. */
wl_status wl_sorter_finish(wl_sorter *s, int threads, wl_status (*check)(void *, wl_error *),
                           void *check_arg, const wl_u32 **rows, wl_i64 *n, wl_error *err) WL_MUST;

#endif
