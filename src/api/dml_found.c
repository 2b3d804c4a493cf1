/*
** The rows that a change reads, all of them before it writes the first: few as cells, many as
** columns. They come from the native engine like those of any query, from SQLite where it must run
** the query, or, where the query is no more than columns of an ordinary table, are that table's own
** columns.
**
** Invariants:
** 1. Either cells or cols is set, unless there are no rows.
** 2. Nothing is put into the log for these queries: the change's own line speaks of them.
*/
#include "api/dml.h"
#include "base/mem.h"
#include "vm/exchange.h"
#include "query/made.h"
#include "store/dict.h"
#include <stdlib.h>
#include <string.h>

enum { FEW = 4096 };

wl_val wl_found_value(const wl_found *r, wl_i64 row, int col) {
  if (r->order) row = r->order[row];
  return r->cols ? wl_column_value(r->cols[col], row) : r->cells[row * r->n_cols + col];
}

static void drop_columns(wl_found *r) {
  for (int k = 0; k < r->n_cols && r->cols; k++) wl_column_drop(r->cols[k]);
  wl_mem_free(r->cols);
  r->cols = NULL;
}

void wl_found_close(wl_found *r) {
  drop_columns(r);
  wl_mem_free(r->cells);
  wl_mem_free(r->order);
  wl_arena_close(&r->arena);
  *r = (wl_found){0};
}

/* ---- few rows */

