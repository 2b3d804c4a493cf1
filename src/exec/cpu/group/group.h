/*
** Aggregates on the CPU: each row finds its group, and its values are accumulated there. At the
** end, the groups of all workers become one table of columns, the source of the next pipeline.
** Without GROUP BY there is one group, whose number is 0, even if there are no rows.
**
** A key is, if possible, a few unsigned words (value/keys.h): integers of known range share a
** word, and a real has its own. If all keys fit one word with few values, that word is the group's
** index in an array (direct). Else the words are hashed. Keys that are text or of mixed types are
** hashed as values. A worker that hashes has a table that fits the cache. When it is full, its
** groups are split into parts by hash and set aside as a run. At the end, one task for each part
** joins that part of all runs, so that every step runs on all threads.
**
** Invariants:
** 1. Key values are equal as SQLite's GROUP BY sees them: 1 and 1.0 are one key, NULL is a
**    key, text compares under the key's collation.
** 2. A worker sees rows in ascending order. Results that depend on the order of rows (which of
**    several equal values represents the group, ties of min and max) are decided by row number,
**    so the number of workers does not change them.
** 3. Prefix sums are valid only if one worker saw all rows. If several did and a sum() may
**    overflow in some order of the rows, the run is repeated with one worker.
*/
#ifndef WL_GROUP_H
#define WL_GROUP_H

#include "base/stop.h"
#include "column/column.h"
#include "exec/cpu/vector.h"
#include "program/program.h"
#include "value/keys.h"

/* A column of the groups. */
typedef struct wl_srccol {
  wl_reg reg;
  wl_u64 *v;
  wl_u32 *n; /* TEXT and ANY */
  wl_u8 *t;  /* nullable: 1 if there is a value; ANY: the tag */
} wl_srccol;

typedef struct wl_grouping wl_grouping; /* how groups are laid out; shared by the workers */
typedef struct wl_groups wl_groups;     /* one worker's groups */

/* left: bytes that the groups of all n_workers may take; 0: no limit. When half of them are used,
** runs go to a temporary file. If even the joined groups do not fit, any of the calls below may
** return WL_NOT_TAKEN without a message. for_device: a device may give groups, too. */
wl_status wl_grouping_open(const wl_program *p, wl_i64 n_rows, wl_i64 left, int n_workers,
                           bool for_device, wl_grouping **out, wl_error *err) WL_MUST;
void wl_grouping_close(wl_grouping *g);
/* There will be n groups. Called before groups are opened, if this is known. */
void wl_grouping_expect(wl_grouping *g, wl_i64 n);

wl_status wl_groups_open(const wl_grouping *plan, wl_groups **out, wl_error *err) WL_MUST;
void wl_groups_close(wl_groups *g);

/* Whether wl_groups_find() and wl_groups_add() look at row numbers. If not, they may be zeros. */
bool wl_groups_number_rows(const wl_groups *g);

/* Finds the groups of n rows with these keys, and creates new ones. out is valid until the next
** call. Without keys there is one group, and neither keys nor out are used. */
wl_status wl_groups_find(wl_groups *g, const wl_vec *keys, const wl_i64 *rows, int n,
                         wl_u32 *out) WL_MUST;
/* Adds the rows' values to accumulator acc of their groups. b is the second argument, or NULL.
** max_text limits the bytes of a text that grows, like that of group_concat(). */
wl_status wl_groups_add(wl_groups *g, int acc, const wl_u32 *groups, const wl_vec *v,
                        const wl_vec *b, const wl_i64 *rows, int n, wl_u64 max_text) WL_MUST;

/* The finished groups, by column: keys, aggregates, bare columns. */
typedef struct wl_finished {
  wl_i64 n;
  wl_srccol *cols;
  int n_cols;
  bool again;            /* there is no result: gather the groups again, in row order */
  wl_error late;         /* to be raised after these rows: a sum() that overflows */
  wl_i64 n_bytes;        /* of the columns, without texts */
  void *memory;          /* memory of the columns */
  struct joined *joined; /* memory that the columns point into, like the workers' groups */
} wl_finished;

typedef struct wl_finishing {
  const wl_grouping *plan;
  wl_groups **workers; /* entries may be NULL; they become empty but own their text until closed */
  int n_workers;
  bool in_order;    /* one worker saw all rows in order */
  wl_column **cols; /* the table's columns, for bare columns */
  wl_u64 max_text;
  wl_stop *stop;
} wl_finishing;

/* What a device gathered for one group and accumulator. The sum of reals is the sum over j of
** (digits[j] + high[j] * 2^32) * 2^(anchor - 40 j), with the anchor of the accumulator's bound. */
typedef struct wl_group_part {
  wl_i64 count;
  __int128 sum;
  unsigned __int128 magnitude;
  wl_i64 digits[3], high[3];
  wl_i64 n_reals; /* of a sum of integers and reals */
  wl_val best;
} wl_group_part;

/* Adds what a device gathered for n groups (at most WL_IMPORT_MOST). keys[k * WL_IMPORT_MOST + i]
** is key k of group i. rows: a number for the rows of each group, which decides between equal values
** and orders groups by their first rows. parts has a part for each accumulator of the first group,
** then of the next ones. out is valid until the next call. */
enum { WL_IMPORT_MOST = 128 };
wl_status wl_groups_import(wl_groups *g, int n, const wl_val *keys, const wl_i64 *rows,
                           const wl_group_part *parts, wl_u32 *out) WL_MUST;
/* Adds a real that does not fit the digits to a group. The part has already counted it. */
wl_status wl_groups_import_real(wl_groups *g, int acc, wl_u32 group, double v) WL_MUST;

wl_status wl_groups_finish(const wl_finishing *f, wl_finished *out, wl_error *err) WL_MUST;
void wl_finished_close(wl_finished *f);

/* Allocates columns of these types for n rows, in one block at *memory. */
wl_status wl_srccols_make(const wl_reg *regs, int n_cols, wl_i64 n, wl_srccol **out, void **memory,
                          wl_error *err) WL_MUST;
static inline void wl_srccol_put(wl_srccol *c, wl_i64 i, wl_val v) {
  c->v[i] = v.t == WL_T_NULL ? 0 : v.v;
  if (c->n) c->n[i] = v.n;
  if (c->t) c->t[i] = c->reg.type == WL_R_ANY ? v.t : v.t != WL_T_NULL;
}

#endif
