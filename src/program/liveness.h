/*
** Liveness of a block's registers, and places for them: registers that are never in use at the same
** time can share memory. For every machine.
**
** Invariants:
** 1. A register is in use from the instruction that sets it to the last one that reads it, both
**    included. Registers with the same place are in use one after the other.
*/
#ifndef WL_LIVENESS_H
#define WL_LIVENESS_H

#include "program/program.h"

/* The instructions [first, end) of a block, or the part of them that is run. */
typedef struct wl_live_block {
  const wl_program *p;
  int first, end;
  const bool *skip;    /* [end - first]: instructions that are not run; NULL: all are */
  const bool *results; /* [n_results]: those that Result reads; NULL: all */
  bool filtered;       /* the rows have passed the filters, so that IfNot is not run */
} wl_live_block;

typedef struct wl_liveness {
  int *set_at;    /* of each register: the instruction that sets it, or -1 */
  int *last_read; /* of each register: the last instruction that reads it, or 0 */
} wl_liveness;

/* Marks in skip, which has room for end - first, the instructions that need not be run: what they
** set is not read, or the rows are filtered already. What may fail is run. wanted: room to work in,
** for n_regs. */
void wl_liveness_skip(const wl_live_block *b, bool *skip, bool *wanted);

/* Fills in both arrays, which have room for n_regs. */
void wl_liveness_find(const wl_live_block *b, wl_liveness *out);

/* Gives each register of the block a place; returns how many places there are. Places are numbered
** in the order of their first use. by_type: only registers of the same type share one. place and
** owner (room to work in) have n_regs entries. */
int wl_liveness_place(const wl_live_block *b, const wl_liveness *l, bool by_type, int *place,
                      int *owner);

#endif
