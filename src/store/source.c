/*
** Tables as sources of columns: which set in the cache has the version being read, and how it is
** filled. See column/source.h and column/cache.h.
*/
#include "base/authorizer.h"
#include "store/identity.h"
#include "store/kind.h"
#include "store/store_impl.h"
#include "value/types.h"
#include <assert.h>
#include <string.h>
#include <time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static wl_stored *stored_of(const wl_source *s) {
  return (wl_stored *)((char *)s - offsetof(wl_stored, source));
}

/* ---- kinds */

enum { MOST_KINDS = 4 };
static const wl_table_kind *kinds[MOST_KINDS];
static int n_kinds;

void wl_store_add_kind(const wl_table_kind *kind) {
  if (n_kinds < MOST_KINDS) kinds[n_kinds++] = kind;
}

const wl_table_kind *wl_store_kind_of(wl_store *s, const char *schema, const char *name) {
  for (int i = 0; i < n_kinds; i++)
    if (kinds[i]->owns(s->db, schema, name)) return kinds[i];
  return NULL;
}

/* ---- the set of the version being read */

void wl_stored_forget(wl_stored *t) {
  t->current = false;
  t->seen_sets = 0;
  wl_cache_release(&t->user);
}

/* SQLite refuses longer texts, so columns that were loaded under another limit are of no use. */
static int length_limit(const wl_store *s) {
  return sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, -1);
}

/* Whether an ordinary table's set is still of the current version. */
static bool is_current(const wl_store *s, const wl_stored *t) {
  return t->current && t->version == s->version && t->file == s->file &&
         t->length_limit == length_limit(s);
}

static void note_current(const wl_store *s, wl_stored *t) {
  t->current = true;
  t->version = s->version;
  t->file = s->file;
  t->length_limit = length_limit(s);
  t->private_for_now = false;
}

/* Gets the set for the version of the open transaction: one that another connection has, or a new
** one. */
static wl_status open_set(wl_store *s, wl_stored *t, wl_error *err) {
  wl_set_key key;
  bool keyed = wl_identity_key(s, &t->shape, NULL, &key);
  if (!keyed || !wl_cache_find(&t->user, &key)) {
    wl_status rc = wl_cache_add(&t->user, keyed ? &key : NULL, t->shape.n_cols, NULL, err);
    if (rc) return rc;
  }
  note_current(s, t);
  return WL_OK;
}

/* The same for a kind that has its own versions. */
static wl_status open_kind_set(wl_store *s, wl_stored *t, const wl_kind_version *v, wl_error *err) {
  wl_set_key key;
  wl_set_extra extra = {0};
  bool keyed = v->settled && wl_identity_key(s, &t->shape, &v->shared, &key);
  if (!keyed || !wl_cache_find(&t->user, &key)) {
    wl_status rc = t->kind->open(s, &t->shape, &t->user, &extra, err);
    assert(rc || extra.data);
    if (!rc) rc = wl_cache_add(&t->user, keyed ? &key : NULL, t->shape.n_cols, &extra, err);
    if (rc) return rc;
  }
  note_current(s, t);
  t->kind_version = v->own;
  t->private_for_now = !v->settled;
  return WL_OK;
}

/* Makes a kind's table use the set of the open transaction's version. */
static wl_status follow(wl_store *s, wl_stored *t, wl_error *err) {
  wl_kind_version v;
  wl_set_key key;
  wl_status rc = t->kind->version(s, &t->shape, &v, err);
  bool same = !rc && t->user.set && t->kind_version == v.own && t->length_limit == length_limit(s);
  if (!rc && !same) rc = open_kind_set(s, t, &v, err);
  if (rc) {
    wl_stored_forget(t);
    return rc;
  }
  t->version = s->version;                       /* to compare with too_big_version */
  if (same && t->private_for_now && v.settled) { /* the writing transaction has ended */
    t->private_for_now = false;
    if (wl_identity_key(s, &t->shape, &v.shared, &key)) wl_cache_publish(&t->user, &key);
  }
  return WL_OK;
}

