/*
** A lookup finds the rows of a source by key. The opcodes Probe and Expand of a join use it. A
** pipeline over the source that ends in Build makes it, and every engine reads it.
**
** The keys of a row become one 64-bit word:
**   INT     integers of known ranges, packed by the key codec (value/keys.h), with NULL last. A
**           value outside its range matches nothing.
**   REAL    one real, by the key codec.
**   VALUES  anything: a hash. Equal keys have equal words. The keys must still be compared.
**   NONE    no keys: every row is a match.
** A NULL key matches nothing, and its row is not in the lookup (has_null says that there was one).
** But if parts[k].null is set, NULL is a value like others.
**
** Invariants:
** 1. rows has the row numbers of the source. Those of one key are consecutive and ascending.
** 2. DIRECT: word w has the rows [starts[w], starts[w + 1]) of rows; if unique, slots[w] is its row
**    or WL_NO_ROW, and starts and rows are NULL.
** 3. HASH: open addressing, linear: slot i has key words[i]; slots[i] is the first of its rows in
**    `rows` with counts[i] of them, or if unique the row itself; WL_NO_ROW: the slot is empty. The
**    search for a word begins at slot wl_key_hash(word) & mask (value/keys.h).
** 4. After the last word of a direct lookup there is one more, which has no rows. A key outside of
**    every range may be looked up there.
** 5. With only_bits there are no slots: bit w & 7 of byte w >> 3 of bits says whether word w has a
**    row. A word that is found has row 0, which must not be read.
** 6. A finished lookup never changes. It is reference counted.
** 7. The arrays of a lookup that a device has built (on_device) are on the device until the host
**    needs them, or the device its memory. Then they are copied, and on_host is set.
*/
#ifndef WL_LOOKUP_H
#define WL_LOOKUP_H

#include "base/status.h"
#include "column/column.h"
#include "value/keys.h"

#define WL_NO_ROW 0xffffffffu

enum { WL_LOOKUP_KEYS = 16 };

typedef enum wl_key_kind { WL_KEYS_NONE, WL_KEYS_INT, WL_KEYS_REAL, WL_KEYS_VALUES } wl_key_kind;

/* How keys become words. It is known before the build. A finished lookup with one INT key has the
** exact range of its keys. */
typedef struct wl_key_plan {
  wl_key_kind kind;
  int n; /* keys */
  wl_key_part
      parts[WL_LOOKUP_KEYS];  /* one for each key, all in one word; VALUES: only null is set */
  wl_u8 coll[WL_LOOKUP_KEYS]; /* VALUES */
} wl_key_plan;

typedef struct wl_lookup {
  atomic_int refs;
  wl_u64 id; /* from wl_column_new_id */
  wl_key_plan plan;
  bool unique;         /* no word has two rows */
  bool direct;         /* DIRECT; otherwise HASH, or neither if there are no keys */
  bool only_bits;      /* DIRECT and unique: there are no slots, since only the existence of a row
                          matters */
  bool on_device;      /* a device has built it */
  atomic_bool on_host; /* with on_device: the host has a copy of its arrays */
  bool uncounted; /* a device has built it without counting: has_null and n_rows may be wrong */
  bool has_null;       /* a row was left out because a key was NULL */
  wl_i64 n_rows;       /* rows in it; uncounted: at most so many */
  wl_u64 span;         /* DIRECT: the number of possible words */
  wl_u64 mask;         /* HASH: slots - 1 */
  wl_u64 *words;
  wl_u32 *slots, *counts;
  wl_u32 *starts;
  wl_u32 *rows; /* NONE: all rows */
  /* In a large direct lookup where many words have no row: bit w & 7 of byte w >> 3 is set if word
  ** w has a row. Otherwise NULL. */
  wl_u8 *bits;
  size_t n_bytes;
  /* copies on devices, owned by exec/gpu, as in wl_column */
  void *_Atomic copy[WL_MAX_COPIES];
  void *_Atomic on[WL_MAX_COPIES];
  void (*drop)(struct wl_lookup *l);
  wl_status (*fetch)(struct wl_lookup *l, wl_error *err);
} wl_lookup;

/* Plans INT keys with these domains if they fit into a word; otherwise REAL for a single real, or
** VALUES. regs[k].nullable: NULL is a value of key k. The caller sets coll. */
void wl_key_plan_make(wl_key_plan *plan, const wl_reg *regs, const wl_domain *domains, int n);

/* The number of possible words of an INT key; 0: too many to count. */
static inline wl_u64 wl_key_plan_span(const wl_key_plan *plan) {
  const wl_key_part *first = &plan->parts[0];
  wl_u64 span;
  return __builtin_mul_overflow(first->span, first->below, &span) ? 0 : span;
}

/* Bytes of the bits of a lookup that only has bits. */
static inline size_t wl_lookup_bits_bytes(const wl_lookup *l) {
  return (size_t)(l->span + 2) / 8 + 1;
}

wl_lookup *wl_lookup_hold(wl_lookup *l);
void wl_lookup_drop(wl_lookup *l); /* l may be NULL */
/* Makes sure that the host has the arrays. */
static inline wl_status wl_lookup_fetch(wl_lookup *l, wl_error *err) {
  return l->on_device && !atomic_load(&l->on_host) ? l->fetch(l, err) : WL_OK;
}

#endif
