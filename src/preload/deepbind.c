/*
** PHP loads its modules with RTLD_DEEPBIND, so that they find SQLite's functions before ours. The
** flag is taken away for modules whose file name says that they are made for SQLite, such as
** sqlite3.so and pdo_sqlite.so. SQLite's own library and all others are loaded as the program asks.
*/
#include "preload/real.h"
#include <dlfcn.h>
#include <string.h>

typedef void *wl_dlopen(const char *, int);

static _Atomic(wl_dlopen *) real_dlopen;

static bool is_module_for_sqlite(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  const char *name = slash ? slash + 1 : path;
  return name && strstr(name, "sqlite") && strncmp(name, "libsqlite3", 10) != 0;
}

#if defined(__clang__)
#define WITH_JUMPS
#else
#define WITH_JUMPS __attribute__((optimize("O2"))) /* also in builds for debugging */
#endif

/* The last call must be a jump: the loader looks at the address that dlopen() returns to, to find
** the libraries of the caller's own folder. */
WL_EXPORT WITH_JUMPS void *dlopen(const char *path, int flags) {
  wl_dlopen *next = atomic_load_explicit(&real_dlopen, memory_order_acquire);
  if (WL_UNLIKELY(!next)) {
    next = (wl_dlopen *)dlsym(RTLD_NEXT, "dlopen");
    atomic_store_explicit(&real_dlopen, next, memory_order_release);
  }
  if (WL_UNLIKELY(flags & RTLD_DEEPBIND) && is_module_for_sqlite(path)) flags &= ~RTLD_DEEPBIND;
  return next(path, flags);
}
