/*
** EXPLAIN: the program of a native statement. EXPLAIN QUERY PLAN: the engine, the reason and
** the plan as a tree; for a statement that stays with SQLite, the reason over SQLite's plan.
** EXPLAIN ANALYZE: the statement is run, its rows are thrown away, and the tree says what each step
** took.
*/
#include "explain/plantree.h"
#include "base/authorizer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "exec/gpu/devcol.h"
#include "exec/gpu/order_device.h"
#include <string.h>

/* The statement without its EXPLAIN, compiled for the data as it is; loads what is missing. */
static wl_status compiled(wl_conn *c, const char *sql, wl_sqltext **t, wl_ready *ready,
                          wl_placement *where, wl_error *err) {
  wl_val *params = NULL;
  wl_query_env env;
  wl_status rc = wl_sqltext_get(c, sql, strlen(sql), t, err);
  if (rc) return rc;
  params = wl_mem_zalloc(((size_t)(*t)->stmt->n_params + 1) * sizeof *params);
  if (!params) return wl_nomem(err);
  rc = wl_answer_ready(c, *t, params, &env, ready, where, err);
  wl_mem_free(params);
  return rc;
}

static wl_status fill_program(wl_conn *c, const char *sql, wl_rowset *r, wl_error *err) {
  wl_sqltext *t = NULL;
  wl_ready ready = {0};
  wl_placement where;
  wl_status rc = compiled(c, sql, &t, &ready, &where, err);
  const wl_program *p = ready.program;
  for (int pc = 0; !rc && pc < p->n_code; pc++) {
    wl_listing l;
    wl_cell *row = wl_rowset_row(r);
    rc = row ? wl_program_print(p, pc, &r->arena, &l) : WL_NOMEM;
    if (rc) {
      rc = wl_nomem(err);
      break;
    }
    wl_cell_int(&row[0], pc);
    wl_cell_text(r, &row[1], l.opcode);
    wl_cell_text(r, &row[2], l.p1);
    wl_cell_text(r, &row[3], l.p2);
    wl_cell_text(r, &row[4], l.p3);
    wl_cell_text(r, &row[5], l.p4);
    wl_cell_int(&row[6], 0);
    wl_cell_text(r, &row[7], l.comment);
  }
  wl_ready_close(&ready);
  wl_sqltext_drop(c, t);
  return rc;
}

static const char *excerpt(wl_arena *a, const char *sql, const wl_expr *e) {
  size_t n = e->end - e->pos;
  return wl_arena_printf(a, "%.*s%s", n > 120 ? 120 : (int)n, sql + e->pos, n > 120 ? "…" : "");
}

/* How many of the query's columns are in memory. */
static int in_memory(const wl_query *q, const wl_table *table, bool exact) {
  int n = 0;
  for (int i = 0; i < q->n_cols && exact; i++) {
    int k = q->cols[i].column;
    n += table->loaded && wl_table_data(table, k) != NULL;
  }
  return n;
}

/*
** With all columns in memory the program can be had for nothing, and with it whether the device
** takes it: *p then, and *where says so. Else what the estimate says stands.
*/
static void look_closer(wl_conn *c, const char *sql, const wl_sqltext *t, wl_table *table,
                        wl_ready *ready, wl_placement *where) {
  wl_sqltext *again = NULL;
  wl_placement closer;
  wl_error why = {0};
  bool exact;
  wl_store_estimate(c->store, table, &exact);
  if (where->engine != WL_ENGINE_GPU || !exact ||
      in_memory(t->query, table, exact) < t->query->n_cols)
    return;
  if (!compiled(c, sql, &again, ready, &closer, &why)) *where = closer;
  wl_sqltext_drop(c, again);
}

/* Where groups are found and rows put in order, as far as that is known. */
static const char *machine(const wl_program *p, const wl_placement *where, bool sorts) {
  if (where->engine != WL_ENGINE_GPU) return " on the cpu";
  if (!p) return "";
  wl_dorder o = wl_dorder_plan(p);
  return sorts && (p->grouped || p->n_aggs || o.why) ? " on the cpu" : " on the gpu";
}

