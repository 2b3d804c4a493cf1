/*
** Arenas; see arena.h. An arena is a list of blocks of 16 KiB or more. An allocation never moves.
*/
#include "base/arena.h"
#include "base/mem.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 16 * 1024 };

struct wl_arena_block {
  wl_arena_block *next;
  size_t used, size;
};

#define HEADER ((sizeof(wl_arena_block) + 15) & ~(size_t)15)

void wl_arena_init(wl_arena *a) {
  memset(a, 0, sizeof *a);
}

void wl_arena_close(wl_arena *a) {
  wl_arena_block *b = a->head;
  while (b) {
    wl_arena_block *next = b->next;
    wl_mem_free(b);
    b = next;
  }
  memset(a, 0, sizeof *a);
}

void wl_arena_join(wl_arena *a, wl_arena *from) {
  wl_arena_block **end = &a->head;
  while (*end) end = &(*end)->next;
  *end = from->head;
  a->n_bytes += from->n_bytes;
  memset(from, 0, sizeof *from);
}

void *wl_arena_alloc(wl_arena *a, size_t n_bytes) {
  if (n_bytes > SIZE_MAX / 2) {
    a->failed = true;
    return NULL;
  }
  n_bytes = (n_bytes + 15) & ~(size_t)15;
  if (n_bytes == 0) n_bytes = 16;
  wl_arena_block *b = a->head;
  if (!b || b->size - b->used < n_bytes) {
    size_t size = n_bytes > BLOCK_BYTES ? n_bytes : BLOCK_BYTES;
    b = wl_mem_zalloc(HEADER + size);
    if (!b) {
      a->failed = true;
      return NULL;
    }
    b->size = size;
    b->next = a->head;
    a->head = b;
    a->n_bytes += HEADER + size;
  }
  void *p = (char *)b + HEADER + b->used;
  b->used += n_bytes;
  return p;
}

char *wl_arena_strndup(wl_arena *a, const char *s, size_t n) {
  char *p = wl_arena_alloc(a, n + 1);
  if (p && n) memcpy(p, s, n);
  return p;
}

char *wl_arena_printf(wl_arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0) return NULL;
  char *p = wl_arena_alloc(a, (size_t)n + 1);
  if (!p) return NULL;
  va_start(ap, fmt);
  vsnprintf(p, (size_t)n + 1, fmt, ap);
  va_end(ap);
  return p;
}
