/*
** The sink that sorts rows; see sort.h. It sorts by words as far as they go, then by comparing.
*/
#include "exec/sink/sort.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/column.h"
#include "exec/executed.h"
#include "exec/sink/places.h"
#include "exec/sort/sort.h"
#include "plan/cut.h"

typedef struct sorting {
  wl_places r;
  const wl_program *p;
} sorting;

static int compare(const sorting *s, wl_row_place a, wl_row_place b) {
  for (int k = 0; k < s->p->n_order; k++) {
    const wl_order *o = &s->p->order[k];
    wl_val x = wl_places_value(&s->r, a, o->result), y = wl_places_value(&s->r, b, o->result);
    if (x.t == WL_T_NULL || y.t == WL_T_NULL) {
      if (x.t == y.t) continue;
      return (x.t == WL_T_NULL) == o->nulls_last ? 1 : -1;
    }
    int c = wl_cmp_val(x, y, o->coll);
    if (c) return o->desc ? -c : c;
  }
  return 0;
}

static int tie(const void *arg, wl_u32 a, wl_u32 b) {
  const sorting *s = arg;
  return compare(s, s->r.at[a], s->r.at[b]);
}

static void values(const void *arg, int key, const wl_u32 *rows, int n, wl_val *out) {
  const sorting *s = arg;
  int col = s->p->order[key].result;
  for (int i = 0; i < n; i++) __builtin_prefetch(&s->r.at[rows[i]]);
  for (int i = 0; i < n; i++) wl_places_prefetch(&s->r, s->r.at[rows[i]], col);
  for (int i = 0; i < n; i++) out[i] = wl_places_value(&s->r, s->r.at[rows[i]], col);
}

/* Lays out the sort keys: numbers, texts, and the start of the first key of any type. Returns
** whether words give the order. */
static bool lay_out_keys(const sorting *s, wl_key_layout *l, int *cols) {
  const wl_program *p = s->p;
  for (int k = 0; k < p->n_order; k++) cols[k] = p->order[k].result;
  for (int k = 0; k < p->n_order; k++) {
    const wl_order *o = &p->order[k];
    wl_domain domain = wl_result_domain(&p->results[o->result]);
    unsigned flags = (o->desc ? WL_KEY_DESC : 0) | (o->nulls_last ? WL_KEY_NULL_LAST : 0);
    if (l->n_words >= WL_MAX_WORDS) return false;
    wl_reg reg = s->r.regs[o->result];
    if (wl_key_layout_add(l, k, reg, &domain, flags)) continue;
    if (reg.type == WL_R_TEXT) {
      wl_key_layout_add_text(l, k, o->coll, flags);
      continue;
    }
    wl_key_layout_add_prefix(l, k, o->coll, flags);
    return false;
  }
  return true;
}

static wl_status sort(sorting *s, wl_error *err) {
  wl_arena arena;
  wl_arena_init(&arena);
  wl_i64 n = s->r.n;
  int *cols = WL_NEW_N(&arena, int, s->p->n_order + 1);
  wl_key_layout l = {.parts = WL_NEW_N(&arena, wl_key_part, 2 * s->p->n_order + 1)};
  wl_u32 *order = wl_mem_alloc((size_t)n * sizeof *order);
  wl_u64 **words = NULL;
  bool ok = l.parts && cols && order, exact = ok && lay_out_keys(s, &l, cols);
  wl_status rc =
      ok && n < 0xffffffffLL ? wl_places_words(&s->r, &l, cols, &words, err) : wl_nomem(err);
  if (!rc) {
    wl_sort todo = {.n = n,
                    .n_words = l.n_words,
                    .words = words,
                    .layout = &l,
                    .values = values,
                    .tie = exact ? NULL : tie,
                    .arg = s,
                    .threads = s->r.threads,
                    .stop = s->r.stop};
    rc = wl_sort_rows(&todo, order, err);
  }
  wl_places_free(words, l.n_words);
  if (!rc) rc = wl_places_reorder(&s->r, order, err);
  wl_mem_free(order);
  wl_arena_close(&arena);
  return rc;
}

/* ---- LIMIT: only the first rows need sorting */