static wl_status room_for_row(wl_found *r, wl_error *err) {
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

static wl_status keep_text(wl_found *r, wl_val *v, wl_error *err) {
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

static wl_status builders_finish(builders *b, wl_found *r, wl_error *err) {
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

/* The rows so far into builders. */
static wl_status move_on(wl_found *r, builders *b, wl_error *err) {
  wl_status rc = builders_open(b, r->n_cols, err);
  for (wl_i64 i = 0; i < r->n && !rc; i++) rc = builders_add(b, r->cells + i * r->n_cols, err);
  return rc;
}

static wl_status read_sqlite(sqlite3 *db, sqlite3_stmt *s, wl_found *r, wl_error *err) {
  builders b = {0};
  wl_status rc = WL_OK;
  int st = SQLITE_ROW;
  while (!rc && (st = wl_text_step(s)) == SQLITE_ROW) {
    if (r->n == 0) r->n_cols = sqlite3_column_count(s); /* a kept one may be prepared anew */
    if (r->n == FEW) rc = move_on(r, &b, err);
    if (!rc && !b.list) rc = room_for_row(r, err);
    wl_val *row = rc || b.list ? r->cells : r->cells + r->n * r->n_cols;
    for (int k = 0; k < r->n_cols && !rc; k++) {
      wl_val v = wl_sqlite_column(s, k);
      if (b.list) {
        if (wl_builder_add(b.list[k], v)) rc = wl_nomem(err);
      } else {
        row[k] = v;
        rc = keep_text(r, &row[k], err);
      }
    }
    r->n++;
  }
  if (!rc && st != SQLITE_DONE)
    rc = wl_fail(err, (wl_status)sqlite3_extended_errcode(db), "%s", sqlite3_errmsg(db));
  if (!rc && b.list) rc = builders_finish(&b, r, err);
  builders_close(&b);
  return rc;
}

/* ---- the native engine's */

static wl_status read_small(const wl_batch *b, const wl_reg *regs, wl_found *r, wl_error *err) {
  wl_status rc = WL_OK;
  for (wl_i64 i = b->skip; i < b->n_rows && !rc; i++) {
    rc = room_for_row(r, err);
    for (int k = 0; k < r->n_cols && !rc; k++) {
      wl_val v = wl_batch_value(b, regs, k, i);
      const wl_dict *dict = v.t == WL_T_INT ? wl_batch_dict(b, k) : NULL;
      if (dict) v = wl_dict_value(dict, (wl_i64)v.v);
      r->cells[r->n * r->n_cols + k] = v;
      rc = keep_text(r, &r->cells[r->n * r->n_cols + k], err);
    }
    if (!rc) r->n++;
  }
  return rc;
}

static wl_status read_native(wl_answer *a, wl_found *r, wl_error *err) {
  wl_conn *c = a->conn;
  const wl_reg *regs = wl_run_regs(a->run);
  wl_batch *b = NULL, *next = NULL;
  wl_making *m = NULL;
  wl_made made = {0};
  wl_status rc = wl_answer_next(a, &b, err);
  if (!rc && b) rc = wl_answer_next(a, &next, err);
  if (!rc && b && !next && b->n_rows - b->skip <= FEW) {
    rc = read_small(b, regs, r, err);
  } else if (!rc && b) {
    rc = wl_making_open(r->n_cols, 0, &m, err);
    while (!rc && b) {
      rc = wl_making_add(m, b, regs, NULL, c->set.threads, err);
      wl_batch_give(b);
      b = next;
      next = NULL;
      if (!rc && b) rc = wl_answer_next(a, &next, err);
    }
    if (!rc) rc = wl_making_finish(m, c->set.threads, &made, err);
    if (!rc) {
      r->n = made.n_rows;
      r->cols = made.cols;
      made.cols = NULL;
    }
  }
  wl_batch_give(b);
  wl_batch_give(next);
  wl_making_close(m);
  wl_made_close(&made);
  return rc;
}

/* ---- columns of a table, as they are */

static bool only_columns(const wl_query *q) {
  if (!q->simple || q->where || q->aggregate || q->grouped || q->distinct || q->n_order ||
      q->limit || q->offset)
    return false;
  for (int k = 0; k < q->n_results; k++)
    if (q->results[k]->kind != WL_B_COLUMN) return false;
  return q->n_results > 0;
}

/* WL_NOT_TAKEN: read it some other way. */
static wl_status read_table(wl_conn *c, const wl_query *q, wl_found *r, wl_error *err) {
  wl_table *t;
  wl_snapshot snap = {0};
  bool changed = false, exact;
  wl_status rc = wl_store_table(c->store, q->schema, q->table, &t, err);
  if (rc) return rc;
  if (wl_tablets_find(c->db, t->schema, t->name))
    return wl_not_taken(err, "its columns have dead rows");
  if (wl_store_estimate(c->store, t, &exact) < FEW) return wl_not_taken(err, "it is small");
  int *cols = wl_mem_alloc(((size_t)q->n_results + 1) * sizeof *cols);
  if (!cols) return wl_nomem(err);
  for (int k = 0; k < q->n_results; k++) cols[k] = q->results[k]->index;
  rc = wl_store_begin(c->store, t, &changed, err);
  if (!rc && changed) rc = wl_not_taken(err, "the schema changed");
  bool begun = rc == WL_OK || changed;
  if (!rc) rc = wl_store_acquire(c->store, t, cols, q->n_results, &snap, err);
  if (begun) wl_store_end(c->store);
  wl_mem_free(cols);
  if (rc) return rc;
  r->n_cols = q->n_results;
  r->n = snap.n_rows;
  r->native = true;
  r->cols = wl_mem_zalloc(((size_t)q->n_results + 1) * sizeof *r->cols);
  if (!r->cols) rc = wl_nomem(err);
  for (int k = 0; k < q->n_results && !rc; k++) r->cols[k] = wl_column_hold(snap.cols[k]);
  wl_snapshot_release(&snap);
  sqlite3_snprintf((int)sizeof r->reason, r->reason, "cpu: the columns of %s", t->name);
  return rc;
}

/* ---- */

/* Why SQLite must run it, in why->text. *done: the rows are there already. */
static wl_status place(wl_conn *c, const char *sql, wl_found *r, bool *done, wl_error *why) {
  wl_sqltext *t = NULL;
  wl_placement where;
  *done = false;
  if (c->set.engine == WL_ENGINE_SQLITE) return wl_not_taken(why, "the setting engine=sqlite");
  wl_status rc = wl_sqltext_get(c, sql, strlen(sql), &t, why);
  if (!rc && t->query->n_sources == 0) rc = wl_not_taken(why, "it reads no table");
  if (!rc && t->query->n_sources == 1 && !t->query->sources[0].table &&
      !t->query->sources[0].derived)
    rc = wl_not_taken(why, "it reads no table");
  if (!rc && only_columns(t->query)) {
    rc = read_table(c, t->query, r, why);
    *done = !rc;
    if (rc == WL_NOT_TAKEN) { /* then as any other query */
      rc = WL_OK;
      why->text[0] = 0;
    }
  }
  if (!rc && !*done) rc = wl_answer_place(c, t, &where, why);
  if (!rc && !*done && where.engine == WL_ENGINE_SQLITE) rc = wl_not_taken(why, "%s", where.reason);
  if (!rc && !*done && t->query->n_calls) rc = wl_answer_functions(c, t->query, why);
  wl_sqltext_drop(c, t);
  return rc;
}

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

/* SQLite's answer, by a statement that is kept for the next time unless it is masked. */
static wl_status read_kept(wl_conn *c, const char *sql, sqlite3_value **params, int n_params,
                           const char *why, const wl_mask *mask, sqlite3_stmt **kept, wl_found *r,
                           wl_error *err) {
  sqlite3_stmt *once = NULL;
  int st = SQLITE_OK;
  if (mask)
    st = wl_masked_prepare(c->db, sql, -1, mask, kept = &once, NULL);
  else if (!*kept)
    st = sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
  if (st) return wl_fail(err, (wl_status)st, "%s", sqlite3_errmsg(c->db));
  wl_params_bind(*kept, params, n_params);
  r->n_cols = sqlite3_column_count(*kept);
  sqlite3_snprintf((int)sizeof r->reason, r->reason, "sqlite: %.380s", why);
  wl_status rc = read_sqlite(c->db, *kept, r, err);
  sqlite3_reset(*kept);
  sqlite3_finalize(once);
  return rc;
}

wl_status wl_found_read(wl_conn *c, const char *sql, sqlite3_value **params, int n_params,
                        const char *refused, const wl_mask *mask, sqlite3_stmt **kept, wl_found *r,
                        wl_error *err) {
  wl_error why = {0};
  wl_answer a = {0};
  sqlite3_value **args = NULL;
  int n_args = 0;
  bool done = false, strict = c->set.strict;
  *r = (wl_found){0};
  wl_arena_init(&r->arena);
  wl_status rc = refused ? wl_not_taken(&why, "%s", refused) : place(c, sql, r, &done, &why);
  if (done) return WL_OK;
  if (rc == WL_NOMEM || rc == WL_INTERRUPT) {
    *err = why;
    return rc;
  }
  if (rc && why.text[0]) {
    rc = read_kept(c, sql, params, n_params, why.text, mask, kept, r, err);
    goto done;
  }
  rc = arguments(sql, params, n_params, &args, &n_args, err);
  c->set.strict = false; /* it is no error here that SQLite finds the rows */
  if (!rc) rc = wl_answer_open(c, sql, args, n_args, why.text[0] ? why.text : NULL, NULL, &a, err);
  c->set.strict = strict;
  wl_mem_free(args);
  if (rc) goto done;
  a.quiet = true;
  r->n_cols = a.n_cols;
  r->native = a.run != NULL;
  rc = a.run ? read_native(&a, r, err) : read_sqlite(c->db, a.stmt, r, err);
  a.n_rows = r->n;
  sqlite3_snprintf((int)sizeof r->reason, r->reason, "%.390s", a.reason);
  wl_answer_close(&a);
done:
  if (rc) wl_found_close(r);
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

wl_status wl_found_sort(wl_found *r, bool *twice, wl_error *err) {
  bool rises = true, by_one;
  *twice = false;
  wl_i64 last = 0;
  if (r->cols && !r->order && wl_column_rises(r->cols[0], &by_one)) return WL_OK;
  for (wl_i64 i = 0; i < r->n && rises; i++) {
    wl_i64 key = (wl_i64)wl_found_value(r, i, 0).v;
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
  for (wl_i64 i = 0; i < r->n; i++) p[i] = (place_of){(wl_i64)wl_found_value(r, i, 0).v, i};
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

wl_status wl_found_columns(wl_found *r, wl_error *err) {
  if (r->cols && !r->order) return WL_OK;
  builders b = {0};
  wl_status rc = builders_open(&b, r->n_cols, err);
  for (int k = 0; k < r->n_cols && !rc; k++)
    for (wl_i64 i = 0; i < r->n && !rc; i++)
      if (wl_builder_add(b.list[k], wl_found_value(r, i, k))) rc = wl_nomem(err);
  if (!rc) rc = builders_finish(&b, r, err);
  if (!rc) {
    wl_mem_free(r->order);
    r->order = NULL;
  }
  builders_close(&b);
  return rc;
}
