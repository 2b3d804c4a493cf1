/*
** Opening and closing connections, and what the application sets on them that warplite must know:
** the authorizer, trace and progress handlers, functions.
*/
#include "preload/preload.h"
#include <stdlib.h>
#include <string.h>

enum {
  SMALL_FILE = 512 << 10, /* a scan of it takes SQLite less than a millisecond */
  MEASURE_EVERY = 256,    /* executions between two looks at the size of a small file */
  MANY_CHANGES = 2000     /* changed rows after which a small file may have grown */
};

/* ---- open and close */

void wl_connection_drop(wl_connection *c) {
  if (atomic_fetch_sub(&c->n_refs, 1) > 1) return;
  wl_connection_forget_result(c);
  free(c);
}

/* Definitions on connections without a record in this thread. Extensions of the program define
** functions while a connection is being opened (sqlite3_auto_extension). */
static _Thread_local int n_unclaimed;

static int opened(int rc, sqlite3 **out, int flags, const wl_sqlite *real) {
  int n_defined = n_unclaimed;
  n_unclaimed = 0;
  if (rc != SQLITE_OK || !out || !*out || wl_disabled) return rc;
  wl_connection *stale = wl_handles_remove(&wl_connections, *out);
  if (stale) wl_connection_drop(stale); /* SQLite has closed it without our knowledge */
  if (!atomic_load_explicit(&wl_only, memory_order_acquire)) return rc; /* several SQLites */
  wl_connection *c = calloc(1, sizeof *c);
  if (!c) return rc;
  c->db = *out;
  c->real = real;
  c->mutex = real->api.db_mutex(*out);
  c->n_refs = 1;
  c->n_functions = c->n_impure = n_defined;
  c->small = true;
  c->result.code = WL_NO_RESULT;
  c->extended_codes = (flags & SQLITE_OPEN_EXRESCODE) != 0;
  if (!wl_handles_set(&wl_connections, *out, c)) free(c);
  return rc;
}

WL_EXPORT int sqlite3_open(const char *name, sqlite3 **out) {
  const wl_sqlite *r = wl_real_checked(WL_CALLER);
  return opened(r->api.open(name, out), out, 0, r);
}

WL_EXPORT int sqlite3_open_v2(const char *name, sqlite3 **out, int flags, const char *vfs) {
  const wl_sqlite *r = wl_real_checked(WL_CALLER);
  return opened(r->api.open_v2(name, out, flags, vfs), out, flags, r);
}

WL_EXPORT int sqlite3_open16(const void *name, sqlite3 **out) {
  const wl_sqlite *r = wl_real_checked(WL_CALLER);
  return opened(r->api.open16(name, out), out, 0, r);
}

static int closed(sqlite3 *db, int (*real)(sqlite3 *), bool v2) {
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  const wl_native_calls *lib = wl_library_if_open();
  if (!c) return real(db);
  if (lib && c->real == atomic_load(&wl_only)) {
    wl_enter(c);
    wl_silent++;
    lib->quiet(db);
    wl_silent--;
    wl_leave(c);
  }
  wl_forget_result_if(db);
  /* SQLite may free the connection, and another thread may get its address at once. */
  atomic_fetch_add(&c->n_refs, 1);
  if (v2) c->closing = true;
  wl_handles_remove(&wl_connections, db);
  int rc = real(db);
  if (rc == SQLITE_OK)
    wl_connection_drop(c);
  else
    wl_handles_set(&wl_connections, db, c);
  if (rc != SQLITE_OK) c->closing = false;
  wl_connection_drop(c);
  return rc;
}

WL_EXPORT int sqlite3_close(sqlite3 *db) {
  return closed(db, WL_REAL()->close, false);
}

WL_EXPORT int sqlite3_close_v2(sqlite3 *db) {
  return closed(db, WL_REAL()->close_v2, true);
}

/* ---- is it worth a thought? */

static sqlite3_int64 size_of(wl_connection *c, const char *schema, int op) {
  sqlite3_file *file = NULL;
  sqlite3_int64 n = 0;
  if (c->real->api.file_control(c->db, schema, op, &file) || !file || !file->pMethods) return 0;
  return file->pMethods->xFileSize(file, &n) == SQLITE_OK ? n : 0;
}

/* The bytes of all files of the connection and of its page cache, which holds databases in
** memory. */
static sqlite3_int64 measure(wl_connection *c) {
  const sqlite3_api_routines *api = &c->real->api;
  sqlite3_int64 sum = 0;
  for (int i = 0; sum <= SMALL_FILE; i++) {
    const char *schema = api->db_name ? api->db_name(c->db, i) : i == 0 ? "main" : NULL;
    if (!schema) break;
    sum += size_of(c, schema, SQLITE_FCNTL_FILE_POINTER);
    sum += size_of(c, schema, SQLITE_FCNTL_JOURNAL_POINTER); /* a WAL */
  }
  if (sum <= SMALL_FILE) {
    int used = 0, most = 0;
    api->db_status(c->db, SQLITE_DBSTATUS_CACHE_USED, &used, &most, 0);
    sum += used;
  }
  return sum;
}