/* The transfer mode, and where the columns are in memory what they take on the device. */
static const char *transfer_words(wl_conn *c, const wl_query *q, wl_table *table, wl_arena *a) {
  const char *mode = wl_transfer_name(c->set.transfer.mode);
  size_t n_bytes = 0;
  for (int i = 0; i < q->n_cols; i++) {
    const wl_column *col = wl_table_data(table, q->cols[i].column);
    if (!col) return mode;
    n_bytes += wl_devcol_bytes(col, 0, col->n_tablets);
  }
  return wl_arena_printf(a, "%s, columns of %.1f MB", mode, (double)n_bytes / 1e6);
}

static void native_plan(wl_conn *c, wl_sqltext *t, wl_table *table, const wl_program *p,
                        const wl_placement *where, wl_rowset *r) {
  const wl_query *q = t->query;
  const wl_select *s = t->stmt->select;
  wl_arena *a = &r->arena;
  int id = wl_plantree_line(
      r, 1, 0,
      wl_arena_printf(a, "%s: %s", where->engine == WL_ENGINE_GPU ? "gpu" : "cpu", where->reason));
  if (where->engine == WL_ENGINE_GPU)
    id = wl_plantree_line(r, id + 1, id,
                          wl_arena_printf(a, "TRANSFER %s", transfer_words(c, q, table, a)));
  if (q->limit || q->offset) {
    const char *text =
        s->limit ? wl_arena_printf(a, "LIMIT %s", excerpt(a, t->sql, s->limit)) : "LIMIT";
    if (s->offset) text = wl_arena_printf(a, "%s OFFSET %s", text, excerpt(a, t->sql, s->offset));
    id = wl_plantree_line(r, id + 1, id, text);
  }
  if (q->n_order)
    id = wl_plantree_line(r, id + 1, id,
                          wl_arena_printf(a, "ORDER BY %d term%s%s", q->n_order,
                                          q->n_order == 1 ? "" : "s", machine(p, where, true)));
  if (q->distinct)
    id = wl_plantree_line(r, id + 1, id, wl_arena_printf(a, "DISTINCT%s", machine(p, where, true)));
  if (q->grouped)
    id = wl_plantree_line(r, id + 1, id,
                          wl_arena_printf(a, "GROUP BY %d key%s%s", q->n_groups,
                                          q->n_groups == 1 ? "" : "s", machine(p, where, false)));
  if (q->aggregate)
    id = wl_plantree_line(
        r, id + 1, id,
        wl_arena_printf(a, "AGGREGATE %d function%s", q->n_aggs, q->n_aggs == 1 ? "" : "s"));
  else
    id = wl_plantree_line(
        r, id + 1, id,
        wl_arena_printf(a, "RESULT %d column%s", q->n_results, q->n_results == 1 ? "" : "s"));
  if (s->where)
    id = wl_plantree_line(r, id + 1, id,
                          wl_arena_printf(a, "FILTER %s", excerpt(a, t->sql, s->where)));
  const char *names = "";
  for (int i = 0; i < q->n_cols; i++) {
    int k = q->cols[i].column;
    if (i < 12)
      names =
          wl_arena_printf(a, "%s%s%s", names, i ? ", " : "", k < 0 ? "rowid" : table->cols[k].name);
  }
  bool exact;
  wl_i64 n = wl_store_estimate(c->store, table, &exact);
  wl_plantree_line(r, id + 1, id,
                   wl_arena_printf(a, "SCAN %s%s%s%s (%s%lld rows, %d of %d columns in memory)",
                                   q->table, q->n_cols ? " columns " : "", names,
                                   q->n_cols > 12 ? ", …" : "", exact ? "" : "about ", n,
                                   in_memory(q, table, exact), q->n_cols));
}

/* A statement of several tables, or of more than a table. */
static wl_status join_plan(wl_conn *c, wl_sqltext *t, const wl_placement *where, wl_rowset *r,
                           wl_error *err) {
  wl_plantree_line(r, 1, 0,
                   wl_arena_printf(&r->arena, "%s: %s",
                                   where->engine == WL_ENGINE_GPU ? "gpu" : "cpu", where->reason));
  wl_status rc = wl_plantree_query(c, t->query, NULL, 1, 2, r, err);
  if (rc) r->n_rows = 0;
  return rc;
}

