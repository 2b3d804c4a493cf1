/*
** See statement_text.h.
*/
#include "route/statement_text.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/quirks.h"
#include "plan/rewrite/rewrite.h"
#include "plan/scan.h"
#include "plan/row_order.h"
#include "exec/code.h"
#include "parse.h"
#include "sql/lex.h"
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_TEXTS = 128 };

static void text_free(wl_statement_text *t) {
  wl_code_drop(t->code);
  wl_arena_close(&t->arena);
  wl_mem_free(t->sql);
  wl_mem_free(t);
}

void wl_statement_text_drop(wl_statement_text *t) {
  if (t && --t->refs == 0) text_free(t);
}

void wl_statement_text_flush(wl_conn *c) {
  while (c->texts) {
    wl_statement_text *t = c->texts;
    c->texts = t->next;
    wl_statement_text_drop(t);
  }
  c->n_texts = 0;
}

/* Takes a text out of the list, if it is there and its tables have not changed. */
static wl_status take_known(wl_conn *c, wl_u64 hash, const char *sql, size_t n,
                            wl_statement_text **out, wl_error *err) {
  *out = NULL;
  for (wl_statement_text **at = &c->texts; *at; at = &(*at)->next) {
    wl_statement_text *t = *at;
    if (t->hash != hash || t->n_sql != n || memcmp(t->sql, sql, n) != 0) continue;
    *at = t->next;
    c->n_texts--;
    wl_status rc = WL_OK;
    bool same = true;
    for (int k = 0; k < t->query->n_deps && !rc && same; k++) {
      const wl_bdep *d = &t->query->deps[k];
      wl_table *table;
      rc = wl_store_named(c->store, d->schema, d->name, &table, err);
      same = !rc && table->id == d->id;
    }
    if (!rc && t->query->n_deps == 0) {
      wl_u32 n_changes;
      rc = wl_store_text_like_ours(c->store, &n_changes, err);
      same = n_changes == t->n_text_changes;
    }
    if (!rc && same) {
      *out = t;
      return WL_OK;
    }
    wl_statement_text_drop(t);
    return rc == WL_NOT_TAKEN ? WL_OK : rc;
  }
  return WL_OK;
}

/* Whether a decision still holds. A table that is small now may grow. */
static bool still_holds(const wl_conn *c, const wl_text_decided *d) {
  return d->n_runs > 0 && memcmp(&d->set, &c->set, sizeof c->set) == 0 &&
         sqlite3_total_changes(c->db) <= d->n_changes && wl_clock_ns() < d->until_ns;
}

wl_statement_text *wl_statement_text_peek(wl_conn *c, const char *sql, size_t n) {
  wl_u64 hash = XXH3_64bits(sql, n);
  wl_statement_text *t = c->texts;
  while (t && (t->hash != hash || t->n_sql != n || memcmp(t->sql, sql, n) != 0)) t = t->next;
  return t;
}

const char *wl_statement_text_decided(wl_conn *c, const char *sql, size_t n) {
  wl_statement_text *t = wl_statement_text_peek(c, sql, n);
  if (!t || !still_holds(c, &t->decided)) return NULL;
  t->decided.n_runs--;
  return t->decided.reason;
}

void wl_statement_text_decide(const wl_conn *c, wl_statement_text *t, const wl_placement *where) {
  enum { FEW = 4, MANY = 64, CHANGES = 1000 };
  const double second = 1e9;
  wl_text_decided *d = &t->decided;
  double times = where->sqlite_ns > 0 ? where->warm_ns / where->sqlite_ns : MANY;
  d->n_runs = times < FEW ? 0 : times > MANY ? MANY : (int)times;
  memcpy(&d->set, &c->set, sizeof d->set);
  d->until_ns = wl_clock_ns() + second;
  d->n_changes = sqlite3_total_changes(c->db) + CHANGES;
  memcpy(d->reason, where->reason, sizeof d->reason);
}

