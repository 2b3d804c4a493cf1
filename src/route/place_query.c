/*
** See place_query.h.
*/
#include "route/place_query.h"
#include "exec/gpu/device.h"
#include "exec/query.h"
#include "plan/row_order.h"
#include <stdio.h>

struct wl_device *wl_place_device(wl_conn *c, wl_error *err) {
  return wl_device_get(c->set.device == WL_DEVICE_SIM ? "sim" : "cuda", err);
}

void wl_place_leave_device(wl_placement *where, const wl_error *why) {
  where->engine = WL_ENGINE_CPU;
  sqlite3_snprintf((int)sizeof where->reason, where->reason, "not on the gpu: %s", why->text);
}

/* Calls of SQLite functions that rows will need. 0 if some column, most likely the argument, has a
** dictionary, or if all columns have small ranges. */
static int slow_calls(const wl_query *q, const wl_table *t) {
  bool wide = false;
  for (int i = 0; i < q->n_cols && q->n_call_cost; i++) {
    wl_column *c = wl_source_column(t->source, q->cols[i].column);
    bool coded = c && c->dict;
    wide |= c && c->phys > WL_P_I16;
    wl_column_drop(c);
    if (coded) return 0;
  }
  return wide ? q->n_call_cost : 0;
}

/* The machines for a statement over n_rows. Opens a device only if it could be chosen. */
static wl_machines machines_for(wl_conn *c, wl_i64 n_rows) {
  wl_error ignored = {0};
  bool may = c->set.engine == WL_ENGINE_AUTO && c->set.device == WL_DEVICE_CUDA && n_rows > 100000;
  return (wl_machines){.n_threads = c->set.threads,
                       .has_device = may && wl_place_device(c, &ignored) != NULL};
}

/* A query over one table. */
static wl_status place_table(wl_conn *c, wl_statement_text *t, wl_placement *out, wl_error *err) {
  wl_query *q = t->query;
  wl_table *table;
  bool exact;
  wl_status rc = wl_store_table(c->store, q->schema, q->table, &table, err);
  if (rc) return rc;
  wl_i64 n = wl_source_estimate(table->source, &exact);
  int missing = q->n_cols;
  for (int i = 0; i < q->n_cols && exact; i++)
    missing -= wl_source_columns(table->source, &q->cols[i].column, 1, NULL);
  wl_source_history used = wl_source_used(table->source);
  wl_place_table in = {.n_rows = n,
                       .exact = exact,
                       .in_segments = table->source->in_segments,
                       .share = wl_place_share(q, &t->facts, table),
                       .n_missing = missing,
                       .slow_calls = missing ? 0 : slow_calls(q, table),
                       .n_uses = used.n_uses,
                       .n_loads = used.n_loads};
  wl_machines machines = machines_for(c, n);
  wl_place(&c->set, q, &t->facts, &in, &machines, out);
  return WL_OK;
}

wl_status wl_place_query(wl_conn *c, wl_statement_text *t, wl_placement *out, wl_error *err) {
  wl_error why = {0};
  wl_status rc = WL_OK;
  if (wl_query_scans_table(t->query)) {
    rc = place_table(c, t, out, err);
  } else {
    wl_place_table in = {.exact = true};
    in.n_rows = wl_query_rows(c->store, t->query, &in.exact, &in.n_missing);
    in.n_pairs = wl_query_pairs(c->store, t->query);
    rc = wl_statement_text_work(c, t, in.exact, err);
    if (rc) return rc;
    wl_machines machines = machines_for(c, in.n_rows);
    wl_place_join(&c->set, t->query, &t->facts, &in, &machines, out);
  }
  if (!rc && out->engine == WL_ENGINE_GPU && !wl_place_device(c, &why))
    wl_place_leave_device(out, &why);
  return rc;
}

/* ---- rows that are whole columns of a table */

enum { FEW_ROWS = 4096 };

static bool only_columns(const wl_query *q) {
  if (!wl_query_scans_table(q) || q->where || q->aggregate || q->grouped || q->distinct ||
      q->n_order || q->limit || q->offset)
    return false;
  for (int k = 0; k < q->n_results; k++)
    if (q->results[k]->kind != WL_B_COLUMN) return false;
  return q->n_results > 0;
}

bool wl_query_reads_any(const wl_query *q) {
  if (q->n_sources > 1) return true;
  return q->n_sources == 1 && (q->sources[0].table || q->sources[0].derived);
}

wl_status wl_query_is_columns(wl_conn *c, const wl_query *q, bool *is, char *reason, size_t n,
                              wl_error *err) {
  wl_table *t;
  bool exact;
  *is = false;
  if (!only_columns(q)) return WL_OK;
  wl_status rc = wl_store_table(c->store, q->schema, q->table, &t, err);
  if (rc) return rc;
  *is = !t->source->in_segments /* columns in segments may have dead rows */ &&
        wl_source_estimate(t->source, &exact) >= FEW_ROWS;
  if (*is) snprintf(reason, n, "cpu: the columns of %s", t->name);
  return WL_OK;
}
