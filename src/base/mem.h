/*
** Host memory. All allocations go through these functions, so that tests can make the n-th one fail
** and so that blocks are aligned for vector code.
*/
#ifndef WL_MEM_H
#define WL_MEM_H

#include <stddef.h>

void *wl_mem_alloc(size_t n_bytes);  /* 64-byte aligned; NULL if out of memory */
void *wl_mem_zalloc(size_t n_bytes); /* the same, zeroed */
void *wl_mem_realloc(void *p, size_t n_old, size_t n_new);
void wl_mem_free(void *p);
char *wl_mem_strdup(const char *s);
void wl_mem_trim(void); /* returns large blocks kept for the next query to the system */
/* Returns memory freed since the last call to the system, if it is much; kept blocks too. */
void wl_mem_release(void);
size_t wl_mem_used(void); /* bytes allocated here, including kept blocks */

/* SQLite's hard heap limit in bytes; 0: there is none. A large allocation fails if warplite and
** SQLite together would use more. */
size_t wl_mem_heap_limit(void);

/* Test hook: allocation number n from now fails, and every one after it; 0 turns it off.
** Returns whether the n of the previous call was reached. */
int wl_mem_fail_after(long n);

#endif
