/*
** The process's devices: the simulator, and the CUDA plugin found at run time beside this
** library. A device that cannot be opened is asked for only once; the reason is kept.
*/
#include "vm/gpu/device.h"
#include "base/mem.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
  const char *kind;
  pthread_mutex_t use;
  bool tried;
  bool open;
  wl_device device;
  char why[200];
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slot slots[] = {{.kind = "cuda", .use = PTHREAD_MUTEX_INITIALIZER},
                       {.kind = "sim", .use = PTHREAD_MUTEX_INITIALIZER}};

static void open_cuda(slot *s) {
  char path[4096];
  Dl_info info;
  const char *name = "libwarplite_cuda.so";
  snprintf(path, sizeof path, "%s", name);
  const char *dir = getenv("WARPLITE_PLUGINS");
  if (dir) {
    snprintf(path, sizeof path, "%s/%s", dir, name);
  } else if (dladdr((void *)open_cuda, &info) && info.dli_fname) {
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash)
      snprintf(path, sizeof path, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
  }
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib && !dir) lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    snprintf(s->why, sizeof s->why, "this warplite has no CUDA plugin (%s)", name);
    return;
  }
  wl_device_open_fn open = (wl_device_open_fn)(size_t)dlsym(lib, "wl_device_open_cuda");
  if (!open) {
    snprintf(s->why, sizeof s->why, "%s is not a warplite plugin", name);
    dlclose(lib);
    return;
  }
  s->why[0] = 0;
  s->open = open(&s->device, s->why, sizeof s->why) == WL_OK;
  if (!s->open && !s->why[0]) snprintf(s->why, sizeof s->why, "the CUDA device does not open");
}

wl_device *wl_device_get(const char *kind, wl_error *err) {
  slot *s = strcmp(kind, "sim") == 0 ? &slots[1] : &slots[0];
  pthread_mutex_lock(&lock);
  if (!s->tried) {
    wl_error why = {0};
    s->tried = true;
    s->device.kind = s->kind;
    s->device.index = (int)(s - slots);
    if (s == &slots[0]) {
      open_cuda(s);
    } else {
      s->open = wl_device_open_sim(&s->device, &why) == WL_OK;
      snprintf(s->why, sizeof s->why, "%.190s", why.text);
    }
  }
  pthread_mutex_unlock(&lock);
  if (s->open) return &s->device;
  wl_fail(err, WL_NOT_TAKEN, "%s", s->why);
  return NULL;
}

static slot *slot_of(wl_device *d) {
  return d == &slots[1].device ? &slots[1] : &slots[0];
}
void wl_device_lock(wl_device *d) {
  pthread_mutex_lock(&slot_of(d)->use);
}
void wl_device_unlock(wl_device *d) {
  pthread_mutex_unlock(&slot_of(d)->use);
}
