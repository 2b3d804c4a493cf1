/*
** The settings of a connection for how columns get to a device and results back.
*/
#ifndef WL_TRANSFER_H
#define WL_TRANSFER_H

#include "value/types.h"

typedef enum wl_transfer_mode {
  WL_TRANSFER_AUTO,   /* cached if the columns fit into the budget, otherwise stream */
  WL_TRANSFER_SERIAL, /* copy in, run, copy out, one after the other; nothing is cached */
  WL_TRANSFER_STREAM, /* blocks of rows: copies one while another runs; nothing is cached */
  WL_TRANSFER_MAPPED, /* kernels read pinned host memory and write results to it */
  WL_TRANSFER_CACHED  /* whole columns are copied once and stay */
} wl_transfer_mode;

enum { WL_STREAM_BLOCKS_MOST = 8 };

typedef struct wl_transfer {
  wl_transfer_mode mode;
  int stream_blocks; /* blocks that are in progress at once */
  int pinned;        /* copies go through pinned memory */
  int block_threads; /* threads per block of the interpreter kernel; 0: the device chooses */
} wl_transfer;

static inline const char *wl_transfer_name(wl_transfer_mode m) {
  static const char *const names[] = {"auto", "serial", "stream", "mapped", "cached"};
  return names[m];
}

#endif
