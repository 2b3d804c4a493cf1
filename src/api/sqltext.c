/*
** Statement texts that were parsed and bound, kept for their next run: a prepared statement
** holds only its text, so nothing has to be freed with it.
*/
#include "api/conn.h"
#include "base/mem.h"
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
    wl_table *table;
    wl_status rc = wl_store_table(c->store, t->query->schema, t->query->table, &table, err);
    if (!rc && table->id == t->query->table_id) {
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

/* Whether rows that ORDER BY calls equal are equal in all they show. */
static bool ties_hidden(const wl_query *q) {
  for (int i = 0; i < q->n_results; i++) {
    int k = 0;
    while (k < q->n_order && !wl_bexpr_same(q->results[i], q->order[k].expr)) k++;
    if (k == q->n_order) return false;
  }
  return q->n_order > 0;
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
  if (!rc) rc = wl_bind(&t->arena, t->stmt, c->store, &t->query, err);
  if (!rc) rc = number_args(t, err);
  t->facts.rowid_order = true;
  const wl_query *q = t->query;
  if (!rc && (q->limit || q->offset || q->aggregate || q->where || q->distinct || q->n_order))
    rc = wl_plan_facts_read(c->db, sql, n, &t->facts, err);
  /* Where the order of rows shows, it must be the one SQLite would meet them in. */
  bool one_row = !rc && q->aggregate && !q->grouped;
  if (!rc && !t->facts.rowid_order && !one_row && !ties_hidden(q)) {
    if (q->n_order)
      rc = wl_not_taken(err, "ORDER BY, and SQLite would scan in the order of an index");
    else if (q->limit || q->offset)
      rc = wl_not_taken(err,
                        "LIMIT without ORDER BY, and SQLite would scan in the order of an index");
  }
  if (rc) {
    text_free(t);
    *out = NULL;
  }
  return rc;
}

wl_status wl_sqltext_get(wl_conn *c, const char *sql, size_t n, wl_sqltext **out, wl_error *err) {
  wl_u64 hash = XXH3_64bits(sql, n);
  *out = NULL;
  wl_status rc = wl_conn_keep(c, err);
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
