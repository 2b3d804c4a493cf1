/*
** Packed results: how columns of numbers come to the host in fewer than 8 bytes for each value.
** What a column can hold decides its form: integers of 1, 2 or 4 bytes, counted from a base; reals
** of 4 bytes, if they are those of a column that is stored so; a bit for each row that may be NULL.
** A kernel packs the rows, in chunks (kernels/kresults.h). Host threads unpack them into the 8-byte
** values of batches.
**
** A chunk has, for each column, its values and then its bitmap, each at a multiple of 64 bytes.
**
** Invariants:
** 1. Unpacking gives the same bits as the 8-byte values. The value of a NULL is zero.
** 2. All chunks but the last have chunk_rows rows, which are a multiple of 64.
*/
#ifndef WL_PACK_H
#define WL_PACK_H

#include "exec/gpu/launch.h"

typedef struct wl_packed_col {
  int result; /* its number among the results */
  wl_u8 phys; /* WL_P_I8, WL_P_I16 or WL_P_I32 without a sign; WL_P_F32 */
  bool nullable;
  wl_u64 base; /* is added to the integers */
} wl_packed_col;

typedef struct wl_packing {
  int n_cols;
  wl_packed_col cols[WL_K_PACK_COLS];
  wl_u64 n_rows, n_chunks, chunk_rows;
  size_t chunk_bytes; /* of all chunks but the last */
} wl_packing;

/* Chooses the columns of a launch that come packed, for n rows, in chunks of at most n_buffer
** bytes. Returns false if none should: they are few, the values take all 8 bytes, or the host's
** threads would take longer than the bus. */
bool wl_packing_plan(const wl_launch *l, wl_u64 n, size_t n_buffer, wl_packing *out);

/* The rows and bytes of a chunk. */
wl_u64 wl_packing_rows(const wl_packing *p, wl_u64 chunk);
size_t wl_packing_bytes(const wl_packing *p, wl_u64 chunk);

/* The arguments of the kernel that packs, except for the addresses. */
void wl_packing_args(const wl_packing *p, wl_kpack *out);

/* Where the rows of a column go: its 8-byte values, and a byte for each row that says whether it
** has one; NULL if it is not nullable. */
typedef struct wl_unpacked {
  wl_u64 *v;
  wl_u8 *t;
} wl_unpacked;

/* Unpacks a chunk on several threads. to: [n_cols], for all rows. */
void wl_packing_unpack(const wl_packing *p, wl_u64 chunk, const wl_u8 *from, const wl_unpacked *to,
                       int threads);

#endif
