/*
** The sink that keeps the first of equal rows; see distinct.h. It compares words if all columns are
** numbers, else values.
*/
#include "exec/sink/distinct.h"
#include "base/mem.h"
#include "column/column.h"
#include "exec/executed.h"
#include "exec/sink/places.h"
#include "value/hash.h"

typedef struct distinct_rows {
  wl_places r;
  const wl_program *p;
  int n_words; /* 0: values are compared */
  wl_u64 **words;
  wl_u32 *first; /* words: the row, as the words count it, of each row that stays */
} distinct_rows;

static wl_u64 hash_row(const distinct_rows *d, wl_i64 i) {
  wl_u64 h = 0;
  for (int k = 0; k < d->n_words; k++) h = wl_hash_mix(h, d->words[k][i]);
  for (int k = 0; k < d->p->n_given && !d->n_words; k++)
    h = wl_hash_mix(h, wl_hash_val(wl_places_value(&d->r, d->r.at[i], k), d->p->distinct_colls[k]));
  return h;
}

/* Whether row i equals the row that stays at `stays`. */
static bool same(const distinct_rows *d, wl_u32 stays, wl_i64 i) {
  const wl_places *r = &d->r;
  for (int k = 0; k < d->n_words; k++)
    if (d->words[k][d->first[stays]] != d->words[k][i]) return false;
  for (int k = 0; k < d->p->n_given && !d->n_words; k++)
    if (wl_cmp_val(wl_places_value(r, r->at[stays], k), wl_places_value(r, r->at[i], k),
                   d->p->distinct_colls[k]) != 0)
      return false;
  return true;
}

static wl_status keep_distinct(distinct_rows *d, wl_u32 *slots, wl_u64 n_slots, wl_u64 *hashes,
                               wl_error *err) {
  wl_places *r = &d->r;
  wl_i64 kept = 0;
  for (wl_i64 i = 0; i < r->n; i++) {
    wl_status rc = wl_stop_at_row(r->stop, i, err);
    if (rc) return rc;
    wl_u64 h = hash_row(d, i), s = h & (n_slots - 1);
    while (slots[s] && (hashes[slots[s] - 1] != h || !same(d, slots[s] - 1, i)))
      s = (s + 1) & (n_slots - 1);
    if (slots[s]) continue;
    r->at[kept] = r->at[i];
    if (d->first) d->first[kept] = (wl_u32)i;
    hashes[kept] = h;
    slots[s] = (wl_u32)++kept;
  }
  r->n = kept;
  return WL_OK;
}

static wl_status make_distinct(distinct_rows *d, wl_error *err) {
  wl_arena arena;
  wl_arena_init(&arena);
  wl_key_layout l = {.parts = WL_NEW_N(&arena, wl_key_part, 2 * d->p->n_given + 1)};
  wl_status rc = l.parts ? WL_OK : wl_nomem(err);
  bool numbers = !rc;
  for (int k = 0; k < d->p->n_given && numbers; k++) {
    wl_domain domain = wl_result_domain(&d->p->results[k]);
    numbers = wl_key_layout_add(&l, k, d->r.regs[k], &domain, 0) && l.n_words <= WL_MAX_WORDS;
  }
  wl_u64 n_slots = 1024;
  while (n_slots < (wl_u64)d->r.n * 2) n_slots *= 2;
  wl_u32 *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  wl_u64 *hashes = wl_mem_alloc((size_t)(d->r.n + 1) * sizeof *hashes);
  if (!rc && (!slots || !hashes)) rc = wl_nomem(err);
  if (!rc && numbers) {
    d->n_words = l.n_words;
    d->first = wl_mem_alloc((size_t)(d->r.n + 1) * sizeof *d->first);
    rc = d->first ? wl_places_words(&d->r, &l, NULL, &d->words, err) : wl_nomem(err);
  }
  if (!rc) rc = keep_distinct(d, slots, n_slots, hashes, err);
  wl_places_free(d->words, d->n_words);
  wl_mem_free(d->first);
  wl_mem_free(slots);
  wl_mem_free(hashes);
  wl_arena_close(&arena);
  return rc;
}

static wl_status finish(wl_sink *sink, wl_error *err) {
  wl_collecting_sink *s = (wl_collecting_sink *)sink;
  wl_collected out;
  distinct_rows d = {.p = s->p};
  if (!s->rows.first) return WL_OK; /* none, or a device has done it */
  wl_executed_sink(WL_ON_CPU, WL_SINK_DISTINCT);
  wl_collecting_sink_note(s);
  wl_collected_init(&out, s->rows.what, NULL);
  wl_status rc = wl_places_open(&d.r, &s->rows, s->base.pool, s->threads, s->stop, err);
  if (!rc) rc = make_distinct(&d, err);
  if (!rc)
    rc = wl_places_copy(&d.r, s->p->next ? s->p->n_results : s->p->n_given, d.r.n, &out, err);
  wl_places_close(&d.r);
  wl_collected_clear(&s->rows);
  return wl_collecting_sink_end(s, rc, &out, err);
}

void wl_distinct_sink_init(wl_collecting_sink *s, wl_pool *pool, wl_budget *budget) {
  wl_collecting_sink_init(s, "the distinct rows", pool, budget);
  s->base.sink.finish = finish;
}
