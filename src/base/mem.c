/*
** Host memory; see mem.h.
**
** Invariants:
** 1. Large blocks that are freed are kept for later allocations: at most KEPT_BLOCKS blocks, at
**    most a sixteenth of the memory, and at most 512 MiB. The system would have to clear fresh
**    pages, which takes longer than many queries. wl_mem_trim frees them.
** 2. used is the sum of the usable sizes of all blocks that came from the allocator and were not
**    returned to it.
*/
#include "base/mem.h"
#include "base/fork.h"
#include "base/memlimit.h"
#include "base/sqlite.h"
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of at least this size use large pages, so that first use faults once per 2 MiB. */
#define LARGE_BLOCK ((size_t)4 << 20)
#define LARGE_PAGE  ((size_t)2 << 20)

/* Not with sanitizers, which watch freed blocks. */
#if defined(MADV_HUGEPAGE) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&              \
    !defined(__SANITIZE_THREAD__)
#define KEEPS_BLOCKS 1
#endif

enum {
  KEPT_BLOCKS = 16,
  RELEASED = 16 << 20, /* from this many bytes on, malloc_trim is worth its milliseconds */
  CHECKED = 1 << 16    /* from this many bytes on, SQLite's hard heap limit is checked */
};

typedef struct kept {
  void *p;
  size_t size;
} kept;

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static kept kept_blocks[KEPT_BLOCKS]; /* the most recent one is the last */
static int n_kept;
static size_t kept_bytes;

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&kept_lock);
}

static atomic_size_t used;
static atomic_size_t freed;    /* bytes freed since the last wl_mem_release */
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

/* Allocates and counts a block. n_bytes is a multiple of the alignment. */
static void *take(size_t alignment, size_t n_bytes) {
  void *p = aligned_alloc(alignment, n_bytes);
  if (p) atomic_fetch_add_explicit(&used, malloc_usable_size(p), memory_order_relaxed);
  return p;
}

static void give_back(void *p) {
  atomic_fetch_sub_explicit(&used, malloc_usable_size(p), memory_order_relaxed);
  free(p);
}

#ifdef KEEPS_BLOCKS
static void remove_kept(int i) {
  kept_bytes -= kept_blocks[i].size;
  memmove(&kept_blocks[i], &kept_blocks[i + 1], (size_t)(--n_kept - i) * sizeof *kept_blocks);
}

/* Takes the smallest kept block of at least n bytes. NULL if none, or if it is much larger. */
static void *take_kept(size_t n) {
  int best = -1;
  void *p = NULL;
  if (pthread_mutex_trylock(&kept_lock)) return NULL;
  for (int i = 0; i < n_kept; i++)
    if (kept_blocks[i].size >= n && kept_blocks[i].size / 2 <= n &&
        (best < 0 || kept_blocks[i].size < kept_blocks[best].size))
      best = i;
  if (best >= 0) {
    p = kept_blocks[best].p;
    remove_kept(best);
  }
  pthread_mutex_unlock(&kept_lock);
  return p;
}

/* Keeps a freed block, and drops the oldest ones if needed. Returns false if it is too large. */
static int keep_block(void *p, size_t size) {
  static size_t most;
  void *old[KEPT_BLOCKS];
  int n_old = 0;
  if (pthread_mutex_trylock(&kept_lock)) return 0;
  if (!most) {
    most = wl_memlimit() / 16;
    if (most > (size_t)512 << 20) most = (size_t)512 << 20;
  }
  int keeps = size <= most;
  while (keeps && n_kept && (n_kept == KEPT_BLOCKS || kept_bytes + size > most)) {
    old[n_old++] = kept_blocks[0].p;
    remove_kept(0);
  }
  if (keeps) {
    kept_blocks[n_kept++] = (kept){p, size};
    kept_bytes += size;
  }
  pthread_mutex_unlock(&kept_lock);
  while (n_old) give_back(old[--n_old]);
  return keeps;
}
#endif

void wl_mem_trim(void) {
  void *old[KEPT_BLOCKS];
  int n = 0;
  if (pthread_mutex_trylock(&kept_lock)) return;
  for (; n < n_kept; n++) old[n] = kept_blocks[n].p;
  n_kept = 0;
  kept_bytes = 0;
  pthread_mutex_unlock(&kept_lock);
  while (n) give_back(old[--n]);
}

void wl_mem_release(void) {
  if (atomic_load_explicit(&freed, memory_order_relaxed) < RELEASED) return;
  atomic_store(&freed, 0);
  wl_mem_trim();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

size_t wl_mem_used(void) {
  return atomic_load_explicit(&used, memory_order_relaxed);
}

size_t wl_mem_heap_limit(void) {
  sqlite3_int64 n = sqlite3_api ? sqlite3_hard_heap_limit64(-1) : 0;
  return n > 0 ? (size_t)n : 0;
}

static bool over_limit(size_t n_bytes, size_t limit) {
  return wl_mem_used() + (size_t)sqlite3_memory_used() + n_bytes > limit;
}

/* Whether n more bytes would exceed SQLite's hard heap limit. */
static bool forbidden(size_t n_bytes) {
  size_t limit = n_bytes >= CHECKED ? wl_mem_heap_limit() : 0;
  if (!limit || !over_limit(n_bytes, limit)) return false;
  wl_mem_trim();
  return over_limit(n_bytes, limit);
}

void *wl_mem_alloc(size_t n_bytes) {
  if (fails()) return NULL;
  if (n_bytes > (size_t)1 << 60) return NULL;
#ifdef MADV_HUGEPAGE
  if (n_bytes >= LARGE_BLOCK) {
    size_t size = (n_bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
#ifdef KEEPS_BLOCKS
    void *again = take_kept(size);
    if (again) return again;
#endif
    if (forbidden(size)) return NULL;
    void *p = take(LARGE_PAGE, size);
    if (!p) {
      wl_mem_trim();
      p = take(LARGE_PAGE, size);
    }
    if (p) madvise(p, size, MADV_HUGEPAGE);
    return p;
  }
#endif
  if (forbidden(n_bytes)) return NULL;
  return take(64, (n_bytes + 63 + (n_bytes == 0)) & ~(size_t)63);
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
  if (!p) return;
  size_t size = malloc_usable_size(p);
  atomic_fetch_add_explicit(&freed, size, memory_order_relaxed);
#ifdef KEEPS_BLOCKS
  bool large = size >= LARGE_BLOCK && ((size_t)p & (LARGE_PAGE - 1)) == 0;
  if (large && keep_block(p, size & ~(LARGE_PAGE - 1))) return;
#endif
  give_back(p);
}

char *wl_mem_strdup(const char *s) {
  size_t n = strlen(s) + 1;
  char *p = wl_mem_alloc(n);
  if (p) memcpy(p, s, n);
  return p;
}
