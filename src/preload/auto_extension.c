/*
** Automatic extensions of the program (sqlite3_auto_extension). SQLite calls them for every
** connection that is opened, also for those that libwarplite opens for itself. The program must not
** see these, and its extensions must not change what they compute. So SQLite knows only our own
** extension, which calls those of the program unless libwarplite opens the connection.
**
** Invariants:
** 1. The list belongs to the SQLite that wl_only named when the program first used it. With several
**    SQLites in the process the functions call SQLite's own.
*/
#include "preload/preload.h"
#include <pthread.h>
#include <stdlib.h>

typedef void entry_point(void);
typedef int init_fn(sqlite3 *db, char **message, const sqlite3_api_routines *api);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_point **list; /* of the program, in its order */
static int n_listed;
static const wl_sqlite *owner; /* NULL: the list has not been used */
static _Thread_local int n_private;

static entry_point *nth(int k) {
  pthread_mutex_lock(&lock);
  entry_point *e = k < n_listed ? list[k] : NULL;
  pthread_mutex_unlock(&lock);
  return e;
}

/* As in SQLite: one after the other, up to the first that fails. They may change the list. */
static int call_all(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  entry_point *e;
  int rc = SQLITE_OK;
  for (int k = 0; rc == SQLITE_OK && n_private == 0 && (e = nth(k)) != NULL; k++)
    rc = ((init_fn *)e)(db, message, api);
  return rc;
}

int wl_open_private(const wl_sqlite *real, const char *name, sqlite3 **out, int flags,
                    const char *vfs) {
  n_private++;
  int rc = real->api.open_v2(name, out, flags, vfs);
  n_private--;
  return rc;
}

/* The SQLite that has the list; NULL: the caller's own functions are called. */
static const wl_sqlite *list_of(void *caller) {
  const wl_sqlite *real = wl_real_checked(caller);
  if (wl_disabled) return NULL;
  if (!owner && atomic_load_explicit(&wl_only, memory_order_acquire) == real) owner = real;
  return owner == real ? real : NULL;
}

static int find(entry_point *e) {
  int k = 0;
  while (k < n_listed && list[k] != e) k++;
  return k;
}

WL_EXPORT int sqlite3_auto_extension(entry_point *e) {
  pthread_mutex_lock(&lock);
  const wl_sqlite *real = list_of(WL_CALLER);
  int rc = SQLITE_OK;
  if (real && find(e) == n_listed) {
    entry_point **more = realloc(list, ((size_t)n_listed + 1) * sizeof *list);
    if (more) list = more;
    rc = more ? real->api.auto_extension((entry_point *)call_all) : SQLITE_NOMEM;
    if (rc == SQLITE_OK) list[n_listed++] = e;
  }
  pthread_mutex_unlock(&lock);
  return real ? rc : WL_REAL()->auto_extension(e);
}

WL_EXPORT int sqlite3_cancel_auto_extension(entry_point *e) {
  pthread_mutex_lock(&lock);
  const wl_sqlite *real = list_of(WL_CALLER);
  int k = real ? find(e) : n_listed, found = real && k < n_listed;
  /* the last one takes its place, as in SQLite */
  if (found) list[k] = list[--n_listed];
  pthread_mutex_unlock(&lock);
  return real ? found : WL_REAL()->cancel_auto_extension(e);
}

WL_EXPORT void sqlite3_reset_auto_extension(void) {
  pthread_mutex_lock(&lock);
  if (list_of(WL_CALLER)) n_listed = 0;
  WL_REAL()->reset_auto_extension(); /* the next extension of the program adds ours again */
  pthread_mutex_unlock(&lock);
}
