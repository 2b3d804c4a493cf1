/*
** A vector of values, as the parts of the CPU engine pass it to each other.
*/
#ifndef WL_VECTOR_H
#define WL_VECTOR_H

#include "value/kinds.h"
#include "value/value.h"

enum { WL_VECTOR = 1024 }; /* most rows in a vector */

typedef struct wl_vec {
  wl_u8 type;
  int stride; /* 0: one value for all rows */
  const wl_u64 *v;
  const wl_u32 *n; /* lengths of texts */
  const wl_u8 *t;  /* whether each row has a value, or ANY: its type; NULL: every row has one */
} wl_vec;

static inline wl_val wl_vec_get(const wl_vec *q, int i) {
  int k = q->stride ? i : 0;
  wl_u8 t = q->t ? q->t[q->stride || q->type != WL_R_ANY ? i : 0] : 1;
  switch (q->type) {
  case WL_R_INT: return t ? wl_val_make(WL_T_INT, q->v[k], 0) : wl_null();
  case WL_R_REAL: return t ? wl_val_make(WL_T_REAL, q->v[k], 0) : wl_null();
  case WL_R_TEXT: return t ? wl_val_make(WL_T_TEXT, q->v[k], q->n[k]) : wl_null();
  default: return wl_val_make(t, q->v[k], q->n[k]);
  }
}

#endif
