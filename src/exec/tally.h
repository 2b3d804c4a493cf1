/*
** What a run counts for EXPLAIN ANALYZE, for each instruction of a program: the rows that reached
** it, the bytes it read and the time it took. Every worker has its own counts, which are added up
** when it is closed. Other runs do not count.
*/
#ifndef WL_TALLY_H
#define WL_TALLY_H

#include "value/types.h"

typedef struct wl_tally {
  wl_i64 n_rows;  /* rows that reached it */
  wl_i64 n_bytes; /* bytes of the column values that it loaded */
  double ns;      /* nanoseconds of all workers together */
} wl_tally;

/* The phases of a run, in order. */
typedef enum wl_phase { WL_PHASE_SCAN, WL_PHASE_GROUP, WL_PHASE_SORT, WL_N_PHASES } wl_phase;

typedef struct wl_run_stats {
  wl_tally *tally;        /* [n_code of the program]; complete when the run is closed */
  double ns[WL_N_PHASES]; /* elapsed nanoseconds of each phase */
  wl_i64 n_groups;        /* groups that GROUP BY found, before HAVING */
  wl_i64 n_sorted;        /* rows that ORDER BY or DISTINCT collected in batches */
} wl_run_stats;

#endif
