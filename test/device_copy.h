/*
** Copies an array of a device stream to the host, as its reader would: with the calls of the CUDA
** driver, which is opened here. Used by tests and by the benchmark.
**
** Invariant: the copy owns all its memory, and has the layout of the array.
*/
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "warplite.h"

/* Copies bytes from the memory of GPU number `device`. Returns false if there is no driver, or if
** it refuses. Any thread may call it. */
static inline bool device_copy_cuda(int device, void *to, const void *from, size_t n) {
  static void *context[16];
  static int (*set_current)(void *), (*copy)(void *, unsigned long long, size_t);
  void *lib = copy || device < 0 || device >= 16 ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
  if (lib) {
    int (*init)(unsigned) = (int (*)(unsigned))(size_t)dlsym(lib, "cuInit");
    int (*get)(int *, int) = (int (*)(int *, int))(size_t)dlsym(lib, "cuDeviceGet");
    int (*retain)(void **, int) =
        (int (*)(void **, int))(size_t)dlsym(lib, "cuDevicePrimaryCtxRetain");
    int number = 0;
    if (!init || !get || !retain || init(0) || get(&number, device) ||
        retain(&context[device], number))
      return false;
    set_current = (int (*)(void *))(size_t)dlsym(lib, "cuCtxSetCurrent");
    copy = (int (*)(void *, unsigned long long, size_t))(size_t)dlsym(lib, "cuMemcpyDtoH_v2");
  }
  if (!copy || !set_current || !context[device] || set_current(context[device])) return false;
  return n == 0 || copy(to, (unsigned long long)(size_t)from, n) == 0;
}

static inline bool device_copy(const struct ArrowDeviceArray *a, void *to, const void *from,
                               size_t n) {
  if (a->device_type == ARROW_DEVICE_CUDA) return device_copy_cuda((int)a->device_id, to, from, n);
  if (a->device_type != ARROW_DEVICE_CPU) return false;
  if (n) memcpy(to, from, n);
  return true;
}

static inline void device_copy_release(struct ArrowArray *a) {
  for (int64_t k = 0; k < a->n_buffers; k++) free((void *)(size_t)a->buffers[k]);
  for (int64_t k = 0; k < a->n_children; k++) {
    if (a->children[k]->release) a->children[k]->release(a->children[k]);
    free(a->children[k]);
  }
  free(a->children);
  free(a->buffers);
  a->release = NULL;
}

/* Copies buffer k of n bytes; a buffer that is not there stays so. */
static inline bool device_copy_buffer(const struct ArrowDeviceArray *of, const struct ArrowArray *a,
                                      int k, size_t n, struct ArrowArray *out) {
  if (!a->buffers[k]) return n == 0 || k == 0;
  void *p = malloc(n + 1);
  out->buffers[k] = p;
  return p && device_copy(of, p, a->buffers[k], n);
}

/* Copies a column with one of the formats that rows on a device have: l, g, U, Z and n. */
static inline bool device_copy_column(const struct ArrowDeviceArray *of,
                                      const struct ArrowSchema *s, const struct ArrowArray *a,
                                      struct ArrowArray *out) {
  size_t n = (size_t)(a->length + a->offset);
  *out = (struct ArrowArray){.length = a->length,
                             .null_count = a->null_count,
                             .offset = a->offset,
                             .n_buffers = a->n_buffers,
                             .release = device_copy_release};
  if (!s->format[0] || s->format[1] || a->n_children || a->dictionary) return false;
  out->buffers = calloc((size_t)a->n_buffers + 1, sizeof *out->buffers);
  if (!out->buffers) return false;
  switch (s->format[0]) {
  case 'n': return a->n_buffers == 0;
  case 'l':
  case 'g':
    return a->n_buffers == 2 && device_copy_buffer(of, a, 0, (n + 7) / 8, out) &&
           device_copy_buffer(of, a, 1, n * 8, out);
  case 'U':
  case 'Z':
    if (a->n_buffers != 3 || !device_copy_buffer(of, a, 0, (n + 7) / 8, out) ||
        !device_copy_buffer(of, a, 1, (n + 1) * 8, out))
      return false;
    return device_copy_buffer(of, a, 2, (size_t)((const int64_t *)out->buffers[1])[n], out);
  default: return false;
  }
}

/* Copies an array of rows on a device. False: it has another layout, or cannot be copied; then
** there is no copy. */
static inline bool device_copy_array(const struct ArrowDeviceArray *of, const struct ArrowSchema *s,
                                     struct ArrowArray *out) {
  const struct ArrowArray *a = &of->array;
  bool ok =
      a->n_buffers == 1 && !a->buffers[0] && a->n_children == s->n_children && !of->sync_event;
  *out = (struct ArrowArray){.length = a->length, .release = device_copy_release};
  out->children = calloc((size_t)a->n_children + 1, sizeof *out->children);
  for (; ok && out->children && out->n_children < a->n_children; out->n_children++) {
    int64_t k = out->n_children;
    out->children[k] = calloc(1, sizeof *out);
    if (!out->children[k]) break;
    ok = device_copy_column(of, s->children[k], a->children[k], out->children[k]);
  }
  if (!ok || !out->children || out->n_children < a->n_children) {
    out->release(out);
    return false;
  }
  return true;
}

#endif
