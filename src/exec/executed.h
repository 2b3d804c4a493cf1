/*
** Counts of what has been executed: every opcode, source and sink that EXPLAIN can print. A test
** checks that the SQL tests reach all of them (test/unit/executed.c). A worker notes which of its
** instructions have run and adds them when it is closed, so nothing is counted per row.
*/
#ifndef WL_EXECUTED_H
#define WL_EXECUTED_H

#include "program/program.h"
#include <stdatomic.h>

enum { WL_ON_CPU, WL_ON_DEVICE, WL_N_PLACES };

typedef struct wl_executed {
  atomic_long opcodes[WL_N_OPCODES];
  atomic_long sources[WL_N_SOURCE_KINDS];
  atomic_long sinks[WL_N_SINK_KINDS];
  atomic_long limits; /* batches that LIMIT has cut */
} wl_executed;

extern wl_executed wl_executed_counts[WL_N_PLACES];

static inline void wl_executed_add(atomic_long *count) {
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}
static inline void wl_executed_opcode(int place, wl_u16 op) {
  wl_executed_add(&wl_executed_counts[place].opcodes[op]);
}
/* A pipeline begins. Distinct and Sort count when they have rows, as either machine may run them.
 */
void wl_executed_pipeline(int place, const wl_program *p);
static inline void wl_executed_sink(int place, wl_sink_kind sink) {
  wl_executed_add(&wl_executed_counts[place].sinks[sink]);
}
static inline void wl_executed_limit(int place) {
  wl_executed_add(&wl_executed_counts[place].limits);
}

#endif
