/*
** The CPU machine: runs one Parallel block over rows of a tablet, a vector of 1024 rows at
** a time.
**
** Invariants:
** 1. Rows that a filter drops leave the vector: what follows works on dense vectors of the
**    rows that are left, and sel tells which rows of the tablet they are.
** 2. A worker (wl_exec) is used by one thread at a time and allocates nothing per vector.
*/
#ifndef WL_EXEC_H
#define WL_EXEC_H

#include "store/column.h"
#include "vm/agg.h"
#include "vm/batch.h"
#include "vm/cpu/group.h"
#include "vm/cpu/sorter.h"
#include "vm/ops.h"

typedef struct wl_exec wl_exec;

/* A worker for the block that starts with the Parallel at pc. cols: the table's columns;
** source: the columns of the second block's source, NULL in the first block. Both are
** borrowed. */
wl_status wl_exec_open(const wl_program *p, int pc, wl_column **cols, const wl_srccol *source,
                       wl_u64 max_text, wl_exec **out, wl_error *err) WL_MUST;
/* The same for a part of the block alone (sorter.h): the sort keys, or the results of rows that
** have passed the filters. */
typedef enum wl_exec_part { WL_EXEC_ALL, WL_EXEC_KEYS, WL_EXEC_ROWS } wl_exec_part;
wl_status wl_exec_open_part(const wl_program *p, int pc, wl_column **cols, const wl_srccol *source,
                            wl_exec_part part, wl_u64 max_text, wl_exec **out,
                            wl_error *err) WL_MUST;
void wl_exec_close(wl_exec *x);

/* The first n rows of a tablet into the sorter; worker: the number of this one there. */
wl_status wl_exec_run_keys(wl_exec *x, int worker, int tablet, wl_i32 n, wl_sorter *sorter,
                           wl_error *err) WL_MUST;
/* The results of n rows, by their numbers in the table. */
wl_status wl_exec_run_rows(wl_exec *x, const wl_u32 *rows, wl_i64 n, wl_batch *out,
                           wl_error *err) WL_MUST;

/* Rows [first, first + n) of a tablet. out: the batch that Result fills, stopping once it
** has max_rows. accs: the accumulators that Agg opcodes fill, or groups those of a Group. */
wl_status wl_exec_run(wl_exec *x, int tablet, wl_i32 first, wl_i32 n, wl_batch *out,
                      wl_i64 max_rows, wl_acc_state *accs, wl_groups *groups,
                      wl_error *err) WL_MUST;

#endif
