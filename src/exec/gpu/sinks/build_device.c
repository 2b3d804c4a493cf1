/*
** Builds a lookup on a device: a pipeline over the rows of a source whose last opcode is Build.
** If keys are integers of a small range, their words are the slots of a table. Otherwise a word
** finds its slot in a hash table, whose size follows the estimated number of rows. If that is too
** small, the pipeline runs again with a table for all rows.
**
** If only the existence of a row matters, and keys are integers of a known range, the lookup is a
** bit for each. Otherwise each row puts its number into its slot, and the smallest one stays. So a
** lookup in which only the first row of a key matters is finished when all rows are done, and any
** other one if no key came twice. If some did, the pipeline runs again and lists slots and rows,
** which are sorted: then the rows of each key are consecutive and ascending.
**
** The host learns the counts. It does not wait for them if they are not needed. The arrays stay on
** the device.
**
** Invariant: at least a quarter of a finished hash table is free, so a search ends.
*/
#include "exec/gpu/launch.h"
#include "exec/sink/lookup.h"
#include "base/mem.h"
#include <string.h>

typedef struct building {
  const wl_build_in *in;
  wl_stop *stop;
  wl_lookup *l;
  wl_device *d;
  wl_device_build b;
  wl_u64 *words;  /* HASH: a copy of the words while pairs are listed */
  size_t n_words; /* its bytes */
  /* the pairs, and what sorting them needs */
  wl_i64 n_pairs;
  wl_u64 *keys[2];
  wl_u32 *values[2];
} building;

/* The number of words of the keys; 0: a table with so many bits for each would be too large. */
static wl_u64 table_words(const wl_build_in *in, int n_bits) {
  const double always = 1 << 25, a_row = 1 << 11, most = 1u << 31; /* bits */
  wl_u64 span = in->plan.kind == WL_KEYS_INT ? wl_key_plan_span(&in->plan) : 0;
  double size = (double)span * n_bits;
  return size <= most && (size <= always || size <= (double)in->n_rows * a_row) ? span : 0;
}

/* Runs the pipeline. Its counts are in x->b.built. */
static wl_status run(building *x, wl_error *err) {
  const wl_build_in *in = x->in;
  memset(x->b.built, 0, sizeof x->b.built);
  wl_device *d = x->d;
  char note[WL_PIPE_NOTE] = "";
  wl_moved moved = {0};
  wl_pipe e = {.p = in->p,
               .cols = in->cols,
               .n_rows = in->n_rows,
               .threads = in->threads,
               .needed = -1,
               .max_text = in->max_text,
               .stop = x->stop,
               .device = d,
               .device_budget = in->device_budget,
               .mapped_budget = in->mapped_budget,
               .transfer = in->transfer,
               .build = &x->b,
               .note = note,
               .moved = &moved};
  wl_status rc = WL_OK;
  while (!rc && !wl_pipe_done(&e)) {
    rc = wl_stop_ask(x->stop, err);
    if (!rc) rc = wl_pipe_wave(&e, err);
  }
  wl_pipe_close(&e);
  return rc;
}

/* ---- slots */

/* Chooses a hash table for so many rows. Returns false if it would be too large. */
static bool choose_hash(wl_lookup *l, double n_rows) {
  enum { LEAST = 1024 };
  const double most = 1u << 31;
  wl_u64 n = LEAST;
  if (2 * n_rows > most) return false;
  while ((double)n < 2 * n_rows) n *= 2;
  l->mask = n - 1;
  return true;
}

/* Whether each key has one word that no other key has, and that is not WL_K_FREE. */
static bool can_hash(const wl_key_plan *plan) {
  if (plan->kind == WL_KEYS_REAL) return !plan->parts[0].null;
  return plan->kind == WL_KEYS_INT && wl_key_plan_span(plan) > 0;
}

static wl_u64 n_slots(const wl_lookup *l) {
  return l->direct ? l->span : l->mask + 1;
}

