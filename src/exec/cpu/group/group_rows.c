/*
** The keys of finished groups, and groups that were found by row numbers. See group_impl.h.
**
** If keys depend on a joined source alone, the number of its row stands for them
** (wl_program.finds). The number is one word of a small range, which is much faster than a text or
** several keys. There is a group for each row of the source that occurs. At the end the keys are
** read or computed from the rows, and the groups are put in the order of their keys. Rows with
** equal keys are neighbours then, and become one group: their states are joined like those of
** several workers, so the result is exact.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/lookup.h"
#include "exec/cpu/exec.h"
#include <stdatomic.h>

enum { STRETCH = 8192 }; /* groups of a batch of computed keys */

/* Keys that are computed from the rows of one source. */
struct row_keys {
  wl_pool *pool;
  wl_batch **batches; /* [n_batches]: of STRETCH groups each */
  wl_i64 n_batches;
};

static wl_val decode(const wl_grouping *g, const joined *j, wl_i64 i, int find) {
  wl_u64 place = g->mode == MODE_DIRECT ? j->places[i] : 0;
  const wl_u64 *words =
      g->mode == MODE_DIRECT ? &place : (const wl_u64 *)(const void *)j->entries[i];
  bool minus = g->has_signs && *entry_signs(g, j->entries[i]) >> (find & 63) & 1;
  return wl_key_layout_decode(&g->words, find, words, minus);
}

static wl_val computed_key(const struct row_keys *r, wl_u32 number, int result) {
  return wl_batch_value(r->batches[number / STRETCH], wl_pool_regs(r->pool), result,
                        number % STRETCH);
}

wl_val wl_group_key(const wl_finishing *f, const joined *j, wl_i64 i, int key) {
  const wl_grouping *g = j->plan;
  if (g->mode == MODE_VALUES) return entry_values(j->entries[i])[key];
  if (!g->p->n_finds) return decode(g, j, i, key);
  const wl_key *k = &g->p->keys[key];
  if (k->computed >= 0) return computed_key(&j->computed[k->by], j->numbers[i], k->computed);
  wl_val v = decode(g, j, i, k->by);
  if (k->column < 0 || v.t == WL_T_NULL) return v;
  return wl_column_stored(f->cols[k->column], (wl_i64)v.v);
}

int wl_group_compare_keys(const wl_finishing *f, const joined *j, wl_i64 a, wl_i64 b) {
  const wl_grouping *g = j->plan;
  for (int k = 0; k < g->n_keys; k++) {
    int c = wl_cmp_val(wl_group_key(f, j, a, k), wl_group_key(f, j, b, k), g->colls[k]);
    if (c) return g->p->keys[k].desc ? -c : c;
  }
  return 0;
}

/* ---- keys that are expressions */

typedef struct computing {
  const wl_finishing *f;
  joined *j;
  int find;
  wl_exec **workers; /* [n_workers]: or NULL */
  atomic_llong n_bytes;
} computing;

static wl_status compute_task(void *arg, int worker, long task, wl_error *err) {
  computing *c = arg;
  const wl_finishing *f = c->f;
  const wl_grouping *g = c->j->plan;
  const wl_program *p = g->p->finds[c->find].row_keys;
  struct row_keys *r = &c->j->computed[c->find];
  wl_u32 rows[STRETCH];
  wl_i64 from = (wl_i64)task * STRETCH, n = c->j->n - from < STRETCH ? c->j->n - from : STRETCH;
  for (wl_i64 i = 0; i < n; i++) {
    wl_val row = decode(g, c->j, from + i, c->find);
    rows[i] = row.t == WL_T_NULL ? WL_NO_ROW : (wl_u32)row.v;
  }
  wl_status rc = WL_OK;
  wl_exec **x = &c->workers[worker];
  if (!*x) {
    rc = wl_exec_open(p, f->cols, NULL, f->max_text, x, err);
    if (!rc) wl_exec_stop_by(*x, f->stop, worker == 0);
  }
  if (!rc) rc = wl_batch_take(r->pool, &r->batches[task], err);
  if (!rc) rc = wl_exec_run_rows(*x, rows, n, r->batches[task], err);
  if (rc || !g->left) return rc;
  wl_i64 n_bytes = 0;
  for (int k = 0; k < p->n_results; k++)
    n_bytes += (wl_i64)r->batches[task]->cols[k].size_heap + STRETCH * (8 + 4 + 1);
  return atomic_fetch_add(&c->n_bytes, n_bytes) + n_bytes > g->left / 2 ? WL_NOT_TAKEN : WL_OK;
}

