/*
** Staged data of a sphyraena: the columns that a SELECT reads, in memory and on a device. Only the
** text of the SELECT is kept. Which columns it reads is found again each time, because tables may
** change.
*/
#include "api/sphyraena/sphyraena_impl.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "api/functions.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/query.h"
#include "route/place_query.h"
#include <string.h>

/* ---- the columns of a SELECT */

typedef struct table_columns {
  wl_table *table;
  int *columns; /* owned */
  int n;
} table_columns;

typedef struct wanted {
  table_columns *tables; /* owned */
  int n;
  bool lost; /* out of memory */
} wanted;

static void wanted_close(wanted *w) {
  for (int k = 0; k < w->n; k++) wl_mem_free(w->tables[k].columns);
  wl_mem_free(w->tables);
}

/* Finds the entry of a table, or adds one with room for all its columns. */
static table_columns *entry_of(wanted *w, wl_table *t) {
  for (int k = 0; k < w->n; k++)
    if (w->tables[k].table == t) return &w->tables[k];
  size_t size = sizeof *w->tables, n = (size_t)w->n;
  table_columns *more = wl_mem_realloc(w->tables, n * size, (n + 1) * size);
  if (!more) return NULL;
  w->tables = more;
  more[n] = (table_columns){t, wl_mem_alloc(((size_t)t->n_cols + 1) * sizeof(int)), 0};
  if (!more[n].columns) return NULL;
  w->n++;
  return &more[n];
}

static void add_table(void *arg, const wl_query *q, int source, wl_table *t) {
  wanted *w = arg;
  table_columns *e = entry_of(w, t);
  if (!e) w->lost = true;
  for (int k = 0; e && k < q->n_cols; k++) {
    int i = 0;
    if (q->cols[k].source != source) continue;
    while (i < e->n && e->columns[i] != q->cols[k].column) i++;
    if (i == e->n) e->columns[e->n++] = q->cols[k].column;
  }
}

/* Takes all columns of the tables that SQLite's program reads. */
static wl_status find_tables(wl_conn *c, const char *sql, wanted *w, wl_error *err) {
  wl_arena arena;
  wl_priced p;
  wl_arena_init(&arena);
  wl_status rc = wl_priced_read(c->db, c->store, sql, strlen(sql), &arena, &p, err);
  for (int i = 0; !rc && i < p.program.n; i++)
    if (p.program.steps[i].op == WL_VDBE_VOpen) rc = wl_not_taken(err, "a virtual table");
  for (int i = 0; !rc && i < p.n_trees; i++) {
    const char *schema, *name;
    wl_table *t = NULL;
    wl_priced_table(&p, i, &schema, &name);
    rc = wl_store_table(c->store, schema, name, &t, err);
    table_columns *e = rc ? NULL : entry_of(w, t);
    if (!rc && !e) rc = wl_nomem(err);
    if (!rc) e->n = 0; /* another tree may be of the same table */
    for (int k = 0; !rc && k < t->n_cols; k++)
      if (!t->cols[k].hidden) e->columns[e->n++] = k;
  }
  wl_arena_close(&arena);
  return rc;
}

/* Finds the columns that a SELECT reads. Inside wl_store_enter(). If only SQLite can run it, they
** are not known one by one. */
static wl_status find_columns(wl_conn *c, const char *sql, wanted *w, wl_error *err) {
  wl_statement_text *t = NULL;
  wl_status rc = wl_conn_keep_helpers(c, err);
  if (rc) return rc;
  rc = wl_statement_text_get(c, sql, strlen(sql), &t, err);
  if (!rc) wl_query_each_table(c->store, t->query, add_table, w);
  wl_statement_text_drop(t);
  if (rc == WL_NOT_TAKEN) {
    wl_error why = *err;
    rc = find_tables(c, sql, w, err);
    if (rc == WL_NOT_TAKEN) *err = why;
  }
  return !rc && w->lost ? wl_nomem(err) : rc;
}

/* The columns of a SELECT in memory, held: a snapshot for each table. */
typedef struct column_sets {
  wl_snapshot *sets; /* owned */
  int n;
} column_sets;

static void release(column_sets *all) {
  for (int k = 0; k < all->n; k++) wl_snapshot_release(&all->sets[k]);
  wl_mem_free(all->sets);
}

