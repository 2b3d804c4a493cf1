/*
** warplite_devices, warplite_cache and warplite_log.
*/
#include "api/functions.h"
#include "route/rowset.h"
#include "exec/lookup_cache.h"
#include "exec/gpu/columns/devcol.h"
#include "plan/constants.h"
#include <string.h>
#include <time.h>

static wl_status fill_devices(wl_conn *c, const char *text, wl_rowset *r, wl_error *err) {
  (void)text;
  static const char *const kinds[] = {"cpu", "cuda", "sim"};
  for (int k = 0; k < 3; k++) {
    wl_cell *row = wl_rowset_row(r);
    if (!row) return wl_nomem(err);
    wl_cell_text(r, &row[0], kinds[k]);
    if (k == 0) {
      wl_cell_text(r, &row[1], "host");
      wl_cell_text(r, &row[2], "ready");
      wl_cell_int(&row[4], wl_store_budget(c->store));
      wl_cell_int(&row[5], (wl_i64)wl_cache_bytes());
      wl_cell_int(&row[6], c->set.threads);
      continue;
    }
    wl_error why = {0};
    wl_device *d = wl_device_get(kinds[k], &why);
    wl_cell_text(r, &row[1], d ? d->name : NULL);
    wl_cell_text(r, &row[2], d ? "ready" : why.text);
    if (!d) continue;
    wl_device_lock(d);
    wl_cell_int(&row[3], d->memory);
    wl_cell_int(&row[4], d->budget);
    wl_cell_int(&row[5], d->used);
    wl_cell_int(&row[6], d->n_processors);
    wl_device_unlock(d);
    char text[WL_CONSTANTS_TEXT + 32];
    wl_constants is;
    const char *from = wl_device_constants_now(d, &is);
    wl_constants_print(&is, ' ', text, WL_CONSTANTS_TEXT);
    wl_cell_text(r, &row[7], from);
    wl_cell_text(r, &row[8], text);
  }
  return WL_OK;
}

/* Formats seconds since 1970 as SQLite's datetime() does. NULL for never. */
static const char *when(wl_i64 seconds, char *out, size_t n) {
  time_t t = (time_t)seconds;
  struct tm tm;
  return seconds && gmtime_r(&t, &tm) && strftime(out, n, "%Y-%m-%d %H:%M:%S", &tm) ? out : NULL;
}

typedef struct cache_rows {
  wl_rowset *r;
  wl_error *err;
} cache_rows;

static wl_status column_row(wl_rowset *r, const wl_table *t, int i, const wl_column *col,
                            wl_error *err) {
  char text_time[32];
  wl_i64 n_rows = col->n_rows;
  wl_cell *row = wl_rowset_row(r);
  if (!row) return wl_nomem(err);
  wl_cell_text(r, &row[0], t->schema);
  wl_cell_text(r, &row[1], t->name);
  wl_cell_text(r, &row[2], i < 0 ? "rowid" : t->cols[i].name);
  wl_cell_text(r, &row[3], wl_column_type(col));
  wl_cell_int(&row[4], wl_source_live_rows(t->source, &n_rows) ? n_rows : col->n_rows);
  wl_cell_int(&row[5], col->n_tablets);
  wl_cell_int(&row[6], (wl_i64)col->n_bytes);
  const wl_use use = wl_source_use(t->source, i);
  wl_devcol_facts there = wl_devcol_info(col);
  wl_cell_int(&row[7], there.n_bytes > 0);
  wl_cell_int(&row[8], use.uses);
  wl_cell_int(&row[9], use.hits);
  wl_cell_text(r, &row[10], when(use.last_time, text_time, sizeof text_time));
  wl_cell_int(&row[11], there.n_bytes);
  wl_cell_int(&row[12], there.uses);
  wl_cell_int(&row[13], there.hits);
  wl_cell_int(&row[14], wl_source_shared(t->source));
  return WL_OK;
}

static wl_status table_rows(void *arg, const wl_table *t) {
  const cache_rows *to = arg;
  wl_status rc = WL_OK;
  for (int k = 0; k <= t->n_cols && !rc; k++) {
    int i = k < t->n_cols ? k : -1;
    wl_column *col = wl_source_column(t->source, i);
    if (col) rc = column_row(to->r, t, i, col, to->err);
    wl_column_drop(col);
  }
  return rc;
}

static wl_status lookup_row(wl_rowset *r, const wl_lookup_entry *e, wl_error *err) {
  const wl_lookup *l = e->lookup;
  wl_cell *row = wl_rowset_row(r);
  if (!row) return wl_nomem(err);
  wl_cell_text(r, &row[1], e->name);
  wl_cell_text(r, &row[3],
               l->direct                      ? "lookup by value"
               : l->plan.kind == WL_KEYS_NONE ? "lookup of all rows"
                                              : "lookup by hash");
  if (!l->uncounted) wl_cell_int(&row[4], l->n_rows);
  wl_cell_int(&row[6], (wl_i64)l->n_bytes);
  wl_cell_int(&row[8], e->uses + 1);
  wl_cell_int(&row[9], e->uses);
  return WL_OK;
}

static wl_status fill_cache(wl_conn *c, const char *text, wl_rowset *r, wl_error *err) {
  (void)text;
  cache_rows to = {r, err};
  wl_lookup_entry e;
  wl_status rc = wl_store_each(c->store, table_rows, &to);
  /* Lookups of joins, kept for later statements. */
  for (int i = 0; !rc && wl_cache_lookup_entry(wl_store_member(c->store), i, &e); i++) {
    rc = lookup_row(r, &e, err);
    wl_lookup_drop(e.lookup);
  }
  return rc;
}

static wl_status fill_log(wl_conn *c, const char *text, wl_rowset *r, wl_error *err) {
  (void)text;
  wl_i64 first = c->n_logged > WL_LOG_SIZE ? c->n_logged - WL_LOG_SIZE : 0;
  for (wl_i64 i = first; i < c->n_logged; i++) {
    const wl_log_entry *e = &c->log[i % WL_LOG_SIZE];
    wl_cell *row = wl_rowset_row(r);
    if (!row) return wl_nomem(err);
    wl_cell_int(&row[0], e->id);
    wl_cell_text(r, &row[1], e->engine);
    wl_cell_text(r, &row[2], e->reason);
    if (e->n_rows >= 0) wl_cell_int(&row[3], e->n_rows);
    if (e->n_rows >= 0) wl_cell_real(&row[4], e->ms);
    wl_cell_text(r, &row[5], e->sql);
  }
  return WL_OK;
}

int wl_tables_register(wl_conn *c) {
  static const wl_rowset_def defs[] = {
      {"warplite_devices",
       "CREATE TABLE x(kind TEXT, name TEXT, status TEXT, memory INT, budget INT, used INT, "
       "processors INT, prices TEXT, constants TEXT)",
       9, 0, fill_devices},
      {"warplite_cache",
       "CREATE TABLE x(schema TEXT, \"table\" TEXT, \"column\" TEXT, type TEXT, rows INT, tablets "
       "INT, bytes INT, on_device INT, uses INT, hits INT, last_use TEXT, device_bytes INT, "
       "device_uses INT, device_hits INT, shared INT)",
       15, 0, fill_cache},
      {"warplite_log",
       "CREATE TABLE x(id INT, engine TEXT, reason TEXT, rows INT, ms REAL, sql TEXT)", 6, 0,
       fill_log},
  };
  int rc = SQLITE_OK;
  for (int i = 0; i < 3 && !rc; i++) rc = wl_rowset_register(c, &defs[i]);
  return rc;
}
