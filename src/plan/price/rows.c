/*
** How many rows each loop of SQLite's program has: from the pages of its tree, or, where they cannot
** be read, by letting SQLite count up to a limit.
*/
#include "plan/price/price_impl.h"
#include "value/exchange.h"
#include <stdlib.h>
#include <string.h>

#define PART     0.25 /* share of the entries in a range whose bounds change from row to row */
#define PER_KEY  10.0 /* entries per key of an index about which nothing is known, as in SQLite */
#define COUNT_NS 25.0 /* what it takes to count a row */

/* ---- without pages */

static double rows_of_table(const pricing *p, const wl_priced_tree *t) {
  wl_table *table;
  wl_error ignored;
  bool exact;
  if (wl_store_table(p->in->store, t->schema, t->table, &table, &ignored)) return 1000;
  return (double)wl_source_estimate(table->source, &exact);
}

/* Adds "column op ?n" for one end of a range. The order of the index may be descending. */
static void add_condition(sqlite3_str *sql, const wl_priced_tree *t, int k, bool low, bool open,
                          int param) {
  bool greater = low != (t->index && t->tree.desc[k]);
  sqlite3_str_appendf(sql, "%s\"%w\" %s%s ?%d", param > 1 ? " AND " : "",
                      t->index ? t->cols[k] : "rowid", greater ? ">" : "<", open ? "" : "=", param);
}

/* Whether the last column of an end is a value to compare with. In SQL, no order has a NULL. */
static bool has_last(const loop_end *e, int n_equal) {
  return e->kind == END_KNOWN && e->bound.n > n_equal && e->bound.key[n_equal].t != WL_T_NULL;
}

/* Lets SQLite count the entries of a range, up to a limit. False: it cannot. */
static bool count_entries(const pricing *p, const vdbe_loop *l, int n_equal, double *out) {
  const wl_priced_tree *t = l->tree;
  const loop_end *ends[2] = {&l->low, &l->high};
  wl_val values[WL_TREE_COLS + 2];
  int n = 0;
  double most = p->in->worth_ns / 20 / COUNT_NS;
  if (most < 100) most = 100;
  if (most > 100000) most = 100000;
  for (int e = 0; e < 2; e++)
    if (ends[e]->kind == END_KNOWN && ends[e]->bound.n > n_equal + 1) return false;
  for (int k = 0; t->index && k < n_equal + 1 && k < t->tree.n_cols; k++)
    if (!t->cols[k]) return false;
  if (t->index && n_equal + 1 > t->tree.n_cols) return false;
  sqlite3_str *sql = sqlite3_str_new(p->in->db);
  sqlite3_str_appendf(sql, "SELECT count(*) FROM (SELECT 1 FROM \"%w\".\"%w\" ", t->schema,
                      t->table);
  if (t->index)
    sqlite3_str_appendf(sql, "INDEXED BY \"%w\" WHERE ", t->index);
  else
    sqlite3_str_appendall(sql, "NOT INDEXED WHERE ");
  for (int k = 0; k < n_equal; k++) {
    values[n++] = l->low.kind == END_KNOWN ? l->low.bound.key[k] : l->high.bound.key[k];
    sqlite3_str_appendf(sql, "%s\"%w\" IS ?%d", k ? " AND " : "", t->index ? t->cols[k] : "rowid",
                        n);
  }
  for (int e = 0; e < 2; e++) {
    if (!has_last(ends[e], n_equal)) continue;
    values[n++] = ends[e]->bound.key[n_equal];
    add_condition(sql, t, n_equal, e == 0, ends[e]->bound.after == (e == 0), n);
  }
  sqlite3_str_appendf(sql, " LIMIT %lld)", (wl_i64)most);
  char *text = sqlite3_str_finish(sql);
  sqlite3_stmt *q = NULL;
  bool ok = n > 0 && text && sqlite3_prepare_v2(p->in->db, text, -1, &q, NULL) == SQLITE_OK;
  for (int i = 0; ok && i < n; i++)
    ok = wl_sqlite_bind(q, i + 1, values[i], SQLITE_STATIC) == SQLITE_OK;
  ok = ok && sqlite3_step(q) == SQLITE_ROW;
  if (ok) {
    double all = wl_price_now(p, t)->rows * PART;
    *out = sqlite3_column_double(q, 0);
    if (*out >= most && all > *out) *out = all; /* there are more */
  }
  sqlite3_finalize(q);
  sqlite3_free(text);
  return ok;
}

