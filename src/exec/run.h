/*
** Runs a program: walks its plan level, gives each Parallel block to a machine, hands out
** result batches in row order.
**
** Invariants:
** 1. Nothing runs between calls: work is done inside wl_run_next, on this connection's
**    threads or device, and has ended when it returns.
** 2. Batches come in row order; the rows of OFFSET are skipped and LIMIT is kept.
** 3. The run owns its program's arena and holds its columns until it is closed.
*/
#ifndef WL_RUN_H
#define WL_RUN_H

#include "store/store.h"
#include "column/batch.h"
#include "column/transfer.h"
#include "exec/tally.h"
#include "program/program.h"

struct wl_device;

typedef struct wl_run_config {
  int threads;
  wl_u64 max_text;
  struct wl_device *device; /* NULL: the CPU runs the table block */
  wl_i64 device_budget;     /* bytes this run may take there in all; 0: the device's own */
  wl_i64 mapped_budget;     /* bytes of host memory for columns that a device reads there */
  wl_transfer transfer;
  wl_i64 host_left; /* bytes that groups and sorts may take; 0: as many as there are */
  wl_status (*check)(void *arg, wl_error *err); /* called between pieces of work: may stop it */
  void *check_arg;
  wl_run_stats *stats; /* to be filled, or NULL */
} wl_run_config;

typedef struct wl_run wl_run;

/* Takes the arena (with program in it) and the snapshot, also when it fails. */
wl_status wl_run_open(const wl_run_config *config, wl_arena *arena, const wl_program *program,
                      wl_snapshot *snap, wl_run **out, wl_error *err) WL_MUST;
void wl_run_close(wl_run *r);

/* The next batch, the caller's to give back, or NULL at the end. */
wl_status wl_run_next(wl_run *r, wl_batch **out, wl_error *err) WL_MUST;

/* Whether there may be more after the batch that was given last. */
bool wl_run_more(const wl_run *r);
/* An empty batch like those it gives, the caller's to give back. */
wl_status wl_run_batch(wl_run *r, wl_batch **out, wl_error *err) WL_MUST;

const wl_program *wl_run_program(const wl_run *r);
const wl_reg *wl_run_regs(const wl_run *r); /* types of the result columns */

/* What a device said when it could not do its part and the CPU did it instead, or NULL. */
const char *wl_run_detour(const wl_run *r);
/* How a device did groups and order, or why the host did them after it; NULL: nothing to say. */
const char *wl_run_note(const wl_run *r);
/* How the device got its columns so far, and what that took, in words; NULL without a device. */
const char *wl_run_transfer(const wl_run *r);

#endif
