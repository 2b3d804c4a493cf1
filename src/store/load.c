/*
** Reads an ordinary SQLite table into columns. If btree.c can decode the table's pages, it does.
** Otherwise SQLite runs an aggregate function over the table in scan order. That is correct in
** every journal mode, for memory databases, WITHOUT ROWID tables and generated columns, because
** SQLite itself reads the table.
*/
#include "store/btree.h"
#include "store/tree.h"
#include "base/mem.h"
#include "value/exchange.h"
#include <string.h>

void wl_store_tell(const wl_store *s, const wl_table *t, wl_i64 done, wl_i64 total) {
  if (s->progress) s->progress(s->progress_arg, t->name, done, total > done ? total : done + 1);
}

static void load_step(sqlite3_context *ctx, int n, sqlite3_value **args) {
  wl_store *s = sqlite3_user_data(ctx);
  wl_load *l = s->load;
  if (!l || n != l->n) {
    sqlite3_result_error(ctx, "wl_load can be called by warplite only", -1);
    return;
  }
  size_t n_bytes = 0;
  for (int i = 0; i < n && !l->status; i++) {
    wl_val v = wl_sqlite_val(args[i]);
    if (wl_sqlite_lost(v)) l->status = WL_NOMEM;
    if (!l->status) l->status = wl_builder_add(l->builders[i], v);
    n_bytes += wl_builder_bytes(l->builders[i]);
  }
  l->n_rows++;
  if ((l->n_rows & 0x3fff) == 0) {
    wl_store_tell(s, &l->table->shape, l->n_rows, l->table->estimate);
    wl_cache_beat((wl_cache_user *)&l->table->user);
  }
  if (!l->status && l->limit && n_bytes > l->limit) l->status = WL_FULL;
  if (l->status) sqlite3_result_error_code(ctx, SQLITE_ABORT);
}

static void load_final(sqlite3_context *ctx) {
  wl_store *s = sqlite3_user_data(ctx);
  if (s->load) s->load->finished = true;
  sqlite3_result_null(ctx);
}

int wl_load_register(wl_store *s) {
  return sqlite3_create_function(s->db, "wl_load", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, s, NULL,
                                 load_step, load_final);
}

static wl_i64 run_count(wl_store *s, const wl_table *t, const char *what, wl_status *st,
                        wl_error *err) {
  sqlite3_stmt *q = NULL;
  wl_i64 n = 0;
  char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\".\"%w\"", what, t->schema, t->name);
  int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  bool number = false;
  if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    n = sqlite3_column_int64(q, 0);
    number = sqlite3_column_type(q, 0) == SQLITE_INTEGER;
    rc = SQLITE_OK;
  }
  /* An authorizer may replace the function by NULL. max() over no rows is NULL too. */
  *st = rc       ? wl_store_sqlite_error(s, rc, err)
        : number ? WL_OK
                 : wl_not_taken(err, "the rows of %s cannot be counted", t->name);
  sqlite3_finalize(q);
  return n;
}

wl_status wl_load_too_long(const wl_table *t, wl_error *err) {
  return wl_not_taken(err, "a tablet of %s holds more than 4 GiB of text", t->name);
}

/* Runs the load statement into builders for the columns cols[0..n). */
static wl_status run_load(wl_store *s, const wl_table *t, const int *cols, int n, wl_load *l,
                          wl_error *err) {
  sqlite3_str *sql = sqlite3_str_new(s->db);
  sqlite3_str_appendall(sql, "SELECT wl_load(");
  for (int i = 0; i < n; i++)
    sqlite3_str_appendf(sql, i ? ",\"%w\"" : "\"%w\"",
                        cols[i] < 0 ? t->rowid_name : t->cols[cols[i]].name);
  sqlite3_str_appendf(sql, ") FROM \"%w\".\"%w\"", t->schema, t->name);
  if (t->key_index)
    sqlite3_str_appendf(sql, " INDEXED BY \"%w\"", t->key_index);
  else
    sqlite3_str_appendall(sql, " NOT INDEXED");
  char *text = sqlite3_str_finish(sql);
  if (!text) return wl_nomem(err);
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(s->db, text, -1, &q, NULL);
  sqlite3_free(text);
  if (!rc) {
    s->load = l;
    rc = sqlite3_step(q);
    s->load = NULL;
  }
  wl_status st = l->status == WL_TOOBIG ? wl_load_too_long(t, err)
                 : l->status            ? l->status
                 : rc != SQLITE_ROW     ? wl_store_sqlite_error(s, rc, err)
                                        : WL_OK;
  sqlite3_finalize(q);
  return st;
}

/* SQLite steps through the table. Each column has a builder. */
enum { MOST_ARGS = 100 }; /* of an SQL function, in any build of SQLite */

