/*
** An arena: a query's trees and programs are allocated from one arena and freed together with it.
**
** Invariants:
** 1. Allocated memory is zeroed and aligned to 16 bytes.
** 2. NULL means out of memory. The arena can still be used and closed. It sets `failed`, so a
**    parser may check once at the end.
*/
#ifndef WL_ARENA_H
#define WL_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wl_arena_block wl_arena_block;

typedef struct wl_arena {
  wl_arena_block *head;
  size_t n_bytes; /* bytes allocated from the system so far */
  bool failed;
} wl_arena;

void wl_arena_init(wl_arena *a);
void wl_arena_close(wl_arena *a);
/* Moves everything that was allocated from `from` to a. */
void wl_arena_join(wl_arena *a, wl_arena *from);
void *wl_arena_alloc(wl_arena *a, size_t n_bytes);
char *wl_arena_strndup(wl_arena *a, const char *s, size_t n); /* adds a terminating NUL */
char *wl_arena_printf(wl_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define WL_NEW(arena, type)      ((type *)wl_arena_alloc((arena), sizeof(type)))
#define WL_NEW_N(arena, type, n) ((type *)wl_arena_alloc((arena), sizeof(type) * (size_t)(n)))

#endif
