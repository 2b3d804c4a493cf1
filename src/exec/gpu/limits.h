/* Checks whether a program fits a device's interpreter kernel. If not, err says why. */
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

wl_status wl_gpu_fits(const wl_program *p, const wl_device *d, wl_error *err) WL_MUST;

#endif
