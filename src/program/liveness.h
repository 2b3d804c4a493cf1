/*
** Liveness of a pipeline's registers, and their memory: registers that are never in use at the same
** time can share a place. Used by all machines.
**
** Invariants:
** 1. A register is in use from the instruction that sets it to the last one that reads it, both
**    included. Registers that share a place are in use one after the other.
*/
#ifndef WL_LIVENESS_H
#define WL_LIVENESS_H

#include "program/program.h"

/* The instructions [first, end) of a pipeline. */
typedef struct wl_live_block {
  const wl_program *p;
  int first, end;
} wl_live_block;

typedef struct wl_liveness {
  int *set_at;    /* by register: the instruction that sets it, or -1 */
  int *last_read; /* by register: the last instruction that reads it, or -1 */
} wl_liveness;

/* Marks the instructions that need not run if only some results are needed, or if the rows have
** already passed the filters. Instructions that may fail always run. results has n_results entries,
** skip n_code; wanted is working memory for n_regs entries. */
void wl_liveness_skip(const wl_program *p, const bool *results, bool filtered, bool *skip,
                      bool *wanted);

/* Fills both arrays, which have room for n_regs entries. */
void wl_liveness_find(const wl_live_block *b, wl_liveness *out);

/* Assigns a place to each register of the instructions and returns the number of places. Places are
** numbered in the order of their first use. by_type: only registers of the same type share a place.
** place and owner (working memory) have n_regs entries. */
int wl_liveness_place(const wl_live_block *b, const wl_liveness *l, bool by_type, int *place,
                      int *owner);

#endif
