/*
** The choice between the CPU and the GPU: the GPU's price, and which of the two runs a statement.
**
** A price is made of the machine's constants (constants.h). Runs of the same text correct it
** (wl_measured), for each machine on its own.
**
** Invariants:
** 1. The machine that seems slower is tried, if it is not far slower by estimate, until a run has
**    been noted; again only when its correction has faded. The first run on a machine is not noted
**    if it was slow: kernels are loaded then, and memory is pinned.
** 2. Copying columns to the device is an investment: it is made at once if this run pays for it,
**    and else when the runs that went without have together lost as much.
*/
#ifndef WL_CHOOSE_H
#define WL_CHOOSE_H

#include "plan/place.h"

/* The work of a statement. Times are those of the machine on which place.c's costs were measured.
 */
typedef struct wl_work {
  double n_rows;
  double nodes;       /* operators for each row */
  double sorted;      /* rows to sort */
  double host_ns;     /* what the host does in any case: compiling, starting, calls into SQLite */
  double client_ns;   /* what the client takes to read the rows */
  double n_results;   /* values of the result */
  double n_pipelines; /* one that reads what another leaves on the device counts half */
} wl_work;

/* The speed of a core: how long work takes here, divided by the same on the machine on which the
** costs were measured. */
double wl_choose_scale(const wl_machines *m);
/* How many times faster all threads are than one. */
double wl_choose_threads(const wl_machines *m);

/* What a GPU takes, in ns of this machine, if the columns that it keeps are there. */
double wl_choose_gpu(const wl_settings *set, const wl_work *w, const wl_place_table *t,
                     const wl_machines *m);
/* Copying the columns that are not there but would be kept; 0 if nothing is kept. */
double wl_choose_copy(const wl_settings *set, const wl_place_table *t, const wl_machines *m);

/* Which machine: WL_ENGINE_CPU or WL_ENGINE_GPU. All times in ns of this machine, before
** corrections. *not_copied: set for the CPU, the time lost because columns are not copied. */
wl_engine wl_choose(const wl_place_table *t, double cpu, double gpu, double copy,
                    double *not_copied);

/* Notes a run on a machine: its time and its estimate. */
void wl_choose_note(wl_measured *x, int machine, double ns, double estimate);
/* Notes that the GPU could not run it. */
void wl_choose_refused(wl_measured *x);

#endif
