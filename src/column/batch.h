/*
** A batch: result rows, stored by column. An engine makes it, and an interface returns its rows to
** the user as SQLite rows or Arrow arrays.
**
** Invariants:
** 1. A batch has room for at most WL_TABLET_ROWS rows.
** 2. INT and REAL columns have 8 bytes per row in v. If the column is nullable, t has one byte per
**    row (1: there is a value).
** 3. TEXT columns have offsets[0..n_rows] into heap. ANY columns have a tag in t and 8 bytes in v;
**    for texts and blobs v is an offset into heap and n is the length.
** 4. An INT column may hold codes of a dictionary. The interface decodes them.
** 5. Batches come from a pool and go back to it. The pool lives as long as its last batch.
*/
#ifndef WL_BATCH_H
#define WL_BATCH_H

#include "base/status.h"
#include "value/domain.h"
#include <string.h>

struct wl_dict;
typedef struct wl_pool wl_pool;

typedef struct wl_outcol {
  wl_u64 *v;
  wl_u8 *t;
  wl_u32 *n;
  wl_i32 *offsets;
  wl_u8 *heap;
  size_t n_heap, size_heap;
} wl_outcol;

typedef struct wl_batch {
  struct wl_batch *next;
  wl_pool *pool;
  wl_i64 n_rows;
  wl_i64 skip; /* rows at the front that OFFSET skips */
  int n_cols;
  wl_outcol *cols;
  /* Set if the column memory belongs to somebody else: release(owner) is called when the batch is
  ** returned. */
  void *owner;
  void (*release)(void *owner);
} wl_batch;

/* Opens a pool of batches whose columns have these types. dicts[k] is the dictionary of column k,
** or NULL. */
wl_status wl_pool_open(const wl_reg *regs, const struct wl_dict *const *dicts, int n_cols,
                       wl_i64 max_rows, wl_pool **out, wl_error *err) WL_MUST;
void wl_pool_close(wl_pool *p); /* drops the owner's reference */
const wl_reg *wl_pool_regs(const wl_pool *p);
wl_i64 wl_pool_rows(const wl_pool *p); /* how many rows a batch has room for */

wl_status wl_batch_take(wl_pool *pool, wl_batch **out, wl_error *err) WL_MUST;
void wl_batch_give(wl_batch *b); /* returns a batch to its pool; b may be NULL */
/* A batch with empty columns, whose memory will belong to owner. When the batch is returned,
** release(owner) is called. */
wl_status wl_batch_borrow(wl_pool *pool, void *owner, void (*release)(void *), wl_batch **out,
                          wl_error *err) WL_MUST;

/* Makes room for n more bytes in a column's heap, which has at most 2 GiB - 1. */
wl_status wl_outcol_room(wl_outcol *c, size_t n) WL_MUST;

/* Writes the value of a row. reg is the column's type. The rows before must have been written. */
WL_MUST
static inline wl_status wl_outcol_put(wl_outcol *c, wl_reg reg, wl_i64 row, wl_val v) {
  if (v.t == WL_T_NULL) v = wl_null();
  if (v.t >= WL_T_TEXT || reg.type == WL_R_TEXT) {
    wl_u64 place = c->n_heap;
    wl_status rc = wl_outcol_room(c, v.n);
    if (rc) return rc;
    if (v.n) memcpy(c->heap + place, wl_bytes(v), v.n);
    c->n_heap += v.n;
    if (reg.type == WL_R_TEXT) c->offsets[row + 1] = (wl_i32)c->n_heap;
    v.v = place;
  }
  if (c->v) c->v[row] = v.v;
  if (c->n) c->n[row] = v.n;
  if (c->t) c->t[row] = reg.type == WL_R_ANY ? v.t : v.t != WL_T_NULL;
  return WL_OK;
}

/* A value as it is stored in the batch. Of a column with a dictionary, the code. */
wl_val wl_batch_value(const wl_batch *b, const wl_reg *regs, int col, wl_i64 row);

/* The dictionary whose codes an INT column holds, or NULL. It lives as long as the run. */
const struct wl_dict *wl_batch_dict(const wl_batch *b, int col);

#endif
