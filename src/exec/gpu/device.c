/*
** The process's devices: the simulator, and the CUDA plugin found at run time beside this
** library. Opening a device is tried only once. If it fails, the reason is remembered. To open CUDA
** takes some tenths of a second, so a thread can do it while statements run on the CPU. Another
** thread measures it, when a choice first depends on its price.
**
** Invariants:
** 1. The plugin's path is absolute and is fixed when this library is loaded, so that changing the
**    current folder or the environment later cannot bring in another file.
** 2. A forked child never uses the CUDA device of its parent. Its driver does not allow that.
** 3. A slot that is BEING_OPENED belongs to the thread that opens it. `lock` guards the states.
** 4. The process does not end, and the library is not unloaded, while one of the threads runs.
**    There is one of them at a time. The last thing that it does with `lock` is to say that it is
**    done.
*/
#include "exec/gpu/device.h"
#include "exec/gpu/calibrate.h"
#include "base/fork.h"
#include "value/rounding.h"
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct slot {
  const char *kind;
  pthread_mutex_t use;
  enum { UNTRIED, BEING_OPENED, TRIED } state;
  bool open;
  wl_device device;
  char why[256];
  enum { UNMEASURED, BEING_MEASURED, MEASURED } constants_are;
  bool measures; /* the thread that opens it measures it next */
  bool again;    /* measures even if there is a file */
  wl_constants constants;
  wl_constants_from from;
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static pthread_t worker; /* the thread that opens CUDA or measures it, or the last that did */
static bool has_worker;
/* A thread may lock a device twice: rows that a wave drops have copies on the device. */
static slot slots[] = {{.kind = "cuda", .use = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP},
                       {.kind = "sim", .use = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP}};

static const char plugin_name[] = "libwarplite_cuda.so";
static char plugin_path[PATH_MAX + sizeof plugin_name + 1]; /* empty: no folder was found */

/* The absolute path of the file that holds this code, malloc'ed, or NULL. */
static char *own_path(void) {
  Dl_info info;
  struct link_map *map = NULL;
  if (!dladdr1((void *)own_path, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return NULL;
  /* The program itself has no name here, and argv[0] can be anything. */
  return realpath(map->l_name[0] ? map->l_name : "/proc/self/exe", NULL);
}

static void find_plugin(void) {
  const char *chosen = secure_getenv("WARPLITE_PLUGINS");
  char *folder = chosen && *chosen ? realpath(chosen, NULL) : own_path();
  if (!folder) return;
  if (!(chosen && *chosen)) *strrchr(folder, '/') = 0;
  int n = snprintf(plugin_path, sizeof plugin_path, "%s/%s", folder, plugin_name);
  if (n < 0 || n >= (int)sizeof plugin_path) plugin_path[0] = 0;
  free(folder);
}

/* Used in a forked child: frees nothing, because this process cannot reach the device's memory. */
static void leave(wl_device *d, void *p, size_t n_bytes) {}
static void leave_host(wl_device *d, void *p) {}
static wl_status refuse(wl_device *d, void *to, const void *from, size_t n_bytes, wl_error *err) {
  return wl_not_taken(err, "a forked child cannot read the memory of its parent's device");
}

static void close_in_child(slot *s, const char *why) {
  s->open = false;
  snprintf(s->why, sizeof s->why, "%s", why);
  s->device.free = leave;
  s->device.host_free = s->device.host_free_later = leave_host;
  s->device.copy_out = refuse;
}

static void after_fork(void) {
  has_worker = false;
  for (slot *s = slots; s < slots + sizeof slots / sizeof *slots; s++) {
    bool busy = pthread_mutex_trylock(&s->use) != 0;
    s->use = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (s->state == BEING_OPENED) { /* by a thread that the child does not have */
      s->state = TRIED;
      s->open = true;
    }
    if (s->constants_are == BEING_MEASURED) s->constants_are = MEASURED; /* those of before */
    if (!s->open) continue;
    if (s == &slots[0])
      close_in_child(s, "this process was forked from one that had opened the CUDA device; only "
                        "children forked before its first query on the GPU can use it");
    else if (busy)
      close_in_child(s, "the simulator was in use when this process was forked");
  }
}

__attribute__((constructor)) static void on_load(void) {
  find_plugin();
  wl_fork_lock(&lock);
  wl_fork_child(after_fork);
}

static void open_cuda(slot *s) {
  void *lib = plugin_path[0] ? dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!lib) {
    if (plugin_path[0] && access(plugin_path, F_OK) == 0)
      snprintf(s->why, sizeof s->why, "the CUDA plugin cannot be loaded: %s", dlerror());
    else
      snprintf(s->why, sizeof s->why, "there is no CUDA plugin %.200s",
               plugin_path[0] ? plugin_path : plugin_name);
    return;
  }
  wl_device_open_fn open = (wl_device_open_fn)(size_t)dlsym(lib, "wl_device_open_cuda");
  if (!open) {
    snprintf(s->why, sizeof s->why, "%s is not a warplite plugin", plugin_name);
    dlclose(lib);
    return;
  }
  s->why[0] = 0;
  /* The driver starts threads. They must not run the application's signal handlers. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  s->open = open(&s->device, s->why, sizeof s->why) == WL_OK;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!s->open && !s->why[0]) snprintf(s->why, sizeof s->why, "the CUDA device cannot be opened");
}

/* Opens a device that is BEING_OPENED by this thread. */
static void open_slot(slot *s) {
  wl_error why = {0};
  s->device.kind = s->kind;
  s->device.index = (int)(s - slots);
  if (s == &slots[0]) {
    open_cuda(s);
  } else {
    s->open = wl_device_open_sim(&s->device, &why) == WL_OK;
    snprintf(s->why, sizeof s->why, "%.190s", why.text);
  }
  pthread_mutex_lock(&lock);
  s->state = TRIED;
  if (s->measures && s->open) {
    wl_constants_init(&s->constants);
    s->constants_are = BEING_MEASURED;
  }
  pthread_cond_broadcast(&opened);
  pthread_mutex_unlock(&lock);
}

static void *measure_in_thread(void *arg) {
  slot *s = arg;
  wl_constants found;
  wl_constants_from from = wl_calibrate(&s->device, s->again, &found);
  pthread_mutex_lock(&lock);
  s->constants = found;
  s->from = from;
  s->again = false;
  s->constants_are = MEASURED;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void *open_in_thread(void *arg) {
  slot *s = arg;
  open_slot(s);
  return s->measures && s->open ? measure_in_thread(s) : NULL;
}

/* Starts a thread, under the lock. Returns false if there can be none. */
static bool start_worker(void *(*run)(void *), slot *s) {
  sigset_t all, before; /* a thread of the library runs no signal handlers of the application */
  if (has_worker) pthread_join(worker, NULL); /* it is done, and does not take the lock again */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  has_worker = pthread_create(&worker, NULL, run, s) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return has_worker;
}

__attribute__((destructor)) static void on_unload(void) {
  pthread_mutex_lock(&lock);
  bool waits = has_worker;
  has_worker = false;
  pthread_mutex_unlock(&lock);
  if (waits) pthread_join(worker, NULL);
}

static slot *slot_named(const char *kind) {
  return strcmp(kind, "sim") == 0 ? &slots[1] : &slots[0];
}

static wl_device *device_of(slot *s, wl_error *err) {
  const char *lost = s->open ? __atomic_load_n(&s->device.lost, __ATOMIC_ACQUIRE) : NULL;
  if (s->open && !lost) return &s->device;
  wl_fail(err, WL_NOT_TAKEN, "%s%s", lost ? "the device was lost: " : "", lost ? lost : s->why);
  return NULL;
}

wl_device *wl_device_get(const char *kind, wl_error *err) {
  slot *s = slot_named(kind);
  pthread_mutex_lock(&lock);
  bool opens = s->state == UNTRIED;
  if (opens) s->state = BEING_OPENED;
  while (!opens && s->state != TRIED) pthread_cond_wait(&opened, &lock);
  pthread_mutex_unlock(&lock);
  if (opens) open_slot(s);
  return device_of(s, err);
}

wl_device *wl_device_ready(const char *kind, bool measures, bool *opening, wl_error *err) {
  slot *s = slot_named(kind);
  (void)wl_rounding_get(); /* asks SQLite, once, and not in a thread of ours */
  pthread_mutex_lock(&lock);
  if (s->state == UNTRIED) {
    s->measures = measures && s == &slots[0];
    if (start_worker(open_in_thread, s)) s->state = BEING_OPENED;
    s->measures &= s->state == BEING_OPENED;
  }
  bool tried = s->state == TRIED;
  *opening = s->state == BEING_OPENED;
  pthread_mutex_unlock(&lock);
  if (tried) return device_of(s, err);
  wl_fail(err, WL_NOT_TAKEN, "the device is being opened");
  return NULL;
}

static slot *slot_of(wl_device *d) {
  return d == &slots[1].device ? &slots[1] : &slots[0];
}

bool wl_device_constants(wl_device *d, bool again, wl_constants *out) {
  slot *s = slot_of(d);
  (void)wl_rounding_get(); /* as above */
  pthread_mutex_lock(&lock);
  if (s == &slots[1] && s->constants_are != MEASURED) {
    wl_constants_init(&s->constants);
    s->constants_are = MEASURED;
  }
  if (s == &slots[0] && s->constants_are != BEING_MEASURED &&
      (again || s->constants_are == UNMEASURED)) {
    if (s->constants_are == UNMEASURED) wl_constants_init(&s->constants);
    s->again = again;
    s->constants_are = start_worker(measure_in_thread, s) ? BEING_MEASURED : MEASURED;
  }
  bool known = s->constants_are == MEASURED;
  *out = s->constants;
  pthread_mutex_unlock(&lock);
  return known;
}

const char *wl_device_constants_now(wl_device *d, wl_constants *out) {
  static const char *const words[] = {"defaults", "from a file", "measured"};
  slot *s = slot_of(d);
  pthread_mutex_lock(&lock);
  if (s->constants_are == UNMEASURED)
    wl_constants_init(out);
  else
    *out = s->constants;
  const char *from = words[s->from];
  pthread_mutex_unlock(&lock);
  return from;
}

void wl_device_lock(wl_device *d) {
  pthread_mutex_lock(&slot_of(d)->use);
}
void wl_device_unlock(wl_device *d) {
  pthread_mutex_unlock(&slot_of(d)->use);
}

wl_status wl_device_each(wl_device *d, wl_kernel k, const void *args, size_t n_args, wl_u64 n,
                         wl_error *err) {
  unsigned threads = (unsigned)d->block_threads;
  wl_u64 blocks = (n + threads - 1) / threads, most = (wl_u64)d->n_processors * 8;
  if (!n) return WL_OK;
  return d->launch(d, k, args, n_args, (unsigned)(blocks < most ? blocks : most), threads, 0, err);
}
