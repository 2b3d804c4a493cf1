/*
** Statement texts that were parsed and bound, kept for their next run: a prepared statement
** holds only its text, so nothing has to be freed with it.
*/
#include "route/conn.h"
#include "base/mem.h"
#include "base/quirks.h"
#include "plan/rewrite.h"
#include "plan/scan.h"
#include "plan/row_order.h"
#include "exec/query.h"
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_TEXTS = 128 };

static void text_free(wl_sqltext *t) {
  wl_arena_close(&t->arena);
  wl_mem_free(t->sql);
  wl_mem_free(t);
}

void wl_sqltext_drop(wl_conn *c, wl_sqltext *t) {
  (void)c;
  if (t && --t->refs == 0) text_free(t);
}

void wl_sqltext_flush(wl_conn *c) {
  while (c->texts) {
    wl_sqltext *t = c->texts;
    c->texts = t->next;
    wl_sqltext_drop(c, t);
  }
  c->n_texts = 0;
}

/* Takes the text out of the list, if it is there and its table still looks the same. */
static wl_status find(wl_conn *c, wl_u64 hash, const char *sql, size_t n, wl_sqltext **out,
                      wl_error *err) {
  *out = NULL;
  for (wl_sqltext **at = &c->texts; *at; at = &(*at)->next) {
    wl_sqltext *t = *at;
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
    wl_sqltext_drop(c, t);
    return rc == WL_NOT_TAKEN ? WL_OK : rc;
  }
  return WL_OK;
}

/* The rewritten text passes each parameter that occurs once, in order of index. */
static wl_status number_args(wl_sqltext *t, wl_error *err) {
  const wl_stmt *s = t->stmt;
  t->arg_params = WL_NEW_N(&t->arena, int, s->n_params);
  if (!t->arg_params) return wl_nomem(err);
  for (int i = 0; i < s->n_params; i++)
    if (s->params[i]) t->arg_params[t->n_args++] = i + 1;
  return WL_OK;
}

/* Whether rows that ORDER BY calls equal are equal in all they show, and, where DISTINCT keeps
** one of several, whether they all have the same place. */
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

/* Whether ORDER BY names every group key, so that no two groups are equal in it. */
static bool groups_ordered(const wl_query *q) {
  for (int i = 0; i < q->n_groups; i++) {
    int k = 0;
    while (k < q->n_order && !wl_bexpr_same(q->groups[i], q->order[k].expr)) k++;
    if (k == q->n_order) return false;
  }
  return true;
}

/* LIKE ? may use an index once the parameter is known, if there is one. */
static wl_status may_replan(wl_conn *c, wl_sqltext *t, bool *out, wl_error *err) {
  wl_table *table;
  *out = false;
  if (!t->query->like_param) return WL_OK;
  wl_status rc = wl_store_table(c->store, t->query->schema, t->query->table, &table, err);
  if (rc) return rc;
  char *sql =
      sqlite3_mprintf("SELECT 1 FROM pragma_index_list(%Q, %Q)", table->name, table->schema);
  sqlite3_stmt *s = NULL;
  if (!sql || sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) != SQLITE_OK)
    rc = wl_not_taken(err, "SQLite does not list the indexes");
  int step = rc ? SQLITE_DONE : sqlite3_step(s);
  *out = step != SQLITE_DONE; /* an error is no proof that there is none */
  sqlite3_finalize(s);
  sqlite3_free(sql);
  return rc;
}