/* Whether a PRAGMA with the values 0 and 1 is on. Also true if it gives no answer. */
static bool is_on(wl_store *s, sqlite3_stmt **stmt, const char *sql) {
  if (!*stmt && sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL))
    return true;
  bool on = sqlite3_step(*stmt) != SQLITE_ROW || sqlite3_column_int(*stmt, 0) != 0;
  sqlite3_reset(*stmt);
  return on;
}

static wl_status begin(wl_source *source, bool *changed, wl_error *err) {
  wl_stored *t = stored_of(source);
  wl_store *s = t->store;
  const char *schema = t->shape.schema;
  *changed = false;
  wl_status rc = wl_store_not_loading(s, err);
  if (rc) return rc;
  wl_store_bound_budget(s);
  if (!t->kind && sqlite3_txn_state(s->db, schema) == SQLITE_TXN_WRITE &&
      !wl_store_untouched(s, schema))
    return wl_not_taken(err, "inside a write transaction on %s", schema);
  if (!s->checked_pragmas) {
    if (is_on(s, &s->uncommitted, "PRAGMA read_uncommitted"))
      return wl_not_taken(err, "read_uncommitted is on");
    /* SQLite would scan backwards, and the rows of columns loaded that way would not match
    ** others. */
    if (is_on(s, &s->reversed, "PRAGMA reverse_unordered_selects"))
      return wl_not_taken(err, "reverse_unordered_selects is on");
    s->checked_pragmas = s->n_scopes > 0;
  }
  rc = wl_store_read_version(s, schema, err);
  if (rc) return rc;
  *changed = t->key[0] != s->cookie || t->key[1] != (wl_u32)s->reprepares;
  if (*changed) {
    wl_stored_forget(t);
    return WL_OK;
  }
  if (t->kind)
    rc = follow(s, t, err);
  else if (!is_current(s, t))
    rc = open_set(s, t, err);
  if (rc) wl_store_end(s);
  return rc;
}

static void end(wl_source *source) {
  wl_store_end(stored_of(source)->store);
}

static wl_u64 stamp(const wl_source *source) {
  const wl_stored *t = stored_of(source);
  const wl_store *s = t->store;
  struct {
    void *file;
    wl_u64 kind_version;
    wl_u32 cookie, version;
    wl_i64 reprepares;
  } of = {s->file, t->kind ? t->kind_version : 0, s->cookie, s->version, s->reprepares};
  return XXH3_64bits(&of, sizeof of);
}

bool wl_store_same(wl_store *s, wl_u64 id, wl_u64 seen) {
  wl_error ignored;
  bool changed;
  wl_stored *t = s->tables;
  while (t && t->shape.id != id) t = t->next;
  if (!t || begin(&t->source, &changed, &ignored) != WL_OK) return false;
  bool same = !changed && stamp(&t->source) == seen;
  wl_store_end(s);
  return same;
}

/* ---- loading */

wl_status wl_store_check(wl_store *s, const wl_table *t, wl_error *err) {
  wl_cache_beat(&wl_stored_of(t)->user);
  return s->check ? s->check(s->check_arg, err) : WL_OK;
}

static wl_status load(void *arg, const int *cols, int n, size_t limit, wl_column **out,
                      wl_i64 *n_rows, wl_error *err) {
  wl_stored *t = arg;
  wl_store *s = t->store;
  wl_status rc;
  s->loading = true;
  if (n) wl_store_tell(s, &t->shape, 0, t->estimate);
  if (t->kind) {
    *n_rows = t->user.set->extra.n_rows;
    rc = t->kind->load(s, &t->shape, t->user.set->extra.data, cols, n, limit, out, err);
    if (rc == WL_TOOBIG) rc = wl_load_too_long(&t->shape, err);
  } else {
    rc = wl_load_columns(s, t, cols, n, limit, out, n_rows, err);
  }
  if (n && s->progress) s->progress(s->progress_arg, t->shape.name, 1, 1);
  s->loading = false;
  if (n && !rc) t->n_loads++;
  return rc;
}