wl_status wl_group_compute_keys(const wl_finishing *f, joined *j, wl_error *err) {
  const wl_program *p = j->plan->p;
  wl_status rc = WL_OK;
  bool any = false;
  for (int k = 0; k < p->n_keys && p->n_finds && !rc; k++)
    if (p->keys[k].column >= 0) rc = wl_column_fetch(f->cols[p->keys[k].column], err);
  if (rc) return rc;
  for (int k = 0; k < p->n_finds; k++) any |= p->finds[k].row_keys != NULL;
  if (!any || !j->n) return WL_OK;
  j->computed = wl_mem_zalloc((size_t)p->n_finds * sizeof *j->computed);
  j->numbers = wl_mem_alloc((size_t)j->n * sizeof *j->numbers);
  computing c = {.f = f, .j = j};
  c.workers = wl_mem_zalloc((size_t)f->n_workers * sizeof *c.workers);
  if (!j->computed || !j->numbers || !c.workers) rc = wl_nomem(err);
  for (wl_i64 i = 0; i < j->n && !rc; i++) j->numbers[i] = (wl_u32)i;
  for (c.find = 0; c.find < p->n_finds && !rc; c.find++) {
    struct row_keys *r = &j->computed[c.find];
    if (!p->finds[c.find].row_keys) continue;
    wl_i64 n = (j->n + STRETCH - 1) / STRETCH;
    r->batches = wl_mem_zalloc((size_t)n * sizeof *r->batches);
    if (!r->batches) rc = wl_nomem(err);
    r->n_batches = rc ? 0 : n;
    if (!rc) rc = wl_program_pool(p->finds[c.find].row_keys, STRETCH, &r->pool, err);
    wl_tasks tasks = {f->n_workers, n, compute_task, &c, f->stop};
    if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
    for (int w = 0; w < f->n_workers; w++) {
      wl_exec_close(c.workers[w]);
      c.workers[w] = NULL;
    }
  }
  wl_mem_free(c.workers);
  return rc;
}

void wl_group_free_keys(joined *j) {
  for (int k = 0; j->computed && k < j->plan->p->n_finds; k++) {
    struct row_keys *r = &j->computed[k];
    for (wl_i64 i = 0; i < r->n_batches; i++) wl_batch_give(r->batches[i]);
    wl_mem_free(r->batches);
    if (r->pool) wl_pool_close(r->pool);
  }
  wl_mem_free(j->computed);
  wl_mem_free(j->numbers);
}

/* ---- joining neighbours */

typedef struct neighbours {
  const wl_finishing *f;
  joined *j;
  wl_u8 *equal; /* [n]: whether each group has the keys of the one before */
  wl_i64 n_equal[N_PARTS];
} neighbours;

static void range_of(const neighbours *e, long part, wl_i64 *from, wl_i64 *to) {
  *from = e->j->n * part / N_PARTS;
  *to = e->j->n * (part + 1) / N_PARTS;
}

static wl_status compare_task(void *arg, int worker, long part, wl_error *err) {
  neighbours *e = arg;
  (void)worker, (void)err;
  wl_i64 from, to;
  range_of(e, part, &from, &to);
  for (wl_i64 i = from; i < to; i++) {
    e->equal[i] = i > 0 && wl_group_compare_keys(e->f, e->j, i - 1, i) == 0;
    e->n_equal[part] += e->equal[i];
  }
  return WL_OK;
}

/* Joins the groups that begin in a range with their equals, which may be in later ranges. */
static wl_status join_task(void *arg, int worker, long part, wl_error *err) {
  neighbours *e = arg;
  (void)err;
  enum { POLL = 4096 };
  joined *j = e->j;
  wl_i64 from, to;
  wl_status rc = WL_OK;
  range_of(e, part, &from, &to);
  for (wl_i64 i = from; i < to && !rc; i++) {
    if (e->equal[i]) continue;
    for (wl_i64 k = i + 1; k < j->n && e->equal[k] && !rc; k++) {
      if (k % POLL == 0 && wl_stop_now(e->f->stop, worker)) return WL_OK;
      rc = wl_group_join(j->plan, &j->arenas[part], j->entries[i], j->entries[k]);
    }
  }
  return rc;
}

wl_status wl_group_join_equal(const wl_finishing *f, joined *j, wl_error *err) {
  neighbours e = {.f = f, .j = j, .equal = wl_mem_alloc((size_t)j->n + 1)};
  if (!e.equal) return wl_nomem(err);
  wl_tasks compare = {f->n_workers, N_PARTS, compare_task, &e, f->stop};
  wl_tasks join = {f->n_workers, N_PARTS, join_task, &e, f->stop};
  wl_i64 n_equal = 0, n = 0;
  wl_status rc = wl_tasks_run(&compare, NULL, err);
  for (int k = 0; k < N_PARTS; k++) n_equal += e.n_equal[k];
  if (!rc && n_equal) rc = wl_tasks_run(&join, NULL, err);
  for (wl_i64 i = 0; i < j->n && n_equal && !rc; i++) {
    if (e.equal[i]) continue;
    j->entries[n] = j->entries[i];
    if (j->places) j->places[n] = j->places[i];
    if (j->numbers) j->numbers[n] = j->numbers[i];
    n++;
  }
  if (n_equal && !rc) j->n = n;
  wl_mem_free(e.equal);
  return rc;
}
