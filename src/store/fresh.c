/*
** Opening and closing the store, and its freshness rule: which version of a database is being read.
*/
#include "store/store_impl.h"
#include "base/mem.h"
#include "base/shared_cache.h"
#include "base/threads.h"
#include <assert.h>
#include <string.h>

wl_status wl_store_open(sqlite3 *db, wl_store **out, wl_error *err) {
  wl_store *s = wl_mem_zalloc(sizeof *s);
  *out = s;
  if (!s) return wl_nomem(err);
  s->db = s->member.db = db;
  s->threads = wl_threads_cores();
  int rc = wl_load_register(s);
  if (rc) {
    wl_status st = wl_store_sqlite_error(s, rc, err);
    wl_mem_free(s);
    *out = NULL;
    return st;
  }
  wl_cache_join(&s->member);
  return WL_OK;
}

void wl_store_quiet(wl_store *s) {
  while (s->files) {
    wl_dbfile *f = s->files;
    s->files = f->next;
    sqlite3_finalize(f->pragma);
    sqlite3_finalize(f->journal);
    sqlite3_finalize(f->locking);
    wl_mem_free(f->schema);
    wl_mem_free(f);
  }
  sqlite3_finalize(s->uncommitted);
  sqlite3_finalize(s->reversed);
  sqlite3_finalize(s->probe);
  sqlite3_finalize(s->databases);
  s->uncommitted = s->reversed = s->probe = s->databases = NULL;
  s->tried = false;
  s->active = NULL;
  /* Without the helpers' re-prepare counts, nothing proves that a database is unchanged. */
  for (wl_stored *t = s->tables; t; t = t->next) wl_stored_forget(t);
}

void wl_store_close(wl_store *s) {
  if (!s) return;
  wl_store_quiet(s);
  while (s->names) {
    wl_name *n = s->names;
    s->names = n->next;
    wl_name_free(n);
  }
  while (s->tables) {
    wl_stored *t = s->tables;
    s->tables = t->next;
    wl_stored_free(t);
  }
  wl_cache_leave(&s->member);
  wl_mem_free(s);
}

/* The limit may change at any time, so every statement reads it. */
void wl_store_bound_budget(wl_store *s) {
  wl_i64 limit = (wl_i64)(wl_mem_heap_limit() / 2);
  wl_i64 before = s->budget;
  s->budget = limit && (s->host_budget <= 0 || s->host_budget > limit) ? limit : s->host_budget;
  if (s->budget != before) wl_cache_set_budget(&s->member, s->budget);
}

void wl_store_set_budget(wl_store *s, wl_i64 n_bytes) {
  s->host_budget = n_bytes;
  wl_store_bound_budget(s);
}

wl_i64 wl_store_budget(const wl_store *s) {
  return s->budget;
}

void wl_store_set_threads(wl_store *s, int n) {
  s->threads = n < 1 ? 1 : n;
}

void wl_store_set_check(wl_store *s, wl_status (*check)(void *arg, wl_error *err), void *arg) {
  s->check = check;
  s->check_arg = arg;
}

void wl_store_set_progress(wl_store *s, wl_progress *progress, void *arg) {
  s->progress = progress;
  s->progress_arg = arg;
}

wl_status wl_store_each(wl_store *s, wl_status (*fn)(void *arg, const wl_table *t), void *arg) {
  wl_status rc = WL_OK;
  for (wl_stored *t = s->tables; t && !rc; t = t->next) rc = fn(arg, &t->shape);
  return rc;
}

size_t wl_store_bytes(const wl_store *s) {
  return wl_cache_bytes_of(&s->member);
}

const wl_cache_member *wl_store_member(const wl_store *s) {
  return &s->member;
}

wl_status wl_store_sqlite_error(wl_store *s, int rc, wl_error *err) {
  return wl_fail(err, (wl_status)rc, "%s",
                 rc == SQLITE_NOMEM ? "out of memory" : sqlite3_errmsg(s->db));
}