/* Threads that share the connection may get here at once. A lost count does no harm. */
bool wl_connection_is_small(wl_connection *c) {
  if (!atomic_load_explicit(&c->small, memory_order_relaxed) || wl_always) return false;
  int changes = c->real->api.total_changes(c->db);
  int left = atomic_load_explicit(&c->n_until_measured, memory_order_relaxed) - 1;
  int seen = atomic_load_explicit(&c->changes_seen, memory_order_relaxed);
  atomic_store_explicit(&c->n_until_measured, left, memory_order_relaxed);
  if (left > 0 && (unsigned)changes - (unsigned)seen < MANY_CHANGES) return true;
  bool small = measure(c) <= SMALL_FILE;
  atomic_store_explicit(&c->n_until_measured, MEASURE_EVERY, memory_order_relaxed);
  atomic_store_explicit(&c->changes_seen, changes, memory_order_relaxed);
  atomic_store_explicit(&c->small, small, memory_order_relaxed);
  return small;
}

/* ---- the authorizer */

/* SQLite calls this instead of the application's authorizer. */
static int authorize(void *arg, int code, const char *a, const char *b, const char *c,
                     const char *d) {
  wl_connection *conn = arg;
  const wl_native_calls *lib = conn->asked_through ? wl_library_if_open() : NULL;
  int answer = lib ? lib->authorize(conn->asked_through, code, a, b, c, d)
                   : conn->authorizer(conn->authorizer_arg, code, a, b, c, d);
  conn->n_questions++;
  if (answer == SQLITE_IGNORE) conn->n_ignored++;
  return answer;
}

WL_EXPORT int sqlite3_set_authorizer(sqlite3 *db, wl_authorizer_fn *call, void *arg) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (!c) return real->set_authorizer(db, call, arg);
  wl_enter(c);
  const wl_native_calls *lib = wl_library_if_open();
  c->authorizer = call;
  c->authorizer_arg = arg;
  if (lib) c->asked_through = lib->authorizer(db, call, arg);
  int rc = real->set_authorizer(db, call ? authorize : NULL, c);
  wl_leave(c);
  return rc;
}

/* Tells libwarplite of the authorizers that were set before it was opened. */
void wl_connections_tell(const wl_native_calls *lib) {
  for (int i = 0; i < 1 << WL_HANDLE_BITS; i++) {
    for (int k = 0; k < WL_HANDLE_WAYS; k++) {
      void *db = atomic_load_explicit(&wl_connections.slots[i][k].key, memory_order_acquire);
      wl_connection *c = db ? wl_handles_find(&wl_connections, db) : NULL;
      if (c && c->authorizer && !c->asked_through)
        c->asked_through = lib->authorizer(c->db, c->authorizer, c->authorizer_arg);
    }
  }
}

/* ---- trace and progress */

WL_EXPORT int sqlite3_trace_v2(sqlite3 *db, unsigned mask,
                               int (*call)(unsigned, void *, void *, void *), void *arg) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) {
    wl_enter(c);
    c->trace_mask = call ? mask : 0;
    c->trace = call;
    c->trace_arg = arg;
    c->traces_otherwise = false;
    wl_leave(c);
  }
  return real->trace_v2(db, mask, call, arg);
}

WL_EXPORT void *sqlite3_trace(sqlite3 *db, void (*call)(void *, const char *), void *arg) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) c->trace_mask = 0;
  if (c) c->traces_otherwise = call != NULL;
  return real->trace ? real->trace(db, call, arg) : NULL;
}

WL_EXPORT void *sqlite3_profile(sqlite3 *db, void (*call)(void *, const char *, sqlite3_uint64),
                                void *arg) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) c->traces_otherwise = call != NULL;
  return real->profile ? real->profile(db, call, arg) : NULL;
}

WL_EXPORT void sqlite3_progress_handler(sqlite3 *db, int n, int (*call)(void *), void *arg) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) {
    wl_enter(c);
    c->progress_steps = call && n > 0 ? n : 0;
    c->progress = call;
    c->progress_arg = arg;
    wl_leave(c);
  }
  real->progress_handler(db, n, call, arg);
}

WL_EXPORT int sqlite3_extended_result_codes(sqlite3 *db, int on) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) c->extended_codes = on != 0;
  return real->extended_result_codes(db, on);
}

/* It may be called by a signal handler, so it takes no lock. */
WL_EXPORT void sqlite3_interrupt(sqlite3 *db) {
  WL_REAL()->interruptx(db);
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) atomic_fetch_add(&c->n_interrupts, 1);
  if (c) atomic_fetch_add(&c->n_events, 1);
}

