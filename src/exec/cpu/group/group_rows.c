/*
** The keys of finished groups, and groups that were found by row numbers. See group_impl.h.
**
** If the keys are columns of a joined source, the number of its row stands for them
*(wl_program.finds).
** The number is one word of a small range, which is much faster than a text or several keys. There
*is
** a group for each row of the source that occurs. At the end the groups are put in the order of
*their
** keys. Rows with equal keys are neighbours then, and become one group: their states are joined
*like
** those of several workers, so the result is exact.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <string.h>

static wl_val decode(const wl_grouping *g, const joined *j, wl_i64 i, int find) {
  wl_u64 place = g->mode == MODE_DIRECT ? j->places[i] : 0;
  const wl_u64 *words =
      g->mode == MODE_DIRECT ? &place : (const wl_u64 *)(const void *)j->entries[i];
  bool minus = g->has_signs && *entry_signs(g, j->entries[i]) >> (find & 63) & 1;
  return wl_key_layout_decode(&g->words, find, words, minus);
}

wl_val wl_group_key(const wl_finishing *f, const joined *j, wl_i64 i, int key) {
  const wl_grouping *g = j->plan;
  if (g->mode == MODE_VALUES) return entry_values(j->entries[i])[key];
  if (!g->p->n_finds) return decode(g, j, i, key);
  const wl_key *k = &g->p->keys[key];
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
    n++;
  }
  if (n_equal && !rc) j->n = n;
  wl_mem_free(e.equal);
  return rc;
}