wl_dbfile *wl_store_file_of(wl_store *s, const char *schema) {
  for (wl_dbfile *f = s->files; f; f = f->next)
    if (strcmp(f->schema, schema) == 0) return f;
  wl_dbfile *f = wl_mem_zalloc(sizeof *f);
  if (!f) return NULL;
  f->schema = wl_mem_strdup(schema);
  if (!f->schema) {
    wl_mem_free(f);
    return NULL;
  }
  f->next = s->files;
  s->files = f;
  return f;
}

/* Steps the helper of a database, which opens a read transaction, and reads the cookie. */
static wl_status step_helper(wl_store *s, wl_dbfile *f, wl_error *err) {
  int rc = SQLITE_OK;
  wl_store_end(s);
  if (!f->pragma) {
    char *sql = sqlite3_mprintf("PRAGMA \"%w\".schema_version", f->schema);
    if (!sql) return wl_nomem(err);
    rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &f->pragma, NULL);
    sqlite3_free(sql);
    if (rc) return wl_store_sqlite_error(s, rc, err);
  }
  wl_wal_watch watch;
  wl_wal_watch_begin(s, f->schema, &watch);
  rc = sqlite3_step(f->pragma);
  if (rc != SQLITE_ROW) {
    int code = sqlite3_reset(f->pragma);
    /* an authorizer may deny a PRAGMA, which then gives no row */
    if (rc == SQLITE_DONE || code == SQLITE_OK)
      return wl_not_taken(err, "the version of database %s cannot be read", f->schema);
    return wl_store_sqlite_error(s, code, err);
  }
  s->active = f->pragma;
  s->cookie = (wl_u32)sqlite3_column_int64(f->pragma, 0);
  s->reprepares = sqlite3_stmt_status(f->pragma, SQLITE_STMTSTATUS_REPREPARE, 0);
  wl_wal_watch_end(s, f->schema, &watch);
  return WL_OK;
}

/* Reads data version and file of the open transaction. False: there is no data version. */
static bool read_file_version(wl_store *s, const char *schema) {
  s->version = 0;
  s->file = NULL;
  if (sqlite3_file_control(s->db, schema, SQLITE_FCNTL_DATA_VERSION, &s->version)) return false;
  sqlite3_file_control(s->db, schema, SQLITE_FCNTL_FILE_POINTER, &s->file);
  return true;
}

wl_status wl_store_reopen(wl_store *s, const char *schema, wl_error *err) {
  wl_dbfile *f = wl_store_file_of(s, schema);
  wl_status rc = f ? step_helper(s, f, err) : wl_nomem(err);
  if (!rc && !read_file_version(s, schema))
    rc = wl_not_taken(err, "database %s has no data version", schema);
  return rc;
}

/* Opens the transaction of a database for the rest of the scope. A pin may have to begin it twice,
** so it is made here, before anything else depends on what the transaction sees. */
static wl_status open_in_scope(wl_store *s, wl_dbfile *f, wl_error *err) {
  wl_status rc = step_helper(s, f, err);
  if (rc) return rc;
  f->has_version = read_file_version(s, f->schema);
  if (f->has_version) {
    wl_wal_pin_make(s, f->schema);
    if (!s->active) { /* the second transaction could not be opened */
      rc = wl_store_reopen(s, f->schema, err);
      if (rc) return rc;
    }
  }
  f->cookie = s->cookie;
  f->version = s->version;
  f->file = s->file;
  f->reprepares = s->reprepares;
  f->open = true;
  s->active = NULL; /* wl_store_leave() ends it */
  return WL_OK;
}

wl_status wl_store_read_cookie(wl_store *s, const char *schema, wl_error *err) {
  wl_dbfile *f = wl_store_file_of(s, schema);
  if (!f) return wl_nomem(err);
  if (!s->n_scopes) return step_helper(s, f, err);
  wl_store_end(s);
  wl_status rc = f->open ? WL_OK : open_in_scope(s, f, err);
  if (rc) {
    wl_store_end(s);
    return rc;
  }
  s->cookie = f->cookie;
  s->reprepares = f->reprepares;
  return WL_OK;
}

