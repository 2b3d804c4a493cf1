/*
** A program's table block made ready for the interpreter kernel: instructions with operand
** indexes, and the layout of a block's shared memory, registers sharing room once their
** last reader is past. Each joined source that is read has a plane of row numbers there.
**
** A block with Expands is cut behind each of them; no register crosses a cut. A part that ends in
** one gives out, for each row that is left, the row numbers of the sources that are read later, and
** where its candidates are; the next part begins with row numbers, source 0's too.
*/
#ifndef WL_LOWER_H
#define WL_LOWER_H

#include "program/program.h"
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kargs.h"

typedef struct wl_lowered {
  wl_kinstr *code;
  wl_kopnd *opnds; /* [n_regs + n_consts] */
  wl_kacc *accs; /* [n_accs]; wl_dgroups_open sets their words */
  wl_u32 n_code, n_opnds, n_consts, n_slots;
  wl_u32 const_offset, count_offset, plane_offset, acc_offset, n_shared;
  wl_u8 *planes; /* [n_sources]: each one's plane of row numbers, from 1, or 0 */
  wl_u32 n_planes;
  wl_u8 *ins, *outs; /* sources whose row numbers the part begins with, and those it gives out */
  int n_ins, n_outs;
  int expand;          /* the join whose candidates it looks for at its end, or -1 */
  wl_u32 start, count; /* their planes */
  wl_u32 threads;      /* of a block */
  bool makes_text;
} wl_lowered;

/* For blocks of so many threads (0: the device's choice), or fewer where shared memory is short.
** All memory from the arena. WL_NOT_TAKEN: past the kernel's limits, and which. */
wl_status wl_lower(wl_arena *arena, const wl_program *p, const wl_device *d, int threads, int part,
                   wl_lowered *out, wl_error *err) WL_MUST;
int wl_lower_parts(const wl_program *p); /* of the table block; 1 without an Expand */

#endif