/* The rewritten text passes each parameter that occurs once, in the order of their numbers. */
static wl_status number_args(wl_statement_text *t, wl_error *err) {
  const wl_stmt *s = t->stmt;
  t->arg_params = WL_NEW_N(&t->arena, int, s->n_params);
  if (!t->arg_params) return wl_nomem(err);
  for (int i = 0; i < s->n_params; i++)
    if (s->params[i]) t->arg_params[t->n_args++] = i + 1;
  return WL_OK;
}

/* Whether rows that are equal in ORDER BY are also equal in every result column. With DISTINCT,
** ORDER BY terms must also be result columns, so that equal rows have the same position. */
static bool ties_hidden(const wl_query *q) {
  for (int k = 0; k < q->n_order && q->distinct; k++) {
    int i = 0;
    while (i < q->n_results && !wl_bexpr_same(q->results[i], q->order[k].expr)) i++;
    if (i == q->n_results) return false;
  }
  for (int i = 0; i < q->n_results; i++) {
    int k = 0;
    while (k < q->n_order && !wl_bexpr_same(q->results[i], q->order[k].expr)) k++;
    if (k == q->n_order) return false;
  }
  return q->n_order > 0;
}

/* Whether SQLite may use an index for LIKE ? once it knows the parameter. */
static wl_status may_replan(wl_conn *c, wl_statement_text *t, bool *out, wl_error *err) {
  wl_table *table;
  *out = false;
  if (!t->query->like_param) return WL_OK;
  wl_status rc = wl_store_table(c->store, t->query->schema, t->query->table, &table, err);
  if (rc) return rc;
  char *sql =
      sqlite3_mprintf("SELECT 1 FROM pragma_index_list(%Q, %Q)", table->name, table->schema);
  sqlite3_stmt *s = NULL;
  if (!sql || sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) != SQLITE_OK)
    rc = wl_not_taken(err, "the indexes cannot be listed");
  int step = rc ? SQLITE_DONE : sqlite3_step(s);
  *out = step != SQLITE_DONE; /* an error does not prove that there is none */
  sqlite3_finalize(s);
  sqlite3_free(sql);
  return rc;
}

/* The order of the rows of a join. It matters if LIMIT cuts rows that ORDER BY treats as equal. */
static wl_status settle_join(wl_conn *c, wl_statement_text *t, wl_error *err) {
  wl_query *q = t->query;
  wl_query_find_order(c->store, q, &t->facts);
  wl_status rc = wl_query_cuts(c->store, q, true, err);
  bool cuts = (q->limit || q->offset) && q->n_order && !wl_query_order_total(q);
  if (rc || !cuts || q->distinct || q->combines) return rc;
  if (wl_query_orders_groups(q)) return WL_OK;
  if (q->grouped && t->facts.sorts_groups) return wl_join_groups_apply(&t->arena, q, err);
  return wl_join_scan_apply(c->db, t->sql, t->n_sql, c->store, &t->arena, q, err);
}

/*
** If the order of rows can be seen, it must be SQLite's: that of the table, or else the order of
** SQLite's scan is added as the last sort keys.
*/
static wl_status settle_order(wl_conn *c, wl_statement_text *t, wl_error *err) {
  wl_query *q = t->query;
  if (!wl_query_scans_table(q)) return settle_join(c, t, err);
  wl_plan_facts *facts = &t->facts;
  bool shows = (q->n_order || q->limit || q->offset) && (!q->aggregate || q->grouped);
  wl_table *table;
  wl_scan scan;
  q->ties_hidden = ties_hidden(q);
  bool replans;
  wl_status rc = may_replan(c, t, &replans, err);
  if (rc) return rc;
  if (replans) facts->rowid_order = false;
  if (!shows) return WL_OK;
  rc = wl_store_table(c->store, q->schema, q->table, &table, err);
  if (rc) return rc;
  /* ORDER BY the key may make SQLite read backwards, which its plan does not show. Rowids have no
  ** ties, so only DISTINCT shows then which row came first. */
  bool sure = facts->rowid_order && !(q->n_order && (table->without_rowid || q->distinct));
  bool total = q->grouped && !q->distinct ? wl_query_orders_groups(q) : q->ties_hidden;
  bool by_scan = !total && !(q->grouped && facts->sorts_groups);
  if (replans && (by_scan || q->distinct))
    return wl_not_taken(err,
                        "LIKE with a parameter: SQLite may still choose the order of an index");
  if (sure && !(q->grouped && by_scan)) return WL_OK;
  if (table->source->rowid_order_only && facts->rowid_order)
    rc = wl_scan_rowids(table, &t->arena, &scan, err);
  else
    rc = wl_plan_scan(c->db, t->sql, t->n_sql, c->store, table, &t->arena, &scan, err);
  if (rc == WL_NOT_TAKEN && !by_scan) {
    facts->rowid_order = false; /* equal values must then also look equal, or SQLite runs it */
    return WL_OK;
  }
  if (rc) return rc;
  facts->rowid_order &= scan.storage;
  if (q->grouped ? !by_scan : scan.storage) return WL_OK;
  if (q->distinct)
    return by_scan ? wl_not_taken(err, "DISTINCT, and SQLite would scan in the order of an index")
                   : WL_OK;
  return wl_scan_apply(&t->arena, table, &scan, q, err);
}