/* Entries per key from sqlite_stat1. */
static bool statistics(const pricing *p, const wl_priced_tree *t, int n, double *out) {
  sqlite3_stmt *q = NULL;
  bool found = false;
  char *sql = sqlite3_mprintf("SELECT stat FROM \"%w\".sqlite_stat1 WHERE tbl = %Q AND idx = %Q",
                              t->schema, t->table, t->index);
  if (sql && sqlite3_prepare_v2(p->in->db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(q, 0);
    char *end = NULL;
    for (int k = 0; text && k <= n; k++, text = end) {
      *out = (double)strtoll(text, &end, 10);
      found = end > text && k == n;
      if (end == text) break;
    }
  }
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return found;
}

/* ---- rows of a loop */

/* How many leading columns both ends have in common: the same values, written once. */
static int common_columns(const vdbe_loop *l) {
  int n = 0;
  if (l->low.kind == END_OPEN || l->high.kind == END_OPEN) return 0;
  while (n < l->low.bound.n && n < l->high.bound.n && l->low.stamps[n] == l->high.stamps[n]) n++;
  return n;
}

static double per_key(const pricing *p, wl_trees *trees, const wl_priced_tree *t, int n) {
  const tree_now *now = wl_price_now(p, t);
  double out = PER_KEY;
  if (n == 0) return now->rows;
  if (t->tree.of_table) return 1;
  if (trees && now->known && wl_tree_per_key(trees, &t->tree, &now->shape, n, &out)) return out;
  if (!statistics(p, t, n, &out)) out = PER_KEY;
  return out < now->rows ? out : now->rows;
}

/* Entries between two known ends. */
static bool entries_between(const pricing *p, wl_trees *trees, const vdbe_loop *l, int n_equal,
                            double *out) {
  const wl_priced_tree *t = l->tree;
  const tree_now *now = wl_price_now(p, t);
  int columns = t->tree.of_table ? 1 : t->tree.n_cols;
  if (l->low.bound.n > columns || l->high.bound.n > columns) return false;
  if (trees && now->known)
    return wl_tree_range(trees, &t->tree, &now->shape, l->low.kind ? &l->low.bound : NULL,
                         l->high.kind ? &l->high.bound : NULL, out);
  return count_entries(p, l, n_equal, out);
}

/* Entries that one of several constants has on average: IN with a list. */
static bool entries_of_list(const pricing *p, wl_trees *trees, const vdbe_loop *l, int n_equal,
                            double *out) {
  int k = 0, of_rows = 0, at = 0;
  for (; k < n_equal; k++) {
    if (l->low.kinds[k] == END_UNKNOWN) return false;
    if (l->low.kinds[k] == END_OF_ROW) at = k, of_rows++;
  }
  int from = l->low.cursors[at];
  if (of_rows != 1 || from < 0 || from >= MAX_CURSORS) return false;
  const vdbe_cursor *c = &p->cursors[from];
  if (c->n_list < 1) return false;
  vdbe_loop one = *l;
  one.low.kind = one.high.kind = END_KNOWN;
  one.low.bound.n = one.high.bound.n = n_equal;
  one.low.bound.after = false;
  one.high.bound.after = true;
  double sum = 0, rows;
  for (int i = 0; i < c->n_list; i++) {
    one.low.bound.key[at] = one.high.bound.key[at] = c->list[i];
    if (!entries_between(p, trees, &one, n_equal, &rows)) return false;
    sum += rows;
  }
  *out = sum / c->n_list;
  return true;
}

static void set_rows(pricing *p, wl_trees *trees, vdbe_loop *l) {
  int n = common_columns(l);
  bool low_ok = l->low.kind <= END_KNOWN, high_ok = l->high.kind <= END_KNOWN;
  bool open = l->low.kind == END_OPEN && l->high.kind == END_OPEN;
  double all = wl_price_now(p, l->tree)->rows;
  if (l->skips) {
    double each = per_key(p, trees, l->tree, l->skips);
    l->rows = l->least = each > 0 ? all / each : all;
    return;
  }
  l->rows = l->least = all;
  if (open) return;
  if (low_ok && high_ok && entries_between(p, trees, l, n, &l->rows)) {
    l->least = l->rows;
    return;
  }
  bool ranged = l->low.bound.n > n || l->high.bound.n > n;
  bool of_row = l->low.kind == END_OF_ROW || l->high.kind == END_OF_ROW;
  if (!of_row || !entries_of_list(p, trees, l, n, &l->rows))
    l->rows = per_key(p, trees, l->tree, n);
  l->least = l->rows;
  if (!ranged) return;
  if (of_row) {
    l->rows = l->least = l->rows * PART;
  } else {
    l->least = 0;
    p->unknown = l->tree->table;
  }
}

/* ---- all loops */

static void measure_tree(pricing *p, wl_trees *trees, const wl_priced_tree *t) {
  tree_now *now = wl_price_now(p, t);
  memset(now, 0, sizeof *now);
  now->known = trees && wl_tree_measure(trees, &t->tree, &now->shape);
  if (now->known) {
    now->rows = now->shape.entries[0];
    now->leaves = now->shape.n_leaves;
    now->page_bytes = trees->pages.page_size;
  } else {
    now->rows = rows_of_table(p, t);
  }
}

/* Handles the trees and loops of one database. */
static void handle_schema(pricing *p, const char *schema) {
  wl_trees trees;
  wl_error ignored;
  bool readable = wl_trees_begin(p->in->store, schema, &trees, &ignored) == WL_OK;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < p->of->n_trees && pass == 0; i++)
      if (readable && strcmp(p->of->trees[i].schema, schema) == 0)
        measure_tree(p, &trees, &p->of->trees[i]);
    for (int i = 0; i < p->n_loops && pass == 1; i++) {
      vdbe_loop *l = &p->loops[i];
      if (l->kind != LOOP_TREE || strcmp(l->tree->schema, schema) != 0) continue;
      if (readable && wl_price_now(p, l->tree)->known) set_rows(p, &trees, l);
    }
  }
  wl_trees_end(&trees);
  /* What SQLite must count or estimate has its own read transactions. */
  for (int i = 0; i < p->of->n_trees; i++)
    if (strcmp(p->of->trees[i].schema, schema) == 0 && !p->now[i].known)
      measure_tree(p, NULL, &p->of->trees[i]);
  for (int i = 0; i < p->n_loops; i++) {
    vdbe_loop *l = &p->loops[i];
    if (l->kind == LOOP_TREE && strcmp(l->tree->schema, schema) == 0 &&
        !wl_price_now(p, l->tree)->known)
      set_rows(p, NULL, l);
  }
}

wl_status wl_price_rows(pricing *p, wl_error *err) {
  for (int i = 0; i < p->of->n_trees; i++) {
    int k = 0;
    while (p->of->trees[k].db != p->of->trees[i].db) k++;
    if (k == i) handle_schema(p, p->of->trees[i].schema);
  }
  for (int i = 0; i < p->n_loops; i++) {
    vdbe_loop *l = &p->loops[i];
    if (l->kind != LOOP_VIRTUAL) continue;
    l->rows = l->least = l->by_key ? 1 : p->in->virtual_rows;
  }
  (void)err;
  return WL_OK;
}
