/*
** Groups: a hash table from key values to group numbers, and an accumulator state per group
** and Agg opcode. Each worker fills one of its own; they are joined at the end.
**
** Invariants:
** 1. Key values are equal as SQLite's GROUP BY sees them: 1 and 1.0 are one key, NULL is a
**    key, text compares under the key's collation.
** 2. What depends on the order of rows (which value stands for equal ones, ties of min and
**    max) is settled by row number, so joining in any order gives the same.
** 3. low and high (prefix sums) mean something only in a table filled in row order by one
**    worker; elsewhere a sum of magnitudes past 63 bits asks for such a run.
*/
#ifndef WL_GROUP_H
#define WL_GROUP_H

#include "vm/agg.h"

typedef struct wl_groups wl_groups;

/* What one Agg opcode gathered for one group. */
typedef struct wl_gacc {
  wl_i64 count;
  __int128 sum, low, high;
  unsigned __int128 magnitude; /* sum of |integer| */
  wl_fsum *reals;              /* once there is one */
  wl_i64 digits[3];            /* of reals, around the accumulator's anchor … */
  wl_i64 n_digits;             /* … so many since they were last moved to reals */
  wl_val best;
  wl_i64 best_row;
  bool seen_real;
} wl_gacc;

wl_status wl_groups_open(const wl_program *p, wl_groups **out, wl_error *err) WL_MUST;
void wl_groups_close(wl_groups *g);

/* The group of a row with these keys, made if it is new. */
wl_status wl_groups_find(wl_groups *g, const wl_val *keys, wl_i64 row, wl_u32 *out) WL_MUST;
/* The same for one integer key of a narrow range: by a table, a call per vector. */
bool wl_groups_direct(const wl_groups *g);
wl_status wl_groups_find_ints(wl_groups *g, const wl_i64 *keys, const wl_u8 *valid,
                              const wl_i64 *rows, int n, wl_u32 *out) WL_MUST;

/* Feeds value v of a row to accumulator acc of a group. */
wl_status wl_groups_add(wl_groups *g, int acc, wl_u32 group, wl_val v, wl_i64 row) WL_MUST;
/* The same for vectors without NULLs of the plain cases; false if acc is none of them. */
bool wl_groups_add_vector(wl_groups *g, int acc, const wl_u32 *groups, const wl_u64 *v,
                          const wl_u8 *valid, int n);

wl_status wl_groups_join(wl_groups *into, wl_groups *from) WL_MUST;

/* What a device gathered for one group and accumulator, in the form of wl_gacc. The sum of
** reals is that of (digits[j] + high[j] * 2^32) * 2^(anchor - 40 j), the anchor the bound's. */
typedef struct wl_group_part {
  wl_i64 count;
  __int128 sum;
  unsigned __int128 magnitude;
  wl_i64 digits[3], high[3];
  wl_val best;
} wl_group_part;

/* Adds what a device gathered, a part per accumulator, to the group of these keys. Each group
** comes once: it has no rows from elsewhere. */
wl_status wl_groups_put(wl_groups *g, const wl_val *keys, wl_i64 first_row,
                        const wl_group_part *parts, wl_u32 *out) WL_MUST;
/* A real of the group that no digits hold; the part has counted it. */
wl_status wl_groups_put_real(wl_groups *g, int acc, wl_u32 group, double v) WL_MUST;

/* Whether some sum() must be judged in row order, by a table filled that way. */
bool wl_groups_need_order(const wl_groups *g);

/*
** The finished groups in key order: *n rows of n_keys + n_aggs values, the caller's to free
** with wl_mem_free; text stays g's. A group whose sum() overflows ends them: the rows before
** it are given, with the error.
*/
wl_status wl_groups_finish(wl_groups *g, bool ordered, wl_val **rows, wl_i64 *n,
                           wl_error *err) WL_MUST;

#endif
