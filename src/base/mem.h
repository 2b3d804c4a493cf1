/*
** Host memory. One door, so that tests can make the n-th allocation fail and so that
** large blocks are aligned for vector code.
*/
#ifndef WL_MEM_H
#define WL_MEM_H

#include <stddef.h>

void *wl_mem_alloc(size_t n_bytes);  /* 64-byte aligned; NULL when there is none */
void *wl_mem_zalloc(size_t n_bytes); /* the same, zeroed */
void *wl_mem_realloc(void *p, size_t n_old, size_t n_new);
void wl_mem_free(void *p);
char *wl_mem_strdup(const char *s);
void wl_mem_trim(void); /* large blocks that are kept for the next query go back to the system */
/* Gives back to the system what was freed since the last call, kept or not, if that is much. */
void wl_mem_release(void);
size_t wl_mem_used(void); /* bytes that were allocated here, kept blocks included */

/* SQLite's hard heap limit in bytes; 0: there is none. A large allocation fails if warplite and
** SQLite together would use more. */
size_t wl_mem_heap_limit(void);

/* Test hook: allocation number n from now fails, and every one after it; 0 turns it off.
** Returns whether the n of the call before was reached. */
int wl_mem_fail_after(long n);

#endif
