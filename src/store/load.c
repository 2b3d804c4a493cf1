/*
** Reading an ordinary SQLite table into columns, and who has them. Where btree.c can decode
** the table's pages it does; everywhere else an aggregate function that SQLite runs over
** the table in scan order: right in every journal mode, for memory databases, WITHOUT ROWID
** tables and generated columns, because SQLite itself does the reading.
*/
#include "base/authorizer.h"
#include "store/btree.h"
#include "column/evict.h"
#include "store/pages.h"
#include "base/mem.h"
#include "value/exchange.h"
#include "tablet/read/image.h"
#include <string.h>
#include <time.h>

void wl_store_tell(const wl_store *s, const wl_table *t, wl_i64 done, wl_i64 total) {
  if (s->progress) s->progress(s->progress_arg, t->name, done, total > done ? total : done + 1);
}

static void load_step(sqlite3_context *ctx, int n, sqlite3_value **args) {
  wl_store *s = sqlite3_user_data(ctx);
  wl_load *l = s->load;
  if (!l || n != l->n) {
    sqlite3_result_error(ctx, "wl_load is warplite's own", -1);
    return;
  }
  size_t n_bytes = l->base_bytes;
  for (int i = 0; i < n && !l->status; i++) {
    wl_val v = wl_sqlite_val(args[i]);
    if (wl_sqlite_lost(v)) l->status = WL_NOMEM;
    if (!l->status) l->status = wl_builder_add(l->builders[i], v);
    n_bytes += wl_builder_bytes(l->builders[i]);
  }
  l->n_rows++;
  if ((l->n_rows & 0x3fff) == 0) wl_store_tell(s, l->table, l->n_rows, l->table->estimate);
  if (!l->status && s->budget > 0 && n_bytes > (size_t)s->budget) l->status = WL_FULL;
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

size_t wl_store_bytes(const wl_store *s) {
  size_t n = 0;
  for (wl_table *t = s->tables; t; t = t->next) {
    n += wl_image_bytes(t->image);
    for (int i = 0; t->data && i <= t->n_cols; i++)
      if (t->data[i]) n += t->data[i]->n_bytes;
  }
  return n;
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
  /* An authorizer may turn the function into NULL; max() of no rows is NULL too. */
  *st = rc       ? wl_store_sqlite_error(s, rc, err)
        : number ? WL_OK
                 : wl_not_taken(err, "the rows of %s cannot be counted", t->name);
  sqlite3_finalize(q);
  return n;
}

/* Drops one column that the query at hand does not want; false when there is none. */
static bool evict(wl_store *s) {
  wl_evict e = {0};
  for (wl_table *t = s->tables; t; t = t->next)
    for (int i = 0; t->data && i <= t->n_cols; i++)
      if (t->data[i] && t->use[i].last_use < s->clock)
        wl_evict_offer(&e, &t->data[i], t->use[i].last_use, t->use[i].uses);
  wl_column **choice = wl_evict_choice(&e);
  if (!choice) return false;
  wl_column_drop(*choice);
  *choice = NULL;
  return true;
}

/* Why a load that ran into a limit is not taken. */
static wl_status refuse(wl_store *s, wl_table *t, wl_status status, wl_error *err) {
  if (status == WL_FULL) {
    t->too_big_version = s->version;
    t->too_big_budget = s->budget;
    return wl_not_taken(err, "%s does not fit into host_budget (%lld bytes)", t->name, s->budget);
  }
  if (status == WL_TOOBIG)
    return wl_not_taken(err, "a tablet of %s holds more than 4 GiB of text", t->name);
  return wl_nomem(err);
}

/* Runs the load statement into builders for the columns cols[0..n). */
static wl_status run_load(wl_store *s, wl_table *t, const int *cols, int n, wl_load *l,
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
  wl_status st = l->status          ? refuse(s, t, l->status, err)
                 : rc != SQLITE_ROW ? wl_store_sqlite_error(s, rc, err)
                                    : WL_OK;
  sqlite3_finalize(q);
  return st;
}

/* SQLite steps the table, a builder a column. */
enum { MOST_ARGS = 100 }; /* of one SQL function, whatever SQLite was built with */

static wl_status step_columns(wl_store *s, wl_table *t, const int *cols, int n, size_t base_bytes,
                              wl_column **out, wl_i64 *n_rows, wl_error *err) {
  wl_load l = {.n = n, .table = t, .base_bytes = base_bytes};
  wl_status rc = WL_OK;
  l.builders = wl_mem_zalloc((size_t)n * sizeof *l.builders);
  if (!l.builders) return wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) rc = wl_builder_open(&l.builders[i], err);
  if (!rc) rc = run_load(s, t, cols, n, &l, err);
  for (int i = 0; i < n && !rc; i++) rc = wl_builder_finish(l.builders[i], &out[i], err);
  *n_rows = l.n_rows;
  for (int i = 0; i < n; i++) wl_builder_close(l.builders[i]);
  wl_mem_free(l.builders);
  return rc;
}

