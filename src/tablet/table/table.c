/*
** Opening and closing a tablet table, and deciding whether its directory in memory is still valid.
** directory.c reads and writes the rows of the directory. See table.h.
*/
#include "base/mem.h"
#include "base/fork.h"
#include "base/shared_cache.h"
#include "tablet/table/table_impl.h"
#include "value/conv.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FOLD_AT = 32768 }; /* a commit folds if t_delta or t_gone has this many rows */

/* ---- all open tables of the process: found by connection and name */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wl_tablets *open_tables;

__attribute__((constructor)) static void protect_lock_at_fork(void) {
  wl_fork_lock(&lock);
}

wl_tablets *wl_tablets_find(sqlite3 *db, const char *schema, const char *name) {
  pthread_mutex_lock(&lock);
  wl_tablets *t = open_tables;
  while (t && (t->db != db || sqlite3_stricmp(t->schema, schema) != 0 ||
               sqlite3_stricmp(t->name, name) != 0))
    t = t->next;
  pthread_mutex_unlock(&lock);
  return t;
}

/* Removes a table from the list, if it is there. The caller holds the lock. */
static void remove_from_list(wl_tablets *t) {
  wl_tablets **at = &open_tables;
  while (*at && *at != t) at = &(*at)->next;
  if (*at) *at = t->next;
}

/* Adds a table at the front, so that the newest table of a name is found first. The caller holds
** the lock. */
static void add_to_list(wl_tablets *t) {
  t->next = open_tables;
  open_tables = t;
}

void wl_tablets_set_name(wl_tablets *t, char *name) {
  pthread_mutex_lock(&lock);
  wl_mem_free(t->name);
  t->name = name;
  remove_from_list(t);
  add_to_list(t);
  pthread_mutex_unlock(&lock);
}

const wl_decl *wl_tablets_decl(const wl_tablets *t) {
  return t->decl;
}
const char *wl_tablets_name(const wl_tablets *t) {
  return t->name;
}
void wl_tablets_set_run(wl_tablets *t, struct wl_dmlrun *run) {
  t->run = run;
}
wl_u64 wl_tablets_serial(const wl_tablets *t) {
  return t->serial;
}

/* ---- errors */

const char *wl_tablets_column_name(const wl_tablets *t, int col) {
  return col == t->n_cols ? "rowid" : t->decl->cols[col].name;
}

wl_status wl_tablets_error(wl_tablets *t, int rc, wl_error *err) {
  if ((rc & 0xff) == SQLITE_NOMEM) return wl_nomem(err);
  if (rc == WL_REENTERED) return wl_tablets_reentered(t, err);
  if (rc == SQLITE_DONE || rc == SQLITE_ROW) /* one row too many or too few */
    return wl_tablets_corrupt(t, -1, -1, err, "its shadow tables are inconsistent");
  return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(t->db));
}

wl_status wl_tablets_corrupt(wl_tablets *t, int col, wl_i64 tablet, wl_error *err, const char *fmt,
                             ...) {
  char what[200], where[160] = "", which[48] = "";
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  if (col >= 0) snprintf(where, sizeof where, ", column %.100s", wl_tablets_column_name(t, col));
  if (tablet >= 0) snprintf(which, sizeof which, ", tablet %lld", (long long)tablet);
  return wl_fail(err, WL_CORRUPT, "table %.100s%s%s: %s", t->name, where, which, what);
}

/* ---- opening and closing */

wl_status wl_tablets_read_info(wl_tablets *t, const char *key, wl_i64 *out, wl_error *err) {
  sqlite3_stmt *s;
  *out = 0;
  wl_status rc = wl_tablets_stmt(t, WL_SH_INFO_GET, &s, err);
  if (rc) return rc;
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  int st = wl_tablets_step(t, s);
  if (st == SQLITE_ROW)
    *out = sqlite3_column_int64(s, 0);
  else if (st != SQLITE_DONE)
    rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  return rc;
}

static wl_status read_version(wl_tablets *t, wl_error *err) {
  wl_status rc = wl_tablets_read_info(t, "format", &t->format, err);
  t->newer_format = !rc && t->format > WL_FORMAT;
  if (t->newer_format)
    return wl_fail(err, WL_ERROR,
                   "table %.100s has format %lld, written by a newer warplite; this one reads up "
                   "to format %d: use a newer warplite",
                   t->name, (long long)t->format, WL_FORMAT);
  if (!rc && t->format < 1)
    rc = wl_tablets_corrupt(t, -1, -1, err, "its %.100s_info has no format", t->name);
  return rc;
}

