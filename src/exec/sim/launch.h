/*
** The simulated GPU: runs a kernel, compiled for the host through exec/gpu/kernels/simt.h, on the
** calling OS thread. Each GPU thread is a fiber. It takes the place of the CUDA driver, so that
** every GPU path can be tested without a GPU.
*/
#ifndef WL_SIM_LAUNCH_H
#define WL_SIM_LAUNCH_H

#include "base/status.h"

#define WL_SIM_MAX_SHARED (227u * 1024u) /* as on GPUs of compute capability 9.0 */

/*
** Runs kernel(args) in `grid` blocks of `block` threads each (32 to 1024, a multiple of 32). Every
** block has shared_bytes of shared memory. Returns when all are done. The seed decides the order in
** which blocks start and threads run; the same seed gives the same run.
** Returns WL_ERROR, with a message that says what the kernel did, if it can never end (threads
** wait for each other), if lanes of a warp are in different warp operations at once, or if it
** overran a stack or its shared memory. The content of buffers that it wrote is then undefined. The
** simulator itself can be used again.
*/
WL_MUST
wl_status wl_sim_launch(void (*kernel)(const void *args), const void *args, unsigned grid,
                        unsigned block, size_t shared_bytes, unsigned seed, wl_error *err);

/* Makes sure that the calling OS thread has the memory of such a launch: then a launch does not
** return WL_NOMEM. */
wl_status wl_sim_reserve(unsigned block, size_t shared_bytes, wl_error *err) WL_MUST;

/*
** Frees the stacks and shared memory that launches keep for the calling OS thread. This happens
** automatically when the thread exits.
*/
void wl_sim_release(void);

#endif