static wl_status open_slots(building *x, wl_error *err) {
  wl_device *d = x->d;
  wl_lookup *l = x->l;
  l->unique = true;
  wl_device_lock(d);
  d->queue = 0;
  wl_device_allow(d, x->in->device_budget, x->in->mapped_budget);
  wl_devcol_tick(d);
  wl_status rc = wl_devlookup_open(d, l, err);
  if (!rc) {
    wl_devarrays a = wl_devlookup_arrays(d, l, false);
    x->b.table = a.slots;
    x->b.bits = a.bits;
    x->b.words = a.words;
    x->b.mask = l->mask;
    x->b.n_bytes = (wl_i64)wl_devlookup_bytes(l);
    rc = a.bits ? d->fill(d, a.bits, 0, wl_lookup_bits_bytes(l), err)
                : d->fill(d, x->b.table, 0xff, n_slots(l) * sizeof *x->b.table, err);
  }
  if (!rc && x->b.words) rc = d->fill(d, x->b.words, 0xff, n_slots(l) * sizeof *x->b.words, err);
  wl_device_unlock(d);
  return rc;
}

static void close_slots(building *x) {
  wl_device_lock(x->d);
  x->d->queue = 0;
  wl_devlookup_close(x->d, x->l);
  wl_device_unlock(x->d);
}

/* Fills the slots. Again with a larger table, if the hash table was too small. */
static wl_status fill_slots(building *x, wl_error *err) {
  wl_lookup *l = x->l;
  wl_status rc = open_slots(x, err);
  if (!rc) rc = run(x, err);
  if (rc || l->direct) return rc;
  wl_u64 n_keys = x->b.built[WL_K_BUILT_ROWS] - x->b.built[WL_K_BUILT_AGAIN];
  if (!x->b.built[WL_K_BUILT_LOST] && n_keys <= n_slots(l) / 4 * 3) return WL_OK;
  close_slots(x);
  if (!choose_hash(l, (double)x->in->n_rows))
    return wl_not_taken(err, "a hash table for a device would be too large");
  rc = open_slots(x, err);
  if (!rc) rc = run(x, err);
  if (!rc && x->b.built[WL_K_BUILT_LOST])
    rc = wl_not_taken(err, "too many keys have places near each other in a hash table");
  return rc;
}

/* ---- lists */

/* Frees the slots and makes room for the pairs. The words stay. */
static wl_status open_pairs(building *x, wl_error *err) {
  wl_device *d = x->d;
  size_t n = (size_t)x->l->n_rows, n_words = x->b.words ? n_slots(x->l) * sizeof *x->words : 0;
  wl_status rc = WL_OK;
  wl_device_lock(d);
  d->queue = 0;
  wl_device_allow(d, x->in->device_budget, x->in->mapped_budget);
  if (n_words) rc = wl_dev_alloc(d, n_words, (void **)&x->words, err);
  if (!rc && n_words) rc = d->copy_on(d, x->words, x->b.words, n_words, err);
  x->n_words = n_words;
  wl_devlookup_close(d, x->l);
  x->b.words = x->words;
  x->b.table = NULL;
  x->l->unique = false;
  x->n_pairs = x->b.n_pairs = x->l->n_rows;
  x->b.n_bytes =
      (wl_i64)n_words + 2 * x->n_pairs * (wl_i64)(sizeof *x->keys[0] + sizeof *x->values[0]);
  for (int k = 0; k < 2 && !rc; k++) {
    rc = wl_dev_alloc(d, n * sizeof *x->keys[k], (void **)&x->keys[k], err);
    if (!rc) rc = wl_dev_alloc(d, n * sizeof *x->values[k], (void **)&x->values[k], err);
  }
  if (!rc) rc = wl_dev_alloc(d, sizeof *x->b.n_listed, (void **)&x->b.n_listed, err);
  if (!rc) rc = d->fill(d, x->values[0], 0, n * sizeof *x->values[0], err);
  if (!rc) rc = d->fill(d, x->b.n_listed, 0, sizeof *x->b.n_listed, err);
  x->b.pairs = x->keys[0];
  wl_device_unlock(d);
  return rc;
}

/* Makes the lists of the sorted pairs. */
static wl_status make_lists(building *x, const wl_u64 *pairs, wl_error *err) {
  wl_device *d = x->d;
  wl_lookup *l = x->l;
  wl_status rc = wl_devlookup_open(d, l, err);
  if (rc) return rc;
  wl_devarrays a = wl_devlookup_arrays(d, l, false);
  wl_klists args = {pairs, (wl_u64)x->n_pairs, n_slots(l), a.starts, a.slots, a.counts, a.rows};
  if (x->n_words) rc = d->copy_on(d, a.words, x->words, x->n_words, err);
  return rc ? rc : wl_device_each(d, WL_K_MAKE_LISTS, &args, sizeof args, n_slots(l) + 1, err);
}

