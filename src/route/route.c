/*
** See route.h.
*/
#include "route/route.h"
#include "base/mem.h"
#include "exec/gpu/device.h"
#include "column/cache.h"
#include "route/overrides.h"
#include "route/place_query.h"
#include "sql/lex.h"
#include "value/exchange.h"
#include <stdio.h>
#include <string.h>

/* Whether a statement names one of warplite's functions or tables. Strings do not count. */
static bool speaks_of_warplite(const char *sql, size_t n) {
  static const char prefix[] = "warplite_";
  wl_lexer lex;
  wl_token t;
  wl_lex_init(&lex, sql, n);
  for (int kind; (kind = wl_lex_next(&lex, &t)) != WL_LEX_END && kind != WL_LEX_ILLEGAL;) {
    const char *word = sql + t.pos;
    bool quoted = strchr("\"[`", *word) != NULL;
    if (t.n >= sizeof prefix - 1 + quoted &&
        sqlite3_strnicmp(word + quoted, prefix, sizeof prefix - 1) == 0)
      return true;
  }
  return false;
}

/* Whether it is a SELECT that reads a table. strict applies only to these. */
static bool reads_table(const char *sql, size_t n) {
  wl_arena arena;
  wl_stmt *s = NULL;
  wl_error ignored;
  wl_arena_init(&arena);
  bool does = wl_parse(&arena, sql, n, &s, &ignored) == WL_OK && s->kind == WL_STMT_SELECT &&
              wl_select_reads_table(s->select);
  wl_arena_close(&arena);
  return does;
}

/* ---- decisions */

static const char *engine_name(wl_engine e) {
  return e == WL_ENGINE_GPU ? "gpu" : e == WL_ENGINE_CPU ? "cpu" : "sqlite";
}

static void drop_ready(wl_decision *d) {
  wl_ready_close(&d->ready);
  wl_mem_free(d->params);
  d->params = NULL;
}

void wl_decision_close(wl_decision *d) {
  drop_ready(d);
  wl_statement_text_drop(d->text);
  d->text = NULL;
}

/* Chooses SQLite, although the native engine may be able to run the statement. */
static void prefer_sqlite(wl_decision *d, const char *why) {
  d->engine = WL_ENGINE_SQLITE;
  snprintf(d->reason, sizeof d->reason, "sqlite: %s", why);
}

wl_status wl_route_judge(wl_status rc, wl_error *err) {
  if (rc == WL_NOMEM && wl_mem_heap_limit())
    return wl_not_taken(err, "it needs more memory than SQLite's hard heap limit leaves");
  if (rc == WL_TOOBIG)
    return wl_not_taken(err, "a string is too big, or a batch has too much text");
  return rc;
}

wl_status wl_route_leave(wl_conn *c, const wl_request *q, wl_status rc, wl_decision *d,
                         wl_error *err) {
  bool prepares = q->stage == WL_AT_PREPARE;
  if (rc == WL_NOMEM || (rc == WL_INTERRUPT && !prepares)) return rc;
  if (rc == WL_NOT_TAKEN && d->text) wl_place_query_warn(c, d->text, d->params, &d->place, err);
  prefer_sqlite(d, err->text);
  d->unable = true;
  drop_ready(d);
  if (!c->set.strict || q->is_part || q->stage == WL_AT_EXPLAIN ||
      c->set.engine == WL_ENGINE_SQLITE)
    return WL_OK;
  /* SQLite may be able to read what is locked or corrupt for us. If not, it raises its own
  ** error. */
  if (prepares ? !reads_table(q->sql, q->n_sql) : rc != WL_NOT_TAKEN) return WL_OK;
  return wl_fail(err, WL_ERROR,
                 "warplite: strict=1, and warplite cannot run this statement: %.400s",
                 d->reason + strlen("sqlite: "));
}

/* ---- at prepare */

/* Whether the virtual table that represents a statement can have its columns. */
static wl_status fits_table(wl_conn *c, const wl_statement_text *t, wl_error *err) {
  enum { MOST_COLUMNS = 1900 }; /* SQLite allows 2,000 for a table; arguments need some */
  if (t->query->n_results > MOST_COLUMNS)
    return wl_not_taken(err, "it has %d columns", t->query->n_results);
  /* Our virtual tables belong to main, so SQLite will lock main too. */
  return wl_store_readable(c->store, "main", err);
}