static bool known_too_big(const wl_store *s, const wl_stored *t) {
  return t->too_big_budget && t->too_big_version == s->version && t->too_big_budget >= s->budget;
}

static wl_status too_big(const wl_store *s, const wl_stored *t, wl_error *err) {
  return wl_not_taken(err, "%s does not fit into host_budget (%lld bytes)", t->shape.name,
                      s->budget);
}

/* Gives the reason when a load exceeds a limit. */
static wl_status refuse(wl_store *s, wl_stored *t, wl_status rc, bool full, wl_error *err) {
  if (full) {
    t->too_big_version = s->version;
    t->too_big_budget = s->budget;
    return too_big(s, t, err);
  }
  return rc == WL_NOMEM ? wl_nomem(err) : rc;
}

/* Whether an authorizer that we do not know allows every column to be read unchanged. */
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

/* Whether all wanted columns are in memory. Then they fit, whatever was found before. */
static bool all_there(const wl_stored *t, const int *cols, int n) {
  return wl_cache_peek(&t->user, cols, n, NULL) == n;
}

static wl_status acquire(wl_source *source, const int *cols, int n_cols, wl_snapshot *out,
                         wl_error *err) {
  wl_stored *t = stored_of(source);
  wl_store *s = t->store;
  bool hits[64] = {false}, full;
  wl_cache_load how = {
      .load = load, .arg = t, .name = t->shape.name, .check = s->check, .check_arg = s->check_arg};
  wl_status rc = WL_OK;
  memset(out, 0, sizeof *out);
  if (!t->user.set) return wl_fail(err, (wl_status)SQLITE_SCHEMA, "the schema changed");
  if (n_cols && wl_authorizer_blind) rc = may_read(s, &t->shape, cols, n_cols, err);
  if (!rc && known_too_big(s, t) && !all_there(t, cols, n_cols)) rc = too_big(s, t, err);
  if (rc) return rc;
  bool few = n_cols <= (int)(sizeof hits / sizeof *hits);
  rc = wl_cache_acquire(&t->user, cols, n_cols, &how, few ? hits : NULL, &full, out, err);
  wl_i64 now = (wl_i64)time(NULL);
  for (int i = 0; i < n_cols; i++) {
    wl_use *u = &t->use[cols[i] < 0 ? t->shape.n_cols : cols[i]];
    u->uses++;
    u->hits += few && hits[i];
    u->last_time = now;
  }
  if (rc) return refuse(s, t, rc, full, err);
  t->n_uses++;
  for (int i = 0; i < n_cols && t->kind; i++) wl_column_settle(out->cols[i]);
  return WL_OK;
}

/* ---- sizes */

/* Looks for a set of another connection, if this one has none for its version. Searches again only
** after some set got columns. */
static bool find_set(wl_store *s, wl_stored *t, const wl_u64 *state) {
  wl_set_key key;
  wl_u64 generation = wl_cache_generation();
  bool same_shape = t->key[0] == s->cookie && t->key[1] == (wl_u32)s->reprepares;
  if (!generation || !same_shape ||
      (t->seen_sets == generation && t->estimate_version == s->version))
    return false;
  t->seen_sets = generation;
  if (!wl_identity_key(s, &t->shape, state, &key)) return false;
  return wl_cache_find(&t->user, &key);
}

/* Estimates the rows of a kind's table, which knows them from its directory. */
static void estimate_kind(wl_store *s, wl_stored *t, bool *exact) {
  wl_error ignored;
  wl_kind_version v;
  if (t->kind->version(s, &t->shape, &v, &ignored)) return;
  if (t->kind_version != v.own && v.settled && find_set(s, t, &v.shared)) {
    note_current(s, t);
    t->kind_version = v.own;
  }
  t->estimate_version = s->version;
  *exact = t->user.set && t->kind_version == v.own && wl_cache_rows(&t->user, true, &t->estimate);
  if (!*exact) t->estimate = t->kind->about(s, &t->shape);
}

