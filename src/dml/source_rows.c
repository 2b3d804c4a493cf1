/*
** The rows that a change reads, all of them before it writes the first. Few rows are cells, many
** are columns. They come from the native engine, as for any query, or from SQLite if it must run
** the query. If the query is just columns of an ordinary table, that table's columns are used
** directly. An INSERT whose rows would take too much memory reads and writes them in pieces.
**
** Invariants:
** 1. Either cells or cols is set, unless there are no rows.
** 2. These queries are not logged: the change's own line describes them.
** 3. The query does not see pieces that were written: the native engine reads a snapshot, and where
**    SQLite would read the table that is written, it materializes all rows first.
*/
#include "dml/run.h"
#include "base/mem.h"
#include "value/exchange.h"
#include "column/rows.h"
#include "column/dict.h"
#include <stdlib.h>
#include <string.h>

enum { FEW = 4096 };

wl_val wl_source_rows_value(const wl_source_rows *r, wl_i64 row, int col) {
  if (r->order) row = r->order[row];
  return r->cols ? wl_column_value(r->cols[col], row) : r->cells[row * r->n_cols + col];
}

static void drop_columns(wl_source_rows *r) {
  for (int k = 0; k < r->n_cols && r->cols; k++) wl_column_drop(r->cols[k]);
  wl_mem_free(r->cols);
  r->cols = NULL;
}

static void drop_rows(wl_source_rows *r) {
  drop_columns(r);
  wl_mem_free(r->cells);
  wl_mem_free(r->order);
  wl_arena_close(&r->arena);
  wl_arena_init(&r->arena);
  r->cells = NULL;
  r->order = NULL;
  r->n = r->size_cells = 0;
}

static void drop_rest(wl_source_rows *r) {
  for (int i = 0; i < 2; i++) {
    wl_batch_give(r->batches[i]);
    r->batches[i] = NULL;
  }
  if (r->owns_rest)
    sqlite3_finalize(r->rest);
  else
    sqlite3_reset(r->rest);
  r->rest = NULL;
  r->more = r->owns_rest = false;
  wl_answer_close(&r->answer);
}

void wl_source_rows_close(wl_source_rows *r) {
  drop_rows(r);
  drop_rest(r);
  *r = (wl_source_rows){0};
}

/* ---- few rows */

static wl_status room_for_row(wl_source_rows *r, wl_error *err) {
  wl_i64 need = (r->n + 1) * r->n_cols;
  if (need <= r->size_cells) return WL_OK;
  wl_i64 size = r->size_cells ? r->size_cells * 2 : 16;
  while (size < need) size *= 2;
  wl_val *p = wl_mem_realloc(r->cells, (size_t)r->size_cells * sizeof *p, (size_t)size * sizeof *p);
  if (!p) return wl_nomem(err);
  r->cells = p;
  r->size_cells = size;
  return WL_OK;
}

static wl_status copy_text(wl_source_rows *r, wl_val *v, wl_error *err) {
  if (v->t < WL_T_TEXT) return WL_OK;
  char *p = wl_arena_alloc(&r->arena, (size_t)v->n + 1);
  if (!p) return wl_nomem(err);
  if (v->n) memcpy(p, wl_bytes(*v), v->n);
  v->v = (wl_u64)(size_t)p;
  return WL_OK;
}

/* ---- SQLite's rows */

typedef struct builders {
  wl_builder **list;
  int n;
} builders;

static void builders_close(builders *b) {
  for (int k = 0; k < b->n && b->list; k++) wl_builder_close(b->list[k]);
  wl_mem_free(b->list);
  *b = (builders){0};
}

static wl_status builders_open(builders *b, int n, wl_error *err) {
  b->n = n;
  b->list = wl_mem_zalloc(((size_t)n + 1) * sizeof *b->list);
  wl_status rc = b->list ? WL_OK : wl_nomem(err);
  for (int k = 0; k < n && !rc; k++) rc = wl_builder_open(&b->list[k], err);
  return rc;
}

static wl_status builders_finish(builders *b, wl_source_rows *r, wl_error *err) {
  wl_column **cols = wl_mem_zalloc(((size_t)b->n + 1) * sizeof *cols);
  wl_status rc = cols ? WL_OK : wl_nomem(err);
  for (int k = 0; k < b->n && !rc; k++) rc = wl_builder_finish(b->list[k], &cols[k], err);
  drop_columns(r);
  r->cols = cols;
  wl_mem_free(r->cells);
  r->cells = NULL;
  r->size_cells = 0;
  return rc;
}

