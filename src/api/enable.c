/*
** Enables warplite on a connection: the entry point of the loadable extension, warplite_enable(),
** registration of everything, and how the library finds SQLite when it is linked and not loaded.
*/
#include "api/enable.h"
#include "api/functions.h"
#include "dml/dml.h"
#include "explain/explain.h"
#include "route/args.h"
#include "tablet/vtab/vtab.h"
#include "base/mem.h"
#include "base/fork.h"
#include "warplite.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char enable_error[512]; /* message of this thread's last failure */

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&lock);
}

/* SQLite's symbols by name. They exist if the program or a library links SQLite. */
#undef sqlite3_auto_extension
#undef sqlite3_cancel_auto_extension
#undef sqlite3_open
#undef sqlite3_close
extern int sqlite3_auto_extension(void (*)(void)) __attribute__((weak));
extern int sqlite3_cancel_auto_extension(void (*)(void)) __attribute__((weak));
extern int sqlite3_open(const char *, sqlite3 **) __attribute__((weak));
extern int sqlite3_close(sqlite3 *) __attribute__((weak));

static int capture(sqlite3 *db, char **msg, const sqlite3_api_routines *api) {
  (void)db;
  (void)msg;
  pthread_mutex_lock(&lock);
  if (!sqlite3_api) sqlite3_api = api;
  pthread_mutex_unlock(&lock);
  return SQLITE_OK;
}

static bool is_bound(void) {
  pthread_mutex_lock(&lock);
  bool is = sqlite3_api != NULL;
  pthread_mutex_unlock(&lock);
  return is;
}

/* The calls that make SQLite pass its routine table. */
typedef struct entry_points {
  int (*auto_extension)(void (*)(void));
  int (*cancel)(void (*)(void));
  int (*open)(const char *, sqlite3 **);
  int (*close)(sqlite3 *);
} entry_points;

/* SQLite passes its routine table to the extensions of a new connection. This runs without the
** lock, because the program may have made warplite itself such an extension. */
static void ask_for_routines(const entry_points *e) {
  sqlite3 *db = NULL;
  if (!e->auto_extension || !e->cancel || !e->open || !e->close) return;
  e->auto_extension((void (*)(void))capture);
  e->open(":memory:", &db);
  e->cancel((void (*)(void))capture);
  e->close(db);
}

/* Looks for a libsqlite3 that was loaded for one library alone (RTLD_LOCAL), as Python does. Its
** symbols are not visible, but it can be opened by name. It stays loaded from then on. */
static void ask_local_library(void) {
  static const char *const names[] = {"libsqlite3.so.0", "libsqlite3.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names && !is_bound(); i++) {
    void *lib = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (!lib) continue;
    entry_points e = {(int (*)(void (*)(void)))dlsym(lib, "sqlite3_auto_extension"),
                      (int (*)(void (*)(void)))dlsym(lib, "sqlite3_cancel_auto_extension"),
                      (int (*)(const char *, sqlite3 **))dlsym(lib, "sqlite3_open"),
                      (int (*)(sqlite3 *))dlsym(lib, "sqlite3_close")};
    ask_for_routines(&e);
    if (!is_bound()) dlclose(lib);
  }
}

bool wl_api_bind(const sqlite3_api_routines *api) {
  bool known = is_bound();
  if (api) capture(NULL, NULL, api);
  if (!is_bound()) {
    entry_points e = {sqlite3_auto_extension, sqlite3_cancel_auto_extension, sqlite3_open,
                      sqlite3_close};
    ask_for_routines(&e);
  }
  if (!is_bound()) ask_local_library();
  if (!is_bound()) return false;
  if (!known) wl_authorizer_blind = !wl_authorizer_linked();
  return true;
}

/* Registers all names for SQL. Replaces what an earlier attempt has left. */
static wl_status register_all(wl_conn *c, wl_error *err) {
  int rc = wl_functions_register(c);
  if (!rc) rc = wl_tables_register(c);
  if (!rc) rc = wl_select_table_register(c);
  if (!rc) rc = wl_args_register(c->db);
  if (!rc) rc = wl_explain_register(c);
  if (!rc) rc = wl_dml_register(c);
  if (!rc) rc = wl_tablet_register(c->db);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  if (rc) return wl_fail(err, (wl_status)rc, "warplite: %s", sqlite3_errmsg(c->db));
  c->ready = true;
  return WL_OK;
}

wl_conn *wl_enable(sqlite3 *db, wl_error *err) {
  wl_conn *c = wl_conn_find(db);
  if (c && c->ready) return c;
  if (!wl_api_bind(NULL)) {
    wl_fail(err, WL_ERROR, "warplite: no SQLite was found in this program");
    return NULL;
  }
  if (sqlite3_libversion_number() < 3038000) {
    wl_fail(err, WL_ERROR, "warplite needs SQLite 3.38 or newer; this is %s", sqlite3_libversion());
    return NULL;
  }
  if (!c) c = wl_conn_open(db, err);
  return c && register_all(c, err) == WL_OK ? c : NULL;
}

static int enable(sqlite3 *db, wl_error *err) {
  err->text[0] = 0;
  err->code = WL_OK;
  sqlite3_mutex *m = sqlite3_db_mutex(db);
  sqlite3_mutex_enter(m);
  wl_conn *c = wl_enable(db, err);
  sqlite3_mutex_leave(m);
  return c ? SQLITE_OK : err->code ? (int)err->code : SQLITE_ERROR;
}

int warplite_enable(sqlite3 *db) {
  wl_error err;
  if (!db) return SQLITE_MISUSE;
  if (!wl_api_bind(NULL)) {
    snprintf(enable_error, sizeof enable_error, "warplite: no SQLite was found in this program");
    return SQLITE_ERROR;
  }
  int rc = enable(db, &err);
  if (rc) snprintf(enable_error, sizeof enable_error, "%s", err.text);
  return rc;
}

int sqlite3_warplite_init(sqlite3 *db, char **msg, const void *api) {
  wl_error err;
  if (!db) return SQLITE_MISUSE;
  wl_api_bind(api);
  int rc = enable(db, &err);
  if (rc && msg) *msg = sqlite3_mprintf("%s", err.text);
  /* Worker threads may be running our code, so the library is never unloaded. */
  return rc ? rc : SQLITE_OK_LOAD_PERMANENTLY;
}

const char *warplite_reason(sqlite3 *db) {
  wl_conn *c = db ? wl_conn_find(db) : NULL;
  return c ? c->reason : "sqlite: warplite is not enabled on this connection";
}

int warplite_progress(sqlite3 *db, wl_progress *progress, void *arg) {
  wl_error err = {0};
  if (!db) return SQLITE_MISUSE;
  int rc = warplite_enable(db);
  if (rc) return rc;
  wl_conn *c = wl_enable(db, &err);
  if (!c) return err.code == WL_NOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
  sqlite3_mutex_enter(sqlite3_db_mutex(db));
  wl_store_set_progress(c->store, progress, arg);
  sqlite3_mutex_leave(sqlite3_db_mutex(db));
  return SQLITE_OK;
}

const char *warplite_errmsg(sqlite3 *db) {
  wl_conn *c = db ? wl_conn_find(db) : NULL;
  return c && c->ready ? c->errmsg : enable_error;
}

const char *warplite_version(void) {
  return WARPLITE_VERSION;
}