static wl_status at_prepare(wl_conn *c, const wl_request *q, wl_decision *d, wl_error *err) {
  wl_status rc = WL_OK;
  const char *known = NULL;
  if (q->stage == WL_AT_PREPARE && !q->copies)
    known = wl_statement_text_decided(c, q->sql, q->n_sql);
  if (known) {
    prefer_sqlite(d, known);
    return WL_OK;
  }
  if (!d->text) rc = wl_statement_text_get(c, q->sql, q->n_sql, &d->text, err);
  if (!rc && q->copies) {
    if (!wl_query_reads_any(d->text->query)) return wl_not_taken(err, "it reads no table");
    rc =
        wl_query_is_columns(c, d->text->query, &d->whole_columns, d->reason, sizeof d->reason, err);
    if (!rc && d->whole_columns) d->engine = WL_ENGINE_CPU;
    if (!rc && d->whole_columns) return WL_OK;
  }
  /* Rows of Arrow streams count like those of a virtual table, so that EXPLAIN QUERY PLAN is right
  ** for both. */
  bool by_batch = q->stage == WL_AT_EXECUTE || q->copies;
  if (!rc) rc = wl_place_query(c, d->text, d->params, by_batch, &d->place, err);
  if (rc) return rc;
  d->text->is_native = false;
  if (d->place.engine == WL_ENGINE_SQLITE) {
    /* After the decision for a seen text, SQLite prepares it, and it is decided again. */
    if (q->stage != WL_AT_EXPLAIN && !q->seen && d->place.lost_ns > 0)
      wl_query_lose(c->store, d->text->query, d->place.lost_ns);
    if (!d->params) wl_statement_text_decide(c, d->text, &d->place);
    prefer_sqlite(d, d->place.reason);
    return WL_OK;
  }
  if (q->as_table) rc = fits_table(c, d->text, err);
  if (!rc) rc = wl_statement_text_settle(c, d->text, err);
  if (!rc) rc = wl_overrides_check(c, d->text->query, err);
  if (rc) return rc;
  d->engine = d->place.engine;
  d->text->is_native = true;
  snprintf(d->reason, sizeof d->reason, "%s: %s", engine_name(d->engine), d->place.reason);
  return WL_OK;
}

/* ---- at start */

/* The part of host_budget that the columns leave for groups and sorts. */
static wl_i64 host_left(wl_conn *c) {
  enum { LEAST = 1 << 20 };
  wl_i64 budget = wl_store_budget(c->store);
  if (budget <= 0) return 0;
  wl_i64 lookups = (wl_i64)wl_cache_lookup_bytes();
  if (lookups > budget / 4) lookups = budget / 4; /* lookups of other connections count too */
  wl_i64 left = budget - (wl_i64)wl_store_bytes(c->store) - lookups;
  return left > LEAST ? left : LEAST;
}

/* Converts the parameters to values. Their text is borrowed from SQLite for the time of the
** call. */
static wl_status read_params(const wl_request *q, wl_decision *d, wl_error *err) {
  const wl_statement_text *t = d->text;
  wl_val *p = d->params = wl_mem_zalloc(((size_t)t->stmt->n_params + 1) * sizeof *p);
  if (!p) return wl_nomem(err);
  for (int k = 0; k < q->n_args && k < t->n_args; k++)
    p[t->arg_params[k] - 1] = wl_sqlite_val(q->args[k]);
  return WL_OK;
}

/* Sets engine and reason of a decision whose program is ready. d->place has the reason. */
static void say_ready(wl_conn *c, wl_decision *d) {
  const struct wl_device *on = d->ready.device ? d->ready.device : d->env.device;
  int n = d->ready.n_on_device;
  d->engine = d->ready.device || n ? WL_ENGINE_GPU : WL_ENGINE_CPU;
  if (d->ready.device)
    snprintf(d->reason, sizeof d->reason, "gpu: %s (%s), %s", on->name, on->kind, d->place.reason);
  else if (n)
    snprintf(d->reason, sizeof d->reason, "gpu: %s (%s) for %d step%s, the cpu for the last: %s",
             on->name, on->kind, n, n == 1 ? "" : "s", d->place.reason);
  else
    snprintf(d->reason, sizeof d->reason, "cpu: %d thread%s, %s", c->set.threads,
             c->set.threads == 1 ? "" : "s", d->place.reason);
}

