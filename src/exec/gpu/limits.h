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

/* Whether a device can run the first pipeline of a program. WL_NOT_TAKEN: err says why not. */
wl_status wl_gpu_fits(const wl_program *p, const wl_device *d, wl_error *err) WL_MUST;

#endif
