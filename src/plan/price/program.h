/*
** SQLite's program for a statement, as EXPLAIN lists it. It says exactly how SQLite would run the
** statement: which trees it reads, from where to where, what is nested in what, and what ends
** early.
*/
#ifndef WL_PRICE_PROGRAM_H
#define WL_PRICE_PROGRAM_H

#include "base/arena.h"
#include "base/sqlite.h"
#include "base/status.h"

typedef enum wl_vdbe_op {
#define WL_VDBE(name, ns, jumps) WL_VDBE_##name,
#include "plan/price/opcodes.def"
#undef WL_VDBE
  WL_VDBE_OTHER
} wl_vdbe_op;

typedef struct wl_vdbe_step {
  wl_vdbe_op op;
  int p1, p2, p3, p5;
  const char *p4; /* "" if there is none */
} wl_vdbe_step;

/* Lives in an arena. */
typedef struct wl_vdbe {
  wl_vdbe_step *steps;
  int n;
} wl_vdbe;

/* Asks SQLite for its program. WL_NOT_TAKEN if it gives none. */
wl_status wl_vdbe_read(sqlite3 *db, const char *sql, size_t n, wl_arena *arena, wl_vdbe *out,
                       wl_error *err) WL_MUST;

#endif