/* Holds the columns of a SELECT. Loads those that are not in memory. */
static int acquire(sphyraena *s, wl_conn *c, const char *sql, column_sets *out) {
  wl_error err = {0};
  wanted w = {0};
  bool changed, began = false;
  wl_store_enter(c->store);
  wl_status rc = find_columns(c, sql, &w, &err);
  if (!rc) out->sets = wl_mem_zalloc(((size_t)w.n + 1) * sizeof *out->sets);
  if (!rc && !out->sets) rc = wl_nomem(&err);
  for (int k = 0; k < w.n && !rc; k++) {
    const table_columns *t = &w.tables[k];
    rc = wl_source_begin(t->table->source, &changed, &err);
    began = !rc;
    if (!rc) rc = wl_source_acquire(t->table->source, t->columns, t->n, &out->sets[k], &err);
    wl_store_end(c->store);
    out->n = k + 1;
  }
  wl_store_leave(c->store);
  wanted_close(&w);
  if (rc == WL_NOT_TAKEN) /* a table that can be read, but not loaded, is too large */
    return wl_sphyraena_fail(s, began ? SPHYRAENA_ERR_MEM : SPHYRAENA_ERR_STMT,
                             began ? SQLITE_FULL : SQLITE_ERROR, "this cannot be staged: %.200s",
                             err.text);
  return rc ? wl_sphyraena_failed(s, &err) : SPHYRAENA_SUCCESS;
}

static sphyraena_data *data_open(const char *sql) {
  sphyraena_data *d = wl_mem_zalloc(sizeof *d);
  if (d) d->sql = wl_mem_strdup(sql);
  if (d && d->sql) return d;
  wl_mem_free(d);
  return NULL;
}

static void data_close(sphyraena_data *d) {
  if (d) wl_mem_free(d->sql);
  wl_mem_free(d);
}

void wl_sphyraena_forget_device(sphyraena *s) {
  data_close(s->data_gpu);
  s->data_gpu = NULL;
}

void wl_sphyraena_drop_data(sphyraena *s, wl_conn *c) {
  wl_error ignored = {0};
  wanted w = {0};
  if (s->data_cpu) {
    wl_store_enter(c->store);
    bool found = find_columns(c, s->data_cpu->sql, &w, &ignored) == WL_OK;
    wl_store_leave(c->store);
    for (int k = 0; found && k < w.n; k++) wl_source_unload(w.tables[k].table->source);
    wanted_close(&w);
  }
  wl_sphyraena_forget_device(s);
  data_close(s->data_cpu);
  s->data_cpu = NULL;
}

/* ---- in main memory */

/* Describes the columns. Fails if they take more than data_size. */
static int count_columns(sphyraena *s, const column_sets *all, sphyraena_data *d) {
  for (int k = 0; k < all->n; k++) {
    const wl_snapshot *snap = &all->sets[k];
    d->tables++;
    d->columns += snap->n_cols;
    for (int i = 0; i < snap->n_cols; i++) d->size += snap->cols[i]->n_bytes;
  }
  if (!s->data_size || d->size <= s->data_size) return SPHYRAENA_SUCCESS;
  return wl_sphyraena_fail(s, SPHYRAENA_ERR_MEM, SQLITE_FULL,
                           "the data takes %zu bytes, more than data_size (%zu); name fewer "
                           "columns, or call sphyraena_init() with a larger one",
                           d->size, s->data_size);
}

/* Whether a text is a SELECT that the application may run. */
static int check_select(sphyraena *s, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  wl_mask *mask = NULL;
  const char *tail = "", *why = NULL;
  int rc = wl_ask_prepare(s->db, sql, -1, &stmt, &tail, &mask);
  if (!rc) why = wl_mask_ignores(mask) ? WL_IGNORED : wl_select_refused(stmt, tail);
  sqlite3_finalize(stmt);
  wl_mask_free(mask);
  if (rc)
    return wl_sphyraena_fail(s, rc == SQLITE_NOMEM ? SPHYRAENA_ERR_MEM : SPHYRAENA_ERR_STMT, rc,
                             "%s", sqlite3_errmsg(s->db));
  if (!why) return SPHYRAENA_SUCCESS;
  return wl_sphyraena_fail(s, SPHYRAENA_ERR_STMT, SQLITE_ERROR, "sphyraena_prepare_data() %s", why);
}

