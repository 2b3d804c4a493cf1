/*
** Values for the rows of a thread: of operands in shared memory, and of columns. Included by
** kernels.h, whose operands it uses.
**
** A thread has WL_K_ROWS rows of a tile. In the scanned table they are adjacent: thread t has rows
** base + t * WL_K_ROWS + k, so that it reads a narrow column by one wide load. In shared memory,
** entry k * T + t of a register belongs to row k of thread t, so that the threads of a warp use
** different banks. Rows of other sources are anywhere. Their loads are all issued before the first
** result is used: a kernel mostly waits for memory, and these waits then overlap.
*/
#ifndef WL_KLOAD_H
#define WL_KLOAD_H

#include "exec/gpu/kernels/kernels.h"

#define K_EACH     for (wl_u32 k = 0; k < WL_K_ROWS; k++)
#define K_ON(set)  if ((set) >> k & 1)
#define K_SLOT     (k * simt_bdim() + simt_tid())
#define K_ALL_ROWS ((1u << WL_K_ROWS) - 1u)

/* ---- operands */

/* The bytes of an operand's plane for row 0 of the thread, and the distance to its next row. */
WL_FN wl_u32 k_step(const wl_kopnd *o) {
  return o->stride ? simt_bdim() : 0;
}
WL_FN wl_u32 k_begin(const wl_kopnd *o) {
  return o->stride ? simt_tid() : 0;
}

WL_FN void k_get(const wl_u8 *sh, const wl_kopnd *o, wl_u64 *v) {
  const wl_u32 step = 8 * k_step(o);
  const wl_u8 *p = sh + o->v + 8 * k_begin(o);
  K_EACH v[k] = *(const wl_u64 *)(const void *)(p + k * step);
}

/* The rows in which a number is not NULL. */
WL_FN wl_u32 k_there(const wl_u8 *sh, const wl_kopnd *o) {
  wl_u32 there = 0;
  if (!o->nullable) return K_ALL_ROWS;
  const wl_u8 *p = sh + o->t + k_begin(o);
  const wl_u32 step = k_step(o);
  K_EACH there |= (wl_u32)(p[k * step] != 0) << k;
  return there;
}

WL_FN void k_put(wl_u8 *sh, const wl_kopnd *d, const wl_u64 *v, wl_u32 there) {
  const wl_u32 T = simt_bdim(), tid = simt_tid();
  wl_u8 *p = sh + d->v + 8 * tid;
  K_EACH *(wl_u64 *)(void *)(p + k * 8 * T) = v[k];
  if (d->nullable) K_EACH sh[d->t + k * T + tid] = (wl_u8)(there >> k & 1);
}

WL_FN void k_put_truths(wl_u8 *sh, const wl_kopnd *d, const wl_u8 *t) {
  const wl_u32 T = simt_bdim();
  wl_u8 *p = sh + d->t + simt_tid();
  K_EACH p[k * T] = t[k];
}

/* ---- columns */

#define KL_INT(x)  (wl_u64)(wl_i64)(x)
#define KL_REAL(x) wl_f64_bits((double)(x))