/* ---- what the application defines */

/* Notes a definition and returns SQLite's functions. */
static const sqlite3_api_routines *defines(sqlite3 *db, bool pure, void *caller) {
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) c->n_functions++;
  if (c && !pure) c->n_impure++;
  const wl_sqlite *real = wl_real_checked(caller);
  if (!c && !wl_within(real->code, caller)) n_unclaimed++; /* SQLite's own are no concern */
  return &real->api;
}

/* A definition that succeeds leaves the connection's error as it is. */
static int after_definition(sqlite3 *db, int rc) {
  if (rc != SQLITE_OK && rc != SQLITE_MISUSE) wl_forget_result_if(db);
  return rc;
}

typedef void wl_function(sqlite3_context *, int, sqlite3_value **);
typedef void wl_final(sqlite3_context *);
typedef void wl_destroy(void *);
typedef int wl_collation(void *, int, const void *, int, const void *);

WL_EXPORT int sqlite3_create_function(sqlite3 *db, const char *name, int n, int flags, void *arg,
                                      wl_function *call, wl_function *step, wl_final *end) {
  return after_definition(db, defines(db, flags & SQLITE_DETERMINISTIC, WL_CALLER)
                                  ->create_function(db, name, n, flags, arg, call, step, end));
}
WL_EXPORT int sqlite3_create_function16(sqlite3 *db, const void *name, int n, int flags, void *arg,
                                        wl_function *call, wl_function *step, wl_final *end) {
  return after_definition(db, defines(db, flags & SQLITE_DETERMINISTIC, WL_CALLER)
                                  ->create_function16(db, name, n, flags, arg, call, step, end));
}
WL_EXPORT int sqlite3_create_function_v2(sqlite3 *db, const char *name, int n, int flags, void *arg,
                                         wl_function *call, wl_function *step, wl_final *end,
                                         wl_destroy *destroy) {
  return after_definition(
      db, defines(db, flags & SQLITE_DETERMINISTIC, WL_CALLER)
              ->create_function_v2(db, name, n, flags, arg, call, step, end, destroy));
}
WL_EXPORT int sqlite3_create_window_function(sqlite3 *db, const char *name, int n, int flags,
                                             void *arg, wl_function *step, wl_final *end,
                                             wl_final *value, wl_function *inverse,
                                             wl_destroy *destroy) {
  return after_definition(db, defines(db, flags & SQLITE_DETERMINISTIC, WL_CALLER)
                                  ->create_window_function(db, name, n, flags, arg, step, end,
                                                           value, inverse, destroy));
}
WL_EXPORT int sqlite3_create_collation(sqlite3 *db, const char *name, int rep, void *arg,
                                       wl_collation *call) {
  wl_forget_result_if(db);
  return defines(db, true, WL_CALLER)->create_collation(db, name, rep, arg, call);
}
WL_EXPORT int sqlite3_create_collation16(sqlite3 *db, const void *name, int rep, void *arg,
                                         wl_collation *call) {
  wl_forget_result_if(db);
  return defines(db, true, WL_CALLER)->create_collation16(db, name, rep, arg, call);
}
WL_EXPORT int sqlite3_create_collation_v2(sqlite3 *db, const char *name, int rep, void *arg,
                                          wl_collation *call, wl_destroy *destroy) {
  wl_forget_result_if(db);
  return defines(db, true, WL_CALLER)->create_collation_v2(db, name, rep, arg, call, destroy);
}
WL_EXPORT int sqlite3_collation_needed(sqlite3 *db, void *arg,
                                       void (*call)(void *, sqlite3 *, int, const char *)) {
  return defines(db, true, WL_CALLER)->collation_needed(db, arg, call);
}
WL_EXPORT int sqlite3_collation_needed16(sqlite3 *db, void *arg,
                                         void (*call)(void *, sqlite3 *, int, const void *)) {
  return defines(db, true, WL_CALLER)->collation_needed16(db, arg, call);
}
WL_EXPORT int sqlite3_create_module(sqlite3 *db, const char *name, const sqlite3_module *m,
                                    void *arg) {
  return after_definition(db, defines(db, false, WL_CALLER)->create_module(db, name, m, arg));
}
WL_EXPORT int sqlite3_create_module_v2(sqlite3 *db, const char *name, const sqlite3_module *m,
                                       void *arg, wl_destroy *destroy) {
  return after_definition(
      db, defines(db, false, WL_CALLER)->create_module_v2(db, name, m, arg, destroy));
}
WL_EXPORT int sqlite3_overload_function(sqlite3 *db, const char *name, int n) {
  return after_definition(db, defines(db, true, WL_CALLER)->overload_function(db, name, n));
}
