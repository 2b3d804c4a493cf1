/*
** The way of bytes from host memory to a device: straight from where they lie, through pinned
** staging buffers, or into pinned memory that kernels read themselves.
**
** Invariants:
** 1. All is called under the device's lock.
** 2. What wl_stage_in was given may be changed or freed when it returns.
** 3. Staging buffers are pinned once and stay: pinning is slow.
*/
#ifndef WL_STAGE_H
#define WL_STAGE_H

#include "exec/gpu/device.h"

typedef enum wl_way {
  WL_WAY_DIRECT, /* the driver copies from pageable memory */
  WL_WAY_STAGED, /* through our pinned buffers, one filled while another is on its way */
  WL_WAY_MAPPED  /* into pinned memory; it goes no further */
} wl_way;

/* n bytes for place `to` of the copy. */
typedef struct wl_piece {
  size_t to;
  const void *from;
  size_t n;
} wl_piece;

/*
** Brings the pieces, ordered by place, to base: device memory, or for WL_WAY_MAPPED the host's
** address of pinned memory. In the order of the current queue. At most so many threads copy.
*/
wl_status wl_stage_in(wl_device *d, wl_way way, int threads, wl_u8 *base, const wl_piece *pieces,
                      int n, wl_error *err) WL_MUST;

#endif