wl_status wl_statement_text_settle(wl_conn *c, wl_statement_text *t, wl_error *err) {
  if (t->unsettled) return wl_not_taken(err, "%s", t->unsettled);
  if (t->settled) return WL_OK;
  wl_status rc = settle_order(c, t, err);
  if (rc && rc != WL_NOT_TAKEN) return rc;
  if (rc) t->unsettled = wl_arena_printf(&t->arena, "%s", err->text);
  if (rc && !t->unsettled) return wl_nomem(err);
  t->settled = true;
  return rc;
}

/* A hash of the tokens, in which all numbers are alike, and all strings. */
static wl_u64 shape_of(const char *sql, size_t n) {
  wl_lexer lex;
  wl_token t;
  wl_u64 h = 1;
  wl_lex_init(&lex, sql, n);
  for (int kind; (kind = wl_lex_next(&lex, &t)) != WL_LEX_END && kind != WL_LEX_ILLEGAL;) {
    bool literal = kind == WLT_INTEGER || kind == WLT_FLOAT || kind == WLT_STRING;
    h = literal ? h * 31 + (wl_u64)kind : XXH3_64bits_withSeed(sql + t.pos, t.n, h);
  }
  return h ? h : 1;
}

static wl_status parse_and_bind(wl_conn *c, const char *sql, size_t n, wl_statement_text **out,
                                wl_error *err) {
  wl_statement_text *t = *out = wl_mem_zalloc(sizeof *t);
  if (!t) return wl_nomem(err);
  wl_arena_init(&t->arena);
  t->refs = 1;
  t->n_sql = n;
  t->sql = wl_mem_alloc(n + 1);
  wl_status rc = t->sql ? WL_OK : wl_nomem(err);
  if (!rc) {
    memcpy(t->sql, sql, n);
    t->sql[n] = 0;
    t->shape = shape_of(sql, n);
    rc = wl_parse(&t->arena, sql, n, &t->stmt, err);
    if (rc == WL_ERROR) rc = wl_not_taken(err, "warplite cannot parse it (%.200s)", err->text);
  }
  if (!rc && t->stmt->kind != WL_STMT_SELECT)
    rc = wl_not_taken(err, "%s runs in SQLite", t->stmt->verb);
  if (!rc) rc = wl_store_text_like_ours(c->store, &t->n_text_changes, err);
  wl_catalog catalog = wl_store_catalog(c->store);
  wl_query *bound;
  if (!rc) rc = wl_bind(&t->arena, t->sql, t->stmt, &catalog, &bound, err);
  if (!rc) rc = wl_rewrite(&t->arena, bound, &t->query, err);
  if (!rc) rc = number_args(t, err);
  t->facts.rowid_order = true;
  wl_query *q = t->query;
  for (int k = 0; !rc && k < q->n_calls; k++) t->asks_time |= wl_function_asks_time(q->calls[k]);
  if (!rc && !wl_query_scans_table(q)) {
    rc = wl_plan_facts_of_join(c->db, sql, n, &t->facts, err);
  } else if (!rc && (q->limit || q->offset || q->aggregate || q->where || q->distinct ||
                     q->n_order || q->n_calls))
    rc = wl_plan_facts_read(c->db, sql, n, &t->facts, err);
  if (!rc) q->computes_unread = t->facts.gathers;
  if (rc) {
    text_free(t);
    *out = NULL;
  }
  return rc;
}