/* Some columns at a time: the read transaction is held, so their rows line up. */
static wl_status load_by_steps(wl_store *s, wl_table *t, const int *cols, int n, size_t base_bytes,
                               wl_column **out, wl_i64 *n_rows, wl_error *err) {
  wl_status rc = WL_OK;
  wl_i64 first_rows = 0;
  for (int at = 0; at < n && !rc; at += MOST_ARGS) {
    int m = n - at < MOST_ARGS ? n - at : MOST_ARGS;
    rc = step_columns(s, t, cols + at, m, base_bytes, out + at, n_rows, err);
    for (int i = 0; i < m && !rc; i++) base_bytes += out[at + i]->n_bytes;
    if (at == 0) first_rows = *n_rows;
    if (!rc && *n_rows != first_rows)
      rc = wl_fail(err, WL_ERROR, "%s changed while it was being read", t->name);
  }
  return rc;
}

static bool known_too_big(const wl_store *s, const wl_table *t) {
  return t->too_big_budget && t->too_big_version == s->version && t->too_big_budget >= s->budget;
}

/* ---- tablet tables */

static wl_status tablets_of(wl_store *s, const wl_table *t, wl_tablets **out, wl_error *err) {
  *out = wl_tablets_find(s->db, t->schema, t->name);
  return *out ? WL_OK : wl_not_taken(err, "the tablet table %s is not open", t->name);
}

wl_status wl_store_follow(wl_store *s, wl_table *t, wl_error *err) {
  wl_tablets *x;
  bool moved = false;
  wl_status rc = tablets_of(s, t, &x, err);
  if (!rc) rc = wl_tablets_refresh(x, err);
  if (!rc) rc = wl_image_follow(&t->image, x, t->data, t->n_cols, &moved, err);
  if (rc) wl_table_drop_data(t);
  if (rc || !moved) return rc;
  t->n_rows = wl_image_slots(t->image);
  t->loaded = true;
  return WL_OK;
}

typedef struct telling {
  const wl_store *s;
  const wl_table *t;
} telling;

static void tell_image(void *arg, wl_i64 done, wl_i64 total) {
  const telling *x = arg;
  double share = total ? (double)done / (double)total : 0;
  wl_store_tell(x->s, x->t, (wl_i64)(share * (double)x->t->n_rows), x->t->n_rows);
}

