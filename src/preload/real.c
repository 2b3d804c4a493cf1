/*
** See real.h.
*/
#include "preload/real.h"
#include "preload/preload.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SQLITES = 8, MAX_OBJECTS = 512, MAX_CALLERS = 64 };

_Atomic(const wl_sqlite *) wl_only;
wl_range wl_warplite_code;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wl_sqlite sqlites[MAX_SQLITES];
static int n_sqlites;
static unsigned long long n_added; /* the loader's count of loaded objects, at the last scan */
static struct {
  wl_range code;
  const wl_sqlite *real;
} callers[MAX_CALLERS]; /* which SQLite an object uses, if there are several */
static int n_callers;

/* ---- the addresses of one library */

typedef struct routine {
  const char *name;
  size_t place;
} routine;

static const routine routines[] = {
#define ROUTINE(name, member) {#name, offsetof(sqlite3_api_routines, member)},
#include "preload_routines.h"
#undef ROUTINE
};

/* Stands for every function if there is no SQLite, which only a program with weak references to it
** can meet. */
static long no_sqlite(void) {
  return SQLITE_ERROR;
}

static void fill(sqlite3_api_routines *api, void *library) {
  for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
    void *at = library ? dlsym(library, routines[i].name) : (void *)no_sqlite;
    /* The header has two names for one place, and only one of them exists. */
    if (at) memcpy((char *)api + routines[i].place, &at, sizeof at);
  }
}

/* ---- libwarplite's statements are noted, so that sqlite3_next_stmt() can leave them out */

static int note_prepared(int rc, sqlite3_stmt **out) {
  if (rc == SQLITE_OK && out && *out) wl_handles_set(&wl_statements, *out, &wl_own_mark);
  return rc;
}

/* libwarplite works with the first SQLite that was found. */
static int own_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out,
                          const char **tail) {
  return note_prepared(sqlites[0].api.prepare_v2(db, sql, n, out, tail), out);
}

static int own_prepare_v3(sqlite3 *db, const char *sql, int n, unsigned flags, sqlite3_stmt **out,
                          const char **tail) {
  return note_prepared(sqlites[0].api.prepare_v3(db, sql, n, flags, out, tail), out);
}

static int own_open_v2(const char *name, sqlite3 **out, int flags, const char *vfs) {
  return wl_open_private(&sqlites[0], name, out, flags, vfs);
}

static int own_open(const char *name, sqlite3 **out) {
  return own_open_v2(name, out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
}

static int own_finalize(sqlite3_stmt *s) {
  if (s) wl_handles_remove(&wl_statements, s);
  return sqlites[0].api.finalize(s);
}

/* ---- which libraries hold SQLite */

typedef struct object {
  char *name;
  wl_range code;
} object;

typedef struct objects {
  object list[MAX_OBJECTS];
  int n;
  unsigned long long n_added;
} objects;

static int add_object(struct dl_phdr_info *info, size_t size, void *arg) {
  objects *all = arg;
  wl_range code = {NULL, NULL};
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs)) all->n_added = info->dlpi_adds;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    const char *low = (const char *)(info->dlpi_addr + p->p_vaddr);
    if (p->p_type != PT_LOAD) continue;
    if (!code.low || low < code.low) code.low = low;
    if (low + p->p_memsz > code.high) code.high = low + p->p_memsz;
  }
  if (all->n == MAX_OBJECTS) return 1;
  char *name = strdup(info->dlpi_name ? info->dlpi_name : "");
  if (name) all->list[all->n++] = (object){name, code};
  return 0;
}

static int read_count(struct dl_phdr_info *info, size_t size, void *arg) {
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
    *(unsigned long long *)arg = info->dlpi_adds;
  return 1;
}

/* The symbol if this object itself defines it. The handle stays open only then. */
static void *defined_in(const object *o, const char *symbol, void **library) {
  if (!*o->name) return NULL; /* the program comes before us, so its SQLite is never ours to call */
  *library = dlopen(o->name, RTLD_LAZY | RTLD_NOLOAD);
  void *at = *library ? dlsym(*library, symbol) : NULL;
  if (at && wl_within(o->code, at)) return at;
  if (*library) dlclose(*library);
  *library = NULL;
  return NULL;
}

