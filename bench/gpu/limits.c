/*
** Measures what a CUDA device can do at most: copies on it, copies over PCIe, and how long it takes to
** launch a kernel and to wait for it. Opens the plugin as the library does, and calls it directly.
**
**     gpu_limits PLUGIN
**
** Prints one JSON object. Medians of RUNS runs after one that does not count.
*/
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kfargs.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 15 };
static const size_t on_bytes = (size_t)1 << 30, over_bytes = (size_t)256 << 20;

static wl_device device;
static wl_error err;

static void must(wl_status rc, const char *what) {
  if (!rc) return;
  fprintf(stderr, "gpu_limits: cannot %s: %s\n", what, err.text);
  exit(1);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* What is measured: gives work to the queue. */
typedef void work(wl_device *d, void *a, void *b);

/* The median time from giving the work to its end, in microseconds. */
static double time_of(wl_device *d, work *f, void *a, void *b) {
  double us[RUNS + 1];
  for (int k = 0; k <= RUNS; k++) {
    double start = now_us();
    f(d, a, b);
    must(d->finish(d, &err), "wait for the device");
    us[k] = now_us() - start;
  }
  qsort(us + 1, RUNS, sizeof *us, by_size);
  return us[1 + RUNS / 2];
}

static void copy_on(wl_device *d, void *a, void *b) {
  must(d->copy_on(d, a, b, on_bytes, &err), "copy on the device");
}
static void copy_in(wl_device *d, void *a, void *b) {
  must(d->copy_in_later(d, a, b, over_bytes, &err), "copy to the device");
}
static void copy_out(wl_device *d, void *a, void *b) {
  must(d->copy_out_later(d, b, a, over_bytes, &err), "copy from the device");
}
static void copy_in_pageable(wl_device *d, void *a, void *b) {
  must(d->copy_in(d, a, b, over_bytes, &err), "copy to the device");
}
/* A kernel without rows. */
static void launch(wl_device *d, void *a, void *b) {
  wl_kfkeep args = {0};
  must(d->launch(d, WL_K_FINISH_KEEP, &args, sizeof args, 1, 32, 0, &err), "launch a kernel");
}
static void allocate(wl_device *d, void *a, void *b) {
  void *p;
  must(d->alloc(d, 1 << 20, &p, &err), "allocate device memory");
  d->free(d, p, 1 << 20);
}

static double gb_per_s(size_t n_bytes, double us) {
  return (double)n_bytes / us / 1e3;
}

int main(int argc, char **argv) {
  wl_device *d = &device;
  void *a, *b, *pinned, *pageable = malloc(over_bytes);
  char why[256] = "";
  void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (argc != 2 || !pageable) {
    fprintf(stderr, "usage: gpu_limits PLUGIN\n");
    return 2;
  }
  wl_device_open_fn open =
      lib ? (wl_device_open_fn)(size_t)dlsym(lib, "wl_device_open_cuda") : NULL;
  if (!open || open(d, why, sizeof why)) {
    fprintf(stderr, "gpu_limits: %s\n", lib ? why : dlerror());
    return 1;
  }
  memset(pageable, 1, over_bytes);
  must(d->alloc(d, on_bytes, &a, &err), "allocate device memory");
  must(d->alloc(d, on_bytes, &b, &err), "allocate device memory");
  must(d->host_alloc(d, over_bytes, &pinned, &err), "pin memory");
  memset(pinned, 1, over_bytes);
  must(d->fill(d, b, 1, on_bytes, &err), "fill device memory");
  printf("{\"device\": \"%s\", \"processors\": %d, \"memory_gb\": %.1f,\n", d->name,
         d->n_processors, (double)d->memory / 1e9);
  printf(" \"copy_on_device_gb_s\": %.1f,\n",
         gb_per_s(2 * on_bytes, time_of(d, copy_on, a, b))); /* read and written */
  printf(" \"pinned_to_device_gb_s\": %.2f,\n",
         gb_per_s(over_bytes, time_of(d, copy_in, a, pinned)));
  printf(" \"pinned_from_device_gb_s\": %.2f,\n",
         gb_per_s(over_bytes, time_of(d, copy_out, a, pinned)));
  printf(" \"pageable_to_device_gb_s\": %.2f,\n",
         gb_per_s(over_bytes, time_of(d, copy_in_pageable, a, pageable)));
  printf(" \"launch_and_wait_us\": %.2f,\n", time_of(d, launch, NULL, NULL));
  printf(" \"allocate_and_free_us\": %.2f}\n", time_of(d, allocate, NULL, NULL));
  return 0;
}
