/*
** A lookup: the rows of a source by key, what the Probe and Expand of a join find rows in. Made
** by running a build program (a block over the source that ends in Build), read by every machine.
**
** Keys become one 64-bit word a row:
**   INT     integers of known ranges, packed: the sum of (v - lo[k]) * below[k]. A value outside
**           its range matches nothing.
**   REAL    one real; -0.0 is 0.0.
**   VALUES  anything: a hash. Equal keys have equal words; who finds a row must still compare.
**   NONE    no keys: every row is a match.
** A NULL key matches nothing, and its row is not in the lookup (has_null says there was one),
** except where null_equal[k] is set: then NULL is a value like others (of INT: hi[k] + 1).
**
** Invariants:
** 1. rows holds the row numbers of the source, those of one key in a row and ascending.
** 2. DIRECT: word w has the rows [starts[w], starts[w + 1]) of rows; if unique, slots[w] is its
**    row or WL_NO_ROW, and starts and rows are NULL.
** 3. HASH: open addressing, linear: slot i has key words[i]; slots[i] is the first of its rows in
**    `rows` with counts[i] of them, or if unique the row itself; WL_NO_ROW: the slot is empty.
**    The search for a word begins at slot wl_key_hash(word) & mask (value/key_hash.h).
** 4. Behind a direct lookup's last word stands one more that has no rows: what is outside every
**    range may look there.
** 5. A finished lookup never changes. It is counted.
*/
#ifndef WL_LOOKUP_H
#define WL_LOOKUP_H

#include "base/status.h"
#include "column/column.h"

#define WL_NO_ROW 0xffffffffu

enum { WL_LOOKUP_KEYS = 16 };

typedef enum wl_key_kind { WL_KEYS_NONE, WL_KEYS_INT, WL_KEYS_REAL, WL_KEYS_VALUES } wl_key_kind;

/* How keys become words: known before the build. */
typedef struct wl_key_plan {
  wl_key_kind kind;
  int n;                                         /* keys */
  wl_i64 lo[WL_LOOKUP_KEYS], hi[WL_LOOKUP_KEYS]; /* INT: ranges of the build's own keys; of a
                                                    finished lookup with one key, as found */
  wl_u64 below[WL_LOOKUP_KEYS];
  bool null_equal[WL_LOOKUP_KEYS];
  wl_u8 coll[WL_LOOKUP_KEYS]; /* VALUES */
} wl_key_plan;

typedef struct wl_lookup {
  atomic_int refs;
  wl_u64 id; /* as a column's */
  wl_key_plan plan;
  bool unique;   /* no word has two rows */
  bool direct;   /* else HASH; of NONE neither */
  bool has_null; /* a row was left out because a key was NULL */
  wl_i64 n_rows; /* rows in it */
  wl_u64 span;   /* direct: words there can be */
  wl_u64 mask;   /* HASH: slots - 1 */
  wl_u64 *words;
  wl_u32 *slots, *counts;
  wl_u32 *starts;
  wl_u32 *rows; /* NONE: all rows of it */
  wl_u8 *bits;  /* of a large direct lookup where many words have no row: bit w & 7 of byte w >> 3
                   says whether it has; NULL: there are none */
  size_t n_bytes;
  /* copies for devices, owned by exec/gpu, as in wl_column */
  void *copy[WL_MAX_COPIES];
  void *_Atomic on[WL_MAX_COPIES];
  void (*drop)(struct wl_lookup *l);
} wl_lookup;

/* Plans INT keys of these domains, if they fit; else VALUES, or REAL for one real. null_equal and
** coll are the caller's, set before. */
void wl_key_plan_make(wl_key_plan *plan, const wl_reg *regs, const wl_domain *domains, int n);

wl_lookup *wl_lookup_hold(wl_lookup *l);
void wl_lookup_drop(wl_lookup *l); /* NULL is fine */

#endif
