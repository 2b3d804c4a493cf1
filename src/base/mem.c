/*
** Host memory; see mem.h.
*/
#include "base/mem.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

/* From this size on a block is asked for in large pages: first use faults once in 2 MiB. */
#define LARGE_BLOCK ((size_t)4 << 20)
#define LARGE_PAGE  ((size_t)2 << 20)

static atomic_long fail_after; /* 0: off; n > 1: n - 1 more succeed; 1: all fail */
static atomic_int reached;

int wl_mem_fail_after(long n) {
  atomic_store(&fail_after, n);
  return atomic_exchange(&reached, 0);
}

static int fails(void) {
  long n = atomic_load_explicit(&fail_after, memory_order_relaxed);
  if (n == 0) return 0;
  if (n == 1) {
    atomic_store(&reached, 1);
    return 1;
  }
  atomic_fetch_sub(&fail_after, 1);
  return 0;
}

void *wl_mem_alloc(size_t n_bytes) {
  if (fails()) return NULL;
  if (n_bytes > (size_t)1 << 60) return NULL;
#ifdef MADV_HUGEPAGE
  if (n_bytes >= LARGE_BLOCK) {
    size_t size = (n_bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    void *p = aligned_alloc(LARGE_PAGE, size);
    if (p) madvise(p, size, MADV_HUGEPAGE);
    return p;
  }
#endif
  return aligned_alloc(64, (n_bytes + 63 + (n_bytes == 0)) & ~(size_t)63);
}

void *wl_mem_zalloc(size_t n_bytes) {
  void *p = wl_mem_alloc(n_bytes);
  if (p) memset(p, 0, n_bytes);
  return p;
}

void *wl_mem_realloc(void *p, size_t n_old, size_t n_new) {
  void *q = wl_mem_alloc(n_new);
  if (!q) return NULL;
  if (p) memcpy(q, p, n_old < n_new ? n_old : n_new);
  wl_mem_free(p);
  return q;
}

void wl_mem_free(void *p) {
  free(p);
}

char *wl_mem_strdup(const char *s) {
  size_t n = strlen(s) + 1;
  char *p = wl_mem_alloc(n);
  if (p) memcpy(p, s, n);
  return p;
}
