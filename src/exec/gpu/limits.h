/*
** The limits of the interpreter kernel.
*/
#ifndef WL_GPU_LIMITS_H
#define WL_GPU_LIMITS_H

#include "program/program.h"
#include "exec/gpu/device.h"

enum {
  WL_GPU_MAX_INSTR = 512,
  WL_GPU_MAX_COLUMNS = 64,
  WL_GPU_MAX_RESULTS = 64,
  WL_GPU_MAX_ACCS = 32,
  WL_GPU_MAX_MAPS = 64,
  WL_GPU_MAX_JOINS = 60
};

/* Whether devices have the source and the sink of a pipeline. */
static inline bool wl_gpu_has(const wl_program *p) {
  bool source = p->source == WL_SOURCE_TABLE || p->source == WL_SOURCE_GROUPS ||
                p->source == WL_SOURCE_UNMATCHED;
  return source && (wl_sink_takes_rows(p->sink) || p->sink == WL_SINK_GROUPS);
}

/* Whether a device can make columns of the groups of a pipeline. Otherwise the host finishes the
** groups. */
bool wl_gpu_finishes(const wl_program *p); /* sinks/group_finish.c */

/* Whether a device can run a pipeline. WL_NOT_TAKEN: err says why not. */
wl_status wl_gpu_fits(const wl_program *p, const wl_device *d, wl_error *err) WL_MUST;

#endif