/* SQLite's plan, its ids moved up, under the first line. */
static wl_status sqlite_plan(wl_conn *c, const char *sql, const char *first, wl_rowset *r,
                             wl_error *err) {
  wl_plantree_line(r, 1, 0, first);
  sqlite3_stmt *q = NULL;
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  int rc = text ? sqlite3_prepare_v2(c->db, text, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(text);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    wl_plantree_line(r, sqlite3_column_int(q, 0) + 1, sqlite3_column_int(q, 1) + 1,
                     (const char *)sqlite3_column_text(q, 3));
    rc = SQLITE_OK;
  }
  sqlite3_finalize(q);
  return rc == SQLITE_DONE ? WL_OK : wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
}

static wl_status fill_plan(wl_conn *c, const char *sql, wl_rowset *r, wl_error *err) {
  wl_sqltext *t = NULL;
  wl_table *table = NULL;
  wl_ready ready = {0};
  wl_placement where = {.engine = WL_ENGINE_SQLITE};
  wl_status rc = wl_sqltext_get(c, sql, strlen(sql), &t, err);
  bool simple = !rc && t->query->simple;
  if (simple) rc = wl_store_table(c->store, t->query->schema, t->query->table, &table, err);
  if (simple && !rc && sqlite3_txn_state(c->db, table->schema) == SQLITE_TXN_WRITE)
    rc = wl_not_taken(err, "inside a write transaction on %s", table->schema);
  if (!rc) rc = wl_answer_place(c, t, &where, err);
  if (!rc && where.engine != WL_ENGINE_SQLITE) rc = wl_sqltext_settle(c, t, err);
  if (!rc && where.engine != WL_ENGINE_SQLITE && t->query->n_calls)
    rc = wl_answer_functions(c, t->query, err);
  if (!rc && simple) look_closer(c, sql, t, table, &ready, &where);
  if (!rc && where.engine != WL_ENGINE_SQLITE && simple) {
    native_plan(c, t, table, ready.program, &where, r);
  } else {
    if (!rc && where.engine != WL_ENGINE_SQLITE) rc = join_plan(c, t, &where, r, err);
    if (rc == WL_NOT_TAKEN && t) wl_place_warn(&where, t->query, err);
    if (rc == WL_NOT_TAKEN || (!rc && where.engine == WL_ENGINE_SQLITE))
      rc = sqlite_plan(
          c, sql, wl_arena_printf(&r->arena, "sqlite: %s", rc ? err->text : where.reason), r, err);
  }
  wl_ready_close(&ready);
  wl_sqltext_drop(c, t);
  return rc;
}

/* ---- EXPLAIN ANALYZE */

/* Why SQLite must run it, or "". */
static wl_status analyze_place(wl_conn *c, wl_sqltext *t, wl_status got, wl_arena *a,
                               const char **why, wl_error *err) {
  wl_placement where = {.engine = WL_ENGINE_SQLITE};
  wl_status rc = got;
  *why = "";
  if (!rc && c->set.engine == WL_ENGINE_SQLITE) rc = wl_not_taken(err, "the setting engine=sqlite");
  if (!rc) rc = wl_answer_place(c, t, &where, err);
  if (!rc && where.engine == WL_ENGINE_SQLITE) rc = wl_not_taken(err, "%s", where.reason);
  if (!rc) rc = wl_sqltext_settle(c, t, err);
  if (!rc && t->query->n_calls) rc = wl_answer_functions(c, t->query, err);
  if (!rc || rc == WL_NOMEM || rc == WL_INTERRUPT) return rc;
  *why = wl_arena_printf(a, "%s", err->text);
  return *why ? WL_OK : wl_nomem(err);
}

static wl_status analyze_open(wl_conn *c, const char *sql, const char *why, wl_rowset *r,
                              wl_notes *notes, wl_answer *a, wl_error *err) {
  sqlite3_value **args;
  int n_args = wl_vtab_bundle(r->args, &args);
  memset(a, 0, sizeof *a);
  if (!*why) {
    c->notes = notes;
    wl_status rc = wl_answer_open(c, sql, args, n_args, NULL, NULL, a, err);
    c->notes = NULL;
    return rc;
  }
  wl_conn_reason(c, "sqlite", "%s", why);
  a->conn = c;
  a->started = wl_clock_ns();
  memcpy(a->reason, c->reason, sizeof a->reason);
  a->sql = wl_mem_strdup(sql);
  return a->sql ? wl_answer_sqlite(a, args, n_args, NULL, err) : wl_nomem(err);
}

