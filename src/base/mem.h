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

/* Test hook: allocation number n from now fails, and every one after it; 0 turns it off.
** Returns whether the n of the call before was reached. */
int wl_mem_fail_after(long n);

#endif