/* Loads the columns and compiles the statement. If SQLite is cheaper by now, it was not when the
** statement was prepared, and the columns are most likely loaded: the CPU runs it. */
static wl_status at_start(wl_conn *c, const wl_request *q, wl_decision *d, wl_error *err) {
  wl_error why = {0};
  wl_status rc = WL_OK;
  if (!d->text) rc = wl_statement_text_get(c, q->sql, q->n_sql, &d->text, err);
  bool placed = q->stage == WL_AT_EXECUTE; /* with the same values, a moment ago */
  if (!rc && !placed) rc = read_params(q, d, err);
  if (!rc && !placed) rc = wl_place_query(c, d->text, d->params, false, &d->place, err);
  if (!rc) rc = wl_statement_text_settle(c, d->text, err);
  if (rc) return rc;
  /* The settings ask for the device. wl_place_query() then chooses the CPU only if there is
  ** none. */
  bool asked = c->set.engine == WL_ENGINE_GPU && d->place.engine == WL_ENGINE_CPU;
  bool wanted = d->place.engine == WL_ENGINE_GPU || asked;
  d->env =
      (wl_query_env){.store = c->store,
                     .set = &c->set,
                     .params = d->params,
                     .n_params = d->text->stmt->n_params,
                     .max_text = (wl_u64)sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1),
                     .max_pattern = sqlite3_limit(c->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1),
                     .host_left = host_left(c),
                     .mapped_budget = wl_store_budget(c->store) - (wl_i64)wl_store_bytes(c->store),
                     .device = wanted ? wl_place_device(c, &why) : NULL,
                     .check = wl_conn_check,
                     .check_arg = c,
                     .pipelines = q->pipelines,
                     .code = d->text->asks_time ? NULL : &d->text->code};
  rc = wl_query_ready(&d->env, d->text->query, d->text->facts.rowid_order, &d->ready, err);
  /* The columns are loaded, and the next run would most likely find the same. */
  if (rc && d->ready.refused && q->stage != WL_AT_EXPLAIN) wl_place_gave_up(d->text);
  if (rc) return wl_route_judge(rc, err);
  if (wanted && !d->ready.device) {
    if (d->env.device) snprintf(why.text, sizeof why.text, "%s", d->ready.why_cpu);
    if (c->set.strict && !q->is_part && c->set.engine == WL_ENGINE_GPU && !d->ready.n_on_device)
      return wl_not_taken(err, "not on the gpu: %.400s", why.text);
    wl_place_leave_device(&d->place, &why);
  }
  bool runs = q->stage != WL_AT_EXPLAIN;
  if (runs) wl_place_starts(c, d->text, &d->place, d->env.device && !d->ready.n_on_device);
  say_ready(c, d);
  return WL_OK;
}

/* Makes the whole decision when a statement is executed. */
static wl_status at_execute(wl_conn *c, const wl_request *q, wl_decision *d, wl_error *err) {
  wl_status rc = wl_statement_text_get(c, q->sql, q->n_sql, &d->text, err);
  if (!rc) rc = read_params(q, d, err);
  if (!rc) rc = at_prepare(c, q, d, err);
  if (rc || d->engine == WL_ENGINE_SQLITE) return rc;
  return at_start(c, q, d, err);
}

/*
** Decides what prepare and then a run would. Getting ready may load columns, so the costs are
** estimated once more, as the run will see them. If another engine is chosen now, both questions
** are asked again. By then nothing is left to load.
*/
static wl_status at_explain(wl_conn *c, const wl_request *q, wl_decision *d, wl_error *err) {
  wl_status rc = WL_OK;
  for (int tries = 0; tries < 2; tries++) {
    wl_placement now;
    wl_error ignored;
    drop_ready(d);
    rc = at_prepare(c, q, d, err);
    if (rc || d->engine == WL_ENGINE_SQLITE) return rc;
    wl_engine chosen = d->place.engine;
    rc = at_start(c, q, d, err);
    if (rc && rc != WL_NOT_TAKEN) return rc;
    if (wl_place_query(c, d->text, NULL, false, &now, &ignored)) return rc;
    if (rc) d->place = now; /* a warning about SQLite's time is the one of the run */
    if (rc && now.engine != WL_ENGINE_SQLITE) return rc;
    if (rc || now.engine != chosen) continue;
    /* Otherwise the reason is why the device cannot run it, which costs do not change. */
    if (d->place.engine == chosen) d->place = now;
    say_ready(c, d);
    return WL_OK;
  }
  return rc;
}

/* ---- */

static wl_status decide(wl_conn *c, const wl_request *q, wl_decision *d, wl_error *err) {
  if (q->cheap && c->set.route != WL_ROUTE_ALWAYS) {
    prefer_sqlite(d, q->cheap);
    d->is_cheap = true;
    return WL_OK;
  }
  if (q->refused) return wl_not_taken(err, "%s", q->refused);
  if (c->set.engine == WL_ENGINE_SQLITE) {
    prefer_sqlite(d, "the setting engine=sqlite");
    return WL_OK;
  }
  if (q->stage == WL_AT_PREPARE) return at_prepare(c, q, d, err);
  if (q->stage == WL_AT_EXECUTE) return at_execute(c, q, d, err);
  return q->stage == WL_AT_START ? at_start(c, q, d, err) : at_explain(c, q, d, err);
}

wl_status wl_route(wl_conn *c, const wl_request *q, wl_decision *d, wl_error *err) {
  memset(d, 0, sizeof *d);
  d->engine = WL_ENGINE_SQLITE;
  /* The rows of a change are not checked here: the change as a whole has been. */
  bool first = q->stage == WL_AT_PREPARE || q->stage == WL_AT_EXECUTE;
  if (first && !q->copies && !q->seen && speaks_of_warplite(q->sql, q->n_sql)) {
    prefer_sqlite(d, "it uses functions or tables of warplite");
    d->about_warplite = true;
    return WL_OK;
  }
  wl_store_enter(c->store);
  wl_status rc = decide(c, q, d, err);
  if (rc == (wl_status)SQLITE_SCHEMA) { /* the schema has changed meanwhile: try again */
    wl_decision_close(d);
    rc = decide(c, q, d, err);
  }
  wl_store_leave(c->store);
  return rc ? wl_route_leave(c, q, rc, d, err) : WL_OK;
}
