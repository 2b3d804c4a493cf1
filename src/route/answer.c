/*
** Running a statement: freshness, columns, program, engine; or SQLite itself, with the
** reason, whenever one of these says no.
*/
#include "route/conn.h"
#include "base/clock.h"
#include "base/mem.h"
#include "program/compile.h"
#include "exec/lookup_cache.h"
#include "value/exchange.h"
#include "exec/gpu/device.h"
#include "exec/gpu/limits.h"
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static struct wl_device *device_of(wl_conn *c, wl_error *err) {
  return wl_device_get(c->set.device == WL_DEVICE_SIM ? "sim" : "cuda", err);
}

/* The device was asked for and cannot: the CPU, with the reason. */
static void leave_device(wl_placement *where, const wl_error *why) {
  where->engine = WL_ENGINE_CPU;
  sqlite3_snprintf((int)sizeof where->reason, where->reason, "not on the gpu: %s", why->text);
}

static const wl_column *column_of(const wl_table *t, const wl_bcol *c) {
  return wl_table_data(t, c->column);
}

/* Calls of SQLite that rows will need: none where a column, most likely the calls' argument, has a
** dictionary, or all are of small ranges. */
static int slow_calls(const wl_query *q, const wl_table *t) {
  bool wide = false;
  for (int i = 0; i < q->n_cols && q->n_call_cost; i++) {
    const wl_column *c = column_of(t, &q->cols[i]);
    if (c && c->dict) return 0;
    wide |= c && c->phys > WL_P_I16;
  }
  return wide ? q->n_call_cost : 0;
}

/* The machines for a statement over n_rows. A device is only opened where it could be chosen. */
static wl_machines machines_for(wl_conn *c, wl_i64 n_rows) {
  wl_error ignored = {0};
  bool may = c->set.engine == WL_ENGINE_AUTO && c->set.device == WL_DEVICE_CUDA && n_rows > 100000;
  return (wl_machines){.n_threads = c->set.threads,
                       .has_device = may && device_of(c, &ignored) != NULL};
}

/* A query over one table. */
static wl_status place_table(wl_conn *c, wl_sqltext *t, wl_placement *out, wl_error *err) {
  wl_query *q = t->query;
  wl_table *table;
  bool exact;
  wl_status rc = wl_store_table(c->store, q->schema, q->table, &table, err);
  if (rc) return rc;
  wl_i64 n = wl_store_estimate(c->store, table, &exact);
  int missing = q->n_cols;
  for (int i = 0; i < q->n_cols && exact; i++) missing -= column_of(table, &q->cols[i]) != NULL;
  wl_place_table in = {.n_rows = n,
                       .exact = exact,
                       .tablets = table->tablets,
                       .share = wl_place_share(q, &t->facts, table),
                       .n_missing = missing,
                       .slow_calls = missing ? 0 : slow_calls(q, table),
                       .n_uses = table->n_uses,
                       .n_loads = table->n_loads};
  wl_machines machines = machines_for(c, n);
  wl_place(&c->set, q, &t->facts, &in, &machines, out);
  return WL_OK;
}

wl_status wl_answer_place(wl_conn *c, wl_sqltext *t, wl_placement *out, wl_error *err) {
  wl_error why = {0};
  wl_status rc = WL_OK;
  if (t->query->simple) {
    rc = place_table(c, t, out, err);
  } else {
    wl_place_table in = {.exact = true};
    in.n_rows = wl_query_rows(c->store, t->query, &in.exact, &in.n_missing);
    in.n_pairs = wl_query_pairs(c->store, t->query);
    wl_machines machines = machines_for(c, in.n_rows);
    wl_place_join(&c->set, t->query, &t->facts, &in, &machines, out);
  }
  if (!rc && out->engine == WL_ENGINE_GPU && !device_of(c, &why)) leave_device(out, &why);
  return rc;
}

/* What the columns leave of host_budget to groups and sorts. */
static wl_i64 host_left(wl_conn *c) {
  enum { LEAST = 1 << 20 };
  wl_i64 budget = wl_store_budget(c->store);
  if (budget <= 0) return 0;
  wl_i64 left = budget - (wl_i64)(wl_store_bytes(c->store) + wl_kept_bytes(c->lookups));
  return left > LEAST ? left : LEAST;
}

