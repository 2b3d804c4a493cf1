/*
** The layout of groups: their mode, the words of their keys, and the states of their accumulators.
** See group_impl.h.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Limits for direct mode: bytes of the array, entries per row of the table, and a number of entries
** that is always allowed. */
#define DIRECT_BYTES ((wl_u64)128 << 20)
enum { DIRECT_A_ROW = 4, DIRECT_ALWAYS = 4096 };

/* The state and flags of each Agg opcode. */
static const struct {
  wl_agg_state state;
  int flags;
} accumulators[] = {
#define WL_ACCUMULATOR(name, shape, place, state, flags, meaning)                                  \
  [WL_OP__##name - WL_OP__AggRows] = {WL_STATE_##state, WL_AGG_##flags},
#include "value/aggregates.def"
#undef WL_ACCUMULATOR
};

static wl_agg_how how_of(const wl_program *p, const wl_acc *a) {
  int op = a->op - WL_OP__AggRows, anchor = wl_fsum_anchor_within(a->bound);
  wl_agg_how h = {.state = accumulators[op].state,
                  .flags = accumulators[op].flags,
                  .coll = a->coll,
                  .anchor = anchor,
                  .unit = ldexp(1.0, anchor)};
  /* -0.0 and 0.0 are equal and the first one counts, so row numbers are needed. */
  bool zeros = (h.flags & WL_AGG_REAL) && a->zero && !p->unordered;
  if (h.state == WL_STATE_BEST && (a->rowed || zeros)) h.state = WL_STATE_ROWED;
  if (a->op == WL_OP__AggDistinct && a->distinct == WL_DISTINCT_COUNT) h.state = WL_STATE_COUNT;
  if (a->op == WL_OP__AggDistinct && a->distinct == WL_DISTINCT_CONCAT) h.state = WL_STATE_TEXT;
  return h;
}

/* Sets the offsets of the first row, signs and states in an entry. */
static void lay_out(wl_grouping *g) {
  size_t at = g->mode == MODE_WORDS    ? (size_t)g->words.n_words * 8
              : g->mode == MODE_VALUES ? 8 + (size_t)g->n_keys * sizeof(wl_val)
                                       : 0;
  g->first_at = at;
  if (g->has_first) at += 8;
  g->signs_at = at;
  if (g->has_signs) at += 8;
  for (size_t alignment = 16; alignment >= 8; alignment /= 2)
    for (int k = 0; k < g->n_accs; k++) {
      if (wl_agg_alignment(g->accs[k].state) != alignment) continue;
      at = (at + alignment - 1) & ~(alignment - 1);
      g->places[k] = at;
      at += wl_agg_bytes(g->accs[k].state);
    }
  bool aligned = g->n_accs > 0;
  g->width = aligned ? (at + 15) & ~(size_t)15 : at;
}

static bool direct_pays(const wl_grouping *g, wl_i64 n_rows, int n_keys) {
  wl_u64 used = g->words.used;
  if (n_keys == 0) return true;
  if (g->mode != MODE_WORDS || g->words.n_words > 1 || used == 0) return false;
  wl_u64 most = (wl_u64)n_rows * DIRECT_A_ROW;
  return (used <= DIRECT_ALWAYS || used <= most) && used < 0xffffffff &&
         used * (g->width + 1) <= DIRECT_BYTES &&
         (!g->left || used * (g->width + 1) <= (wl_u64)g->left / 2 / (wl_u64)g->n_workers);
}

/* Plans groups. For a set, the value that is counted is one more key, after the groups' keys. */
static wl_status plan(wl_grouping *g, const wl_program *p, const wl_grouping *groups,
                      const wl_set *set, wl_i64 n_rows, bool first, wl_error *err) {
  const wl_key *finds = wl_program_finds(p);
  int n_finds = wl_program_n_finds(p), n_keys = n_finds + (set != NULL);
  g->p = p;
  g->words.parts = WL_NEW_N(&g->arena, wl_key_part, 2 * n_keys + 1);
  g->accs = WL_NEW_N(&g->arena, wl_agg_how, p->n_accs + 1);
  g->places = WL_NEW_N(&g->arena, size_t, p->n_accs + 1);
  wl_u8 *colls = WL_NEW_N(&g->arena, wl_u8, p->n_keys + 2);
  g->sets = WL_NEW_N(&g->arena, wl_grouping *, p->n_sets + 1);
  if (g->arena.failed) return wl_nomem(err);
  g->mode = MODE_WORDS;
  for (int k = 0; k < n_finds && g->mode == MODE_WORDS; k++) {
    const wl_key *key = &finds[k];
    unsigned flags = key->desc ? WL_KEY_DESC | WL_KEY_NULL_LAST : 0;
    if (!wl_key_layout_add(&g->words, k, key->reg, &key->domain, flags)) g->mode = MODE_VALUES;
  }
  if (set && groups->mode == MODE_VALUES) g->mode = MODE_VALUES;
  if (set && g->mode == MODE_WORDS) {
    wl_reg reg = {set->reg.type, false}; /* NULLs are not counted */
    /* In direct mode, the word of the group may have room for the value. */
    unsigned flags = groups->mode == MODE_DIRECT ? 0 : WL_KEY_NEW_WORD;
    if (!wl_key_layout_add(&g->words, p->n_keys, reg, &set->domain, flags)) g->mode = MODE_VALUES;
  }
  if (g->words.n_words > WL_MAX_WORDS) g->mode = MODE_VALUES;
  g->has_signs = g->words.zero && (!set || first);        /* a count does not depend on signs */
  if (g->has_signs && n_keys > 64) g->mode = MODE_VALUES; /* there is one sign bit per key */
  if (g->mode == MODE_VALUES) {
    g->words.n_words = g->words.n_parts = 0;
    g->has_signs = false;
    /* A set holds the keys in the form that the groups use, and the value. */
    bool words = set && groups->mode != MODE_VALUES;
    g->n_keys = set ? (words ? groups->words.n_words : p->n_keys) + 1 : n_keys;
    for (int k = 0; k < p->n_keys && !words; k++) colls[k] = p->keys[k].coll;
    if (words) colls = WL_NEW_N(&g->arena, wl_u8, g->n_keys + 1);
    if (!colls) return wl_nomem(err);
    if (set) colls[g->n_keys - 1] = set->coll;
    g->colls = colls;
  }
  if (p->n_finds) {
    assert(!set && g->mode == MODE_WORDS); /* the compiler sees to that */
    g->n_keys = p->n_keys;
    for (int k = 0; k < p->n_keys; k++) colls[k] = p->keys[k].coll;
    g->colls = colls;
  }
  g->has_first = first || g->has_signs || g->mode == MODE_VALUES;
  if (!set) {
    g->n_accs = p->n_accs;
    for (int k = 0; k < p->n_accs; k++) {
      g->accs[k] = how_of(p, &p->accs[k]);
      wl_agg_state state = g->accs[k].state;
      g->whole |= state == WL_STATE_TEXT;
      g->rows |= state == WL_STATE_ROWED || (state == WL_STATE_VALUE && !p->unordered);
    }
    g->rows |= g->has_first || p->n_sets > 0;
  }
  lay_out(g);
  if (g->mode == MODE_WORDS && g->words.n_words == 0) { /* no keys: one group */
    g->words.n_words = 1;
    g->words.used = 1;
  }
  if (direct_pays(g, n_rows, n_keys)) {
    g->mode = MODE_DIRECT;
    g->n_direct = g->words.used;
    lay_out(g);
  }
  g->only_words = set && !p->n_keys && g->mode == MODE_WORDS && g->width == 8;
  /* The table should stay in the cache. In values mode it may be larger, as text is kept anyway. */
  enum { CACHE = 2 << 20, LEAST = 2048, WORDS_MOST = 1 << 15, VALUES_MOST = 1 << 20 };
  wl_i64 width = (wl_i64)g->width + 16, most = CACHE / width;
  if (most > WORDS_MOST) most = WORDS_MOST;
  if (g->mode == MODE_VALUES) most = VALUES_MOST;
  if (g->left && most > g->left / g->n_workers / 4 / width)
    most = g->left / g->n_workers / 4 / width;
  g->most = most > LEAST ? most : LEAST;
  enum { SLOT = 16, SORTED = 56, CELL = 13 };
  g->group_bytes = (wl_i64)g->width + SLOT;
  if (!set) g->group_bytes += SORTED + CELL * (p->n_keys + p->n_aggs + p->n_bares);
  return WL_OK;
}

wl_status wl_grouping_open(const wl_program *p, wl_i64 n_rows, wl_i64 left, int n_workers,
                           bool for_device, wl_grouping **out, wl_error *err) {
  wl_grouping *g = *out = wl_mem_zalloc(sizeof *g);
  if (!g) return wl_nomem(err);
  wl_arena_init(&g->arena);
  bool first = p->by_first;
  g->left = left;
  g->n_workers = n_workers;
  for (int k = 0; k < p->n_bares; k++) first |= p->bares[k].acc < 0;
  wl_status rc = plan(g, p, NULL, NULL, n_rows, first, err);
  if (!rc && !for_device) rc = wl_group_plan_scatter(g, n_rows, err);
  for (int k = 0; k < p->n_sets && !rc; k++) {
    wl_grouping *s = g->sets[k] = wl_mem_zalloc(sizeof *s);
    if (!s) {
      rc = wl_nomem(err);
      break;
    }
    g->n_sets++;
    wl_arena_init(&s->arena);
    s->left = left;
    s->n_workers = n_workers;
    rc = plan(s, p, g, &p->sets[k], n_rows, p->accs[p->sets[k].acc].distinct != WL_DISTINCT_COUNT,
              err);
  }
  if (rc) {
    wl_grouping_close(g);
    *out = NULL;
  }
  return rc;
}

void wl_grouping_expect(wl_grouping *g, wl_i64 n) {
  enum { SMALL = 4096, SPARSE = 16 };
  if (g->mode != MODE_DIRECT || !g->p->n_keys || g->n_sets || g->n_direct <= SMALL ||
      (wl_u64)n * SPARSE > g->n_direct)
    return;
  g->mode = MODE_WORDS; /* clearing and reading the array would take longer than hashing */
  g->n_direct = 0;
  lay_out(g);
}

void wl_grouping_close(wl_grouping *g) {
  if (!g) return;
  for (int k = 0; k < g->n_sets; k++) wl_grouping_close(g->sets[k]);
  wl_arena_close(&g->arena);
  wl_mem_free(g);
}