/* The root page of the table of a tablet table's segments; 0: it is not known. */
static wl_u32 segments_root(wl_store *s, const wl_table *t) {
  sqlite3_stmt *q = NULL;
  wl_i64 root = 0;
  char *sql = sqlite3_mprintf("SELECT rootpage FROM \"%w\".sqlite_schema WHERE type='table' AND "
                              "name='%q_segment' COLLATE NOCASE",
                              t->schema, t->name);
  if (sql && sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    root = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return root > 1 && root <= 0xffffffffLL ? (wl_u32)root : 0;
}

static wl_status load_tablets(wl_store *s, wl_table *t, const int *cols, int n, size_t base_bytes,
                              wl_column **out, wl_i64 *n_rows, wl_error *err) {
  wl_tablets *x;
  telling tell = {s, t};
  wl_image_how how = {.n_threads = s->threads,
                      .check = s->check,
                      .check_arg = s->check_arg,
                      .tell = s->progress ? tell_image : NULL,
                      .tell_arg = &tell};
  wl_pages pages;
  wl_error ignored;
  if (s->budget > 0)
    how.limit = (size_t)s->budget > base_bytes ? (size_t)s->budget - base_bytes : 1;
  *n_rows = t->n_rows;
  wl_status rc = tablets_of(s, t, &x, err);
  if (rc) return rc;
  sqlite3_mutex *m = sqlite3_db_mutex(s->db);
  sqlite3_mutex_enter(m);
  /* what this transaction has written may be in SQLite's cache alone */
  bool direct =
      sqlite3_txn_state(s->db, t->schema) != SQLITE_TXN_WRITE || wl_store_untouched(s, t->schema);
  if (direct && wl_pages_open(s, t->schema, &pages, &ignored) == WL_OK)
    how.root = segments_root(s, t);
  if (how.root) how.pages = &pages;
  rc = wl_image_load(t->image, x, cols, n, &how, out, err);
  if (direct) wl_pages_close(&pages);
  sqlite3_mutex_leave(m);
  return rc;
}

static void shed_images(wl_store *s) {
  for (wl_table *t = s->tables; t; t = t->next) wl_image_shed(t->image);
}

static wl_status load(wl_store *s, wl_table *t, const int *cols, int n, wl_error *err) {
  if (known_too_big(s, t))
    return wl_not_taken(err, "%s does not fit into host_budget (%lld bytes)", t->name, s->budget);
  wl_i64 n_rows = 0;
  wl_error why = {0};
  wl_column **got = wl_mem_zalloc((size_t)n * sizeof *got);
  if (!got) return wl_nomem(err);
  if (s->budget > 0 && wl_store_bytes(s) > (size_t)s->budget / 2) shed_images(s);
  while (s->budget > 0 && wl_store_bytes(s) > (size_t)s->budget / 2 && evict(s)) {
  }
  size_t base_bytes = wl_store_bytes(s);
  wl_status rc = t->tablets ? load_tablets(s, t, cols, n, base_bytes, got, &n_rows, &why)
                            : wl_btree_load(s, t, cols, n, base_bytes, got, &n_rows, &why);
  t->by_pages = rc == WL_OK;
  sqlite3_snprintf((int)sizeof t->why_not, t->why_not, "%s", rc ? why.text : "");
  if (rc == WL_NOT_TAKEN && t->tablets)
    rc = wl_not_taken(err, "%s", why.text);
  else if (rc == WL_NOT_TAKEN)
    rc = load_by_steps(s, t, cols, n, base_bytes, got, &n_rows, err);
  else if (rc == WL_FULL || rc == WL_TOOBIG || rc == WL_NOMEM)
    rc = refuse(s, t, rc, err);
  else if (rc)
    rc = wl_fail(err, rc, "%s", why.text);
  if (!rc && t->loaded && n_rows != t->n_rows)
    rc = wl_fail(err, WL_ERROR, "%s changed while it was being read", t->name);
  for (int i = 0; i < n; i++) {
    if (rc)
      wl_column_drop(got[i]);
    else
      t->data[wl_table_slot(t, cols[i])] = got[i];
  }
  if (!rc) {
    t->n_rows = n_rows;
    t->loaded = true;
    t->n_loads++;
  }
  wl_mem_free(got);
  return rc;
}

/* Whether an authorizer that we do not know lets every column be read, as it is and not as NULL. */
static wl_status may_read(wl_store *s, const wl_table *t, const int *cols, int n, wl_error *err) {
  sqlite3_stmt *q = NULL;
  sqlite3_str *sql = sqlite3_str_new(s->db);
  for (int i = 0; i < n; i++)
    sqlite3_str_appendf(sql, i ? ",\"%w\"" : "SELECT \"%w\"",
                        cols[i] < 0 ? t->rowid_name : t->cols[cols[i]].name);
  sqlite3_str_appendf(sql, " FROM \"%w\".\"%w\"", t->schema, t->name);
  char *text = sqlite3_str_finish(sql);
  if (!text) return wl_nomem(err);
  int rc = sqlite3_prepare_v2(s->db, text, -1, &q, NULL);
  sqlite3_free(text);
  bool ok = rc == SQLITE_OK && sqlite3_column_count(q) == n;
  for (int i = 0; i < n && ok; i++)
    ok = sqlite3_api->column_origin_name ? sqlite3_column_origin_name(q, i) != NULL
                                         : sqlite3_column_decltype(q, i) != NULL;
  sqlite3_finalize(q);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return ok ? WL_OK : wl_not_taken(err, "the authorizer may hide columns of %s", t->name);
}

wl_status wl_store_acquire(wl_store *s, wl_table *t, const int *cols, int n_cols, wl_snapshot *out,
                           wl_error *err) {
  wl_status rc = WL_OK;
  memset(out, 0, sizeof *out);
  int n_missing = 0;
  s->clock++;
  int *missing = wl_mem_alloc(((size_t)n_cols + 1) * sizeof *missing);
  out->cols = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof *out->cols);
  if (!missing || !out->cols) rc = wl_nomem(err);
  if (!rc && n_cols && wl_authorizer_blind) rc = may_read(s, t, cols, n_cols, err);
  for (int i = 0; i < n_cols && !rc; i++) {
    int k = wl_table_slot(t, cols[i]);
    wl_use *u = &t->use[k];
    u->uses++;
    u->hits += t->data[k] != NULL;
    u->last_use = s->clock; /* evict leaves it alone */
    u->last_time = (wl_i64)time(NULL);
    if (!t->data[k]) missing[n_missing++] = cols[i];
  }
  if (!rc && n_missing) {
    wl_store_tell(s, t, 0, t->estimate);
    bool known = known_too_big(s, t);
    rc = load(s, t, missing, n_missing, err);
    if (rc == WL_NOT_TAKEN && !known && known_too_big(s, t) && evict(s)) {
      while (evict(s)) { /* it may fit where nothing else is */
      }
      t->too_big_budget = 0;
      rc = load(s, t, missing, n_missing, err);
    }
    if (s->progress) s->progress(s->progress_arg, t->name, 1, 1);
  } else if (!rc && !t->loaded) {
    t->n_rows = run_count(s, t, "count(*)", &rc, err);
    t->loaded = rc == WL_OK;
  }
  if (!rc) {
    t->n_uses++;
    out->n_rows = t->n_rows;
    for (int i = 0; i < n_cols; i++)
      out->cols[out->n_cols++] = wl_column_hold(wl_table_data(t, cols[i]));
    for (int i = 0; i < n_cols && t->tablets; i++) wl_column_settle(out->cols[i]);
    wl_column *live = t->tablets ? wl_image_live_column(t->image) : NULL;
    if (live) out->live = wl_column_hold(live);
  } else {
    wl_snapshot_release(out);
  }
  wl_mem_free(missing);
  return rc;
}