/* Whether row i comes before row j. Equal rows keep their order. */
static bool before(const sorting *s, wl_i64 i, wl_i64 j) {
  int c = compare(s, s->r.at[i], s->r.at[j]);
  return c ? c < 0 : i < j;
}

/* Marks the k rows of [from, to) that come first. Uses a heap whose root is the last of them. */
static wl_status mark_first(const sorting *s, wl_i64 from, wl_i64 to, wl_i64 k, int worker,
                            wl_u8 *stays) {
  enum { OFTEN = 4096 };
  wl_i64 *heap = wl_mem_alloc((size_t)(k + 1) * sizeof *heap), n = 0;
  if (!heap) return WL_NOMEM;
  for (wl_i64 i = from; i < to; i++) {
    wl_i64 at;
    if (i % OFTEN == OFTEN - 1 && wl_stop_now(s->r.stop, worker)) break;
    if (n < k) {
      for (at = n++; at > 0 && before(s, heap[(at - 1) / 2], i); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    } else {
      if (k == 0 || !before(s, i, heap[0])) continue;
      for (at = 0; 2 * at + 1 < n;) {
        wl_i64 child = 2 * at + 1;
        if (child + 1 < n && before(s, heap[child], heap[child + 1])) child++;
        if (!before(s, i, heap[child])) break;
        heap[at] = heap[child];
        at = child;
      }
    }
    heap[at] = i;
  }
  for (wl_i64 j = 0; j < n; j++) stays[heap[j]] = 1;
  wl_mem_free(heap);
  return WL_OK;
}

/* The rows are divided into parts, of each of which the first k rows stay. */
typedef struct keeping {
  const sorting *s;
  wl_i64 k, step;
  wl_u8 *stays; /* by row */
} keeping;

static wl_status keep_task(void *arg, int worker, long part, wl_error *err) {
  const keeping *g = arg;
  wl_i64 from = part * g->step, n = g->s->r.n, to = from + g->step < n ? from + g->step : n;
  return mark_first(g->s, from, to, g->k, worker, g->stays);
}

/* Keeps the k rows that come first, in scan order: first those of each part, then those of all. */
static wl_status keep_first(sorting *s, wl_i64 k, wl_error *err) {
  enum { PART = 1 << 14, SHARE = 8 };
  wl_places *r = &s->r;
  bool divides = r->threads > 1 && k < PART / SHARE && r->n > 2 * PART;
  keeping g = {.s = s, .k = k, .step = divides ? PART : r->n + 1};
  g.stays = wl_mem_zalloc((size_t)r->n + 1);
  wl_tasks tasks = {r->threads, (r->n + g.step - 1) / g.step, keep_task, &g, r->stop};
  wl_status rc = g.stays ? wl_tasks_run(&tasks, NULL, err) : wl_nomem(err);
  wl_i64 n = 0;
  for (wl_i64 i = 0; i < r->n && !rc; i++)
    if (g.stays[i]) r->at[n++] = r->at[i];
  if (!rc) r->n = n;
  wl_mem_free(g.stays);
  return rc || !divides ? rc : keep_first(s, k, err);
}

/* ---- LIMIT that must not cut between equal rows */

static bool look_alike(const sorting *s, wl_row_place a, wl_row_place b) {
  for (int c = 0; c < s->p->n_given; c++) {
    wl_val x = wl_places_value(&s->r, a, c), y = wl_places_value(&s->r, b, c);
    if (x.t != y.t || wl_cmp_val(x, y, WL_COLL_BINARY) != 0) return false;
  }
  return true;
}

/* Refuses a cut before row k if it separates rows that ORDER BY treats as equal but that differ in
** their results. all: no row was left out before. */
static wl_status check_cut(const sorting *s, wl_i64 k, bool all, wl_error *err) {
  const wl_row_place *at = s->r.at;
  wl_status rc = WL_OK;
  if (k <= 0 || k >= s->r.n || compare(s, at[k - 1], at[k]) != 0) return WL_OK;
  bool alike = all;
  for (wl_i64 i = k - 1; i >= 0 && !rc && alike && compare(s, at[i], at[k]) == 0; i--) {
    alike = look_alike(s, at[i], at[k]);
    rc = wl_stop_at_row(s->r.stop, i, err);
  }
  for (wl_i64 i = k + 1; i < s->r.n && !rc && alike && compare(s, at[i], at[k]) == 0; i++) {
    alike = look_alike(s, at[i], at[k]);
    rc = wl_stop_at_row(s->r.stop, i, err);
  }
  if (rc || alike) return rc;
  return wl_not_taken(err, "LIMIT cuts between rows that ORDER BY treats as equal");
}

/* ---- the sink */

/* Sorts the collected rows and copies those that are needed to `out`. last: no more will come.
** Before that, sort keys are copied too, and one row more where the cut must be checked. */
static wl_status sort_collected(wl_sort_sink *sink, bool last, wl_collected *out, wl_error *err) {
  wl_collecting_sink *c = &sink->c;
  const wl_program *p = c->p;
  sorting s = {.p = p};
  wl_i64 most = wl_cut_needed(p->offset, p->limit), kept = wl_cut_needed(p->checks_cut, most);
  wl_status rc = wl_places_open(&s.r, &c->rows, c->base.pool, c->threads, c->stop, err);
  bool few = kept >= 0 && kept < s.r.n / 8, all = last && !few && !sink->pruned;
  if (!rc && few) rc = keep_first(&s, kept, err);
  if (!rc && s.r.n > 1) rc = sort(&s, err);
  if (!rc && last && p->checks_cut) rc = check_cut(&s, most, all, err);
  if (!rc && last && p->checks_cut) rc = check_cut(&s, p->offset, all, err);
  wl_i64 n = last ? most : kept;
  if (!rc)
    rc = wl_places_copy(&s.r, last ? p->n_given : p->n_results, n >= 0 && n < s.r.n ? n : s.r.n,
                        out, err);
  wl_places_close(&s.r);
  wl_collected_clear(&c->rows);
  return rc;
}

/* With LIMIT, keeps only those of the collected rows that can still be among the first. */
static wl_status prune(wl_sort_sink *s, wl_error *err) {
  enum { FEW = 1 << 18 };
  wl_collected *rows = &s->c.rows, kept;
  wl_i64 most = wl_cut_needed(s->c.p->offset, s->c.p->limit);
  if (most < 0 || rows->n_rows < FEW || most > rows->n_rows / 8) return WL_OK;
  wl_collected_init(&kept, rows->what, NULL);
  wl_collecting_sink_note(&s->c);
  wl_status rc = sort_collected(s, false, &kept, err);
  s->c.base.sink.n_collected -= kept.n_rows; /* they will be counted again */
  s->pruned = true;
  for (wl_batch *b; !rc && (b = wl_collected_next(&kept));) rc = wl_collected_add(rows, b, err);
  wl_collected_clear(&kept);
  return rc;
}

static wl_status take(wl_sink *sink, wl_batch *b, wl_error *err) {
  wl_sort_sink *s = (wl_sort_sink *)sink;
  wl_status rc = wl_collected_add(&s->c.rows, b, err);
  return rc ? rc : prune(s, err);
}

static wl_status finish(wl_sink *sink, wl_error *err) {
  wl_sort_sink *s = (wl_sort_sink *)sink;
  wl_collected out;
  if (!s->c.rows.first) return WL_OK; /* none, or a device has done it */
  wl_executed_sink(WL_ON_CPU, WL_SINK_SORT);
  wl_collecting_sink_note(&s->c);
  wl_collected_init(&out, s->c.rows.what, NULL);
  wl_status rc = sort_collected(s, true, &out, err);
  return wl_collecting_sink_end(&s->c, rc, &out, err);
}

static void clear(wl_sink *sink) {
  wl_sort_sink *s = (wl_sort_sink *)sink;
  wl_collected_clear(&s->c.rows);
  s->pruned = false;
  sink->n_collected = 0;
}

void wl_sort_sink_init(wl_sort_sink *s, wl_pool *pool, wl_budget *budget) {
  wl_collecting_sink_init(&s->c, "the rows to sort", pool, budget);
  s->c.base.sink.take = take;
  s->c.base.sink.finish = finish;
  s->c.base.sink.clear = clear;
}