static bool known(wl_range code) {
  for (int i = 0; i < n_sqlites; i++)
    if (sqlites[i].code.low == code.low) return true;
  return false;
}

static void add_sqlite(void *library, wl_range code) {
  if (n_sqlites == MAX_SQLITES) return;
  wl_sqlite *r = &sqlites[n_sqlites];
  fill(&r->api, library);
  r->ours = r->api;
  r->ours.prepare_v2 = own_prepare_v2;
  r->ours.prepare_v3 = own_prepare_v3;
  r->ours.finalize = own_finalize;
  r->ours.open = own_open;
  r->ours.open_v2 = own_open_v2;
  r->code = code;
  n_sqlites++;
}

/* Needs the lock. */
static void scan(void) {
  static objects all; /* guarded by the lock; too large for a small stack */
  all.n = 0;
  dl_iterate_phdr(add_object, &all);
  n_added = all.n_added;
  for (int i = 0; i < all.n; i++) {
    object *o = &all.list[i];
    void *library = NULL;
    bool self = wl_within(o->code, &wl_only);
    if (!self && !known(o->code) && defined_in(o, "sqlite3_prepare_v2", &library))
      add_sqlite(library, o->code);
    if (!self && strstr(o->name, "libwarplite.so")) wl_warplite_code = o->code;
  }
  for (int i = 0; i < all.n; i++) free(all.list[i].name);
  if (n_sqlites == 0) {
    /* A program with weak references to SQLite's functions has found ours. Load SQLite for it. */
    void *library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_LOCAL);
    add_sqlite(library, (wl_range){NULL, NULL});
  }
  n_callers = 0;
  atomic_store_explicit(&wl_only, n_sqlites == 1 ? &sqlites[0] : NULL, memory_order_release);
}

/* Finds the SQLite that an object is linked with. Needs the lock. */
static const wl_sqlite *of_caller(void *caller) {
  static objects all;
  const wl_sqlite *found = &sqlites[0];
  for (int i = 0; i < n_sqlites; i++)
    if (wl_within(sqlites[i].code, caller)) return &sqlites[i];
  for (int i = 0; i < n_callers; i++)
    if (wl_within(callers[i].code, caller)) return callers[i].real;
  all.n = 0;
  dl_iterate_phdr(add_object, &all);
  for (int i = 0; i < all.n; i++) {
    object *o = &all.list[i];
    if (!wl_within(o->code, caller)) continue;
    /* The loader's order for the program itself: the libraries after this one. */
    void *library = *o->name ? dlopen(o->name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *at = dlsym(library ? library : RTLD_NEXT, "sqlite3_prepare_v2");
    for (int k = 0; k < n_sqlites && at; k++)
      if (wl_within(sqlites[k].code, at)) found = &sqlites[k];
    if (library) dlclose(library);
    if (n_callers < MAX_CALLERS) {
      callers[n_callers].code = o->code;
      callers[n_callers++].real = found;
    }
    break;
  }
  for (int i = 0; i < all.n; i++) free(all.list[i].name);
  return found;
}

const wl_sqlite *wl_real_find(void *caller) {
  const wl_sqlite *r = atomic_load_explicit(&wl_only, memory_order_acquire);
  if (r) return r;
  pthread_mutex_lock(&lock);
  if (n_sqlites == 0) scan();
  r = n_sqlites == 1 ? &sqlites[0] : of_caller(caller);
  pthread_mutex_unlock(&lock);
  return r;
}

const wl_sqlite *wl_real_checked(void *caller) {
  unsigned long long now = 0;
  const wl_sqlite *r = atomic_load_explicit(&wl_only, memory_order_acquire);
  if (r && wl_within(r->code, caller)) return r;
  dl_iterate_phdr(read_count, &now);
  pthread_mutex_lock(&lock);
  if (n_sqlites && now != n_added) scan();
  pthread_mutex_unlock(&lock);
  return wl_real_find(caller);
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&lock);
}
__attribute__((constructor)) static void guard(void) {
  pthread_atfork(before_fork, after_fork, after_fork);
}