static wl_status builders_add(builders *b, const wl_val *row, wl_error *err) {
  for (int k = 0; k < b->n; k++)
    if (wl_builder_add(b->list[k], row[k])) return wl_nomem(err);
  return WL_OK;
}

/* Moves the rows read so far into builders. */
static wl_status move_to_builders(wl_source_rows *r, builders *b, wl_error *err) {
  wl_status rc = builders_open(b, r->n_cols, err);
  for (wl_i64 i = 0; i < r->n && !rc; i++) rc = builders_add(b, r->cells + i * r->n_cols, err);
  return rc;
}

/* Whether a piece ends here: after a whole tablet, unless it is already large. */
static bool is_full(const wl_source_rows *r, const builders *b) {
  enum { ROWS_PER_LOOK = 256 };
  if (!r->limit || !r->n || r->n % ROWS_PER_LOOK) return false;
  wl_i64 n_bytes = r->n * r->row_bytes + (b->list ? 0 : (wl_i64)r->arena.n_bytes);
  for (int k = 0; k < b->n && b->list; k++) n_bytes += (wl_i64)wl_builder_bytes(b->list[k]);
  return n_bytes >= r->limit && (r->n % WL_TABLET_ROWS == 0 || n_bytes >= 2 * r->limit);
}

/* Adds one row of SQLite's, as cells or to the builders. */
static wl_status add_row(wl_source_rows *r, builders *b, sqlite3_stmt *s, wl_error *err) {
  wl_status rc = r->n == FEW ? move_to_builders(r, b, err) : WL_OK;
  if (!rc && !b->list) rc = room_for_row(r, err);
  wl_val *row = rc || b->list ? r->cells : r->cells + r->n * r->n_cols;
  for (int k = 0; k < r->n_cols && !rc; k++) {
    wl_val v = wl_sqlite_column(s, k);
    if (b->list) {
      if (wl_builder_add(b->list[k], v)) rc = wl_nomem(err);
    } else {
      row[k] = v;
      rc = copy_text(r, &row[k], err);
    }
  }
  r->n++;
  return rc;
}

/* Whether the error comes from one row, after others that may have to be written first. */
static bool is_late(const wl_source_rows *r, wl_status rc) {
  int code = (int)rc & 0xff;
  return r->keeps_late && (code == SQLITE_ERROR || code == SQLITE_TOOBIG);
}

/* Handles an error of the query after some rows. If these must be written first, keeps it for
** later. */
static wl_status meet_error(wl_source_rows *r, wl_status rc, wl_i64 n_rows, wl_error *err) {
  if (n_rows == 0 || !is_late(r, rc)) return rc;
  r->late = *err;
  r->more = true;
  return WL_OK;
}

/* Reads a piece. r->more: the statement already stands on a row. */
static wl_status read_sqlite(sqlite3 *db, sqlite3_stmt *s, wl_source_rows *r, wl_error *err) {
  builders b = {0};
  wl_status rc = WL_OK;
  bool standing = r->more;
  int st = SQLITE_ROW;
  r->more = false;
  while (!rc && !r->more && (standing || (st = wl_text_step(s)) == SQLITE_ROW)) {
    standing = false;
    if (r->n == 0) r->n_cols = sqlite3_column_count(s); /* SQLite may have prepared it again */
    r->more = is_full(r, &b);
    if (!r->more) rc = add_row(r, &b, s, err);
  }
  if (!rc && !r->more && st != SQLITE_DONE) {
    rc = wl_fail(err, (wl_status)sqlite3_extended_errcode(db), "%s", sqlite3_errmsg(db));
    rc = meet_error(r, rc, r->n, err);
  }
  if (!rc && b.list) rc = builders_finish(&b, r, err);
  builders_close(&b);
  return rc;
}

/* Whether SQLite's plan of a query reads a table. */
static bool plan_reads(sqlite3 *db, const char *sql, const wl_tablets *t) {
  sqlite3_stmt *s = NULL;
  wl_u64 before = wl_tablets_planned(t);
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  sqlite3_finalize(s);
  return rc || wl_tablets_planned(t) != before;
}

/* Reads the same rows again, all in one piece: the authorizer's answers hold for this text only,
** and not for a text around it. */
static wl_status read_whole(wl_conn *c, sqlite3_stmt *s, wl_source_rows *r, wl_error *err) {
  drop_rows(r);
  sqlite3_reset(s);
  r->limit = 0;
  r->more = r->keeps_late = false;
  r->rest = NULL;
  return read_sqlite(c->db, s, r, err);
}

