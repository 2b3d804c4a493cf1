/*
** Lookups on a device: copies of those that the host has built, and the memory of those that the
** device builds; see devcol.h. A copy is one allocation with all arrays.
*/
#include "exec/gpu/columns/devcol_impl.h"
#include "base/mem.h"
#include <string.h>

enum { L_WORDS, L_SLOTS, L_COUNTS, L_STARTS, L_ROWS, L_BITS, L_PARTS };

/* Whether a lookup that a device has built has array k. */
static bool on_device(const wl_lookup *l, int k) {
  if (l->only_bits) return k == L_BITS;
  switch (k) {
  case L_BITS: return false;
  case L_WORDS: return !l->direct;
  case L_SLOTS: return !l->direct || l->unique;
  case L_COUNTS: return !l->direct && !l->unique;
  case L_STARTS: return l->direct && !l->unique;
  default: return !l->unique;
  }
}

/* Lists the arrays of a lookup in order; a missing array is an empty piece. Returns the number of
** bytes. */
static size_t lay_out(const wl_lookup *l, wl_piece pieces[L_PARTS]) {
  size_t n_slots = l->direct ? (size_t)l->span : (size_t)l->mask + 1, at = 0;
  const struct {
    const void *from;
    size_t n;
  } parts[L_PARTS] = {[L_WORDS] = {l->words, n_slots * 8},
                      [L_SLOTS] = {l->slots, n_slots * 4},
                      [L_COUNTS] = {l->counts, n_slots * 4},
                      [L_STARTS] = {l->starts, (n_slots + 1) * 4},
                      [L_ROWS] = {l->rows, (size_t)l->n_rows * 4},
                      [L_BITS] = {l->only_bits ? l->bits : NULL, wl_lookup_bits_bytes(l)}};
  for (int k = 0; k < L_PARTS; k++) {
    bool there = parts[k].from || (l->on_device && on_device(l, k));
    pieces[k] = (wl_piece){at, parts[k].from, there ? parts[k].n : 0};
    at += aligned(pieces[k].n);
  }
  return at;
}

size_t wl_devlookup_bytes(const wl_lookup *l) {
  wl_piece pieces[L_PARTS];
  return lay_out(l, pieces);
}

static void drop(wl_lookup *l) {
  wl_devcol_drop_copies(l->copy, l->on);
}

/* Makes r the copy of a lookup. */
static void settle(wl_device *d, wl_lookup *l, wl_devcol *r, int slot) {
  r->lookup = l;
  wl_devcol_settle(d, r);
  l->copy[slot] = r;
  l->on[slot] = d;
  l->drop = drop;
}

wl_status wl_devlookup_resident(wl_device *d, wl_lookup *l, wl_way way, int threads,
                                wl_error *err) {
  bool mapped = way == WL_WAY_MAPPED;
  int slot = slot_of(d, mapped);
  wl_devcol *r = l->copy[slot];
  if (!r) {
    wl_piece pieces[L_PARTS];
    size_t n = lay_out(l, pieces);
    wl_status rc = mapped ? wl_devcol_map_room(d, (wl_i64)n, err) : WL_OK;
    if (rc) return rc;
    r = wl_mem_zalloc(sizeof *r);
    if (!r) return wl_nomem(err);
    rc = wl_devcol_open(d, n, way, r, &r->k.data, err);
    if (!rc) rc = wl_stage_in(d, way, threads, r->memory, pieces, L_PARTS, err);
    if (rc) {
      if (r->memory) wl_devcol_free(r);
      wl_mem_free(r);
      return rc;
    }
    settle(d, l, r, slot);
  }
  r->last_use = d->clock;
  return WL_OK;
}

/* ---- to the host */

/* Copies array k to new memory, which has room for `more` bytes behind it. */
static wl_status fetch_array(wl_device *d, const wl_lookup *l, int k, size_t more, void *out,
                             wl_error *err) {
  wl_piece pieces[L_PARTS];
  lay_out(l, pieces);
  const wl_u8 *from = ((const wl_devcol *)l->copy[slot_of(d, false)])->memory;
  wl_u8 *to = pieces[k].n ? wl_mem_alloc(pieces[k].n + more) : NULL;
  memcpy(out, &to, sizeof to);
  if (!pieces[k].n) return WL_OK;
  return to ? d->copy_out(d, to, from + pieces[k].to, pieces[k].n, err) : wl_nomem(err);
}

