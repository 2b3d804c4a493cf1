/*
** What a run counts for EXPLAIN ANALYZE: for each pipeline its time and the rows that it leaves,
** and for each of its instructions the rows that reached it, the bytes it read and the time it
** took. Every worker has its own counts, which are added up when it is closed. Other runs do not
** count.
*/
#ifndef WL_TALLY_H
#define WL_TALLY_H

#include "value/types.h"
#include <stdbool.h>
#include <string.h>

struct wl_program;

typedef struct wl_tally {
  wl_i64 n_rows;  /* rows that reached it */
  wl_i64 n_bytes; /* bytes of the column values that it loaded */
  double ns;      /* nanoseconds of all workers together */
} wl_tally;

typedef struct wl_run_stats {
  const struct wl_program *program; /* the pipeline */
  wl_tally *tally;                  /* [n_tallies]: one for each instruction */
  int n_tallies;
  bool on_device;     /* a device ran it to its end */
  double ns_rows;     /* elapsed nanoseconds of the source, the steps and filling the sink */
  double ns_finish;   /* of what the sink does after the last row */
  wl_i64 n_left;      /* rows or groups that the sink leaves; < 0: not known */
  wl_i64 n_held;      /* the most bytes that the sink held on the host; 0: not counted */
  wl_i64 n_collected; /* rows that the host collected to make them distinct or to sort them */
} wl_run_stats;

/* The stats of a pipeline. stats: those of all pipelines of a run, in their order; NULL: none. */
static inline wl_run_stats *wl_run_stats_of(wl_run_stats *stats, const struct wl_program *p) {
  while (stats && stats->program != p) stats++;
  return stats;
}

/* Forgets the counts of a pipeline that starts again. */
static inline void wl_run_stats_restart(wl_run_stats *s) {
  if (s) memset(s->tally, 0, (size_t)s->n_tallies * sizeof *s->tally);
}

#endif