static wl_status read_format(wl_tablets *t, wl_error *err) {
  wl_status rc = read_version(t, err);
  if (!rc) rc = wl_tablets_read_info(t, "id", &t->id, err);
  t->info_damaged = rc != WL_OK;
  /* In place of t_info there may be a view of this table. Our statement would keep it open. */
  if (rc && !wl_tablets_inside_step(t)) wl_tablets_quiet(t);
  return rc;
}

/* A table whose t_info is damaged can be opened, so that it can be dropped. Reading or writing it
** fails later. */
static wl_status open_format(wl_tablets *t, wl_error *err) {
  wl_status rc = read_format(t, err);
  bool damaged = (rc & 0xff) == WL_ERROR || (rc & 0xff) == WL_CORRUPT;
  if (!damaged || t->newer_format) return rc;
  t->info_damaged = true;
  *err = (wl_error){0};
  return WL_OK;
}

wl_status wl_tablets_open(sqlite3 *db, const char *schema, const char *name, bool create,
                          const char *const *args, int n_args, wl_tablets **out, wl_error *err) {
  wl_tablets *t = wl_mem_zalloc(sizeof *t);
  *out = NULL;
  if (!t) return wl_nomem(err);
  t->refs = 1;
  t->db = db;
  t->values.max_text = (wl_u64)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1);
  t->values.fault = &t->fault;
  wl_arena_init(&t->arena);
  t->schema = wl_mem_strdup(schema);
  t->name = wl_mem_strdup(name);
  wl_status rc = t->schema && t->name ? WL_OK : wl_nomem(err);
  if (!rc) rc = wl_declare(&t->arena, args, n_args, &t->decl, err);
  if (!rc) {
    t->n_cols = t->decl->n_cols;
    t->keys = wl_mem_zalloc(((size_t)t->decl->n_keys * WL_KEY_N + 1) * sizeof *t->keys);
    t->dicts = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof(wl_dict_box *));
    t->old_row = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *t->old_row);
    if (!t->keys || !t->dicts || !t->old_row) rc = wl_nomem(err);
  }
  bool sure;
  if (!rc) rc = wl_shared_cache(db, schema, &t->shared, &sure, err);
  if (!rc && !sure) t->shared = true; /* assuming it costs little */
  if (!rc && create) rc = wl_declare_verify(t->decl, name, err);
  if (!rc && create) rc = wl_tablets_create(t, err);
  if (!rc && !create) rc = open_format(t, err);
  if (rc) {
    wl_tablets_close(t);
    return rc;
  }
  wl_tablets *known = create ? NULL : wl_tablets_find(db, schema, name);
  if (known && known->id == t->id) {
    known->refs++;
    known->stale = true; /* something changed, or SQLite would not open it again */
    wl_tablets_close(t);
    *out = known;
    return WL_OK;
  }
  pthread_mutex_lock(&lock);
  static wl_u64 last;
  t->serial = ++last;
  add_to_list(t);
  pthread_mutex_unlock(&lock);
  *out = t;
  return WL_OK;
}

void wl_tablets_close(wl_tablets *t) {
  assert(!t || t->refs > 0);
  if (!t || --t->refs) return;
  wl_spill_end(t);
  pthread_mutex_lock(&lock);
  remove_from_list(t);
  pthread_mutex_unlock(&lock);
  if (t->decl) wl_tablets_quiet(t);
  wl_cached_clear(t);
  wl_directory_free(t);
  wl_mem_free(t->tablets);
  for (int i = 0; t->dicts && i < t->n_cols; i++) wl_dict_box_drop(t->dicts[i]);
  wl_mem_free(t->dicts);
  wl_mem_free(t->keys);
  wl_mem_free(t->walks);
  wl_mem_free(t->old_row);
  wl_checker_close(t->checker);
  wl_conv_give(t->values.conv);
  wl_scratch_close(&t->values);
  wl_mem_free(t->schema);
  wl_mem_free(t->name);
  wl_arena_close(&t->arena);
  wl_mem_free(t);
}

/* ---- the directory in memory */

static wl_u64 new_version(void) {
  static atomic_ullong last;
  return atomic_fetch_add(&last, 1) + 1;
}