/* The arrays of a lookup while they are copied. */
typedef struct arrays {
  wl_u64 *words;
  wl_u32 *slots, *counts, *starts, *rows;
  wl_u8 *bits;
} arrays;

wl_status wl_devlookup_fetch(wl_device *d, wl_lookup *l, wl_error *err) {
  enum { SPARE = 8 }; /* a direct lookup has one more word on the host */
  arrays a = {0};
  if (atomic_load(&l->on_host)) return WL_OK;
  wl_status rc = fetch_array(d, l, L_WORDS, SPARE, &a.words, err);
  if (!rc) rc = fetch_array(d, l, L_SLOTS, SPARE, &a.slots, err);
  if (!rc) rc = fetch_array(d, l, L_COUNTS, SPARE, &a.counts, err);
  if (!rc) rc = fetch_array(d, l, L_STARTS, SPARE, &a.starts, err);
  if (!rc) rc = fetch_array(d, l, L_ROWS, SPARE, &a.rows, err);
  if (!rc) rc = fetch_array(d, l, L_BITS, SPARE, &a.bits, err);
  if (rc) {
    void *all[] = {a.words, a.slots, a.counts, a.starts, a.rows, a.bits};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) wl_mem_free(all[k]);
    return rc;
  }
  if (l->direct && a.slots) a.slots[l->span] = a.slots[l->span + 1] = WL_NO_ROW;
  if (a.starts) a.starts[l->span + 1] = (wl_u32)l->n_rows;
  l->words = a.words;
  l->slots = a.slots;
  l->counts = a.counts;
  l->starts = a.starts;
  l->rows = a.rows;
  l->bits = a.bits;
  atomic_store(&l->on_host, true);
  return WL_OK;
}

static wl_status fetch(wl_lookup *l, wl_error *err) {
  wl_device *d = NULL;
  for (int k = 0; k < WL_MAX_COPIES && !d; k++) d = l->on[k];
  assert(d);
  wl_device_lock(d);
  d->queue = 0;
  wl_status rc = wl_devlookup_fetch(d, l, err);
  wl_device_unlock(d);
  if (!rc || rc == WL_NOMEM || rc == WL_NOT_TAKEN) return rc;
  return wl_not_taken(err, "a lookup cannot be copied from the device");
}

/* ---- building */

wl_status wl_devlookup_open(wl_device *d, wl_lookup *l, wl_error *err) {
  wl_piece pieces[L_PARTS];
  wl_devcol *r = wl_mem_zalloc(sizeof *r);
  if (!r) return wl_nomem(err);
  wl_status rc = wl_devcol_open(d, lay_out(l, pieces), WL_WAY_DIRECT, r, &r->k.data, err);
  if (rc) {
    wl_mem_free(r);
    return rc;
  }
  r->last_use = WL_I64_MAX; /* it must stay until it is built */
  settle(d, l, r, slot_of(d, false));
  l->fetch = fetch;
  return WL_OK;
}

void wl_devlookup_built(wl_device *d, wl_lookup *l) {
  ((wl_devcol *)l->copy[slot_of(d, false)])->last_use = d->clock;
}

void wl_devlookup_close(wl_device *d, wl_lookup *l) {
  int slot = slot_of(d, false);
  if (l->copy[slot]) wl_devcol_forget(d, l->copy[slot]);
  l->on[slot] = NULL;
  l->drop = NULL;
}

wl_devarrays wl_devlookup_arrays(const wl_device *d, const wl_lookup *l, bool mapped) {
  wl_piece pieces[L_PARTS];
  const wl_devcol *r = l->copy[slot_of(d, mapped)];
  void *at[L_PARTS];
  assert(r);
  lay_out(l, pieces);
  for (int k = 0; k < L_PARTS; k++)
    at[k] = pieces[k].n ? (void *)(size_t)(r->k.data + pieces[k].to) : NULL;
  return (wl_devarrays){at[L_WORDS],  at[L_SLOTS], at[L_COUNTS],
                        at[L_STARTS], at[L_ROWS],  at[L_BITS]};
}
