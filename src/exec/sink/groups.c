/*
** The sink of groups; see groups.h.
*/
#include "exec/sink/groups.h"
#include "base/mem.h"

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  wl_status rc = WL_OK;
  if (!s->groups[worker]) rc = wl_groups_open(s->grouping, &s->groups[worker], err);
  io->groups = s->groups[worker];
  return rc;
}

wl_status wl_groups_sink_full(const wl_groups_sink *s, wl_error *err) {
  return wl_not_taken(err,
                      "the groups need more than the %lld bytes that host_budget leaves and more "
                      "than TMPDIR has room for: raise host_budget",
                      s->left);
}

/* Whether row i counts. The bits are in host memory. */
static bool is_live(const wl_rows *rows, wl_i64 i) {
  return !rows->live || wl_column_stored(rows->live, i / 64).v >> (i & 63) & 1;
}

/* Copies a column that a device has made. Its values have 8 bytes; texts stay in the column. */
static wl_status copy_column(const wl_rows *rows, int k, wl_srccol *to, wl_error *err) {
  wl_status rc = wl_column_fetch(rows->cols[k], err);
  wl_i64 n = 0;
  for (wl_i64 i = 0; i < rows->n_rows && !rc; i++)
    if (is_live(rows, i)) wl_srccol_put(to, n++, wl_column_stored(rows->cols[k], i));
  return rc;
}

/* Counts the rows that a device has made. */
static wl_status count_rows(const wl_rows *rows, wl_i64 *n, wl_error *err) {
  wl_status rc = rows->live ? wl_column_fetch(rows->live, err) : WL_OK;
  *n = 0;
  for (wl_i64 i = 0; i < rows->n_rows && !rc; i++) *n += is_live(rows, i);
  return rc;
}

wl_status wl_groups_sink_count(wl_groups_sink *s, wl_i64 *at, wl_error *err) {
  wl_rows before = s->made;
  if (!s->on_device) return WL_OK;
  if (before.n_rows > *at) before.n_rows = *at;
  return count_rows(&before, at, err);
}

wl_status wl_groups_sink_fetch(wl_groups_sink *s, wl_error *err) {
  wl_finished *f = &s->finished;
  if (!s->on_device) return WL_OK;
  const wl_program *p = s->program;
  wl_status rc = count_rows(&s->made, &f->n, err);
  if (rc) return rc;
  f->n_cols = s->made.n_cols;
  wl_reg *regs = wl_mem_alloc(((size_t)f->n_cols + 1) * sizeof *regs);
  if (!regs) return wl_nomem(err);
  for (int k = 0; k < f->n_cols; k++)
    regs[k] = k < p->n_keys ? p->keys[k].reg : p->aggs[k - p->n_keys].reg;
  rc = wl_srccols_make(regs, f->n_cols, f->n, &f->cols, &f->memory, err);
  wl_mem_free(regs);
  for (int k = 0; k < f->n_cols && !rc; k++) rc = copy_column(&s->made, k, &f->cols[k], err);
  wl_i64 n_kept = 0;
  for (int k = 0; k < s->made.n_cols && !rc; k++) {
    const wl_column *c = s->made.cols[k];
    for (int t = 0; t < c->n_tablets && f->cols[k].n; t++)
      n_kept += (wl_i64)c->segments[t].n_heap + 8 * c->segments[t].n_rows;
    if (f->cols[k].n) continue; /* its texts are there */
    wl_column_drop(s->made.cols[k]);
    s->made.cols[k] = NULL;
  }
  if (rc) wl_rows_close(&s->made);
  s->on_device = false;
  f->n_bytes = f->n * f->n_cols * (8 + 4 + 1) + n_kept;
  wl_budget_hold(s->budget, f->n_bytes);
  return rc;
}

static wl_status finish(wl_sink *sink, wl_error *err) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  if (s->on_device) {
    sink->n_left = s->made.n_rows;
    return WL_OK;
  }
  wl_finishing f = {.plan = s->grouping,
                    .workers = s->groups,
                    .n_workers = s->threads,
                    .in_order = s->in_order,
                    .cols = s->cols,
                    .max_text = s->max_text,
                    .stop = s->stop};
  wl_status rc = wl_groups_finish(&f, &s->finished, err);
  sink->n_left = s->finished.n;
  sink->n_held = s->finished.n_bytes;
  wl_budget_hold(s->budget, s->finished.n_bytes);
  return rc == WL_NOT_TAKEN ? wl_groups_sink_full(s, err) : rc;
}

static void clear(wl_sink *sink) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  wl_budget_hold(s->budget, -s->finished.n_bytes);
  wl_finished_close(&s->finished);
  wl_rows_close(&s->made);
  s->on_device = false;
  for (int i = 0; s->groups && i < s->threads; i++) {
    wl_groups_close(s->groups[i]);
    s->groups[i] = NULL;
  }
}

static void close_groups(wl_sink *sink) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  clear(sink);
  wl_mem_free(s->groups);
  wl_grouping_close(s->grouping);
}

wl_status wl_groups_sink_open(wl_groups_sink *s, const wl_program *p, wl_column **cols,
                              wl_i64 n_rows, int threads, wl_budget *budget, wl_u64 max_text,
                              wl_stop *stop, bool for_device, wl_error *err) {
  *s = (wl_groups_sink){
      .sink = {.begin = begin, .finish = finish, .clear = clear, .close = close_groups},
      .program = p,
      .cols = cols,
      .threads = threads,
      .budget = budget,
      .left = wl_budget_left(budget),
      .max_text = max_text,
      .in_order = p->in_order,
      .stop = stop};
  s->groups = wl_mem_zalloc((size_t)threads * sizeof *s->groups);
  if (!s->groups) return wl_nomem(err);
  return wl_grouping_open(p, n_rows, s->left, threads, for_device, &s->grouping, err);
}