static wl_status sort_pairs(building *x, wl_error *err) {
  wl_device *d = x->d;
  wl_u64 n_listed = 0;
  int at = 0, n_bits = 32; /* rows have 32 */
  while (n_bits < 64 && n_slots(x->l) >> (n_bits - 32)) n_bits++;
  wl_device_lock(d);
  d->queue = 0;
  wl_device_allow(d, x->in->device_budget, x->in->mapped_budget);
  wl_status rc = d->copy_out(d, &n_listed, x->b.n_listed, sizeof n_listed, err);
  if (!rc && (wl_i64)n_listed != x->n_pairs)
    rc = wl_not_taken(err, "the second run over the rows of a lookup found others");
  if (!rc) rc = d->sort(d, x->keys, x->values, x->n_pairs, n_bits, &at, err);
  if (!rc) rc = make_lists(x, x->keys[at], err);
  wl_device_unlock(d);
  return rc;
}

/* Whether nothing depends on how many rows the lookup has. A key has one slot, and one row or only
** the first, so the slots need no second run. */
static bool is_uncounted(const building *x) {
  const wl_build_in *in = x->in;
  return x->l->direct && in->uncounted && !in->watched && (in->first_only || in->one_row);
}

static wl_status build(building *x, wl_error *err) {
  wl_lookup *l = x->l;
  x->b.uncounted = is_uncounted(x);
  wl_status rc = fill_slots(x, err);
  if (rc) return rc;
  if (x->b.unwatched) {
    l->n_rows = x->in->n_rows;
    l->uncounted = true;
    return WL_OK;
  }
  l->n_rows = (wl_i64)x->b.built[WL_K_BUILT_ROWS];
  l->has_null = x->b.built[WL_K_BUILT_NULLS] > 0;
  if (!x->b.built[WL_K_BUILT_AGAIN] || x->in->first_only) {
    l->n_rows -= (wl_i64)x->b.built[WL_K_BUILT_AGAIN];
    return WL_OK;
  }
  rc = open_pairs(x, err);
  if (!rc) rc = run(x, err);
  return rc ? rc : sort_pairs(x, err);
}

/* Chooses bits, a table of all words, or a hash table. */
static bool choose(const wl_build_in *in, wl_lookup *l) {
  double estimated = in->n_build * 1.5, all = (double)in->n_rows;
  l->span = in->exists ? table_words(in, 1) : 0;
  l->only_bits = l->span > 0;
  if (!l->span) l->span = table_words(in, 32);
  l->direct = l->span > 0;
  return l->direct || (can_hash(&in->plan) &&
                       choose_hash(l, estimated > 0 && estimated < all ? estimated : all));
}

wl_status wl_lookup_build_on_device(const wl_build_in *in, wl_stop *stop, wl_lookup *l,
                                    wl_error *err) {
  wl_device *d = in->device;
  building x = {.in = in, .stop = stop, .l = l, .d = d, .b.plan = &in->plan};
  if (!d || in->n_rows < d->least_build || in->p->expands || !choose(in, l)) {
    l->direct = l->only_bits = false;
    l->span = l->mask = 0;
    return wl_not_taken(err, "not a lookup for a device");
  }
  l->on_device = true;
  wl_status rc = build(&x, err);
  wl_device_lock(d);
  d->queue = 0;
  for (int k = 0; k < 2; k++) {
    wl_dev_free(d, x.keys[k], (size_t)x.n_pairs * sizeof *x.keys[k]);
    wl_dev_free(d, x.values[k], (size_t)x.n_pairs * sizeof *x.values[k]);
  }
  wl_dev_free(d, x.words, x.n_words);
  wl_dev_free(d, x.b.n_listed, sizeof *x.b.n_listed);
  if (rc)
    wl_devlookup_close(d, l);
  else
    wl_devlookup_built(d, l);
  wl_device_unlock(d);
  if (!rc) return WL_OK;
  l->on_device = l->direct = l->only_bits = l->unique = l->has_null = false;
  l->span = l->mask = 0;
  l->n_rows = 0;
  return stop->status || rc == WL_NOMEM ? rc : WL_NOT_TAKEN;
}
