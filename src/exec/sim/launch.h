/*
** The simulated GPU: runs a kernel, compiled for the host through exec/gpu/kernels/simt.h, as one
** fiber a thread on the calling OS thread. It stands where the CUDA driver stands on a
** machine that has a GPU, so that every GPU path is tested without one.
*/
#ifndef WL_SIM_LAUNCH_H
#define WL_SIM_LAUNCH_H

#include "base/status.h"

#define WL_SIM_MAX_SHARED (227u * 1024u) /* as on the largest GPUs of today */

/*
** Runs kernel(args) in grid blocks of block threads each (32 to 1024, a multiple of 32),
** every block with shared_bytes of shared memory, and returns when all are done.
** The seed decides the order in which blocks start and threads run; the same seed gives
** the same run. WL_ERROR, with what the kernel did in the message, where it can never
** end (threads waiting for each other), where lanes of a warp meet in different warp
** operations, or where it overran a stack or its shared memory. Buffers that it wrote
** are then in any state; the simulator itself is as good as new.
*/
WL_MUST
wl_status wl_sim_launch(void (*kernel)(const void *args), const void *args, unsigned grid,
                        unsigned block, size_t shared_bytes, unsigned seed, wl_error *err);

/*
** Frees what launches keep for the calling OS thread (stacks, shared memory). This
** happens by itself when the thread exits.
*/
void wl_sim_release(void);

#endif