WL_FN float kl_float(wl_u32 bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The values of WL_K_ROWS adjacent rows. `row` is a multiple of WL_K_ROWS. */
WL_FN void k_scan(const wl_kcol *c, wl_u64 row, wl_u64 *v) {
  wl_u32 w[4];
  switch (c->phys) {
  case WL_P_I8:
    w[0] = *(const wl_u32 *)(const void *)(c->data + row);
    K_EACH v[k] = KL_INT((wl_i8)(w[0] >> 8 * k));
    break;
  case WL_P_I16:
    simt_load_8(c->data + 2 * row, w);
    K_EACH v[k] = KL_INT((wl_i16)(w[k / 2] >> 16 * (k & 1)));
    break;
  case WL_P_I32:
    simt_load_16(c->data + 4 * row, w);
    K_EACH v[k] = KL_INT((wl_i32)w[k]);
    break;
  case WL_P_F32:
    simt_load_16(c->data + 4 * row, w);
    K_EACH v[k] = KL_REAL(kl_float(w[k]));
    break;
  default:
    for (wl_u32 half = 0; half < 2; half++) {
      simt_load_16(c->data + 8 * row + 16 * half, w);
      v[2 * half] = w[0] | (wl_u64)w[1] << 32;
      v[2 * half + 1] = w[2] | (wl_u64)w[3] << 32;
    }
  }
}

#define KL_READ(type, make)                                                                        \
  K_EACH K_ON(there) v[k] = make(((const type *)(const void *)c->data)[row[k]]);                   \
  break;

/* The values of rows anywhere, for those in `there`. */
WL_FN void k_gather(const wl_kcol *c, const wl_u32 *row, wl_u32 there, wl_u64 *v) {
  switch (c->phys) {
  case WL_P_I8: KL_READ(wl_i8, KL_INT)
  case WL_P_I16: KL_READ(wl_i16, KL_INT)
  case WL_P_I32: KL_READ(wl_i32, KL_INT)
  case WL_P_F32: KL_READ(float, KL_REAL)
  default: KL_READ(wl_u64, (wl_u64))
  }
}

WL_FN wl_u32 *k_row(const wl_kargs *args, wl_u8 *sh, wl_u32 plane, wl_u32 slot) {
  wl_u32 at = (plane - 1) * simt_bdim() * WL_K_ROWS + slot;
  return (wl_u32 *)(void *)(sh + args->plane_offset) + at;
}

/* The rows of a thread in the scanned table. */
typedef struct k_rows {
  wl_u64 first;          /* the number of row 0 within the launch */
  wl_u32 row[WL_K_ROWS]; /* the numbers of all: first + k, unless the rows come from a queue */
} k_rows;

/* The values of column c for the rows `act`, and which of them have a row that is not NULL. plane:
** where the numbers of its rows are; 0: they are the thread's rows, which are adjacent. The row
** numbers are left in at. */
WL_FN wl_u32 k_column(const wl_kargs *args, wl_u8 *sh, const wl_kcol *c, wl_u32 plane,
                      const k_rows *rows, wl_u32 act, wl_u32 *at, wl_u64 *v, wl_u32 *valid) {
  wl_u32 there = act;
  if (!plane) {
    K_EACH at[k] = rows->row[k];
    if (rows->first + WL_K_ROWS <= args->n_rows)
      k_scan(c, rows->first, v);
    else
      k_gather(c, at, there, v);
    *valid = there;
    if (c->valid && there) *valid &= (wl_u32)c->valid[rows->first >> 3] >> (rows->first & 7);
    return there;
  }
  K_EACH at[k] = WL_K_NO_ROW;
  K_EACH K_ON(act) {
    at[k] = *k_row(args, sh, plane, K_SLOT);
    if (at[k] == WL_K_NO_ROW) there &= ~(1u << k);
  }
  k_gather(c, at, there, v);
  *valid = there;
  if (c->valid) {
    wl_u8 bits[WL_K_ROWS] = {0};
    K_EACH K_ON(there) bits[k] = c->valid[at[k] >> 3];
    K_EACH if (!(bits[k] >> (at[k] & 7) & 1)) *valid &= ~(1u << k);
  }
  return there;
}

/* Loads column c into register d for the rows `act`. */
WL_FN void k_load(const wl_kargs *args, wl_u8 *sh, const wl_kopnd *d, const wl_kcol *c,
                  wl_u32 plane, const k_rows *rows, wl_u32 act, int with) {
  wl_u32 at[WL_K_ROWS], valid;
  wl_u64 v[WL_K_ROWS] = {0};
  wl_u32 there = k_column(args, sh, c, plane, rows, act, at, v, &valid);
  if ((with & K_VALUES) && (c->phys == WL_P_TEXT || c->phys == WL_P_ANY)) K_EACH K_ON(act) {
      wl_u32 s = K_SLOT, n = 0;
      wl_u8 tag = WL_T_NULL;
      K_ON(there) tag = c->phys == WL_P_TEXT ? (wl_u8)WL_T_TEXT : c->tags[at[k]];
      if (tag >= WL_T_TEXT) {
        n = (wl_u32)(v[k] >> 32);
        v[k] = (wl_u64)(size_t)c->heap + c->heap_base[at[k] >> 16] + (wl_u32)v[k];
      }
      *(wl_u32 *)(void *)(sh + d->n + 4 * s) = n;
      if (c->phys == WL_P_ANY) sh[d->t + s] = tag;
    }
  K_EACH v[k] = there >> k & 1 ? v[k] : 0;
  if (!(with & K_VALUES) || d->type != WL_R_ANY) {
    k_put(sh, d, v, valid);
    return;
  }
  K_EACH k_set_bits(sh, d, K_SLOT, v[k]);
}

/* ---- filters over columns of the scanned table */

/* The rows of `act` whose value is in the range. */
WL_FN wl_u32 k_filter(const wl_kargs *args, const wl_kcol *c, const wl_krange *r,
                      const k_rows *rows, wl_u32 act) {
  wl_u32 in = 0;
  wl_u64 v[WL_K_ROWS];
  if (!act) return 0;
  if (c->valid) act &= (wl_u32)c->valid[rows->first >> 3] >> (rows->first & 7);
  if (rows->first + WL_K_ROWS <= args->n_rows)
    k_scan(c, rows->first, v);
  else
    k_gather(c, rows->row, act, v);
  if (r->real) {
    K_EACH {
      double x = wl_as_f64(v[k]);
      in |= (wl_u32)(x >= r->flo && x <= r->fhi) << k;
    }
  } else if (c->phys <= WL_P_I32) {
    K_EACH in |= (wl_u32)((wl_u32)v[k] - (wl_u32)r->lo32 <= r->span32) << k;
    if (r->no_32) in = 0;
  } else {
    K_EACH in |= (wl_u32)(v[k] - (wl_u64)r->lo <= r->span) << k;
  }
  return act & (r->outside ? ~in : in);
}

#endif