void wl_snapshot_release(wl_snapshot *snap) {
  for (int i = 0; i < snap->n_cols; i++) wl_column_drop(snap->cols[i]);
  wl_column_drop(snap->live);
  wl_mem_free(snap->cols);
  memset(snap, 0, sizeof *snap);
}

void wl_store_unload(wl_store *s, wl_table *t) {
  (void)s;
  wl_table_drop_data(t);
}

/* The largest rowid, bounded by what the pages can hold. */
static wl_i64 estimate(wl_store *s, wl_table *t) {
  wl_status st;
  sqlite3_stmt *q = NULL;
  wl_i64 bound = 0;
  char *sql = sqlite3_mprintf(
      "SELECT c.page_count*z.page_size/16 FROM pragma_page_count AS c, pragma_page_size AS z"
      " WHERE c.schema=%Q AND z.schema=%Q",
      t->schema, t->schema);
  if (sql && sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    bound = sqlite3_column_int64(q, 0); /* no row takes less than 16 bytes, nearly */
  sqlite3_finalize(q);
  sqlite3_free(sql);
  if (t->without_rowid || !t->rowid_name) return bound / 4;
  char what[32];
  sqlite3_snprintf((int)sizeof what, what, "max(%s)", t->rowid_name);
  wl_i64 n = run_count(s, t, what, &st, NULL);
  return st ? 0 : n < 0 || n > bound ? bound : n; /* no rows, or no answer: small */
}

/* Of a tablet table its directory knows. */
static wl_i64 estimate_tablets(wl_store *s, wl_table *t, bool *exact) {
  wl_error ignored;
  wl_tablets *x;
  if (wl_store_read_version(s, t->schema, &ignored) != WL_OK) return t->estimate;
  sqlite3_mutex *m = sqlite3_db_mutex(s->db);
  sqlite3_mutex_enter(m);
  wl_wal_pin_make(s, t->schema); /* for the load that may follow */
  sqlite3_mutex_leave(m);
  wl_status rc = tablets_of(s, t, &x, &ignored);
  if (!rc) rc = wl_tablets_refresh(x, &ignored);
  if (!rc && t->image && wl_image_version(t->image) == wl_tablets_version(x)) {
    *exact = true;
    t->estimate = wl_image_live(t->image);
  } else if (!rc) {
    t->estimate = wl_tablets_about(x);
  }
  wl_store_end(s);
  return t->estimate;
}

wl_i64 wl_store_estimate(wl_store *s, wl_table *t, bool *exact) {
  wl_error ignored;
  *exact = false;
  if (t->tablets) return estimate_tablets(s, t, exact);
  if (wl_store_read_version(s, t->schema, &ignored) != WL_OK) return t->estimate;
  sqlite3_mutex *m = sqlite3_db_mutex(s->db);
  sqlite3_mutex_enter(m);
  wl_wal_pin_make(s, t->schema); /* for the load that may follow */
  sqlite3_mutex_leave(m);
  wl_u32 version = s->version;
  wl_store_end(s);
  if (t->loaded && t->version == version) {
    *exact = true;
    return t->n_rows;
  }
  if (!t->estimated || t->estimate_version != version) {
    t->estimate = estimate(s, t);
    t->estimate_version = version;
    t->estimated = true;
  }
  return t->estimate;
}
