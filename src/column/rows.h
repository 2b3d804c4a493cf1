/*
** Rows that a pipeline leaves for later pipelines: columns like those of a table, and how many rows
** there are. They are made of the batches of a run. Types are those of the values. Text that has a
** dictionary keeps it, so it is not hashed again.
*/
#ifndef WL_ROWS_H
#define WL_ROWS_H

#include "column/batch.h"
#include "column/column.h"

typedef struct wl_rows {
  wl_i64 n_rows;
  wl_column **cols; /* NULL: there are no rows yet */
  int n_cols;
  /* Not all n_rows count: integers with a bit for each row that does, 64 rows in each. NULL: all do.
  ** Only the groups that a device has finished have it. */
  wl_column *live;
} wl_rows;

void wl_rows_close(wl_rows *r);

typedef struct wl_rows_maker wl_rows_maker;

/* left: bytes that the rows may take; 0: no limit. Beyond that, the result is WL_NOT_TAKEN. */
wl_status wl_rows_maker_open(int n_cols, wl_i64 left, wl_rows_maker **out, wl_error *err) WL_MUST;
void wl_rows_maker_close(wl_rows_maker *m);
/* needed: for each column, whether its values are needed; NULL: all are. */
wl_status wl_rows_maker_add(wl_rows_maker *m, const wl_batch *b, const wl_reg *regs,
                            const bool *needed, int threads, wl_error *err) WL_MUST;
wl_i64 wl_rows_maker_rows(const wl_rows_maker *m);
wl_i64 wl_rows_maker_bytes(const wl_rows_maker *m);
wl_status wl_rows_maker_finish(wl_rows_maker *m, int threads, wl_rows *out, wl_error *err) WL_MUST;

#endif
