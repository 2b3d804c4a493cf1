/*
** Scratch memory for text that opcodes create; see scratch.h.
*/
#include "value/scratch.h"
#include "base/mem.h"

typedef struct chunk {
  struct chunk *next;
  wl_u64 size, used;
} chunk;

enum { FIRST_BYTES = 64 * 1024 };

/*
** There are two kinds. The context of a host worker grows by chunks (used is NULL). The context of
** the simulator represents device memory of a fixed size (used is set).
*/
wl_u8 *wl_scratch(wl_vctx *x, wl_u32 n) {
  if (x->used) {
    wl_u64 at = __atomic_fetch_add(x->used, n, __ATOMIC_RELAXED);
    if (at + n <= x->size) return x->text + at;
    wl_vctx_fail(x, WL_FAULT_ROOM);
    return NULL;
  }
  chunk *c = x->chunks;
  if (!c || c->size - c->used < n) {
    wl_u64 size = c ? c->size * 2 : FIRST_BYTES;
    if (size > ((wl_u64)64 << 20)) size = (wl_u64)64 << 20;
    if (size < n) size = n;
    chunk *fresh = wl_mem_alloc(64 + size);
    if (!fresh) {
      wl_vctx_fail(x, WL_FAULT_ROOM);
      return NULL;
    }
    fresh->next = c;
    fresh->size = size;
    fresh->used = 0;
    x->chunks = c = fresh;
  }
  wl_u8 *p = (wl_u8 *)c + 64 + c->used;
  c->used += n;
  return p;
}

void wl_scratch_reset(wl_vctx *x) {
  chunk *c = x->chunks;
  if (!c) return;
  while (c->next) {
    chunk *old = c->next;
    c->next = old->next;
    wl_mem_free(old);
  }
  c->used = 0;
}

void wl_scratch_close(wl_vctx *x) {
  wl_scratch_reset(x);
  wl_mem_free(x->chunks);
  x->chunks = NULL;
}
