/*
** Notes on what each step of a statement cost, for EXPLAIN ANALYZE. They are taken while its
** queries are prepared and run (query.c), and explain/plantree.c makes a tree of them. Without notes
** nothing is counted.
**
** Invariants:
** 1. A query has one note, even if several others read it.
** 2. Plans of noted queries live in the arena of the notes, so they can be read when the run is
**    over; the bound queries must live as long.
** 3. Counts of a run are complete when it is closed.
*/
#ifndef WL_NOTES_H
#define WL_NOTES_H

#include "column/source.h"
#include "plan/join.h"
#include "exec/sink/lookup.h"
#include "exec/tally.h"

/* The loading of a table's columns that were not in memory. */
typedef struct wl_load_note {
  int n_cols;
  wl_i64 n_rows, n_bytes;
  double ns;
  const char *from; /* where they were loaded from, in words */
  bool *missing;    /* [columns]: which columns are being loaded */
} wl_load_note;

/* The building of a lookup. */
typedef struct wl_build_note {
  bool done;
  bool found; /* an earlier run had built it */
  wl_i64 n_in, n_kept;
  wl_i64 n_bytes, n_read; /* bytes of the lookup; bytes of the values it was built from */
  double ns;
  bool unique;
  const char *kind;
} wl_build_note;

/* What went through a part of the pipeline: the scan with its filters, a join step, or the last
** part, which takes the rows. */
typedef struct wl_flow {
  wl_i64 n_in, n_out, n_bytes;
  double ns; /* its share of the elapsed time, in nanoseconds */
} wl_flow;

typedef struct wl_query_note {
  struct wl_query_note *next;
  const wl_query *q;
  const wl_jplan *plan;  /* NULL: one source */
  wl_i64 *n_rows;        /* [n_sources] */
  double n_first;        /* estimate: rows that pass the filters of the scan */
  wl_load_note *loads;   /* [n_sources] */
  wl_build_note *builds; /* [n_sources]: one for each step of the plan */
  wl_run_stats run;
  int *part_of; /* [n_code]: the part that each instruction belongs to, or -1 */
  int n_code;
  bool expands; /* some step multiplies rows */
  bool on_device;
  wl_i64 n_col_bytes; /* bytes of the whole columns that it reads */
  wl_i64 n_given;
  double ns; /* total time in nanoseconds, including preparation */
} wl_query_note;

typedef struct wl_notes {
  wl_arena arena;
  wl_query_note *first;
} wl_notes;

void wl_notes_open(wl_notes *n);
void wl_notes_close(wl_notes *n);
wl_query_note *wl_notes_find(const wl_notes *n, const wl_query *q); /* NULL: it did not run */

/* ---- for query.c */
wl_status wl_notes_add(wl_notes *n, const wl_query *q, wl_query_note **out, wl_error *err) WL_MUST;
/* Allocates counts for the instructions of a program. */
wl_status wl_notes_tally(wl_notes *n, const wl_program *p, wl_tally **out, wl_error *err) WL_MUST;
/* Called before and after wl_source_acquire() of the columns want[0..n). */
void wl_load_note_begin(wl_load_note *l, const wl_table *t, const int *want, int n);
void wl_load_note_end(wl_load_note *l, const wl_table *t, const wl_snapshot *snap);
void wl_build_note_end(wl_build_note *b, const wl_build_in *in, const wl_lookup *l, bool found,
                       double ns);
/* Called when the query is compiled. share is that of wl_jplan_in. */
wl_status wl_query_note_ready(wl_notes *n, wl_query_note *note, const wl_jplan *plan,
                              const wl_program *p, const wl_i64 *n_rows,
                              double (*share)(void *arg, int source, const wl_jlist *list),
                              void *arg, wl_error *err) WL_MUST;

/* ---- after the run: part 0 is the scan, part k + 1 is step k, the last part takes the rows */
wl_flow wl_query_note_flow(const wl_query_note *note, int part);
int wl_query_note_last(const wl_query_note *note);

/* The conjuncts of an expression. */
wl_status wl_conjuncts(wl_arena *arena, const wl_bexpr *e, wl_jlist *out, wl_error *err) WL_MUST;

#endif
