/*
** The coders of a device's groups: their memory, and the values of codes on the host. See coded.h
** and kernels/kcode.h. A coder starts small and grows when the kernel finds it full; the scan is
** then repeated.
*/
#include "exec/gpu/sinks/group_device_impl.h"
#include "base/mem.h"
#include <string.h>

enum {
  FIRST_SLOTS = 1 << 16,
  LEAST_SLOTS = 32,
  FIRST_WORDS = 1 << 17, /* of a heap */
  GROWTH = 16
};

static size_t table_bytes(const wl_kcoder *c) {
  return (size_t)c->n_slots * 16;
}

/* The bytes that a coder's table or heap may take. */
static wl_u64 room_of(const wl_dgroups *g) {
  return (wl_u64)g->room / 2 / (wl_u64)g->coded.n;
}

static wl_u64 most_slots(const wl_dgroups *g) {
  wl_u64 n = LEAST_SLOTS;
  while (n * 32 <= room_of(g) && n < 4 * g->n_rows && n < 1ULL << 31) n *= 2;
  return n;
}

static wl_u64 most_words(const wl_dgroups *g) {
  enum { FEW = 1 }; /* places in it have 32 bits in the records of groups, and begin with 1 */
  wl_u64 n = room_of(g) / 8, most = 0xffffffffULL - FEW;
  return n < most ? n : most;
}

static wl_status make_table(wl_dgroups *g, wl_kcoder *c, wl_u64 n, wl_error *err) {
  wl_u64 most = most_slots(g);
  wl_dgroups_drop(g, c->table, table_bytes(c));
  c->table = NULL;
  c->n_slots = n < most ? n : most;
  wl_status rc = wl_dgroups_take(g, table_bytes(c), &c->table, err);
  return rc == WL_FULL ? WL_NOT_TAKEN : rc;
}

static wl_status make_heap(wl_dgroups *g, wl_kcoder *c, wl_u64 n, wl_error *err) {
  wl_u64 most = most_words(g);
  wl_dgroups_drop(g, c->heap, c->size * 8);
  c->heap = NULL;
  c->size = n < most ? n : most;
  wl_status rc = wl_dgroups_take(g, c->size * 8, &c->heap, err);
  return rc == WL_FULL ? WL_NOT_TAKEN : rc;
}

static size_t codes_bytes(const wl_dgroups *g) {
  return (size_t)g->coded.n * (sizeof(wl_kcoder) + 8);
}

wl_status wl_dgroups_codes_plan(wl_dgroups *g, const wl_program *p, wl_error *err) {
  wl_status rc = wl_code_keys(&g->arena, p, &g->coded, err);
  if (rc || !g->coded.n) return rc;
  wl_coded_set_range(&g->coded, (wl_i64)most_slots(g));
  g->k.n_coders = (wl_u32)g->coded.n;
  g->coders = wl_mem_zalloc((size_t)g->coded.n * sizeof *g->coders);
  if (!g->coders) return wl_nomem(err);
  for (int k = 0; k < g->coded.n; k++) {
    g->coders[k].coll = g->coded.coders[k].coll;
    g->coders[k].look = g->coded.coders[k].look;
    g->coders[k].strict = g->coded.coders[k].strict;
  }
  return WL_OK;
}

wl_status wl_dgroups_codes_open(wl_dgroups *g, wl_error *err) {
  int n = g->coded.n;
  if (!n) return WL_OK;
  wl_status rc = wl_dgroups_take(g, codes_bytes(g), &g->d_coders, err);
  wl_u64 *used = (wl_u64 *)(void *)(g->d_coders + n), slots = LEAST_SLOTS;
  while (slots < FIRST_SLOTS && slots < 4 * g->n_rows) slots *= 2;
  g->k.coders = g->d_coders;
  for (int k = 0; k < n && !rc; k++) {
    g->coders[k].used = used + k;
    if (!g->coded.coders[k].keeps) rc = make_table(g, &g->coders[k], slots, err);
    if (!rc) rc = make_heap(g, &g->coders[k], FIRST_WORDS, err);
  }
  return rc;
}

