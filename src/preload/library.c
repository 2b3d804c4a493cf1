/*
** Opens libwarplite, which lies in the folder of this library, when a statement may be worth it.
*/
#include "preload/preload.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool wl_disabled, wl_always;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const wl_native_calls *) library;
static atomic_bool failed;

void wl_library_complain(const char *message) {
  if (!secure_getenv("WARPLITE_SET") && !secure_getenv("WARPLITE_RUN")) return;
  bool named = strncmp(message, "warplite", 8) == 0;
  fprintf(stderr, "%s%s; SQLite runs all statements\n", named ? "" : "warplite: ", message);
}

static const wl_native_calls *open_library(const wl_sqlite *real) {
  static const char name[] = "libwarplite.so";
  char path[4096], message[WL_NATIVE_TEXT] = "";
  Dl_info self;
  if (!dladdr((void *)open_library, &self) || !strchr(self.dli_fname, '/')) return NULL;
  size_t n = (size_t)(strrchr(self.dli_fname, '/') + 1 - self.dli_fname);
  if (n + sizeof name > sizeof path) return NULL;
  memcpy(path, self.dli_fname, n);
  memcpy(path + n, name, sizeof name);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    wl_library_complain(dlerror());
    return NULL;
  }
  wl_native_interface *interface = (wl_native_interface *)dlsym(handle, WL_NATIVE_SYMBOL);
  const wl_native_calls *found = interface ? interface(WL_NATIVE_VERSION) : NULL;
  if (!found)
    wl_library_complain("libwarplite.so and libwarplite_preload.so are of different versions");
  if (found && !found->bind(&real->ours, message)) {
    wl_library_complain(message);
    found = NULL;
  }
  return found;
}

const wl_native_calls *wl_library_if_open(void) {
  return atomic_load_explicit(&library, memory_order_acquire);
}

const wl_native_calls *wl_library(const wl_sqlite *real) {
  const wl_native_calls *found = wl_library_if_open();
  if (found || atomic_load(&failed)) return found;
  pthread_mutex_lock(&lock);
  found = wl_library_if_open();
  if (!found && !atomic_load(&failed)) {
    found = open_library(real);
    if (found) wl_connections_tell(found);
    atomic_store_explicit(&library, found, memory_order_release);
    if (!found) atomic_store(&failed, true);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void set_up(void) {
  const char *settings = secure_getenv("WARPLITE_SET");
  wl_disabled = getauxval(AT_SECURE) != 0;
  wl_always = settings && strstr(settings, "route=always") != NULL;
  pthread_atfork(before_fork, after_fork, after_fork);
}