/*
** Where the order of rows shows, it must be the one SQLite would meet them in: that of the
** table, or the order of its scan becomes the last sort keys.
*/
static wl_status settle_order(wl_conn *c, wl_sqltext *t, wl_error *err) {
  wl_query *q = t->query;
  if (!q->simple) {
    wl_query_find_order(c->store, q, &t->facts);
    return wl_query_cuts(c->store, q, true, err);
  }
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
  /* ORDER BY the key may make it read backwards, which its plan does not say; rowids have no
  ** ties, so that only DISTINCT tells then which of its rows came first */
  bool sure = facts->rowid_order && !(q->n_order && (table->without_rowid || q->distinct));
  bool total = q->grouped && !q->distinct ? groups_ordered(q) : q->ties_hidden;
  bool by_scan = !total && !(q->grouped && facts->sorts_groups);
  if (replans && (by_scan || q->distinct))
    return wl_not_taken(err,
                        "LIKE with a parameter: SQLite may yet choose an index, and its order");
  if (sure && !(q->grouped && by_scan)) return WL_OK;
  if (table->tablets && facts->rowid_order) /* their cursors know no other order */
    rc = wl_scan_rowids(table, &t->arena, &scan, err);
  else
    rc = wl_plan_scan(c->db, t->sql, t->n_sql, c->store, table, &t->arena, &scan, err);
  if (rc == WL_NOT_TAKEN && !by_scan) {
    facts->rowid_order = false; /* then values that are equal must look it, or SQLite runs it */
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

wl_status wl_sqltext_settle(wl_conn *c, wl_sqltext *t, wl_error *err) {
  if (t->settled && t->unsettled) return wl_not_taken(err, "%s", t->why);
  if (t->settled) return WL_OK;
  wl_status rc = settle_order(c, t, err);
  if (rc && rc != WL_NOT_TAKEN) return rc;
  t->unsettled = rc;
  if (rc) t->why = wl_arena_printf(&t->arena, "%s", err->text);
  if (rc && !t->why) return wl_nomem(err);
  t->settled = true;
  return rc;
}

typedef struct sizes {
  wl_store *store;
  const wl_query *q;
} sizes;

static double rows_of(void *arg, const char *name) {
  sizes *s = arg;
  return (double)wl_query_rows_of(s->store, s->q, name);
}

static wl_status read(wl_conn *c, const char *sql, size_t n, wl_sqltext **out, wl_error *err) {
  wl_sqltext *t = *out = wl_mem_zalloc(sizeof *t);
  if (!t) return wl_nomem(err);
  wl_arena_init(&t->arena);
  t->refs = 1;
  t->n_sql = n;
  t->sql = wl_mem_alloc(n + 1);
  wl_status rc = t->sql ? WL_OK : wl_nomem(err);
  if (!rc) {
    memcpy(t->sql, sql, n);
    t->sql[n] = 0;
    rc = wl_parse(&t->arena, sql, n, &t->stmt, err);
    if (rc == WL_ERROR) rc = wl_not_taken(err, "it is not understood (%.200s)", err->text);
  }
  if (!rc && t->stmt->kind != WL_STMT_SELECT)
    rc = wl_not_taken(err, "%s runs in SQLite", t->stmt->verb);
  if (!rc) rc = wl_store_text_like_ours(c->store, &t->n_text_changes, err);
  wl_query *bound;
  if (!rc) rc = wl_bind(&t->arena, t->sql, t->stmt, c->store, &bound, err);
  if (!rc) rc = wl_rewrite(&t->arena, bound, &t->query, err);
  if (!rc) rc = number_args(t, err);
  t->facts.rowid_order = true;
  wl_query *q = t->query;
  if (!rc && !q->simple)
    rc = wl_plan_work(c->db, sql, n, rows_of, &(sizes){c->store, q}, &t->facts, err);
  else if (!rc && (q->limit || q->offset || q->aggregate || q->where || q->distinct || q->n_order ||
                   q->n_calls))
    rc = wl_plan_facts_read(c->db, sql, n, &t->facts, err);
  if (!rc) q->computes_unread = t->facts.gathers;
  if (rc) {
    text_free(t);
    *out = NULL;
  }
  return rc;
}

/* Newer versions of SQLite let a connection choose how many digits a REAL has as text. */
static wl_status usual_digits(wl_conn *c, wl_error *err) {
  enum { FP_DIGITS = 1023 }; /* SQLITE_DBCONFIG_FP_DIGITS, which older headers lack */
  int digits = 0;
  if (sqlite3_db_config(c->db, FP_DIGITS, 0, &digits) || digits == wl_quirks_get().real_digits)
    return WL_OK;
  return wl_not_taken(err, "SQLITE_DBCONFIG_FP_DIGITS is %d", digits);
}

wl_status wl_sqltext_get(wl_conn *c, const char *sql, size_t n, wl_sqltext **out, wl_error *err) {
  wl_u64 hash = XXH3_64bits(sql, n);
  *out = NULL;
  wl_status rc = wl_conn_keep(c, err);
  if (!rc) rc = usual_digits(c, err);
  if (!rc) rc = find(c, hash, sql, n, out, err);
  if (!rc && !*out) rc = read(c, sql, n, out, err);
  if (rc) return rc;
  wl_sqltext *t = *out;
  t->hash = hash;
  t->refs++; /* the list's and the caller's */
  t->next = c->texts;
  c->texts = t;
  if (++c->n_texts > MAX_TEXTS) {
    wl_sqltext **at = &c->texts;
    while ((*at)->next) at = &(*at)->next;
    wl_sqltext_drop(c, *at);
    *at = NULL;
    c->n_texts--;
  }
  return WL_OK;
}
