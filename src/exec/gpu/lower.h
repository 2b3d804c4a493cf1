/*
** Prepares the pipeline of a program for the interpreter kernel: instructions with operand indexes,
** in the order of arrange.h, and the layout of a block's shared memory. Registers that are not
** alive at the same time share memory. A joined source whose columns are read has a plane there:
** the number of its row, for each row of the block.
**
** The pipeline is cut into parts (parts.h). A part that ends in an Expand returns, for each row
** that is left, where the row's candidates are, and the row numbers of the sources that later parts
** read. The next part starts with row numbers of all sources that it reads, including source 0. A
** part that tests candidates also starts with the number of each row's tuple, and its candidate.
*/
#ifndef WL_LOWER_H
#define WL_LOWER_H

#include "program/program.h"
#include "exec/gpu/device.h"
#include "exec/gpu/parts.h"
#include "exec/gpu/kernels/kargs.h"

typedef struct wl_lowered {
  wl_gpu_part part;
  wl_kinstr *code;
  wl_krange *ranges; /* [n_ranges]: what filters test */
  wl_kcut cuts[WL_K_CUTS];
  wl_kopnd *opnds; /* [n_opnds]: registers of the program, constants, registers of its stages */
  wl_kacc *accs;   /* [n_accs]; wl_dgroups_open() sets their words */
  wl_u32 n_code, n_opnds, n_consts, n_ranges, n_cuts;
  wl_u32 n_slots; /* words of accumulators for each thread */
  /* Offsets in shared memory, and its size in bytes. */
  wl_u32 const_offset, code_offset, count_offset, plane_offset, acc_offset, n_shared;
  wl_u8 *planes; /* [n_sources]: the plane of each source, from 1; 0: it has none */
  wl_u32 n_planes;
  wl_u8 *ins;  /* [n_ins]: sources whose row numbers the part starts with */
  wl_u8 *outs; /* [n_outs]: sources whose row numbers it returns */
  int n_ins, n_outs;
  /* Planes, for each row: of a part that ends in an Expand, the first candidate and their number;
  ** of a part that tests them, the tuple and the candidate. */
  wl_u32 start, count;
  wl_u32 threads;    /* threads of a block */
  bool has_long;     /* it has LONG opcodes */
  bool only_numbers; /* its values are all numbers or truths */
  bool makes_text;   /* its instructions make text, which needs room in device memory */
} wl_lowered;

/* The kernel that runs a pipeline without groups. */
static inline wl_kernel wl_launch_kernel(const wl_kargs *a) {
  return a->has_long ? WL_K_INTERP_LONG : a->only_numbers ? WL_K_INTERP_NUMBERS : WL_K_INTERP;
}

/* Prepares one part. threads: threads of a block, or 0 for the device's choice. There are fewer if
** shared memory is short. All memory comes from the arena. WL_NOT_TAKEN: the part exceeds a limit
** of the kernel, and err says which. */
wl_status wl_lower(wl_arena *arena, const wl_program *p, const wl_device *d, int threads,
                   int number, wl_lowered *out, wl_error *err) WL_MUST;

#endif
