/*
** The two names by which an application sets its authorizer: warplite_set_authorizer(), and
** SQLite's own, which a program that is linked with -lwarplite before -lsqlite3 finds here.
*/
#include "base/authorizer.h"
#include "api/conn.h"
#include "warplite.h"
#include <dlfcn.h>

/* SQLite's own symbols, as the application would have found them without us. */
#undef sqlite3_set_authorizer
#undef sqlite3_db_mutex
#undef sqlite3_mutex_enter
#undef sqlite3_mutex_leave
WARPLITE_API int sqlite3_set_authorizer(sqlite3 *db, wl_authorizer_call *xAuth, void *pArg);
extern sqlite3_mutex *sqlite3_db_mutex(sqlite3 *) __attribute__((weak));
extern void sqlite3_mutex_enter(sqlite3_mutex *) __attribute__((weak));
extern void sqlite3_mutex_leave(sqlite3_mutex *) __attribute__((weak));

static wl_set_authorizer *behind_us(void) {
  return (wl_set_authorizer *)dlsym(RTLD_NEXT, "sqlite3_set_authorizer");
}

bool wl_authorizer_linked(void) {
  return sqlite3_api->set_authorizer == sqlite3_set_authorizer;
}

int warplite_set_authorizer(sqlite3 *db, wl_authorizer_call *xAuth, void *pArg) {
  if (!db) return SQLITE_MISUSE;
  int rc = warplite_enable(db);
  if (rc) return rc;
  /* The routine table of a SQLite that is a shared library has our symbol in it. */
  wl_set_authorizer *real = sqlite3_api->set_authorizer;
  if (real == sqlite3_set_authorizer) real = behind_us();
  if (!real) return SQLITE_MISUSE;
  sqlite3_mutex *m = sqlite3_api->db_mutex(db);
  sqlite3_api->mutex_enter(m);
  rc = wl_authorizer_set(db, xAuth, pArg, true, real);
  sqlite3_api->mutex_leave(m);
  return rc;
}

int sqlite3_set_authorizer(sqlite3 *db, wl_authorizer_call *xAuth, void *pArg) {
  if (db && wl_conn_find(db)) return warplite_set_authorizer(db, xAuth, pArg);
  wl_set_authorizer *real = behind_us();
  if (!real) return SQLITE_MISUSE;
  if (!sqlite3_db_mutex || !sqlite3_mutex_enter || !sqlite3_mutex_leave || !db)
    return real(db, xAuth, pArg);
  sqlite3_mutex *m = sqlite3_db_mutex(db);
  sqlite3_mutex_enter(m);
  int rc = wl_authorizer_set(db, xAuth, pArg, false, real);
  sqlite3_mutex_leave(m);
  return rc;
}