int sphyraena_prepare_data(sphyraena *s, const char *sql_stmt) {
  wl_sphyraena_call call;
  sphyraena_data *d = NULL;
  column_sets all = {0};
  int rc = wl_sphyraena_enter(s, false, &call);
  if (rc) return rc;
  if (!sql_stmt)
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE, "no statement was given");
  if (!rc) rc = check_select(s, sql_stmt);
  if (!rc) {
    wl_sphyraena_drop_data(s, call.conn);
    d = data_open(sql_stmt);
    if (!d) rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MEM, SQLITE_NOMEM, "out of memory");
  }
  if (!rc) rc = acquire(s, call.conn, sql_stmt, &all);
  if (!rc) rc = count_columns(s, &all, d);
  release(&all);
  if (d) s->data_cpu = d;
  if (d && rc) wl_sphyraena_drop_data(s, call.conn); /* part of it may be in memory */
  wl_sphyraena_leave(&call);
  return rc;
}

/* ---- on a device */

/* Copies the columns to the device, all at once, so that none evicts another. */
static int copy_columns(sphyraena *s, wl_conn *c, wl_device *d, const column_sets *all,
                        sphyraena_data *to) {
  wl_way way = c->set.transfer.pinned ? WL_WAY_STAGED : WL_WAY_DIRECT;
  wl_error err = {0};
  wl_status rc = WL_OK;
  wl_device_lock(d);
  d->budget = c->set.device_budget ? c->set.device_budget : d->free_memory;
  wl_devcol_tick(d);
  for (int k = 0; k < all->n && !rc; k++) {
    const wl_snapshot *snap = &all->sets[k];
    to->tables++;
    to->columns += snap->n_cols;
    for (int i = 0; i <= snap->n_cols && !rc; i++) {
      wl_column *col = i < snap->n_cols ? snap->cols[i] : snap->live;
      wl_devcol *copy = NULL;
      if (col) rc = wl_devcol_resident(d, col, way, c->set.threads, &copy, &err);
      if (copy) to->size += copy->n_bytes;
    }
  }
  if (!rc) rc = d->finish(d, &err);
  wl_device_unlock(d);
  if (!rc) return SPHYRAENA_SUCCESS;
  if (rc == WL_FULL)
    return wl_sphyraena_fail(s, SPHYRAENA_ERR_CUDAMALLOC, SQLITE_FULL,
                             "the data does not fit on the device, use streaming: %.180s",
                             err.text);
  if (rc == WL_NOMEM) return wl_sphyraena_failed(s, &err);
  return wl_sphyraena_fail(s, SPHYRAENA_ERR_CUDAMEMCPY, SQLITE_ERROR, "%.250s", err.text);
}

/* The device that SELECTs would use, or NULL: the CPU. */
static int find_device(sphyraena *s, wl_conn *c, wl_device **out) {
  wl_error why = {0};
  *out = NULL;
  if (c->set.engine == WL_ENGINE_CPU || c->set.engine == WL_ENGINE_SQLITE) return SPHYRAENA_SUCCESS;
  *out = wl_place_device(c, &why);
  if (*out || c->set.engine == WL_ENGINE_AUTO) return SPHYRAENA_SUCCESS;
  return wl_sphyraena_fail(s, SPHYRAENA_ERR_DEVICE, SQLITE_ERROR, "%s", why.text);
}

int sphyraena_transfer_data(sphyraena *s) {
  wl_sphyraena_call call;
  wl_device *d = NULL;
  int rc = wl_sphyraena_enter(s, false, &call);
  if (rc) return rc;
  wl_conn *c = call.conn;
  if (!s->data_cpu)
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE,
                           "nothing is staged; call sphyraena_prepare_data() first");
  wl_sphyraena_forget_device(s);
  if (!rc) rc = find_device(s, c, &d);
  if (!rc && d) {
    column_sets all = {0};
    sphyraena_data *to = data_open(s->data_cpu->sql);
    if (!to) rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MEM, SQLITE_NOMEM, "out of memory");
    if (!rc) rc = acquire(s, c, s->data_cpu->sql, &all);
    if (!rc) rc = copy_columns(s, c, d, &all, to);
    release(&all);
    if (rc)
      data_close(to);
    else
      s->data_gpu = to;
  }
  wl_sphyraena_leave(&call);
  return rc;
}
