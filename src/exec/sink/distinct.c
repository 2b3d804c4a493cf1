/*
** The sink that keeps the first of equal rows; see distinct.h. It compares words if all columns are
** numbers, else values. The rows are divided into parts by hash, and each part is a task, so that
** every step runs on all threads.
*/
#include "exec/sink/distinct.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/column.h"
#include "exec/executed.h"
#include "exec/sink/places.h"
#include "value/hash.h"
#include <string.h>

enum { PARTS = 64, PART_SHIFT = 58, STRETCH = 1 << 14 };

typedef struct distinct_rows {
  wl_places r;
  const wl_program *p;
  int n_words; /* 0: values are compared */
  wl_u64 **words;
  wl_u64 *hashes; /* of each row */
  wl_u32 *rows;   /* the rows by part, each part in row order */
  wl_u8 *stays;   /* whether each row stays */
  long n_stretches;
  wl_i64 (*at)[PARTS + 1]; /* where the rows of a part of a stretch go; the last: rows that stay */
  wl_i64 starts[PARTS + 1];
  wl_row_place *kept;
} distinct_rows;

static wl_i64 stretch_end(const distinct_rows *d, long k) {
  wl_i64 to = ((wl_i64)k + 1) * STRETCH;
  return to < d->r.n ? to : d->r.n;
}

/* Computes and counts the hashes of a stretch. */
static wl_status hash_task(void *arg, int worker, long k, wl_error *err) {
  distinct_rows *d = arg;
  memset(d->at[k], 0, sizeof d->at[k]);
  for (wl_i64 i = (wl_i64)k * STRETCH; i < stretch_end(d, k); i++) {
    wl_u64 h = 0;
    for (int w = 0; w < d->n_words; w++) h = wl_hash_mix(h, d->words[w][i]);
    for (int c = 0; c < d->p->n_given && !d->n_words; c++)
      h = wl_hash_mix(h,
                      wl_hash_val(wl_places_value(&d->r, d->r.at[i], c), d->p->distinct_colls[c]));
    d->hashes[i] = h;
    d->at[k][h >> PART_SHIFT]++;
  }
  return WL_OK;
}

static wl_status deal_task(void *arg, int worker, long k, wl_error *err) {
  distinct_rows *d = arg;
  for (wl_i64 i = (wl_i64)k * STRETCH; i < stretch_end(d, k); i++)
    d->rows[d->at[k][d->hashes[i] >> PART_SHIFT]++] = (wl_u32)i;
  return WL_OK;
}

static bool same(const distinct_rows *d, wl_u32 a, wl_u32 b) {
  const wl_places *r = &d->r;
  if (d->hashes[a] != d->hashes[b]) return false;
  for (int k = 0; k < d->n_words; k++)
    if (d->words[k][a] != d->words[k][b]) return false;
  for (int k = 0; k < d->p->n_given && !d->n_words; k++)
    if (wl_cmp_val(wl_places_value(r, r->at[a], k), wl_places_value(r, r->at[b], k),
                   d->p->distinct_colls[k]) != 0)
      return false;
  return true;
}

/* Marks the first of equal rows of a part. */
static wl_status part_task(void *arg, int worker, long part, wl_error *err) {
  enum { OFTEN = 4096 };
  distinct_rows *d = arg;
  wl_i64 from = d->starts[part], n = d->starts[part + 1] - from;
  wl_u64 n_slots = 64;
  while (n_slots < (wl_u64)n * 2) n_slots *= 2;
  wl_u32 *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  if (!slots) return WL_NOMEM;
  for (wl_i64 i = 0; i < n; i++) {
    wl_u32 row = d->rows[from + i];
    wl_u64 s = d->hashes[row] & (n_slots - 1);
    if (i % OFTEN == OFTEN - 1 && wl_stop_now(d->r.stop, worker)) break;
    while (slots[s] && !same(d, slots[s] - 1, row)) s = (s + 1) & (n_slots - 1);
    d->stays[row] = !slots[s];
    if (!slots[s]) slots[s] = row + 1;
  }
  wl_mem_free(slots);
  return WL_OK;
}

