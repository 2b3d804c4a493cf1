/*
** The two functions that set an application's authorizer: warplite_set_authorizer(), and
** sqlite3_set_authorizer(). A program linked with -lwarplite before -lsqlite3 finds the latter
** here.
*/
#include "base/authorizer.h"
#include "api/enable.h"
#include "warplite.h"
#include <dlfcn.h>

/* SQLite's symbols, as the application finds them. */
#undef sqlite3_set_authorizer
#undef sqlite3_db_mutex
#undef sqlite3_mutex_enter
#undef sqlite3_mutex_leave
/* Weak, so that a program that contains SQLite uses SQLite's own function. */
WARPLITE_API int sqlite3_set_authorizer(sqlite3 *db, wl_authorizer_call *xAuth, void *pArg)
    __attribute__((weak));
extern sqlite3_mutex *sqlite3_db_mutex(sqlite3 *) __attribute__((weak));
extern void sqlite3_mutex_enter(sqlite3_mutex *) __attribute__((weak));
extern void sqlite3_mutex_leave(sqlite3_mutex *) __attribute__((weak));

/*
** Finds SQLite's own function. If SQLite is a shared library, its routine table has the symbol that
** the program finds, which may be ours. So we look it up in the file that contains SQLite's code.
*/
static wl_set_authorizer *of_sqlite(void) {
  Dl_info sqlite, found;
  wl_set_authorizer *real = sqlite3_api->set_authorizer;
  if (!dladdr((void *)sqlite3_api->libversion, &sqlite)) return real;
  void *lib = dlopen(sqlite.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  void *symbol = lib ? dlsym(lib, "sqlite3_set_authorizer") : NULL;
  if (symbol && dladdr(symbol, &found) && found.dli_fbase == sqlite.dli_fbase)
    real = (wl_set_authorizer *)symbol;
  if (lib) dlclose(lib);
  return real;
}

bool wl_authorizer_linked(void) {
  return sqlite3_api->set_authorizer != of_sqlite();
}

int warplite_set_authorizer(sqlite3 *db, wl_authorizer_call *xAuth, void *pArg) {
  if (!db) return SQLITE_MISUSE;
  int rc = warplite_enable(db);
  if (rc) return rc;
  sqlite3_mutex *m = sqlite3_api->db_mutex(db);
  sqlite3_api->mutex_enter(m);
  rc = wl_authorizer_set(db, xAuth, pArg, true, of_sqlite());
  sqlite3_api->mutex_leave(m);
  return rc;
}

int sqlite3_set_authorizer(sqlite3 *db, wl_authorizer_call *xAuth, void *pArg) {
  if (db && wl_conn_find(db)) return warplite_set_authorizer(db, xAuth, pArg);
  wl_set_authorizer *next = (wl_set_authorizer *)dlsym(RTLD_NEXT, "sqlite3_set_authorizer");
  /* RTLD_NEXT does not find the SQLite of a module that was itself loaded, such as Python's. */
  if (!next && sqlite3_api) next = of_sqlite();
  if (!next) return SQLITE_MISUSE;
  if (!sqlite3_db_mutex || !sqlite3_mutex_enter || !sqlite3_mutex_leave || !db)
    return next(db, xAuth, pArg);
  sqlite3_mutex *m = sqlite3_db_mutex(db);
  sqlite3_mutex_enter(m);
  int rc = wl_authorizer_set(db, xAuth, pArg, false, next);
  sqlite3_mutex_leave(m);
  return rc;
}
