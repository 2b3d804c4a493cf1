/*
** What a run counts for EXPLAIN ANALYZE: of each instruction of a program the rows that came to
** it, and what it read and took. Every worker has counts of its own, added up when it is closed;
** where nobody asks there are none.
*/
#ifndef WL_TALLY_H
#define WL_TALLY_H

#include "value/types.h"

typedef struct wl_tally {
  wl_i64 n_rows;  /* that came to it */
  wl_i64 n_bytes; /* of the columns' values that it loaded */
  double ns;      /* of all workers together */
} wl_tally;

/* What a run does, one after the other. */
typedef enum wl_phase { WL_PHASE_SCAN, WL_PHASE_GROUP, WL_PHASE_SORT, WL_N_PHASES } wl_phase;

typedef struct wl_run_stats {
  wl_tally *tally;        /* [n_code of the program]; there when the run is closed */
  double ns[WL_N_PHASES]; /* on the clock */
  wl_i64 n_groups;        /* found by GROUP BY, before HAVING */
  wl_i64 n_sorted;        /* rows that ORDER BY or DISTINCT gathered in batches */
} wl_run_stats;

#endif
