/*
** GROUP BY on the CPU: rows find their group, aggregates gather there, and at the end the groups
** of all workers become one table of columns, the source of the program's second block.
**
** A key is, where possible, a few unsigned words (words.h): integers of known
** range share a word, a real is one. If all keys fit one word of few values, it is the place of
** the group in an array (direct); else words are hashed, and keys that are text or of mixed types
** are hashed as values. A hashing worker keeps a table that fits the cache; when it is full, its
** groups are dealt into parts by hash and set aside as a run. At the end each part of all runs
** is joined by one task, so no step is one thread's work alone.
**
** Invariants:
** 1. Key values are equal as SQLite's GROUP BY sees them: 1 and 1.0 are one key, NULL is a
**    key, text compares under the key's collation.
** 2. A worker sees rows in growing order. What depends on the order of rows (which value stands
**    for equal ones, ties of min and max) is settled by row number, so any number of workers
**    gives the same.
** 3. low and high (prefix sums) mean something only where one worker saw all rows; elsewhere
**    a sum of magnitudes past 63 bits asks for such a run.
*/
#ifndef WL_GROUP_H
#define WL_GROUP_H

#include "column/column.h"
#include "exec/agg.h"
#include "exec/cpu/words.h"

/* A column of the second block's source. */
typedef struct wl_srccol {
  wl_reg reg;
  wl_u64 *v;
  wl_u32 *n; /* TEXT and ANY */
  wl_u8 *t;  /* nullable: 1 if there is a value; ANY: the tag */
} wl_srccol;

typedef struct wl_grouping wl_grouping; /* how groups are laid out; shared by the workers */
typedef struct wl_groups wl_groups;     /* one worker's groups */

/* left: bytes that the groups of n_workers may take in all; 0: as many as there are. What is set
** aside goes to a temporary file when half of it is used up. Where even the joined groups do
** not fit, WL_NOT_TAKEN comes of any of the calls below, with nothing said. */
wl_status wl_grouping_open(const wl_program *p, wl_i64 n_rows, wl_i64 left, int n_workers,
                           wl_grouping **out, wl_error *err) WL_MUST;
void wl_grouping_close(wl_grouping *g);

wl_status wl_groups_open(const wl_grouping *plan, wl_groups **out, wl_error *err) WL_MUST;
void wl_groups_close(wl_groups *g);

/* The groups of n rows with these keys, made if they are new; good until the next call. */
wl_status wl_groups_find(wl_groups *g, const wl_vec *keys, const wl_i64 *rows, int n,
                         wl_u32 *out) WL_MUST;
/* Feeds the rows' values to accumulator acc of their groups. max_text: of group_concat(). */
wl_status wl_groups_add(wl_groups *g, int acc, const wl_u32 *groups, const wl_vec *v,
                        const wl_vec *separator, const wl_i64 *rows, int n,
                        wl_u64 max_text) WL_MUST;

/* Everything the groups gave, by column: keys, aggregates, bare columns. */
typedef struct wl_finished {
  wl_i64 n;
  wl_srccol *cols;
  int n_cols;
  bool again;            /* nothing is here: the groups must be gathered anew in row order */
  wl_error late;         /* raised after these rows: a sum() that overflows */
  void *memory;          /* of the columns … */
  struct joined *joined; /* … and what they point into, besides the workers' groups */
} wl_finished;

typedef struct wl_finishing {
  const wl_grouping *plan;
  wl_groups **workers; /* may hold NULLs; emptied, but still owning text until closed */
  int n_workers;
  bool in_order;    /* one worker saw all rows in order */
  wl_column **cols; /* of the table, for bare columns */
  wl_u64 max_text;
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
} wl_finishing;

/* What a device gathered for one group and accumulator. The sum of reals is that of
** (digits[j] + high[j] * 2^32) * 2^(anchor - 40 j), the anchor the bound's. */
typedef struct wl_group_part {
  wl_i64 count;
  __int128 sum;
  unsigned __int128 magnitude;
  wl_i64 digits[3], high[3];
  wl_val best;
} wl_group_part;

/* Adds what a device gathered, a part per accumulator, to the group of these keys, which comes
** once: it has no rows from elsewhere. *out is good until the next call. */
wl_status wl_groups_import(wl_groups *g, const wl_val *keys, const wl_group_part *parts,
                           wl_u32 *out) WL_MUST;
/* A real of the group that no digits hold; the part has counted it. */
wl_status wl_groups_import_real(wl_groups *g, int acc, wl_u32 group, double v) WL_MUST;

wl_status wl_groups_finish(const wl_finishing *f, wl_finished *out, wl_error *err) WL_MUST;
void wl_finished_close(wl_finished *f);

/* Columns for n rows of these types, in one block at *memory. */
wl_status wl_srccols_make(const wl_reg *regs, int n_cols, wl_i64 n, wl_srccol **out, void **memory,
                          wl_error *err) WL_MUST;
static inline void wl_srccol_put(wl_srccol *c, wl_i64 i, wl_val v) {
  c->v[i] = v.t == WL_T_NULL ? 0 : v.v;
  if (c->n) c->n[i] = v.n;
  if (c->t) c->t[i] = c->reg.type == WL_R_ANY ? v.t : v.t != WL_T_NULL;
}

#endif