static wl_status read_number(wl_tablets *t, wl_shadow which, wl_i64 *out, wl_error *err) {
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_stmt(t, which, &s, err);
  if (rc) return rc;
  int st = wl_tablets_step(t, s);
  *out = st == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
  if (st != SQLITE_ROW && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  return rc;
}

/* Checks the shapes of the shadow tables, unless that was done for this schema already. */
static wl_status recheck_shapes(wl_tablets *t, wl_error *err) {
  int at = sqlite3_stmt_status(t->stmts[WL_SH_INFO_GET], SQLITE_STMTSTATUS_REPREPARE, 0) + 1;
  if (t->shapes_at == at) return WL_OK;
  wl_status rc = wl_tablets_check_shapes(t, err);
  if (!rc)
    t->shapes_at = at;
  else /* a statement on a view of virtual tables would prevent the connection from closing */
    wl_tablets_quiet(t);
  return rc;
}

/* With read_uncommitted SQLite takes no lock, so half of another connection's write could be
** read. */
static wl_status refuse_uncommitted(wl_tablets *t, wl_error *err) {
  int st = SQLITE_OK;
  if (!t->uncommitted)
    st = sqlite3_prepare_v3(t->db, "PRAGMA read_uncommitted", -1, SQLITE_PREPARE_PERSISTENT,
                            &t->uncommitted, NULL);
  if (st) return wl_tablets_error(t, st, err);
  bool on =
      sqlite3_step(t->uncommitted) != SQLITE_ROW || sqlite3_column_int(t->uncommitted, 0) != 0;
  sqlite3_reset(t->uncommitted);
  if (!on) return WL_OK;
  return wl_fail(err, WL_ERROR,
                 "tablet table %.100s cannot be used in a shared cache while read_uncommitted is "
                 "on: set PRAGMA read_uncommitted=OFF",
                 t->name);
}

/*
** In a shared cache the data version is not enough: a transaction sees what other connections
** commit, unless it holds a lock on the table. So t_info is read every time. SQLite then locks it
** for the rest of the transaction. Every writer writes to t_info first (write_state), so no other
** connection can change the table meanwhile.
*/
wl_status wl_tablets_refresh(wl_tablets *t, wl_error *err) {
  unsigned version = 0;
  wl_i64 state;
  if (t->info_damaged) {
    wl_status damaged = read_format(t, err);
    if (damaged) return damaged;
  }
  int st = sqlite3_file_control(t->db, t->schema, SQLITE_FCNTL_DATA_VERSION, &version);
  if (st) return wl_tablets_error(t, st, err);
  bool known = t->loaded && !t->stale;
  if (known && version == t->data_version && !t->shared) return WL_OK;
  wl_status rc = t->shared ? refuse_uncommitted(t, err) : WL_OK;
  if (!rc) rc = wl_tablets_read_info(t, "state", &state, err);
  if (!rc) rc = recheck_shapes(t, err);
  if (rc) return rc;
  if (known && (!t->dirty || t->shared) && (wl_u64)state == t->state) {
    t->data_version = version;
    return WL_OK;
  }
  t->loaded = false;
  rc = read_version(t, err);
  if (!rc) rc = wl_directory_read(t, err);
  if (!rc) rc = read_number(t, WL_SH_DELTA_COUNT, &t->n_delta, err);
  if (!rc) rc = read_number(t, WL_SH_GONE_COUNT, &t->n_gone, err);
  if (!rc) rc = wl_tablets_recheck_dicts(t, err);
  if (rc) return rc;
  t->loaded = true;
  t->stale = false;
  t->state = (wl_u64)state;
  t->data_version = version;
  t->version = new_version();
  t->layout = new_version();
  return WL_OK;
}

/* Writes a new state to the file. This happens before the first write of a transaction, and again
** before the first write after a rollback to a savepoint, which may have undone it. It does not
** happen at the commit, because changes() would then return the count of our own statement. */
static wl_status write_state(wl_tablets *t, wl_error *err) {
  static const wl_shadow ways[] = {WL_SH_INFO_SET, WL_SH_INFO_ADD};
  sqlite3_stmt *s;
  wl_i64 state;
  sqlite3_randomness((int)sizeof state, &state);
  for (int k = 0; k < 2; k++) { /* inserts the row only if somebody has deleted it */
    wl_status rc = wl_tablets_stmt(t, ways[k], &s, err);
    if (rc) return rc;
    sqlite3_bind_text(s, 1, "state", -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, state);
    rc = wl_tablets_run(t, s, err);
    if (rc) return rc;
    if (sqlite3_changes(t->db)) break;
  }
  t->state = (wl_u64)state;
  t->stamped = true;
  return WL_OK;
}

wl_status wl_tablets_touch(wl_tablets *t, wl_error *err) {
  t->dirty = true;
  t->version = new_version();
  return t->stamped ? WL_OK : write_state(t, err);
}

/* Makes changes() return n again, with a statement of ours that changes n rows. */
static wl_status recount(wl_tablets *t, wl_i64 n, wl_error *err) {
  sqlite3_stmt *s;
  wl_i64 place = 0;
  if (sqlite3_changes64(t->db) == n) return WL_OK;
  wl_status rc = wl_tablets_stmt(t, WL_SH_INFO_PLACE, &s, err);
  if (rc) return rc;
  sqlite3_bind_text(s, 1, "state", -1, SQLITE_STATIC);
  if (wl_tablets_step(t, s) == SQLITE_ROW) place = sqlite3_column_int64(s, 0);
  sqlite3_reset(s);
  rc = wl_tablets_stmt(t, WL_SH_RECOUNT, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 4, place);
  sqlite3_bind_text(s, 1, "state", -1, SQLITE_STATIC);
  sqlite3_bind_int64(s, 2, (wl_i64)t->state);
  sqlite3_bind_int64(s, 3, n);
  return wl_tablets_run(t, s, err);
}

/*
** Whether the shadow tables of this name still belong to this object. SQLite ends the transaction
** of every object that took part in it. If the object's CREATE or RENAME was rolled back, the
** shadow tables do not exist or belong to another table.
*/
static wl_status is_owner(wl_tablets *t, bool *out, wl_error *err) {
  wl_i64 id;
  *out = false;
  if (wl_tablets_find(t->db, t->schema, t->name) != t) return WL_OK;
  char *info = sqlite3_mprintf("%s_info", t->name);
  int st = info ? sqlite3_table_column_metadata(t->db, t->schema, info, NULL, NULL, NULL, NULL,
                                                NULL, NULL)
                : SQLITE_NOMEM;
  sqlite3_free(info);
  if (st) return st == SQLITE_ERROR ? WL_OK : wl_tablets_error(t, st, err);
  wl_status rc = wl_tablets_read_info(t, "id", &id, err);
  *out = !rc && id == t->id;
  return rc;
}

wl_status wl_tablets_sync(wl_tablets *t, wl_error *err) {
  bool owner = false;
  wl_status st = wl_spill_check(t, err);
  if (st || !t->dirty) return st;
  st = is_owner(t, &owner, err);
  if (st || !owner) return st;
  wl_i64 n = sqlite3_changes64(t->db);
  wl_status rc = wl_tablets_refresh(t, err);
  if (rc || (t->n_delta < FOLD_AT && t->n_gone < FOLD_AT)) return rc;
  rc = wl_tablets_fold(t, err);
  return rc ? rc : recount(t, n, err);
}

void wl_tablets_committed(wl_tablets *t) {
  unsigned version = 0;
  t->stamped = false;
  wl_spill_end(t);
  if (!t->dirty) return;
  t->dirty = false;
  if (sqlite3_file_control(t->db, t->schema, SQLITE_FCNTL_DATA_VERSION, &version) == SQLITE_OK)
    t->data_version = version;
  else
    t->stale = true;
}

void wl_tablets_rolled_back(wl_tablets *t, bool all) {
  t->stale = true;
  t->stamped = false;
  if (!all) return;
  t->dirty = false;
  wl_spill_end(t);
}

int wl_tablets_count(const wl_tablets *t) {
  return t->n_tablets;
}
const wl_tablet *wl_tablets_at(const wl_tablets *t, int i) {
  return &t->tablets[i];
}
bool wl_tablets_state(const wl_tablets *t, wl_u64 *state) {
  *state = t->state;
  return t->loaded && !t->stale && !t->dirty && !t->shared &&
         sqlite3_txn_state(t->db, t->schema) != SQLITE_TXN_WRITE;
}
wl_u64 wl_tablets_version(const wl_tablets *t) {
  return t->version;
}
wl_u64 wl_tablets_planned(const wl_tablets *t) {
  return t->n_planned;
}
bool wl_tablets_has_delta(const wl_tablets *t) {
  return t->n_delta || t->n_gone;
}
wl_i64 wl_tablets_n_delta(const wl_tablets *t) {
  return t->n_delta;
}

wl_i64 wl_tablets_about(const wl_tablets *t) {
  wl_i64 n = t->n_delta - t->n_gone;
  for (int i = 0; i < t->n_tablets; i++) n += t->tablets[i].n_rows - t->tablets[i].n_dead;
  return n > 0 ? n : 0;
}

int wl_tablets_place(const wl_tablets *t, wl_i64 rowid) {
  int lo = -1, hi = t->n_tablets;
  while (hi - lo > 1) {
    int mid = lo + (hi - lo) / 2;
    if (t->tablets[mid].lo <= rowid)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

void wl_tablets_range(const wl_tablets *t, int i, wl_i64 *lo, wl_i64 *hi) {
  *lo = i == 0 ? WL_I64_MIN : t->tablets[i].lo;
  *hi = i + 1 < t->n_tablets ? t->tablets[i + 1].lo - 1 : WL_I64_MAX;
}