static wl_i64 estimate(wl_source *source, bool *exact) {
  wl_stored *t = stored_of(source);
  wl_store *s = t->store;
  wl_error ignored;
  wl_i64 n_rows;
  *exact = false;
  if (wl_store_read_version(s, t->shape.schema, &ignored) != WL_OK) return t->estimate;
  if (!s->n_scopes) { /* for the load that may follow; a scope begins with it */
    sqlite3_mutex *m = sqlite3_db_mutex(s->db);
    sqlite3_mutex_enter(m);
    wl_wal_pin_make(s, t->shape.schema);
    sqlite3_mutex_leave(m);
  }
  if (t->kind) {
    estimate_kind(s, t, exact);
    wl_store_end(s);
    return t->estimate;
  }
  if (!is_current(s, t) && find_set(s, t, NULL)) note_current(s, t);
  wl_u32 version = s->version;
  bool known = t->estimated && t->estimate_version == version;
  bool current = is_current(s, t);
  t->estimate_version = version;
  wl_store_end(s);
  if (current && wl_cache_rows(&t->user, true, &n_rows)) {
    t->estimated = known;
    *exact = true;
    return n_rows;
  }
  if (!known) t->estimate = wl_load_estimate(s, &t->shape);
  t->estimated = true;
  return t->estimate;
}

/* ---- columns in memory */

static int columns(const wl_source *source, const int *cols, int n, wl_column **held) {
  return wl_cache_peek(&stored_of(source)->user, cols, n, held);
}

static bool live_rows(const wl_source *source, wl_i64 *n_rows) {
  return wl_cache_rows(&stored_of(source)->user, true, n_rows);
}

static wl_use use(const wl_source *source, int col) {
  const wl_stored *t = stored_of(source);
  return t->use[col < 0 ? t->shape.n_cols : col];
}

static wl_source_history history(const wl_source *source) {
  const wl_stored *t = stored_of(source);
  const char *from = t->kind       ? t->kind->loaded_from
                     : t->by_pages ? "from the file's pages"
                                   : "through SQLite";
  double lost = t->lost_version == t->estimate_version ? t->lost_ns : 0;
  wl_u64 version =
      (wl_u64)t->shape.id << 32 ^ (t->kind ? t->kind_version : 0) ^ t->estimate_version;
  return (wl_source_history){t->n_uses, t->n_loads, lost, version, from};
}

static void lose(wl_source *source, double ns) {
  wl_stored *t = stored_of(source);
  t->lost_ns = ns + (t->lost_version == t->estimate_version ? t->lost_ns : 0);
  t->lost_version = t->estimate_version;
}

static bool shared(const wl_source *source) {
  return wl_cache_is_shared(&stored_of(source)->user);
}

static void unload(wl_source *source) {
  wl_cache_clear(&stored_of(source)->user);
}

static const wl_source_methods methods = {.estimate = estimate,
                                          .begin = begin,
                                          .end = end,
                                          .stamp = stamp,
                                          .acquire = acquire,
                                          .columns = columns,
                                          .live_rows = live_rows,
                                          .use = use,
                                          .history = history,
                                          .lose = lose,
                                          .shared = shared,
                                          .unload = unload};

void wl_stored_open(wl_store *s, wl_stored *t) {
  t->store = s;
  t->shape.source = &t->source;
  t->source.methods = &methods;
  t->source.in_segments = t->kind && t->kind->in_segments;
  t->source.rowid_order_only = t->kind && t->kind->rowid_order_only;
  t->user.vouches = strcmp(t->shape.schema, "main") == 0;
  wl_cache_add_user(&s->member, &t->user);
}

bool wl_store_loaded_by_pages(const wl_table *t, const char **why_not) {
  *why_not = wl_stored_of(t)->why_not;
  return wl_stored_of(t)->by_pages;
}
