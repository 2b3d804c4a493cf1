/*
** Copies bytes from host memory to a device: directly, through pinned staging buffers, or into
** pinned host memory that kernels read. Other pinned buffers take what comes back.
**
** Invariants:
** 1. The caller holds the device's lock.
** 2. The caller may change or free the source when wl_stage_in returns.
** 3. Staging buffers are pinned once and never freed, because pinning is slow.
*/
#ifndef WL_STAGE_H
#define WL_STAGE_H

#include "exec/gpu/device.h"

typedef enum wl_way {
  WL_WAY_DIRECT, /* the driver copies from pageable memory */
  WL_WAY_STAGED, /* through our pinned buffers; one is filled while another is being copied */
  WL_WAY_MAPPED  /* into pinned host memory, which kernels read there */
} wl_way;

/* n bytes that go to offset `to` of the copy. */
typedef struct wl_piece {
  size_t to;
  const void *from;
  size_t n;
} wl_piece;

/*
** Copies the pieces, which are ordered by offset, to base: device memory, or for WL_WAY_MAPPED the
** host's address of pinned memory. The copies are in the order of the current queue. At most
** `threads` threads copy.
*/
wl_status wl_stage_in(wl_device *d, wl_way way, int threads, wl_u8 *base, const wl_piece *pieces,
                      int n, wl_error *err) WL_MUST;

/* Events of the device (device.h): those of the buffers for copies to it, and those of the buffers
** for copies back. */
enum { WL_STAGE_IN = 4, WL_STAGE_OUT = 4 };

/* The buffers for copies back, each of wl_stage_out_bytes(). Event WL_STAGE_IN + k is for buffer k.
** One launch at a time has them. */
wl_status wl_stage_out(wl_device *d, wl_u8 **buffers, wl_error *err) WL_MUST;
static inline size_t wl_stage_out_bytes(const wl_device *d) {
  return d->n_stage / 8;
}

#endif
