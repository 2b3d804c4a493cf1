/*
** Where columns come from.
*/
#ifndef WL_SOURCE_H
#define WL_SOURCE_H

#include "column/column.h"

/* The columns a run works on, held. */
typedef struct wl_snapshot {
  wl_i64 n_rows;
  wl_column **cols;
  int n_cols;
  wl_column *live; /* 0 for rows that do not count; NULL: all do */
} wl_snapshot;

void wl_snapshot_release(wl_snapshot *snap);

#endif