wl_status wl_dgroups_codes_clear(wl_dgroups *g, wl_error *err) {
  size_t n = g->k.n_coders;
  wl_status rc = WL_OK;
  if (!n) return WL_OK;
  for (size_t k = 0; k < n && !rc; k++)
    if (g->coders[k].table)
      rc = g->d->fill(g->d, g->coders[k].table, 0, table_bytes(&g->coders[k]), err);
  if (!rc) rc = g->d->copy_in(g->d, g->d_coders, g->coders, n * sizeof *g->coders, err);
  return rc ? rc : g->d->fill(g->d, g->d_coders + n, 0, n * 8, err);
}

wl_status wl_dgroups_codes_grow(wl_dgroups *g, wl_u64 full, wl_error *err) {
  bool heap = full >= WL_KG_FULL_HEAP;
  wl_kcoder *c = &g->coders[full - (heap ? WL_KG_FULL_HEAP : WL_KG_FULL_CODER)];
  wl_u64 used = 0, before = heap ? c->size : c->n_slots;
  wl_status rc = heap ? g->d->copy_out(g->d, &used, c->used, 8, err) : WL_OK;
  if (rc) return rc;
  if (before >= (heap ? most_words(g) : most_slots(g)))
    return wl_not_taken(err, "the %s do not fit into a device_budget of %lld",
                        c->table ? "keys" : "values of min() and max()", g->d->budget);
  if (heap) return make_heap(g, c, used * 2 > before * 4 ? used * 2 : before * 4, err);
  return make_table(g, c, before * GROWTH, err);
}

/* ---- on the host */

wl_status wl_dgroups_codes_fetch(wl_dgroups *g, wl_error *err) {
  wl_status rc = WL_OK;
  for (int k = 0; k < g->coded.n && !rc; k++) {
    wl_kcoder *c = &g->coders[k], *to = &g->fetched[k];
    wl_u64 used = 0;
    if (!g->coded.coders[k].shown && !g->coded.coders[k].keeps) continue;
    wl_mem_free(to->table);
    wl_mem_free(to->heap);
    *to = *c;
    to->heap = NULL;
    to->table = wl_mem_alloc(table_bytes(c) + 1);
    if (!to->table) rc = wl_nomem(err);
    if (!rc && c->table) rc = g->d->copy_out(g->d, to->table, c->table, table_bytes(c), err);
    if (!rc) rc = g->d->copy_out(g->d, &used, c->used, 8, err);
    if (!rc && !(to->heap = wl_mem_alloc((size_t)used * 8 + 8))) rc = wl_nomem(err);
    if (!rc && used) rc = g->d->copy_out(g->d, to->heap, c->heap, used * 8, err);
  }
  return rc;
}

wl_val wl_dgroups_of_code(const wl_dgroups *g, int coder, wl_val code) {
  const wl_kcoder *c = &g->fetched[coder];
  if (code.t == WL_T_NULL) return code;
  return wl_code_value(c->heap + c->table[2 * code.v + 1]);
}

wl_val wl_dgroups_kept_value(const wl_dgroups *g, int coder, wl_u64 word) {
  if (!word) return wl_null();
  return wl_code_value(g->fetched[coder].heap + ((word & 0xffffffffULL) - 1));
}

void wl_dgroups_codes_close(wl_dgroups *g) {
  for (int k = 0; g->coders && k < g->coded.n; k++) {
    wl_dgroups_drop(g, g->coders[k].table, table_bytes(&g->coders[k]));
    wl_dgroups_drop(g, g->coders[k].heap, g->coders[k].size * 8);
    wl_mem_free(g->fetched[k].table);
    wl_mem_free(g->fetched[k].heap);
  }
  wl_dgroups_drop(g, g->d_coders, codes_bytes(g));
  wl_mem_free(g->coders);
}