wl_status wl_answer_ready(wl_conn *c, wl_sqltext *t, const wl_val *params, wl_query_env *env,
                          wl_ready *out, wl_placement *where, wl_error *err) {
  wl_error why = {0};
  memset(out, 0, sizeof *out);
  wl_status rc = wl_answer_place(c, t, where, err);
  if (!rc) rc = wl_sqltext_settle(c, t, err);
  if (rc) return rc;
  /* asked for by the settings, and left by wl_answer_place only when there is none */
  bool asked = c->set.engine == WL_ENGINE_GPU && where->engine == WL_ENGINE_CPU;
  bool wanted = where->engine == WL_ENGINE_GPU || asked;
  *env =
      (wl_query_env){.store = c->store,
                     .set = &c->set,
                     .params = params,
                     .n_params = t->stmt->n_params,
                     .max_text = (wl_u64)sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1),
                     .max_pattern = sqlite3_limit(c->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1),
                     .host_left = host_left(c),
                     .mapped_budget = wl_store_budget(c->store) - (wl_i64)wl_store_bytes(c->store),
                     .device = wanted ? device_of(c, &why) : NULL,
                     .kept = &c->lookups,
                     .check = wl_conn_check,
                     .check_arg = c,
                     .notes = c->notes};
  rc = wl_query_ready(env, t->query, t->facts.rowid_order, out, err);
  if (rc || !wanted || out->device) return rc;
  if (env->device) sqlite3_snprintf((int)sizeof why.text, why.text, "%s", out->why_cpu);
  if (c->set.strict && c->set.engine == WL_ENGINE_GPU && !out->n_on_device) {
    wl_ready_close(out);
    return wl_not_taken(err, "not on the gpu: %.400s", why.text);
  }
  leave_device(where, &why);
  return WL_OK;
}

/* Parameters as values; text is borrowed from SQLite for the time of the call. */
static wl_status read_params(const wl_sqltext *t, sqlite3_value **args, int n_args, wl_val **out,
                             wl_error *err) {
  wl_val *p = *out = wl_mem_zalloc(((size_t)t->stmt->n_params + 1) * sizeof *p);
  if (!p) return wl_nomem(err);
  for (int k = 0; k < n_args && k < t->n_args; k++)
    p[t->arg_params[k] - 1] = wl_sqlite_val(args[k]);
  return WL_OK;
}

