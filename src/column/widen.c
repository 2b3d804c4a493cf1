/*
** Copies values from one physical type to another: integers to integers, reals to reals. It is used
** to give all segments of a column one type, and by the codec of the file (tablet/format/codec.h).
**
** Invariants:
** 1. The values fit the type that they are copied to.
** 2. Neither side needs to be aligned; blobs of the file are not.
*/
#include "column/column.h"
#include <string.h>

/* clang-format off */
#define ANYWHERE(NAME, T) typedef struct { T v; } __attribute__((packed, may_alias)) NAME
ANYWHERE(any_i8, wl_i8);
ANYWHERE(any_i16, wl_i16);
ANYWHERE(any_i32, wl_i32);
ANYWHERE(any_i64, wl_i64);
ANYWHERE(any_f32, float);
ANYWHERE(any_f64, double);
/* clang-format on */

#define LOOP(TO, T, FROM)                                                                          \
  for (wl_i32 i = 0; i < n; i++) ((any_##TO *)to)[i].v = (T)((const any_##FROM *)from)[i].v

#define TO_INT(FROM)                                                                               \
  switch (to_phys) {                                                                               \
  case WL_P_I8: LOOP(i8, wl_i8, FROM); break;                                                      \
  case WL_P_I16: LOOP(i16, wl_i16, FROM); break;                                                   \
  case WL_P_I32: LOOP(i32, wl_i32, FROM); break;                                                   \
  default: LOOP(i64, wl_i64, FROM);                                                                \
  }

static WL_CLONES void copy_ints(void *to, wl_u8 to_phys, const void *from, wl_u8 from_phys,
                                wl_i32 n) {
  switch (from_phys) {
  case WL_P_I8: TO_INT(i8); break;
  case WL_P_I16: TO_INT(i16); break;
  case WL_P_I32: TO_INT(i32); break;
  default: TO_INT(i64);
  }
}

static WL_CLONES void copy_reals(void *to, const void *from, bool narrow, wl_i32 n) {
  if (narrow)
    LOOP(f32, float, f64);
  else
    LOOP(f64, double, f32);
}

void wl_phys_copy(void *to, wl_u8 to_phys, const void *from, wl_u8 from_phys, wl_i32 n) {
  int width = wl_phys_width(to_phys);
  bool as_is = width == wl_phys_width(from_phys);
  wl_u8 kind = from_phys == WL_P_ANY ? to_phys : from_phys;
  if (as_is)
    memcpy(to, from, (size_t)n * (size_t)width);
  else if (kind == WL_P_F32 || kind == WL_P_F64)
    copy_reals(to, from, to_phys == WL_P_F32, n);
  else
    copy_ints(to, to_phys, from, from_phys, n);
}
