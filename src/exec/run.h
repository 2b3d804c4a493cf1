/*
** Runs a program: its pipelines one after the other, each on an engine (CPU or device), and returns
** result batches in row order.
**
** Invariants:
** 1. Nothing runs between calls. All work is done inside wl_run_next, on this connection's threads
**    or device, and has ended when it returns.
** 2. Batches come in row order. OFFSET and LIMIT are applied.
** 3. The run owns its program's arena, or holds the code that has it, and holds its columns until
**    it is closed.
*/
#ifndef WL_RUN_H
#define WL_RUN_H

#include "store/store.h"
#include "column/batch.h"
#include "column/transfer.h"
#include "exec/budget.h"
#include "exec/tally.h"
#include "program/program.h"

struct wl_code;
struct wl_device;

typedef struct wl_run_config {
  int threads;
  wl_u64 max_text;
  struct wl_device *device; /* NULL: the CPU runs all pipelines */
  wl_i64 device_budget;     /* bytes of device memory that the run may use; 0: all that is free */
  wl_i64 mapped_budget;     /* bytes of host memory for columns that kernels read there */
  wl_transfer transfer;
  wl_budget budget; /* what groups and sorts may hold, and what is held already */
  wl_status (*check)(void *arg, wl_error *err); /* called between pieces of work; may stop it */
  void *check_arg;
  wl_run_stats *stats;  /* to be filled, or NULL */
  struct wl_rows *made; /* takes the rows instead of batches, if a device makes them; or NULL */
  struct wl_device_rows *stays; /* takes rows that stay on the device; or NULL (exec/gpu/sinks) */
  const bool *needed;           /* with made: which of their columns are read; NULL: all */
  struct wl_code *code; /* what has the program in its arena (code.h); NULL: the run's own arena */
} wl_run_config;

typedef struct wl_run wl_run;

/* Takes ownership of the arena (with the program in it) and the snapshot, even if it fails. */
wl_status wl_run_open(const wl_run_config *config, wl_arena *arena, const wl_program *program,
                      wl_snapshot *snap, wl_run **out, wl_error *err) WL_MUST;
void wl_run_close(wl_run *r);

/* Returns the next batch, or NULL at the end. The caller returns it with wl_batch_give. */
wl_status wl_run_next(wl_run *r, wl_batch **out, wl_error *err) WL_MUST;

/* Whether there may be more rows after the last batch. */
bool wl_run_more(const wl_run *r);
/* Returns an empty batch with the same columns. The caller returns it with wl_batch_give. */
wl_status wl_run_batch(wl_run *r, wl_batch **out, wl_error *err) WL_MUST;

const wl_program *wl_run_program(const wl_run *r); /* the pipeline that gives the results */
const wl_reg *wl_run_regs(const wl_run *r);        /* types of the result columns */

/* Why the CPU took over from the device; NULL if it did not. */
const char *wl_run_detour(const wl_run *r);
/* How the device did GROUP BY or ORDER BY, or why the host did them; NULL if there is no note. */
const char *wl_run_note(const wl_run *r);
/* How the columns came to the device so far and what it cost, in words; NULL without a device. */
const char *wl_run_transfer(wl_run *r);

#endif
