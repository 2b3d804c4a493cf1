/*
** See place_query.h.
*/
#include "route/place_query.h"
#include "exec/gpu/device.h"
#include "exec/query.h"
#include "plan/choose.h"
#include "plan/row_order.h"
#include <stdio.h>
#include <string.h>

struct wl_device *wl_place_device(wl_conn *c, wl_error *err) {
  return wl_device_get(c->set.device == WL_DEVICE_SIM ? "sim" : "cuda", err);
}

void wl_place_leave_device(wl_placement *where, const wl_error *why) {
  where->engine = WL_ENGINE_CPU;
  where->left_device = true;
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

/* The machines for a statement over n_rows. A device is opened only if it could be chosen, and in
** the background, and then measured: until that is done, statements run without it. */
static wl_machines machines_for(wl_conn *c, wl_i64 n_rows, wl_device **device, bool *opening) {
  enum { MANY_ROWS = 100000 };
  wl_error ignored = {0};
  wl_machines m = {.n_threads = c->set.threads};
  bool may =
      c->set.engine == WL_ENGINE_AUTO && c->set.device == WL_DEVICE_CUDA && n_rows > MANY_ROWS;
  wl_constants_init(&m.is);
  *opening = false;
  bool measures = c->set.calibrate != WL_CALIBRATE_OFF;
  *device = may ? wl_device_ready("cuda", measures, opening, &ignored) : NULL;
  if (*device && measures) {
    bool again = c->set.calibrate == WL_CALIBRATE_NOW;
    if (!wl_device_constants(*device, again, &m.is)) {
      wl_constants_init(&m.is);
      *opening = true;
      *device = NULL;
    }
    c->set.calibrate = WL_CALIBRATE_AUTO;
  }
  if (!*device) return m;
  m.has_device = true;
  m.memory = c->set.device_budget ? c->set.device_budget : (*device)->free_memory;
  return m;
}

/* ---- corrections */

/* The entry for the shape of a text, or NULL if there is none. */
static wl_measured *measured_of(wl_conn *c, const wl_statement_text *t) {
  wl_shape_entry *e = &c->shapes[t->shape % WL_SHAPES];
  return e->shape == t->shape ? &e->measured : NULL;
}

/* The same, or a new one. */
static wl_measured *measure_for(wl_conn *c, const wl_statement_text *t) {
  wl_shape_entry *e = &c->shapes[t->shape % WL_SHAPES];
  if (e->shape != t->shape) *e = (wl_shape_entry){.shape = t->shape};
  return &e->measured;
}

/* A correction fades, so that the native engine gets another chance. */
static void fade(wl_text_price *p) {
  for (int k = 0; k < WL_N_MACHINES; k++)
    if (p->native_factor[k] > 1) p->native_factor[k] = 1 + (p->native_factor[k] - 1) * 0.9;
}

void wl_place_starts(wl_conn *c, wl_statement_text *t, const wl_placement *where, bool refused) {
  wl_error ignored;
  if (refused && where->left_device) wl_choose_refused(measure_for(c, t));
  if (where->not_copied_ns <= 0) return;
  wl_device *d = wl_place_device(c, &ignored);
  if (d) wl_query_not_copied(c->store, t->query, d, where->not_copied_ns);
}

/* Says that a device could not be considered yet. */
static void note_opening(wl_placement *out) {
  size_t n = strlen(out->reason);
  sqlite3_snprintf((int)(sizeof out->reason - n), out->reason + n, "; the GPU is being opened");
}

/* Estimates what SQLite takes, with values of the parameters or without. */
static wl_status price_with(wl_conn *c, wl_statement_text *t, const wl_val *params,
                            const wl_query_size *size, wl_sqlite_price *out, wl_error *err) {
  wl_status rc = WL_OK;
  if (!t->price.read)
    rc = wl_priced_read(c->db, c->store, t->sql, t->n_sql, &t->arena, &t->price.sqlite, err);
  t->price.read = !rc;
  wl_price_in in = {.store = c->store,
                    .db = c->db,
                    .params = params,
                    .n_params = t->stmt->n_params,
                    .virtual_rows = (double)size->n_rows,
                    .worth_ns = (double)size->n_rows * 3 + 100000};
  return rc ? rc : wl_priced_price(&t->price.sqlite, &in, out, err);
}

/* The same. The price without values is computed once for each version of the tables. It is used
** with values too, if it does not depend on them. params: NULL if they are not known. */
static wl_status price(wl_conn *c, wl_statement_text *t, const wl_val *params,
                       const wl_query_size *size, wl_sqlite_price *out, wl_error *err) {
  wl_text_price *known = &t->price;
  if (!known->known || known->version != size->version) {
    wl_status rc = price_with(c, t, NULL, size, &known->last, err);
    known->known = !rc;
    known->version = size->version;
    if (rc) return rc;
  }
  if (params && t->n_args && known->last.by_values) return price_with(c, t, params, size, out, err);
  *out = known->last;
  return WL_OK;
}

wl_status wl_place_query(wl_conn *c, wl_statement_text *t, const wl_val *params, bool by_batch,
                         wl_placement *out, wl_error *err) {
  wl_error why = {0};
  wl_query *q = t->query;
  wl_table *table;
  bool one = wl_query_scans_table(q);
  wl_status rc = one ? wl_store_table(c->store, q->schema, q->table, &table, err) : WL_OK;
  wl_place_table in = {.by_batch = by_batch, .measured = measured_of(c, t)};
  if (rc) return rc;
  for (int k = 0; k < WL_N_MACHINES; k++)
    in.native_factor[k] = t->price.native_factor[k] > 0 ? t->price.native_factor[k] : 1;
  in.size = wl_query_size_of(c->store, q);
  in.compiled = t->code && in.size.exact && !in.size.n_missing;
  in.lists_functions = q->n_calls && !c->no_functions;
  /* route=always compares nothing with SQLite. */
  if (c->set.route != WL_ROUTE_ALWAYS) rc = price(c, t, params, &in.size, &in.price, err);
  if (rc) return rc;
  double slower = t->price.sqlite_factor > 1 ? t->price.sqlite_factor : 1;
  in.price.ns *= slower;
  in.price.least_ns *= slower;
  if (q->like_param && (!one || table->indexed) && !*in.price.unknown) {
    in.price.least_ns = 0;
    snprintf(in.price.unknown, sizeof in.price.unknown, "%s", one ? table->name : "a table");
  }
  bool opening;
  wl_device *device;
  wl_machines machines = machines_for(c, in.size.n_rows, &device, &opening);
  if (device)
    in.copies = wl_query_copies_of(c->store, q, device, c->set.transfer.mode == WL_TRANSFER_MAPPED);
  if (one) {
    in.slow_calls = in.size.n_missing ? 0 : slow_calls(q, table);
    wl_place(&c->set, q, &t->facts, &in, &machines, out);
  } else {
    wl_place_join(&c->set, q, &in, &machines, out);
    if (out->engine != WL_ENGINE_SQLITE) { /* pairs can only make it dearer */
      in.n_pairs = wl_query_pairs(c->store, q);
      wl_place_join(&c->set, q, &in, &machines, out);
    }
  }
  if (opening && out->engine == WL_ENGINE_CPU) note_opening(out);
  if (out->engine == WL_ENGINE_SQLITE) fade(&t->price);
  t->price.left_ns = out->engine == WL_ENGINE_SQLITE ? out->sqlite_ns / slower : 0;
  if (out->engine == WL_ENGINE_GPU && !wl_place_device(c, &why)) wl_place_leave_device(out, &why);
  return WL_OK;
}

void wl_place_query_warn(wl_conn *c, wl_statement_text *t, const wl_val *params,
                         const wl_placement *where, wl_error *reason) {
  wl_placement now = *where;
  wl_sqlite_price sqlite;
  wl_error ignored;
  if (!now.priced && c->set.route == WL_ROUTE_ALWAYS) {
    wl_query_size size = wl_query_size_of(c->store, t->query);
    if (price(c, t, params, &size, &sqlite, &ignored)) return;
    wl_place_sqlite(&sqlite, &now);
  }
  wl_place_warn(&now, t->query, reason);
}

enum { MAX_FACTOR = 32 };

void wl_place_measured(wl_conn *c, wl_statement_text *t, const wl_placement *where, double ns) {
  bool on_gpu = where->engine == WL_ENGINE_GPU || where->left_device;
  int machine = on_gpu ? WL_ON_GPU_MACHINE : WL_ON_CPU_MACHINE;
  if (where->by_price && !where->left_device)
    wl_choose_note(measure_for(c, t), machine, ns, where->run_ns);
  if (!where->priced || where->copies) return; /* with copies, it was longer than others will be */
  double *factor = &t->price.native_factor[machine], before = *factor > 0 ? *factor : 1;
  double estimated = where->warm_ns / before, now = estimated > 0 ? ns / estimated : 1;
  now = now < 1 ? 1 : now > MAX_FACTOR ? MAX_FACTOR : now;
  /* One slow run may be chance, one fast run is not. */
  *factor = now < before ? now : (before * 2 + now) / 3;
}

bool wl_place_sqlite_took(wl_conn *c, const char *sql, size_t n_sql, int n_steps) {
  const double step = 10; /* ns of a step, at least */
  enum { FAR = 2, MAX_SLOWER = 10000 };
  wl_statement_text *t = wl_statement_text_peek(c, sql, n_sql);
  if (!t || t->price.left_ns <= 0) return false;
  wl_text_price *p = &t->price;
  double now = n_steps * step / p->left_ns, before = p->last_factor;
  p->last_factor = now = now < FAR ? 1 : now > MAX_SLOWER ? MAX_SLOWER : now;
  p->sqlite_factor = t->n_args && before < now ? before : now;
  p->left_ns = 0;
  if (now > 1) t->decided.n_runs = 0;
  return now > 1;
}

/* The same rows would be given up again, so the next try comes after some hundred runs. */
void wl_place_gave_up(wl_statement_text *t) {
  enum { GAVE_UP_FACTOR = 1 << 20 };
  for (int k = 0; k < WL_N_MACHINES; k++) t->price.native_factor[k] = GAVE_UP_FACTOR;
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
