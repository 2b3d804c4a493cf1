/*
** The rows of a derived source: turns the batches of a run into columns like those of a table.
*/
#ifndef WL_MADE_H
#define WL_MADE_H

#include "column/column.h"
#include "column/batch.h"

typedef struct wl_made {
  bool done;
  wl_i64 n_rows;
  wl_column **cols;
  int n_cols;
} wl_made;

void wl_made_close(wl_made *m);

typedef struct wl_making wl_making;

/* left: bytes that the rows may take; 0: no limit. Beyond that, the result is WL_NOT_TAKEN. */
wl_status wl_making_open(int n_cols, wl_i64 left, wl_making **out, wl_error *err) WL_MUST;
void wl_making_close(wl_making *m);
/* needed: for each column, whether its values are needed; NULL: all are. */
wl_status wl_making_add(wl_making *m, const wl_batch *b, const wl_reg *regs, const bool *needed,
                        int threads, wl_error *err) WL_MUST;
wl_i64 wl_making_rows(const wl_making *m);
wl_i64 wl_making_bytes(const wl_making *m);
wl_status wl_making_finish(wl_making *m, int threads, wl_made *out, wl_error *err) WL_MUST;

#endif