wl_u64 wl_stmt_labels(sqlite3_stmt *s) {
  wl_u64 h = 1;
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    const char *name = sqlite3_column_name(s, i);
    h = XXH3_64bits_withSeed(name ? name : "", name ? strlen(name) : 0, h);
  }
  return h ? h : 1;
}

static void read_limits(sqlite3 *db, int limits[WL_N_LIMITS]) {
  for (int i = 0; i < WL_N_LIMITS; i++) limits[i] = sqlite3_limit(db, i, -1);
}

wl_status wl_statement_text_describe(wl_conn *c, wl_statement_text *t, sqlite3_stmt *original,
                                     wl_error *err) {
  wl_u64 labels = wl_stmt_labels(original);
  read_limits(c->db, t->limits);
  if (t->columns && t->labels == labels) return WL_OK;
  int n = sqlite3_column_count(original);
  wl_text_column *columns = WL_NEW_N(&t->arena, wl_text_column, n + 1);
  for (int i = 0; i < n && columns; i++) {
    const char *name = sqlite3_column_name(original, i);
    const char *type = sqlite3_column_decltype(original, i);
    columns[i].name = name ? wl_arena_printf(&t->arena, "%s", name) : NULL;
    columns[i].type = type ? wl_arena_printf(&t->arena, "%s", type) : NULL;
    if (!columns[i].name || (type && !columns[i].type)) columns = NULL;
  }
  if (!columns) return wl_nomem(err);
  t->columns = columns;
  t->labels = labels;
  t->stand_in = NULL;
  return WL_OK;
}

wl_statement_text *wl_statement_text_seen(wl_conn *c, const char *sql, size_t n) {
  int limits[WL_N_LIMITS];
  if (wl_authorizer_blind || wl_authorizer_is_set(c->db)) return NULL;
  wl_statement_text *t = wl_statement_text_peek(c, sql, n);
  if (!t || !t->is_native || !t->columns || t->query->n_deps == 0) return NULL;
  read_limits(c->db, limits);
  if (memcmp(limits, t->limits, sizeof limits) != 0) return NULL;
  t->refs++;
  return t;
}

/* Newer versions of SQLite let a connection choose the number of digits of a REAL as text. */
static wl_status usual_digits(wl_conn *c, wl_error *err) {
  enum { FP_DIGITS = 1023 }; /* SQLITE_DBCONFIG_FP_DIGITS, which older headers lack */
  int digits = 0;
  if (sqlite3_db_config(c->db, FP_DIGITS, 0, &digits) || digits == wl_quirks_get().real_digits)
    return WL_OK;
  return wl_not_taken(err, "SQLITE_DBCONFIG_FP_DIGITS is %d", digits);
}

wl_status wl_statement_text_get(wl_conn *c, const char *sql, size_t n, wl_statement_text **out,
                                wl_error *err) {
  wl_u64 hash = XXH3_64bits(sql, n);
  *out = NULL;
  wl_status rc = wl_conn_keep_helpers(c, err);
  if (!rc) rc = usual_digits(c, err);
  if (!rc) rc = take_known(c, hash, sql, n, out, err);
  if (!rc && !*out) rc = parse_and_bind(c, sql, n, out, err);
  if (rc) return rc;
  wl_statement_text *t = *out;
  t->hash = hash;
  t->refs++; /* one for the list, one for the caller */
  t->next = c->texts;
  c->texts = t;
  if (++c->n_texts > MAX_TEXTS) {
    wl_statement_text **at = &c->texts;
    while ((*at)->next) at = &(*at)->next;
    wl_statement_text_drop(*at);
    *at = NULL;
    c->n_texts--;
  }
  return WL_OK;
}
