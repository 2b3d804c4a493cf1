/*
** The plan of a statement as a tree of lines, estimated, or after a run with what it took.
*/
#ifndef WL_PLANTREE_H
#define WL_PLANTREE_H

#include "route/rowset.h"
#include "exec/notes.h"

/* Appends one line, of four columns, under a parent (0: none); returns its id, which is `id`. */
int wl_plantree_line(wl_rowset *r, int id, int parent, const char *text);

/* " | n rows (estimated e), t ms, b MB, x GB/s, device"; what is less than 0 (or NULL) is left out.
** of: rows that came; estimated: rows that were expected. */
typedef struct wl_actual {
  wl_i64 n_rows, of, n_bytes;
  double estimated, ns;
  const char *device;
} wl_actual;
const char *wl_plantree_actual(wl_arena *a, const wl_actual *x);

/* The lines of a query under line `parent`, numbered from next_id on. notes: NULL for estimates
** alone: then nothing is loaded or run. */
wl_status wl_plantree_query(wl_conn *c, const wl_query *q, const wl_notes *notes, int parent,
                            int next_id, wl_rowset *r, wl_error *err) WL_MUST;

#endif
