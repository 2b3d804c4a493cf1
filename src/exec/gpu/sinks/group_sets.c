/*
** The sets of DISTINCT aggregates on a device: their layout and their memory. See kernels/kset.h. A
** set starts small and grows when the kernel finds it full; the scan is then repeated.
*/
#include "exec/gpu/sinks/group_device_impl.h"
#include "base/mem.h"
#include <string.h>

enum { FIRST_SLOTS = 1 << 18, LEAST_SLOTS = 32, GROWTH = 16 };

wl_status wl_dgroups_sets_fit(const wl_program *p, wl_error *err) {
  /* each pipeline has sets of its own, and the host cannot join them */
  if (p->n_sets && (p->also || p->source == WL_SOURCE_UNMATCHED))
    return wl_not_taken(err, "DISTINCT aggregates over a RIGHT or FULL JOIN run on the CPU only");
  for (int k = 0; k < p->n_sets; k++) {
    if (p->accs[p->sets[k].acc].distinct == WL_DISTINCT_CONCAT)
      return wl_not_taken(err, "aggregates that follow the order of rows run on the CPU only");
  }
  return WL_OK;
}

wl_u32 wl_dgroups_set_op(const wl_program *p, int acc) {
  const wl_set *s = &p->sets[p->accs[acc].set];
  if (p->accs[acc].distinct == WL_DISTINCT_COUNT) return WL_OP__AggCount;
  if (wl_adds_codes(p, s)) return WL_OP__AggSumV;
  return s->reg.type == WL_R_REAL ? WL_OP__AggSumF : WL_OP__AggSumX;
}

static size_t set_bytes(const wl_kvalues *s) {
  return (size_t)s->n_slots * s->n_words * 8;
}

/* The most slots that a set of entries of n_words words may have. */
static wl_u64 most_slots(const wl_dgroups *g, wl_u32 n_words) {
  wl_u64 room = (wl_u64)g->room / 2 / (wl_u64)g->p->n_sets, n = LEAST_SLOTS;
  while (n * 2 * n_words * 8 <= room && n < 4 * g->n_rows && n < 1ULL << 31) n *= 2;
  return n;
}

/* Chooses the form of the entries, which depends on the number of slots for groups. */
static void lay_out(const wl_dgroups *g, wl_kvalues *s) {
  wl_u64 span = s->part.span;
  s->alone = g->k.n_slots == 1 && s->part.kind == WL_PART_REAL;
  s->n_words = s->alone || (span && span < ~0ULL / g->k.n_slots - 1) ? 1 : 2;
}

static wl_status make_table(wl_dgroups *g, wl_kvalues *s, wl_u64 n_slots, wl_error *err) {
  wl_dgroups_drop(g, s->table, set_bytes(s));
  s->table = NULL;
  lay_out(g, s);
  wl_u64 most = most_slots(g, s->n_words);
  s->n_slots = n_slots < most ? n_slots : most;
  wl_status rc = wl_dgroups_take(g, set_bytes(s), &s->table, err);
  return rc == WL_FULL ? WL_NOT_TAKEN : rc;
}

wl_status wl_dgroups_sets_open(wl_dgroups *g, wl_error *err) {
  const wl_program *p = g->p;
  if (!p->n_sets) return WL_OK;
  size_t n = (size_t)p->n_sets;
  g->sets = wl_mem_zalloc(n * sizeof *g->sets);
  if (!g->sets) return wl_nomem(err);
  wl_status rc = wl_dgroups_take(g, n * sizeof *g->sets, &g->d_sets, err);
  g->k.sets = g->d_sets;
  g->k.n_sets = (wl_u32)n;
  for (int k = 0; k < p->n_sets && !rc; k++) {
    wl_key_part parts[2];
    wl_key_layout l = {.parts = parts};
    wl_reg reg = {p->sets[k].reg.type, false}; /* NULLs are not counted */
    wl_key_layout_add(&l, 0, reg, &p->sets[k].domain, 0);
    g->sets[k].part = parts[l.n_parts - 1];
    wl_u64 slots = LEAST_SLOTS;
    while (slots < FIRST_SLOTS && slots < 4 * g->n_rows) slots *= 2;
    rc = make_table(g, &g->sets[k], slots, err);
  }
  return rc;
}

wl_status wl_dgroups_sets_clear(wl_dgroups *g, wl_error *err) {
  wl_status rc = WL_OK;
  for (wl_u32 k = 0; k < g->k.n_sets && !rc; k++) {
    wl_kvalues *s = &g->sets[k], was = *s;
    lay_out(g, &was);
    if (was.n_words != s->n_words) rc = make_table(g, s, s->n_slots, err);
    s->alone = was.alone;
    if (!rc) rc = g->d->fill(g->d, s->table, 0, set_bytes(s), err);
  }
  if (!rc && g->k.n_sets)
    rc = g->d->copy_in(g->d, g->d_sets, g->sets, g->k.n_sets * sizeof *g->sets, err);
  return rc;
}

wl_status wl_dgroups_sets_grow(wl_dgroups *g, int set, bool *grown, wl_error *err) {
  wl_kvalues *s = &g->sets[set];
  wl_u64 before = s->n_slots;
  *grown = before < most_slots(g, s->n_words);
  return *grown ? make_table(g, s, before * GROWTH, err) : WL_OK;
}

void wl_dgroups_sets_close(wl_dgroups *g) {
  for (wl_u32 k = 0; g->sets && k < g->k.n_sets; k++)
    wl_dgroups_drop(g, g->sets[k].table, set_bytes(&g->sets[k]));
  wl_dgroups_drop(g, g->d_sets, g->k.n_sets * sizeof *g->sets);
  wl_mem_free(g->sets);
}
