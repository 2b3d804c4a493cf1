/*
** The sink of a lookup: builds the lookup of a join from the rows of a pipeline.
*/
#ifndef WL_LOOKUP_SINK_H
#define WL_LOOKUP_SINK_H

#include "base/stop.h"
#include "column/lookup.h"
#include "column/transfer.h"
#include "exec/tally.h"
#include "program/program.h"

/*
** Runs pipeline p, whose sink is a lookup, over the n_rows rows of its source and makes the lookup.
** Its last opcode is Build of join 0, which has no lookup yet. cols: the columns of all of
** p's sources. left: the bytes it may use, 0: no limit. Beyond that it returns WL_NOT_TAKEN.
*/
typedef struct wl_build_in {
  const wl_program *p;
  wl_column **cols;
  wl_i64 n_rows;
  wl_key_plan plan;
  int threads;
  wl_u64 max_text;
  wl_i64 left;
  double n_probes; /* estimated number of searches */
  double n_build;  /* estimated number of rows in it */
  bool first_only; /* only the first row of each key matters: the others are left out, and the
                   ** lookup is unique */
  bool one_row;    /* no two rows have the same keys */
  bool uncounted;  /* the counts of the lookup (n_rows, has_null) need not be right: only IN with
                   ** NULLs depends on them */
  bool watched;    /* they should be right all the same, because they are shown */
  bool exists;     /* with first_only: only whether there is a row matters, not which one */
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
  wl_tally *tally; /* counts for p's instructions, or NULL */
  /* If a device will read the lookup, it may also build it. */
  struct wl_device *device;
  wl_i64 device_budget, mapped_budget;
  wl_transfer transfer;
} wl_build_in;
wl_status wl_lookup_build(const wl_build_in *in, wl_lookup **out, wl_error *err) WL_MUST;

/* exec/gpu/sinks/build_device.c: builds it on the device. WL_NOT_TAKEN: the host must build it. */
wl_status wl_lookup_build_on_device(const wl_build_in *in, wl_stop *stop, wl_lookup *l,
                                    wl_error *err) WL_MUST;

#endif