wl_status wl_store_steady(wl_store *s, const char *schema, wl_error *err) {
  sqlite3_vfs *vfs = NULL;
  int rc = sqlite3_file_control(s->db, schema, SQLITE_FCNTL_VFS_POINTER, &vfs);
  if (!rc && vfs && strcmp(vfs->zName, "memdb") == 0)
    return wl_not_taken(err, "database %s was loaded by sqlite3_deserialize()", schema);
  return WL_OK;
}

/* WL_NOT_TAKEN for a database in a shared cache. Only table locks keep its transactions apart, and
** columns in memory take none. Checked again when the helper statement was prepared again, because
** the schema name may then mean another database. */
static wl_status check_alone(wl_store *s, const char *schema, wl_error *err) {
  wl_dbfile *f = wl_store_file_of(s, schema);
  if (!f) return wl_nomem(err);
  if (f->shared_at != s->reprepares + 1) {
    bool sure;
    wl_status rc = wl_shared_cache(s->db, schema, &f->shared, &sure, err);
    if (rc == WL_NOMEM) return rc;
    if (rc) return wl_not_taken(err, "database %.60s cannot be read now", schema);
    f->shared_at = sure ? s->reprepares + 1 : 0;
  }
  return f->shared ? wl_not_taken(err, "database %.60s is in a shared cache", schema) : WL_OK;
}

wl_status wl_store_read_version(wl_store *s, const char *schema, wl_error *err) {
  wl_status st = wl_store_steady(s, schema, err);
  if (!st) st = wl_store_read_cookie(s, schema, err);
  if (!st) st = check_alone(s, schema, err);
  if (st) {
    wl_store_end(s);
    return st;
  }
  const wl_dbfile *f = s->n_scopes ? wl_store_file_of(s, schema) : NULL;
  bool has = f ? f->has_version : read_file_version(s, schema);
  if (!has) {
    wl_store_end(s);
    return wl_not_taken(err, "database %s has no data version", schema);
  }
  if (f) {
    s->version = f->version;
    s->file = f->file;
  }
  return WL_OK;
}

wl_status wl_store_readable(wl_store *s, const char *schema, wl_error *err) {
  wl_status rc = wl_store_read_cookie(s, schema, err);
  wl_store_end(s);
  if (!rc || rc == WL_NOMEM || rc == WL_NOT_TAKEN) return rc;
  wl_error why = *err;
  return wl_not_taken(err, "database %.60s cannot be read now: %.300s", schema, why.text);
}

void wl_store_enter(wl_store *s) {
  s->n_scopes++;
}

void wl_store_leave(wl_store *s) {
  assert(s->n_scopes > 0);
  if (--s->n_scopes) return;
  for (wl_dbfile *f = s->files; f; f = f->next) {
    if (f->open) sqlite3_reset(f->pragma);
    f->open = false;
  }
  s->checked_pragmas = false;
}

wl_status wl_store_hold(wl_store *s, const char *schema, const char *name, wl_error *err) {
  wl_table *t;
  assert(s->n_scopes > 0);
  wl_status rc = wl_store_named(s, schema, name, &t, err);
  if (rc) return rc;
  rc = wl_store_read_cookie(s, t->schema, err);
  if (!rc || rc == WL_NOMEM) return rc;
  return wl_not_taken(err, "database %.60s cannot be read now", t->schema);
}

void wl_store_end(wl_store *s) {
  if (s->active) sqlite3_reset(s->active);
  s->active = NULL;
}

wl_status wl_store_not_loading(const wl_store *s, wl_error *err) {
  return s->loading ? wl_not_taken(err, "the connection is loading columns") : WL_OK;
}

bool wl_store_untouched(wl_store *s, const char *schema) {
  const char *name = sqlite3_db_filename(s->db, schema);
  wl_dbfile *f = wl_store_file_of(s, schema);
  bool deletes;
  sqlite3_file *journal = NULL;
  if (!f || !name || !*name || sqlite3_stricmp(schema, "temp") == 0) return false;
  if (!wl_store_pragma_is(s, &f->journal, schema, "journal_mode", "delete", &deletes) || !deletes)
    return false;
  return sqlite3_file_control(s->db, schema, SQLITE_FCNTL_JOURNAL_POINTER, &journal) == SQLITE_OK &&
         journal && !journal->pMethods;
}