/* All rows, counted and thrown away. */
static wl_status analyze_rows(wl_answer *a, wl_error *err) {
  while (a->run) {
    wl_batch *b;
    wl_status rc = wl_answer_next(a, &b, err);
    if (rc || !b) return rc;
    a->n_rows += b->n_rows - b->skip;
    wl_batch_give(b);
  }
  int rc;
  while ((rc = wl_text_step(a->stmt)) == SQLITE_ROW) a->n_rows++;
  if (rc == SQLITE_DONE) return WL_OK;
  return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(a->conn->db));
}

static wl_status fill_analysis(wl_conn *c, const char *sql, wl_rowset *r, wl_error *err) {
  wl_sqltext *before = NULL, *t = NULL;
  wl_notes notes;
  wl_answer a = {0};
  const char *why = "";
  wl_notes_open(&notes);
  double start = wl_clock_ns();
  wl_status rc = wl_sqltext_get(c, sql, strlen(sql), &before, err);
  rc = analyze_place(c, before, rc, &r->arena, &why, err);
  if (!rc) rc = analyze_open(c, sql, why, r, &notes, &a, err);
  if (!rc) rc = analyze_rows(&a, err);
  bool native = a.run != NULL, detour = native && wl_run_detour(a.run);
  wl_actual got = {a.n_rows, -1, -1, -1, wl_clock_ns() - start, NULL};
  wl_answer_close(&a); /* its counts are complete then */
  if (rc) goto done;
  const char *first =
      wl_arena_printf(&r->arena, "%s%s", c->reason, wl_plantree_actual(&r->arena, &got));
  if (!first) rc = wl_nomem(err);
  if (!rc && native) rc = wl_sqltext_get(c, sql, strlen(sql), &t, err);
  wl_query_note *top = !rc && native ? wl_notes_find(&notes, t->query) : NULL;
  if (top) {
    top->n_given = got.n_rows;
    top->ns = got.ns;
    if (detour) top->on_device = false;
    wl_plantree_line(r, 1, 0, first);
    rc = wl_plantree_query(c, t->query, &notes, 1, 2, r, err);
  } else if (!rc) {
    rc = sqlite_plan(c, sql, first, r, err);
  }
done:
  wl_sqltext_drop(c, t);
  wl_sqltext_drop(c, before);
  wl_notes_close(&notes);
  return rc;
}

char *wl_analyze_text(const char *sql, int n_bytes) {
  /* every statement of a long script comes here, with all that follows: only the beginning is
  ** looked at */
  enum { BEGINNING = 1 << 14 };
  size_t from, to, n = 0, most = n_bytes < 0 ? (size_t)-1 : (size_t)n_bytes;
  while (n < most && sql[n] && strchr(" \t\n\f\r;", sql[n])) n++;
  if (n == most || !sql[n] || !strchr("eE-/\xEF", sql[n])) return NULL;
  n = strnlen(sql, n_bytes >= 0 && n_bytes < BEGINNING ? (size_t)n_bytes : BEGINNING);
  if (!wl_explain_analyze(sql, n, &from, &to)) return NULL;
  n = n_bytes < 0 ? strlen(sql) : strnlen(sql, (size_t)n_bytes);
  if (!wl_explain_analyze(sql, n, &from, &to)) return NULL;
  char *text = sqlite3_mprintf("%.*s", (int)n, sql);
  if (text) memset(text + from, ' ', to - from);
  return text;
}

/* The parameters that occur, as arguments of the rewritten statement. */
static wl_status analyze_args(const char *text, size_t n, sqlite3_str *out, wl_error *err) {
  enum { MOST = 100 }; /* of one function */
  wl_arena arena;
  wl_stmt *s = NULL;
  wl_error ignored;
  int k = 0;
  wl_arena_init(&arena);
  wl_status rc = wl_parse(&arena, text, n, &s, &ignored);
  if (rc == WL_NOMEM) {
    wl_arena_close(&arena);
    return wl_nomem(err);
  }
  for (int i = 0; !rc && i < s->n_params; i++) {
    if (!s->params[i]) continue;
    sqlite3_str_appendf(out, k++ ? ",%s" : ",wl_args(%s", s->params[i]);
  }
  if (k) sqlite3_str_appendall(out, ")");
  wl_arena_close(&arena);
  return k > MOST ? wl_fail(err, WL_ERROR, "EXPLAIN ANALYZE takes at most %d parameters", MOST)
                  : WL_OK;
}

