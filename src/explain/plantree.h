/*
** The pipelines of a statement as a tree of lines, with estimates and, after a run, with
** measurements.
*/
#ifndef WL_PLANTREE_H
#define WL_PLANTREE_H

#include "route/rowset.h"
#include "exec/pipelines.h"

/* Appends a line of four columns under a parent (0: none). Returns its id. */
int wl_plantree_line(wl_rowset *r, int id, int parent, const char *text);

/* The text " | n rows (estimated e), t ms, b MB, x GB/s, device". Values below 0, or NULL, are left
** out. of: input rows. estimated: the expected rows. */
typedef struct wl_actual {
  wl_i64 n_rows, of, n_bytes;
  double estimated, ns;
  const char *device;
  wl_i64 n_held; /* bytes that a sink held; 0: not shown */
  bool may_stop; /* not all rows need be read, so fewer than estimated are no surprise */
} wl_actual;
const char *wl_plantree_actual(wl_arena *a, const wl_actual *x);

/* Writes the pipelines of a list under line `parent`, numbered from next_id. */
wl_status wl_plantree_pipelines(wl_conn *c, const wl_pipelines *list, int parent, int next_id,
                                wl_rowset *r, wl_error *err) WL_MUST;

#endif