static wl_status native(wl_answer *a, sqlite3_value **args, int n_args, wl_error *err) {
  wl_conn *c = a->conn;
  wl_sqltext *t = NULL;
  wl_val *params = NULL;
  wl_ready ready = {0};
  wl_query_env env;
  wl_placement where;
  struct wl_device *device = NULL;
  int n_before = 0;
  where.sqlite_ns = 0;
  wl_status rc = wl_sqltext_get(c, a->sql, strlen(a->sql), &t, err);
  if (!rc) rc = read_params(t, args, n_args, &params, err);
  if (!rc && c->set.engine == WL_ENGINE_SQLITE) rc = wl_not_taken(err, "the setting engine=sqlite");
  if (!rc) rc = wl_answer_ready(c, t, params, &env, &ready, &where, err);
  if (!rc && where.engine == WL_ENGINE_SQLITE) {
    /* Prepared when it paid to take it; it has been loaded, so the CPU it is. */
    where.engine = WL_ENGINE_CPU;
  }
  if (!rc) {
    a->n_cols = t->query->n_results;
    device = ready.device;
    n_before = ready.n_on_device;
    a->simple = t->query->simple;
    a->seen = ready.seen;
    a->n_seen = ready.n_seen;
    ready.seen = NULL;
    rc = wl_ready_run(&env, &ready, &a->run, err);
  }
  if (!rc && device)
    wl_conn_reason(c, "gpu", "%s (%s), %s", device->name, device->kind, where.reason);
  else if (!rc && n_before)
    wl_conn_reason(c, "gpu", "%s (%s) for %d step%s, the cpu for the last: %s", env.device->name,
                   env.device->kind, n_before, n_before == 1 ? "" : "s", where.reason);
  else if (!rc)
    wl_conn_reason(c, "cpu", "%d thread%s, %s", c->set.threads, c->set.threads == 1 ? "" : "s",
                   where.reason);
  /* The first batch now: while nothing has been given, SQLite can still take over. It does
  ** so too where a string is too big: it may never compute that one, or holds larger batches. */
  bool running = !rc;
  if (!rc) rc = wl_run_next(a->run, &a->first, err);
  if (a->run && wl_run_detour(a->run))
    wl_conn_reason(c, "cpu", "not on the gpu: %s", wl_run_detour(a->run));
  else if (!rc && device && wl_run_note(a->run))
    wl_conn_reason(c, "gpu", "%s (%s), %s; %s", device->name, device->kind, where.reason,
                   wl_run_note(a->run));
  if (rc == WL_NOMEM && wl_mem_heap_limit())
    rc = wl_not_taken(err, "it needs more memory than SQLite's hard heap limit leaves");
  if (rc == WL_TOOBIG) rc = wl_not_taken(err, "a string is too big, or too many are for one batch");
  /* SQLite gives the groups before the one that fails; strict: the error at once */
  if (rc == WL_ERROR && running && t->query->grouped && !c->set.strict)
    rc = wl_not_taken(err, "a group fails: %.300s", err->text);
  if (!rc && wl_run_more(a->run)) rc = wl_handover_keep(a, args, n_args, err);
  if (rc == WL_NOT_TAKEN && t) wl_place_warn(&where, t->query, err);
  a->primed = !rc;
  a->failed = running && rc && rc != WL_NOT_TAKEN; /* the query's own error, as SQLite's would be */
  if (rc) {
    wl_batch_give(a->first);
    a->first = NULL;
    wl_run_close(a->run);
    a->run = NULL;
    wl_handover_close(a);
  }
  wl_mem_free(params);
  wl_sqltext_drop(c, t);
  return rc;
}

wl_status wl_answer_next(wl_answer *a, wl_batch **out, wl_error *err) {
  wl_status rc = WL_OK;
  if (a->handed) return wl_handover_next(a, out, err);
  if (!a->primed) rc = wl_run_next(a->run, out, err);
  if (rc == WL_NOT_TAKEN || rc == WL_TOOBIG) {
    rc = wl_handover(a, err);
    return rc ? rc : wl_handover_next(a, out, err);
  }
  if (a->primed) *out = a->first;
  a->first = NULL;
  a->primed = false;
  if (!rc && *out) a->n_given += (*out)->n_rows - (*out)->skip;
  if (!rc && !*out && a->late.code) {
    *err = a->late;
    rc = err->code;
  }
  return rc;
}

wl_status wl_answer_sqlite(wl_answer *a, sqlite3_value **args, int n_args, const wl_mask *mask,
                           wl_error *err) {
  wl_conn *c = a->conn;
  int rc = wl_masked_prepare(c->db, a->sql, -1, mask, &a->stmt, NULL);
  if (rc) return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
  a->n_cols = sqlite3_column_count(a->stmt);
  /* Arguments stand for the parameters that occur, in order of index. */
  wl_arena arena;
  wl_stmt *s;
  wl_arena_init(&arena);
  wl_status st = n_args ? wl_parse(&arena, a->sql, strlen(a->sql), &s, err) : WL_OK;
  for (int i = 0, k = 0; !st && n_args && i < s->n_params && k < n_args; i++)
    if (s->params[i]) sqlite3_bind_value(a->stmt, i + 1, args[k++]);
  wl_arena_close(&arena);
  return st;
}

wl_u64 wl_stmt_labels(sqlite3_stmt *s) {
  wl_u64 h = 1;
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    const char *name = sqlite3_column_name(s, i);
    h = XXH3_64bits_withSeed(name ? name : "", name ? strlen(name) : 0, h);
  }
  return h ? h : 1;
}

