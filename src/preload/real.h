/*
** SQLite's own functions. The preload library defines functions of the same names, so it can reach
** SQLite's only by address.
**
** Invariants:
** 1. The addresses come from the library that holds SQLite (dlsym with its handle), because a
**    module such as Python's may have loaded it for itself, where RTLD_NEXT does not look.
** 2. With one SQLite in the process, wl_only is its table. With several, wl_only is NULL: each call
**    goes to the SQLite that its caller is linked with, and warplite runs nothing.
** 3. A library that was found is never unloaded.
*/
#ifndef WL_REAL_H
#define WL_REAL_H

#ifndef SQLITE_CORE
#define SQLITE_CORE 1 /* no macros for sqlite3_step and so on */
#endif
#include <sqlite3ext.h>
#include <stdatomic.h>
#include <stdbool.h>

#define WL_LIKELY(x)   __builtin_expect(!!(x), 1)
#define WL_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WL_EXPORT      __attribute__((visibility("default")))

/* The linker need not look for our own data elsewhere. */
#define WL_HIDDEN __attribute__((visibility("hidden")))

typedef struct wl_range {
  const char *low, *high;
} wl_range;

/* One SQLite library. */
typedef struct wl_sqlite {
  sqlite3_api_routines api;  /* SQLite's own addresses */
  sqlite3_api_routines ours; /* the same for libwarplite, which notes its statements */
  wl_range code;             /* where the library is in memory */
} wl_sqlite;

extern WL_HIDDEN _Atomic(const wl_sqlite *) wl_only;
extern WL_HIDDEN wl_range wl_warplite_code; /* libwarplite, if it is loaded */

/* The SQLite of a caller, by the address it returns to. Never NULL. */
const wl_sqlite *wl_real_find(void *caller);
/* The same, after a look for libraries that were loaded since the last time. Used by the functions
** that a SQLite calls when it opens a connection, so that a second SQLite is noticed then. */
const wl_sqlite *wl_real_checked(void *caller);

/* Opens a connection for libwarplite, without the program's extensions (auto_extension.c). */
int wl_open_private(const wl_sqlite *real, const char *name, sqlite3 **out, int flags,
                    const char *vfs);

static inline bool wl_within(wl_range r, const void *at) {
  return (const char *)at >= r.low && (const char *)at < r.high;
}

#define WL_CALLER __builtin_return_address(0)
#define WL_REAL() wl_real_api(WL_CALLER)

static inline const sqlite3_api_routines *wl_real_api(void *caller) {
  const wl_sqlite *only = atomic_load_explicit(&wl_only, memory_order_acquire);
  return WL_LIKELY(only) ? &only->api : &wl_real_find(caller)->api;
}

#endif