static wl_status step_columns(wl_store *s, const wl_stored *t, const int *cols, int n, size_t limit,
                              wl_column **out, wl_i64 *n_rows, wl_error *err) {
  wl_load l = {.n = n, .table = t, .limit = limit};
  wl_status rc = WL_OK;
  l.builders = wl_mem_zalloc((size_t)n * sizeof *l.builders);
  if (!l.builders) return wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) rc = wl_builder_open(&l.builders[i], err);
  if (!rc) rc = run_load(s, &t->shape, cols, n, &l, err);
  for (int i = 0; i < n && !rc; i++) rc = wl_builder_finish(l.builders[i], &out[i], err);
  *n_rows = l.n_rows;
  for (int i = 0; i < n; i++) wl_builder_close(l.builders[i]);
  wl_mem_free(l.builders);
  return rc;
}

/* Loads some columns at a time. The read transaction stays open, so their rows match. */
static wl_status load_by_steps(wl_store *s, const wl_stored *t, const int *cols, int n,
                               size_t limit, wl_column **out, wl_i64 *n_rows, wl_error *err) {
  wl_status rc = WL_OK;
  wl_i64 first_rows = 0;
  for (int at = 0; at < n && !rc; at += MOST_ARGS) {
    int m = n - at < MOST_ARGS ? n - at : MOST_ARGS;
    rc = step_columns(s, t, cols + at, m, limit, out + at, n_rows, err);
    for (int i = 0; i < m && !rc && limit; i++)
      limit = limit > out[at + i]->n_bytes ? limit - out[at + i]->n_bytes : 1;
    if (at == 0) first_rows = *n_rows;
    if (!rc && *n_rows != first_rows)
      rc = wl_fail(err, WL_ERROR, "%s changed while it was being read", t->shape.name);
  }
  return rc;
}

wl_status wl_load_columns(wl_store *s, wl_stored *t, const int *cols, int n, size_t limit,
                          wl_column **out, wl_i64 *n_rows, wl_error *err) {
  wl_error why = {0};
  wl_status rc;
  if (n == 0) {
    *n_rows = run_count(s, &t->shape, "count(*)", &rc, err);
    return rc;
  }
  rc = wl_btree_load(s, &t->shape, cols, n, limit, out, n_rows, &why);
  t->by_pages = rc == WL_OK;
  sqlite3_snprintf((int)sizeof t->why_not, t->why_not, "%s", rc ? why.text : "");
  if (rc == WL_NOT_TAKEN) return load_by_steps(s, t, cols, n, limit, out, n_rows, err);
  if (rc == WL_TOOBIG) return wl_load_too_long(&t->shape, err);
  if (rc) *err = why;
  return rc;
}

/* Estimates the rows from a few pages of the table's tree. < 0: they cannot be read. */
static wl_i64 rows_in_tree(wl_store *s, const wl_table *t) {
  wl_tree tree = {.of_table = !t->without_rowid};
  wl_tree_shape shape;
  wl_trees trees;
  wl_error ignored;
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("SELECT rootpage FROM \"%w\".sqlite_schema WHERE type = 'table' AND "
                              "name = %Q",
                              t->schema, t->name);
  if (sql && sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    tree.root = (wl_u32)sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  if (!tree.root) return -1;
  bool known = wl_trees_begin(s, t->schema, &trees, &ignored) == WL_OK &&
               wl_tree_measure(&trees, &tree, &shape);
  wl_trees_end(&trees);
  return known ? (wl_i64)shape.entries[0] : -1;
}

/* The largest rowid, but no more than the number of rows that the pages can hold. Where that says
** little, because there are no rowids or large ones, the rows of a few pages. */
wl_i64 wl_load_estimate(wl_store *s, const wl_table *t) {
  enum { ROW_BYTES = 64 }; /* of a file: a row of a dense table takes about as many */
  wl_status st;
  sqlite3_stmt *q = NULL;
  wl_i64 bytes = 0;
  char *sql = sqlite3_mprintf(
      "SELECT c.page_count*z.page_size FROM pragma_page_count AS c, pragma_page_size AS z"
      " WHERE c.schema=%Q AND z.schema=%Q",
      t->schema, t->schema);
  if (sql && sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    bytes = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  wl_i64 n = -1, bound = bytes / 16; /* nearly every row takes at least 16 bytes */
  if (!t->without_rowid && t->rowid_name) {
    char what[32];
    sqlite3_snprintf((int)sizeof what, what, "max(%s)", t->rowid_name);
    n = run_count(s, t, what, &st, NULL);
    if (st) return 0;
    if (n >= 0 && n <= bytes / ROW_BYTES) return n;
  }
  wl_i64 measured = rows_in_tree(s, t);
  if (measured >= 0) return n >= 0 && n < measured ? n : measured;
  if (t->without_rowid || !t->rowid_name) return bound / 4;
  return n < 0 || n > bound ? bound : n; /* no rows, or no answer: use the bound */
}