static wl_status count_task(void *arg, int worker, long k, wl_error *err) {
  distinct_rows *d = arg;
  wl_i64 n = 0;
  for (wl_i64 i = (wl_i64)k * STRETCH; i < stretch_end(d, k); i++) n += d->stays[i];
  d->at[k][PARTS] = n;
  return WL_OK;
}

static wl_status keep_task(void *arg, int worker, long k, wl_error *err) {
  distinct_rows *d = arg;
  wl_i64 to = d->at[k][PARTS];
  for (wl_i64 i = (wl_i64)k * STRETCH; i < stretch_end(d, k); i++)
    if (d->stays[i]) d->kept[to++] = d->r.at[i];
  return WL_OK;
}

static wl_status run_tasks(distinct_rows *d, long n, wl_task_fn task, wl_error *err) {
  wl_tasks t = {d->r.threads, n, task, d, d->r.stop};
  return wl_tasks_run(&t, NULL, err);
}

/* Turns the counts of a part of all stretches into places. *sum: the rows before them. */
static void place(distinct_rows *d, int part, wl_i64 *sum) {
  for (long k = 0; k < d->n_stretches; k++) {
    wl_i64 n = d->at[k][part];
    d->at[k][part] = *sum;
    *sum += n;
  }
}

static wl_status keep_distinct(distinct_rows *d, wl_error *err) {
  wl_i64 sum = 0;
  wl_status rc = run_tasks(d, d->n_stretches, hash_task, err);
  if (rc) return rc;
  for (int part = 0; part < PARTS; part++) {
    d->starts[part] = sum;
    place(d, part, &sum);
  }
  d->starts[PARTS] = sum;
  rc = run_tasks(d, d->n_stretches, deal_task, err);
  if (!rc) rc = run_tasks(d, PARTS, part_task, err);
  if (!rc) rc = run_tasks(d, d->n_stretches, count_task, err);
  if (rc) return rc;
  sum = 0;
  place(d, PARTS, &sum);
  d->kept = wl_mem_alloc((size_t)(sum + 1) * sizeof *d->kept);
  rc = d->kept ? run_tasks(d, d->n_stretches, keep_task, err) : wl_nomem(err);
  if (rc) return rc;
  wl_row_place *all = d->r.at;
  d->r.at = d->kept;
  d->r.n = sum;
  d->kept = all;
  return WL_OK;
}

static wl_status make_distinct(distinct_rows *d, wl_error *err) {
  wl_arena arena;
  wl_arena_init(&arena);
  wl_key_layout l = {.parts = WL_NEW_N(&arena, wl_key_part, 2 * d->p->n_given + 1)};
  wl_status rc = l.parts && d->r.n < 0xffffffffLL ? WL_OK : wl_nomem(err);
  bool numbers = !rc;
  for (int k = 0; k < d->p->n_given && numbers; k++) {
    wl_domain domain = wl_result_domain(&d->p->results[k]);
    numbers = wl_key_layout_add(&l, k, d->r.regs[k], &domain, 0) && l.n_words <= WL_MAX_WORDS;
  }
  size_t n = (size_t)d->r.n + 1;
  d->n_stretches = (long)((d->r.n + STRETCH - 1) / STRETCH);
  d->hashes = wl_mem_alloc(n * sizeof *d->hashes);
  d->rows = wl_mem_alloc(n * sizeof *d->rows);
  d->stays = wl_mem_alloc(n);
  d->at = wl_mem_alloc(((size_t)d->n_stretches + 1) * sizeof *d->at);
  if (!rc && !(d->hashes && d->rows && d->stays && d->at)) rc = wl_nomem(err);
  if (!rc && numbers) {
    d->n_words = l.n_words;
    rc = wl_places_words(&d->r, &l, NULL, &d->words, err);
  }
  if (!rc) rc = keep_distinct(d, err);
  wl_places_free(d->words, d->n_words);
  wl_mem_free(d->hashes);
  wl_mem_free(d->rows);
  wl_mem_free(d->stays);
  wl_mem_free(d->at);
  wl_mem_free(d->kept);
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