wl_status wl_analyze_prepare(wl_conn *c, const char *text, size_t n, sqlite3_stmt *original,
                             sqlite3_stmt **out, wl_error *err) {
  *out = NULL;
  wl_status rc = wl_conn_keep(c, err);
  if (rc) return rc;
  size_t skip = strspn(text, " ");
  sqlite3_str *s = sqlite3_str_new(c->db);
  sqlite3_str_appendf(s, "SELECT id, parent, notused, detail FROM wl_analysis(%.*Q",
                      (int)(n - skip), text + skip);
  if (sqlite3_bind_parameter_count(original)) rc = analyze_args(text, n, s, err);
  sqlite3_str_appendall(s, ")");
  char *rewritten = sqlite3_str_finish(s);
  if (!rc && !rewritten) rc = wl_nomem(err);
  int sq = rc ? SQLITE_OK : sqlite3_prepare_v2(c->db, rewritten, -1, out, NULL);
  sqlite3_free(rewritten);
  return sq ? wl_fail(err, (wl_status)sq, "%s", sqlite3_errmsg(c->db)) : rc;
}

/* ---- */

wl_status wl_explain_prepare(wl_conn *c, const char *sql, size_t n, const wl_stmt *s,
                             sqlite3_stmt **out, wl_error *err) {
  if (s->kind != WL_STMT_SELECT) return wl_not_taken(err, "EXPLAIN of %s is SQLite's", s->verb);
  if (!wl_select_reads_table(s->select)) return wl_not_taken(err, "there is no table");
  wl_status kept = wl_conn_keep(c, err);
  if (kept) return kept;
  const char *body = sql + s->body;
  int n_body = (int)(n - s->body);
  if (s->explain == WL_EXPLAIN_PROGRAM) {
    wl_sqltext *t = NULL;
    wl_placement where = {.engine = WL_ENGINE_SQLITE};
    wl_status rc = wl_sqltext_get(c, body, (size_t)n_body, &t, err);
    if (!rc) rc = wl_answer_place(c, t, &where, err);
    if (!rc && where.engine != WL_ENGINE_SQLITE) rc = wl_sqltext_settle(c, t, err);
    if (!rc && where.engine != WL_ENGINE_SQLITE && t->query->n_calls)
      rc = wl_answer_functions(c, t->query, err);
    wl_sqltext_drop(c, t);
    if (rc) return rc;
    if (where.engine == WL_ENGINE_SQLITE) return wl_not_taken(err, "%s", where.reason);
  }
  bool plan = s->explain == WL_EXPLAIN_PLAN;
  char *text = sqlite3_mprintf("SELECT %s(%.*Q)",
                               plan ? "id, parent, notused, detail FROM wl_plan"
                                    : "addr, opcode, p1, p2, p3, p4, p5, comment FROM wl_program",
                               n_body, body);
  if (!text) return wl_nomem(err);
  int rc = sqlite3_prepare_v2(c->db, text, -1, out, NULL);
  sqlite3_free(text);
  return rc ? wl_not_taken(err, "%s", sqlite3_errmsg(c->db)) : WL_OK;
}

int wl_explain_register(wl_conn *c) {
  static const wl_rowset_def defs[] = {
      {"wl_program",
       "CREATE TABLE x(addr INTEGER, opcode TEXT, p1, p2, p3, p4 TEXT, p5 INTEGER, comment TEXT, "
       "sql HIDDEN)",
       8, 1, fill_program},
      {"wl_plan",
       "CREATE TABLE x(id INTEGER, parent INTEGER, notused INTEGER, detail TEXT, sql HIDDEN)", 4, 1,
       fill_plan},
      {"wl_analysis",
       "CREATE TABLE x(id INTEGER, parent INTEGER, notused INTEGER, detail TEXT, sql HIDDEN, args "
       "HIDDEN)",
       4, 2, fill_analysis},
  };
  int rc = wl_rowset_register(c, &defs[0]);
  if (!rc) rc = wl_rowset_register(c, &defs[1]);
  return rc ? rc : wl_rowset_register(c, &defs[2]);
}
