/*
** The parts of a pipeline on a device. A pipeline is cut after each Expand that can continue with
** several rows, or that tests its candidates. Each part is a launch of its own, and no register is
** used in two parts (lower.h, expand_device.c).
**
** The code between an Expand and its Match tests pairs of a row and a candidate. It is a part of
** its own, which finds out for each row whether a candidate passes, and which is the first. After
** that the rows are as without a test: a row of SEMI or ANTI goes on or not, one of MARK with its
** first candidate. A row of LEFT goes on with all candidates from the first one on, so the next
** part tests them again. Rows without a candidate do not take part in this second test.
*/
#ifndef WL_PARTS_H
#define WL_PARTS_H

#include "program/program.h"

typedef enum wl_gpu_part_kind {
  WL_PART_LAST,   /* its rows go to the sink */
  WL_PART_EXPAND, /* it ends in an Expand */
  WL_PART_TEST    /* it tests the candidates of the part before */
} wl_gpu_part_kind;

typedef struct wl_gpu_part {
  wl_gpu_part_kind kind;
  int number;
  int first, end; /* instructions [first, end) */
  int join;       /* the join of the Expand or of the test, or -1 */
  int again;      /* the join that it tests for the second time, or -1 */
} wl_gpu_part;

int wl_parts_count(const wl_program *p);
wl_gpu_part wl_parts_at(const wl_program *p, int number); /* 0 … wl_parts_count() - 1 */

/* Whether a row continues at most once after a Probe or Expand, without a test. */
bool wl_parts_finds_one(const wl_program *p, int pc);

/* Refuses opcodes that only the host can run. */
wl_status wl_parts_fit(const wl_program *p, wl_error *err) WL_MUST;

#endif
