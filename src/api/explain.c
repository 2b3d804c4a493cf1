/*
** EXPLAIN: the program of a native statement. EXPLAIN QUERY PLAN: the engine, the reason and
** the plan as a tree; for a statement that stays with SQLite, the reason over SQLite's plan.
*/
#include "api/rowset.h"
#include "base/mem.h"
#include "vm/gpu/devcol.h"
#include "vm/gpu/order_device.h"
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

/* One line of the tree under parent; returns its id. */
static int line(wl_rowset *r, int id, int parent, const char *text) {
  wl_cell *row = wl_rowset_row(r);
  if (!row) return id;
  wl_cell_int(&row[0], id);
  wl_cell_int(&row[1], parent);
  wl_cell_int(&row[2], 0);
  wl_cell_text(r, &row[3], text);
  return id;
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
    n += table->loaded && table->data[k < 0 ? table->n_cols : k] != NULL;
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
    const wl_column *col = table->data[q->cols[i].column < 0 ? table->n_cols : q->cols[i].column];
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
  int id = line(
      r, 1, 0,
      wl_arena_printf(a, "%s: %s", where->engine == WL_ENGINE_GPU ? "gpu" : "cpu", where->reason));
  if (where->engine == WL_ENGINE_GPU)
    id = line(r, id + 1, id, wl_arena_printf(a, "TRANSFER %s", transfer_words(c, q, table, a)));
  if (q->limit || q->offset) {
    const char *text =
        s->limit ? wl_arena_printf(a, "LIMIT %s", excerpt(a, t->sql, s->limit)) : "LIMIT";
    if (s->offset) text = wl_arena_printf(a, "%s OFFSET %s", text, excerpt(a, t->sql, s->offset));
    id = line(r, id + 1, id, text);
  }
  if (q->n_order)
    id = line(r, id + 1, id,
              wl_arena_printf(a, "ORDER BY %d term%s%s", q->n_order, q->n_order == 1 ? "" : "s",
                              machine(p, where, true)));
  if (q->distinct)
    id = line(r, id + 1, id, wl_arena_printf(a, "DISTINCT%s", machine(p, where, true)));
  if (q->grouped)
    id = line(r, id + 1, id,
              wl_arena_printf(a, "GROUP BY %d key%s%s", q->n_groups, q->n_groups == 1 ? "" : "s",
                              machine(p, where, false)));
  if (q->aggregate)
    id = line(r, id + 1, id,
              wl_arena_printf(a, "AGGREGATE %d function%s", q->n_aggs, q->n_aggs == 1 ? "" : "s"));
  else
    id = line(r, id + 1, id,
              wl_arena_printf(a, "RESULT %d column%s", q->n_results, q->n_results == 1 ? "" : "s"));
  if (s->where)
    id = line(r, id + 1, id, wl_arena_printf(a, "FILTER %s", excerpt(a, t->sql, s->where)));
  const char *names = "";
  for (int i = 0; i < q->n_cols; i++) {
    int k = q->cols[i].column;
    if (i < 12)
      names =
          wl_arena_printf(a, "%s%s%s", names, i ? ", " : "", k < 0 ? "rowid" : table->cols[k].name);
  }
  bool exact;
  wl_i64 n = wl_store_estimate(c->store, table, &exact);
  line(r, id + 1, id,
       wl_arena_printf(a, "SCAN %s%s%s%s (%s%lld rows, %d of %d columns in memory)", q->table,
                       q->n_cols ? " columns " : "", names, q->n_cols > 12 ? ", …" : "",
                       exact ? "" : "about ", n, in_memory(q, table, exact), q->n_cols));
}

/* A statement of several tables: its sources, as bound. */
static void join_plan(wl_sqltext *t, const wl_placement *where, wl_rowset *r) {
  const wl_query *q = t->query;
  int id = line(r, 1, 0,
                wl_arena_printf(&r->arena, "%s: %s", where->engine == WL_ENGINE_GPU ? "gpu" : "cpu",
                                where->reason));
  for (int s = 0; s < q->n_sources; s++)
    line(r, id + 1 + s, id, wl_arena_printf(&r->arena, "SOURCE %s", q->sources[s].name));
}

/* SQLite's plan, its ids moved up, under the reason. */
static wl_status sqlite_plan(wl_conn *c, const char *sql, const char *reason, wl_rowset *r,
                             wl_error *err) {
  line(r, 1, 0, wl_arena_printf(&r->arena, "sqlite: %s", reason));
  sqlite3_stmt *q = NULL;
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  int rc = text ? sqlite3_prepare_v2(c->db, text, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(text);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    line(r, sqlite3_column_int(q, 0) + 1, sqlite3_column_int(q, 1) + 1,
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
  if (!rc && where.engine != WL_ENGINE_SQLITE && simple)
    native_plan(c, t, table, ready.program, &where, r);
  else if (!rc && where.engine != WL_ENGINE_SQLITE)
    join_plan(t, &where, r);
  else if (!rc || rc == WL_NOT_TAKEN)
    rc = sqlite_plan(c, sql, rc ? err->text : where.reason, r, err);
  wl_ready_close(&ready);
  wl_sqltext_drop(c, t);
  return rc;
}

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
       8, true, fill_program},
      {"wl_plan",
       "CREATE TABLE x(id INTEGER, parent INTEGER, notused INTEGER, detail TEXT, sql HIDDEN)", 4,
       true, fill_plan},
  };
  int rc = wl_rowset_register(c, &defs[0]);
  return rc ? rc : wl_rowset_register(c, &defs[1]);
}