/* Reads the same rows, materialized: SQLite collects all of them, in a temporary file if needed,
** before it returns the first. */
static wl_status read_materialized(wl_conn *c, const wl_source_query *x, wl_source_rows *r,
                                   wl_error *err) {
  drop_rows(r);
  drop_rest(r);
  char *sql =
      sqlite3_mprintf("WITH wl_rows AS MATERIALIZED (%s) SELECT * FROM wl_rows", x->request->sql);
  int st = sql ? sqlite3_prepare_v2(c->db, sql, -1, &r->rest, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (st) return wl_fail(err, (wl_status)st, "%s", sqlite3_errmsg(c->db));
  r->owns_rest = true;
  wl_params_bind(r->rest, x->params, x->n_params);
  return read_sqlite(c->db, r->rest, r, err);
}

/* If a query reads the table that is written, SQLite writes rows only after it has read all. */
static wl_status late_at_once(wl_conn *c, const wl_source_query *x, wl_source_rows *r,
                              wl_error *err) {
  if (!r->late.code || !plan_reads(c->db, x->request->sql, x->target)) return WL_OK;
  *err = r->late;
  return err->code;
}

/* Reads the first piece of SQLite's statement, which stays open for the others. */
static wl_status begin_sqlite(wl_conn *c, const wl_source_query *x, sqlite3_stmt *s,
                              wl_source_rows *r, wl_error *err) {
  wl_status rc = read_sqlite(c->db, s, r, err);
  if (rc || !r->more) return rc;
  r->rest = s;
  if (r->late.code) return late_at_once(c, x, r, err);
  if (!plan_reads(c->db, x->request->sql, x->target)) return WL_OK;
  return x->mask ? read_whole(c, s, r, err) : read_materialized(c, x, r, err);
}

/* ---- the native engine's */

static wl_status read_small(const wl_batch *b, const wl_reg *regs, wl_source_rows *r,
                            wl_error *err) {
  wl_status rc = WL_OK;
  for (wl_i64 i = b->skip; i < b->n_rows && !rc; i++) {
    rc = room_for_row(r, err);
    for (int k = 0; k < r->n_cols && !rc; k++) {
      wl_val v = wl_batch_value(b, regs, k, i);
      const wl_dict *dict = v.t == WL_T_INT ? wl_batch_dict(b, k) : NULL;
      if (dict) v = wl_dict_value(dict, (wl_i64)v.v);
      r->cells[r->n * r->n_cols + k] = v;
      rc = copy_text(r, &r->cells[r->n * r->n_cols + k], err);
    }
    if (!rc) r->n++;
  }
  return rc;
}

/* Gets batch i, if it is not there yet. */
static wl_status fetch(wl_source_rows *r, int i, wl_error *err) {
  if (r->ended) return WL_OK;
  wl_status rc = wl_answer_next(&r->answer, &r->batches[i], err);
  r->ended = rc || !r->batches[i];
  return rc;
}

/* Reads a piece, starting with batches[0]. */
static wl_status read_batches(wl_source_rows *r, wl_error *err) {
  const wl_reg *regs = wl_run_regs(r->answer.run);
  int n_threads = r->answer.conn->set.threads;
  wl_rows_maker *m = NULL;
  wl_rows made = {0};
  wl_status rc = wl_rows_maker_open(r->n_cols, 0, &m, err);
  while (!rc && r->batches[0] &&
         !(r->limit && wl_rows_maker_bytes(m) + wl_rows_maker_rows(m) * r->row_bytes >= r->limit)) {
    rc = wl_rows_maker_add(m, r->batches[0], regs, NULL, n_threads, err);
    wl_batch_give(r->batches[0]);
    r->batches[0] = r->batches[1];
    r->batches[1] = NULL;
    if (!rc && !r->batches[0]) {
      rc = fetch(r, 0, err);
      if (rc) rc = meet_error(r, rc, wl_rows_maker_rows(m), err);
    }
  }
  r->more = r->batches[0] || r->late.code;
  if (!rc) rc = wl_rows_maker_finish(m, n_threads, &made, err);
  if (!rc) {
    r->n = made.n_rows;
    r->cols = made.cols;
    made.cols = NULL;
  }
  wl_rows_maker_close(m);
  wl_rows_close(&made);
  return rc;
}

static wl_status read_native(wl_source_rows *r, wl_error *err) {
  wl_status rc = fetch(r, 0, err);
  if (!rc && r->batches[0]) {
    rc = fetch(r, 1, err);
    if (rc) rc = meet_error(r, rc, r->batches[0]->n_rows - r->batches[0]->skip, err);
  }
  if (rc || !r->batches[0]) return rc;
  const wl_batch *b = r->batches[0];
  if (!r->batches[1] && b->n_rows - b->skip <= FEW)
    return read_small(b, wl_run_regs(r->answer.run), r, err);
  return read_batches(r, err);
}

/* ---- whole columns of a table */

/* WL_NOT_TAKEN: the rows must be read in another way. */
static wl_status read_table(wl_conn *c, const wl_query *q, wl_source_rows *r, wl_error *err) {
  wl_table *t;
  wl_snapshot snap = {0};
  bool changed = false;
  wl_status rc = wl_store_table(c->store, q->schema, q->table, &t, err);
  if (rc) return rc;
  int *cols = wl_mem_alloc(((size_t)q->n_results + 1) * sizeof *cols);
  if (!cols) return wl_nomem(err);
  for (int k = 0; k < q->n_results; k++) cols[k] = q->results[k]->index;
  rc = wl_source_begin(t->source, &changed, err);
  if (!rc && changed) rc = wl_not_taken(err, "the schema changed");
  bool begun = rc == WL_OK || changed;
  if (!rc) rc = wl_source_acquire(t->source, cols, q->n_results, &snap, err);
  if (begun) wl_source_end(t->source);
  wl_mem_free(cols);
  if (rc) return rc;
  r->n_cols = q->n_results;
  r->n = snap.n_rows;
  r->native = true;
  r->cols = wl_mem_zalloc(((size_t)q->n_results + 1) * sizeof *r->cols);
  if (!r->cols) rc = wl_nomem(err);
  for (int k = 0; k < q->n_results && !rc; k++) r->cols[k] = wl_column_hold(snap.cols[k]);
  wl_snapshot_release(&snap);
  return rc;
}

/* ---- */

static wl_status arguments(const char *sql, sqlite3_value **params, int n_params,
                           sqlite3_value ***out, int *n_out, wl_error *err) {
  wl_arena arena;
  wl_stmt *s = NULL;
  *n_out = 0;
  *out = NULL;
  if (!n_params) return WL_OK;
  wl_arena_init(&arena);
  wl_status rc = wl_parse(&arena, sql, strlen(sql), &s, err);
  if (!rc) {
    *out = wl_mem_zalloc(((size_t)s->n_params + 1) * sizeof **out);
    if (!*out) rc = wl_nomem(err);
  }
  for (int i = 0; !rc && i < s->n_params; i++)
    if (s->params[i]) (*out)[(*n_out)++] = i < n_params ? params[i] : NULL;
  wl_arena_close(&arena);
  return rc;
}

/* Reads the rows from SQLite. The statement is kept for the next run, unless it is masked. */
static wl_status read_by_sqlite(wl_conn *c, const wl_source_query *x, const char *reason,
                                wl_source_rows *r, wl_error *err) {
  sqlite3_stmt *once = NULL, **stmt = x->mask ? &once : x->stmt;
  int st = SQLITE_OK;
  if (x->mask)
    st = wl_masked_prepare(c->db, x->request->sql, -1, x->mask, stmt, NULL);
  else if (!*stmt)
    st = sqlite3_prepare_v3(c->db, x->request->sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
  if (st) return wl_fail(err, (wl_status)st, "%s", sqlite3_errmsg(c->db));
  wl_params_bind(*stmt, x->params, x->n_params);
  r->n_cols = sqlite3_column_count(*stmt);
  sqlite3_snprintf((int)sizeof r->reason, r->reason, "%.390s", reason);
  wl_status rc = begin_sqlite(c, x, *stmt, r, err);
  bool goes_on = r->rest == *stmt;
  if (!goes_on) sqlite3_reset(*stmt);
  if (goes_on && once)
    r->owns_rest = true;
  else
    sqlite3_finalize(once);
  return rc;
}

/* Reads the rows from the engine that was chosen. */
static wl_status read_answer(wl_conn *c, const wl_source_query *x, wl_source_rows *r,
                             wl_error *err) {
  wl_request q = *x->request;
  sqlite3_value **args = NULL;
  wl_answer *a = &r->answer;
  q.stage = WL_AT_START;
  wl_status rc = arguments(q.sql, x->params, x->n_params, &args, &q.n_args, err);
  q.args = args;
  if (!rc) rc = wl_answer_open(c, &q, NULL, a, err);
  wl_mem_free(args);
  if (rc) return rc;
  a->unlogged = true;
  r->n_cols = a->n_cols;
  r->native = a->run != NULL;
  sqlite3_snprintf((int)sizeof r->reason, r->reason, "%.390s", a->reason);
  rc = r->native ? read_native(r, err) : begin_sqlite(c, x, a->stmt, r, err);
  if (!rc && r->native) rc = late_at_once(c, x, r, err);
  if (rc && !r->late.code && r->native && is_late(r, rc)) {
    /* The rows before the error are not known. SQLite returns them. */
    char why[sizeof err->text + sizeof "sqlite: "];
    sqlite3_snprintf((int)sizeof why, why, "sqlite: %s", err->text);
    drop_rows(r);
    drop_rest(r);
    r->native = false;
    return read_by_sqlite(c, x, why, r, err);
  }
  if (!r->more) drop_rest(r);
  return rc;
}

wl_status wl_source_rows_read(wl_conn *c, const wl_source_query *x, wl_source_rows *r,
                              wl_error *err) {
  wl_decision d;
  *r = (wl_source_rows){.limit = x->limit, .row_bytes = x->row_bytes, .keeps_late = x->keeps_late};
  wl_arena_init(&r->arena);
  wl_status rc = wl_route(c, x->request, &d, err);
  if (!rc && d.whole_columns) {
    sqlite3_snprintf((int)sizeof r->reason, r->reason, "%.390s", d.reason);
    rc = read_table(c, d.text->query, r, err);
    if (rc != WL_NOT_TAKEN) goto done;
    /* In a transaction that has written, it is read like any other query. */
    wl_request other = *x->request;
    other.copies = false;
    wl_decision_close(&d);
    rc = wl_route(c, &other, &d, err);
  }
  if (!rc && d.engine == WL_ENGINE_SQLITE)
    rc = read_by_sqlite(c, x, d.reason, r, err);
  else if (!rc)
    rc = read_answer(c, x, r, err);
done:
  wl_decision_close(&d);
  if (rc) wl_source_rows_close(r);
  return rc;
}

wl_status wl_source_rows_more(wl_conn *c, wl_source_rows *r, wl_error *err) {
  drop_rows(r);
  if (r->late.code) {
    *err = r->late;
    return err->code;
  }
  wl_status rc = r->rest ? read_sqlite(c->db, r->rest, r, err) : read_batches(r, err);
  if (!r->more) drop_rest(r);
  return rc;
}

/* ---- order */

typedef struct place_of {
  wl_i64 key, row;
} place_of;

static int by_key(const void *a, const void *b) {
  const place_of *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->row < y->row ? -1 : x->row > y->row;
}

wl_status wl_source_rows_sort(wl_source_rows *r, bool *twice, wl_error *err) {
  bool rises = true, by_one;
  *twice = false;
  wl_i64 last = 0;
  if (r->cols && !r->order && wl_column_rises(r->cols[0], &by_one)) return WL_OK;
  for (wl_i64 i = 0; i < r->n && rises; i++) {
    wl_i64 key = (wl_i64)wl_source_rows_value(r, i, 0).v;
    rises = i == 0 || key > last;
    last = key;
  }
  if (rises) return WL_OK;
  place_of *p = wl_mem_alloc((size_t)r->n * sizeof *p);
  wl_i64 *order = wl_mem_alloc((size_t)r->n * sizeof *order);
  if (!p || !order) {
    wl_mem_free(p);
    wl_mem_free(order);
    return wl_nomem(err);
  }
  for (wl_i64 i = 0; i < r->n; i++) p[i] = (place_of){(wl_i64)wl_source_rows_value(r, i, 0).v, i};
  qsort(p, (size_t)r->n, sizeof *p, by_key);
  wl_i64 n = 0;
  for (wl_i64 i = 0; i < r->n; i++) {
    if (i + 1 < r->n && p[i + 1].key == p[i].key)
      *twice = true;
    else
      order[n++] = p[i].row;
  }
  wl_mem_free(p);
  r->order = order;
  r->n = n;
  return WL_OK;
}

wl_status wl_source_rows_columns(wl_source_rows *r, wl_error *err) {
  if (r->cols && !r->order) return WL_OK;
  builders b = {0};
  wl_status rc = builders_open(&b, r->n_cols, err);
  for (int k = 0; k < r->n_cols && !rc; k++)
    for (wl_i64 i = 0; i < r->n && !rc; i++)
      if (wl_builder_add(b.list[k], wl_source_rows_value(r, i, k))) rc = wl_nomem(err);
  if (!rc) rc = builders_finish(&b, r, err);
  if (!rc) {
    wl_mem_free(r->order);
    r->order = NULL;
  }
  builders_close(&b);
  return rc;
}