wl_status wl_answer_labels(wl_answer *a, wl_u64 *out, wl_error *err) {
  wl_sqltext *t = a->conn->texts; /* if it runs natively, its text is the latest */
  sqlite3_stmt *s = NULL;
  bool known = a->run && t && strcmp(t->sql, a->sql) == 0;
  *out = a->stmt ? wl_stmt_labels(a->stmt) : known ? t->labels : 0;
  if (*out) return WL_OK;
  if (sqlite3_prepare_v2(a->conn->db, a->sql, -1, &s, NULL))
    return wl_fail(err, WL_ERROR, "%s", sqlite3_errmsg(a->conn->db));
  *out = wl_stmt_labels(s);
  if (known) t->labels = *out;
  sqlite3_finalize(s);
  return WL_OK;
}

wl_status wl_answer_functions(wl_conn *c, const wl_query *q, wl_error *err) {
  static const char *const own = "SELECT name FROM pragma_function_list AS f WHERE NOT builtin";
  static const char *const same =
      "SELECT name FROM pragma_function_list AS f WHERE NOT builtin AND EXISTS "
      "(SELECT 1 FROM pragma_function_list AS g WHERE g.builtin AND g.name = f.name)";
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(c->db, q ? own : same, -1, &s, NULL);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  if (rc)
    return wl_not_taken(err, "SQLite does not list its functions: %.300s", sqlite3_errmsg(c->db));
  wl_status st = WL_OK;
  while (!st && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(s, 0);
    bool used = !q;
    for (int k = 0; name && q && k < q->n_calls; k++)
      used |= sqlite3_stricmp(name, q->calls[k]) == 0;
    if (name && used)
      st = wl_not_taken(err, "%.200s() is a function of the application's own", name);
  }
  sqlite3_finalize(s);
  if (!st && rc != SQLITE_DONE) st = wl_not_taken(err, "SQLite does not list its functions");
  return st;
}

wl_status wl_answer_open(wl_conn *c, const char *sql, sqlite3_value **args, int n_args,
                         const char *refused, const wl_mask *mask, wl_answer *a, wl_error *err) {
  memset(a, 0, sizeof *a);
  a->conn = c;
  a->started = wl_clock_ns();
  a->sql = wl_mem_strdup(sql);
  if (!a->sql) return wl_nomem(err);
  wl_status rc = refused ? wl_not_taken(err, "%s", refused) : native(a, args, n_args, err);
  if (rc == (wl_status)SQLITE_SCHEMA) rc = native(a, args, n_args, err);
  if (rc && rc != WL_NOMEM && rc != WL_INTERRUPT && !a->failed) {
    /* What is locked or corrupt for us may not be for SQLite; if it is, the error is its own. */
    wl_conn_reason(c, "sqlite", "%s", err->text);
    if (rc == WL_NOT_TAKEN && c->set.strict && c->set.engine != WL_ENGINE_SQLITE)
      rc = wl_fail(err, WL_ERROR, "warplite: strict, and this statement is not taken: %.400s",
                   c->reason + 8);
    else
      rc = wl_answer_sqlite(a, args, n_args, mask, err);
  }
  memcpy(a->reason, c->reason, sizeof a->reason);
  if (rc) wl_answer_close(a);
  return rc;
}

void wl_answer_close(wl_answer *a) {
  if (!a->conn) return;
  const char *detour = a->run ? wl_run_detour(a->run) : NULL;
  if (detour) {
    wl_conn_reason(a->conn, "cpu", "not on the gpu: %s", detour);
    memcpy(a->reason, a->conn->reason, sizeof a->reason);
  }
  const char *transfer = a->run && !detour ? wl_run_transfer(a->run) : NULL;
  if (transfer) {
    bool latest = strcmp(a->reason, a->conn->reason) == 0; /* or the reason is another's now */
    size_t n = strlen(a->reason);
    sqlite3_snprintf((int)(sizeof a->reason - n), a->reason + n, ", %s", transfer);
    if (latest) memcpy(a->conn->reason, a->reason, sizeof a->reason);
  }
  if ((a->run || a->stmt) && !a->quiet)
    wl_conn_log(a->conn, a->reason, a->sql, strlen(a->sql), a->n_rows,
                (wl_clock_ns() - a->started) / 1e6);
  wl_batch_give(a->first);
  wl_run_close(a->run);
  sqlite3_finalize(a->stmt);
  wl_handover_close(a);
  wl_mem_free(a->sql);
  memset(a, 0, sizeof *a);
}
