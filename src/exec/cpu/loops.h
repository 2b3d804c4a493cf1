/*
** The inner loops of the CPU engine. There is one function for each scalar opcode, made from
** opcodes.def and the operations in value/ops.h. Each has three forms: both operands are vectors,
** or one of them is a constant. The helpers below apply NULLs afterwards.
*/
#ifndef WL_LOOPS_H
#define WL_LOOPS_H

#include "program/opcodes.h"
#include "value/ops.h"

#define LOOP2(name, R, T, STORE)                                                                   \
  static WL_CLONES void loop_##name(void *dv, const void *av, int sa, const void *bv, int sb,      \
                                    int n) {                                                       \
    R *restrict d = dv;                                                                            \
    const T *a = av, *b = bv;                                                                      \
    if (sa && sb)                                                                                  \
      for (int i = 0; i < n; i++) d[i] = STORE(wl_op_##name(a[i], b[i]));                          \
    else if (sa) {                                                                                 \
      const T k = b[0];                                                                            \
      for (int i = 0; i < n; i++) d[i] = STORE(wl_op_##name(a[i], k));                             \
    } else {                                                                                       \
      const T k = a[0];                                                                            \
      for (int i = 0; i < n; i++) d[i] = STORE(wl_op_##name(k, b[sb ? i : 0]));                    \
    }                                                                                              \
  }
#define LOOP1(name, R, T, STORE)                                                                   \
  static WL_CLONES void loop_##name(void *dv, const void *av, int sa, const void *bv, int sb,      \
                                    int n) {                                                       \
    R *restrict d = dv;                                                                            \
    const T *a = av;                                                                               \
    (void)bv;                                                                                      \
    (void)sb;                                                                                      \
    for (int i = 0; i < n; i++) d[i] = STORE(wl_op_##name(a[sa ? i : 0]));                         \
  }
#define AS_IS(x) (x)
#define TWICE(x) (wl_u8)((x) << 1) /* turns 0 and 1 into WL_FALSE and WL_TRUE */

#define LOOP_I_II(name)   LOOP2(name, wl_i64, wl_i64, AS_IS)
#define LOOP_I_DATE(name) LOOP2(name, wl_i64, wl_i64, AS_IS)
#define LOOP_I_IIZ(name)  LOOP2(name, wl_i64, wl_i64, AS_IS)
#define LOOP_F_FF(name)   LOOP2(name, double, double, AS_IS)
#define LOOP_B_II(name)   LOOP2(name, wl_u8, wl_i64, TWICE)
#define LOOP_B_FF(name)   LOOP2(name, wl_u8, double, TWICE)
#define LOOP_B_BB(name)   LOOP2(name, wl_u8, wl_u8, AS_IS)
#define LOOP_I_I(name)    LOOP1(name, wl_i64, wl_i64, AS_IS)
#define LOOP_I_F(name)    LOOP1(name, wl_i64, double, AS_IS)
#define LOOP_F_I(name)    LOOP1(name, double, wl_i64, AS_IS)
#define LOOP_B_I(name)    LOOP1(name, wl_u8, wl_i64, TWICE)
#define LOOP_B_F(name)    LOOP1(name, wl_u8, double, TWICE)
#define LOOP_B_B(name)    LOOP1(name, wl_u8, wl_u8, AS_IS)
#define LOOP_F_F(name)    LOOP1(name, double, double, AS_IS)
#define LOOP_I_B(name)
#define LOOP_IN(name)
#define LOOP_CALL(name)
#define LOOP_MAP_B(name)
#define LOOP_MAP_I(name)
#define LOOP_MAP_F(name)
#define LOOP_MAP_V(name)
#define LOOP_COLUMN(name)
#define LOOP_FILTER(name)
#define LOOP_RESULT(name)
#define LOOP_GROUP(name)
#define LOOP_PROBE(name)
#define LOOP_MATCH(name)
#define LOOP_MARK(name)
#define LOOP_FOUND(name)
#define LOOP_ROW(name)
#define LOOP_B_VV(name)
#define LOOP_B_V(name)
#define LOOP_V_VV(name)
#define LOOP_V_V(name)
#define LOOP_V_DATE(name)
#define LOOP_NULLTEST(name)
#define LOOP_SELECT_I(name)
#define LOOP_SELECT_F(name)
#define LOOP_SELECT_V(name)
#define LOOP_AGG(name)
#define LOOP_AGG_I(name)
#define LOOP_AGG_F(name)
#define LOOP_AGG_V(name)
#define LOOP_AGG_VV(name)

#define WL_OPCODE(name, shape, place, text) LOOP_##shape(name)
#include "program/opcodes.def"
#undef WL_OPCODE

typedef void (*wl_loop)(void *d, const void *a, int sa, const void *b, int sb, int n);
typedef wl_val (*wl_value_op)(wl_vctx *x, wl_val a, wl_val b, int c);
typedef wl_u8 (*wl_truth_op)(wl_vctx *x, wl_val a, wl_val b, int c);

/* The function that executes an opcode. Its shape decides which; the other two are NULL. */
typedef struct wl_exec_op {
  wl_loop loop;
  wl_value_op value;
  wl_truth_op truth;
} wl_exec_op;

#define EXEC_LOOP(name)     {loop_##name, 0, 0},
#define EXEC_VALUE(name)    {0, wl_op_##name, 0},
#define EXEC_TRUTH(name)    {0, 0, wl_op_##name},
#define EXEC_NONE(name)     {0, 0, 0},
#define EXEC_I_II(name)     EXEC_LOOP(name)
#define EXEC_I_DATE(name)   EXEC_LOOP(name)
#define EXEC_I_IIZ(name)    EXEC_LOOP(name)
#define EXEC_F_FF(name)     EXEC_LOOP(name)
#define EXEC_B_II(name)     EXEC_LOOP(name)
#define EXEC_B_FF(name)     EXEC_LOOP(name)
#define EXEC_B_BB(name)     EXEC_LOOP(name)
#define EXEC_I_I(name)      EXEC_LOOP(name)
#define EXEC_I_F(name)      EXEC_LOOP(name)
#define EXEC_F_I(name)      EXEC_LOOP(name)
#define EXEC_B_I(name)      EXEC_LOOP(name)
#define EXEC_B_F(name)      EXEC_LOOP(name)
#define EXEC_B_B(name)      EXEC_LOOP(name)
#define EXEC_B_VV(name)     EXEC_TRUTH(name)
#define EXEC_B_V(name)      EXEC_TRUTH(name)
#define EXEC_V_VV(name)     EXEC_VALUE(name)
#define EXEC_V_V(name)      EXEC_VALUE(name)
#define EXEC_V_DATE(name)   EXEC_VALUE(name)
#define EXEC_F_F(name)      EXEC_LOOP(name)
#define EXEC_I_B(name)      EXEC_NONE(name)
#define EXEC_IN(name)       EXEC_NONE(name)
#define EXEC_CALL(name)     EXEC_NONE(name)
#define EXEC_MAP_B(name)    EXEC_NONE(name)
#define EXEC_MAP_I(name)    EXEC_NONE(name)
#define EXEC_MAP_F(name)    EXEC_NONE(name)
#define EXEC_MAP_V(name)    EXEC_NONE(name)
#define EXEC_COLUMN(name)   EXEC_NONE(name)
#define EXEC_FILTER(name)   EXEC_NONE(name)
#define EXEC_RESULT(name)   EXEC_NONE(name)
#define EXEC_GROUP(name)    EXEC_NONE(name)
#define EXEC_PROBE(name)    EXEC_NONE(name)
#define EXEC_MATCH(name)    EXEC_NONE(name)
#define EXEC_MARK(name)     EXEC_NONE(name)
#define EXEC_FOUND(name)    EXEC_NONE(name)
#define EXEC_ROW(name)      EXEC_NONE(name)
#define EXEC_NULLTEST(name) EXEC_NONE(name)
#define EXEC_SELECT_I(name) EXEC_NONE(name)
#define EXEC_SELECT_F(name) EXEC_NONE(name)
#define EXEC_SELECT_V(name) EXEC_NONE(name)
#define EXEC_AGG(name)      EXEC_NONE(name)
#define EXEC_AGG_I(name)    EXEC_NONE(name)
#define EXEC_AGG_F(name)    EXEC_NONE(name)
#define EXEC_AGG_V(name)    EXEC_NONE(name)
#define EXEC_AGG_VV(name)   EXEC_NONE(name)

static const wl_exec_op exec_ops[] = {
#define WL_OPCODE(name, shape, place, text) EXEC_##shape(name)
#include "program/opcodes.def"
#undef WL_OPCODE
};

/* ---- NULLs and small steps */

static WL_CLONES void valid_and(wl_u8 *restrict d, const wl_u8 *a, int n) {
  for (int i = 0; i < n; i++) d[i] &= a[i];
}
/* Sets the truth of rows that are not valid to unknown. */
static WL_CLONES void truth_nulls(wl_u8 *restrict d, const wl_u8 *valid, int n) {
  for (int i = 0; i < n; i++) d[i] = valid[i] ? d[i] : WL_UNKNOWN;
}
/* The rules of shapes.def besides NULL operands. */
static WL_CLONES void valid_zero_rule(wl_u8 *restrict d, const wl_i64 *b, int n) {
  for (int i = 0; i < n; i++) d[i] &= (wl_u8)!wl_null_int(WL_NULLS_ZERO, b[i]);
}
static WL_CLONES void valid_nan_rule(wl_u8 *restrict d, const double *r, int n) {
  for (int i = 0; i < n; i++) d[i] &= (wl_u8)!wl_null_real(WL_NULLS_NAN, r[i]);
}
/* Sets the value of a NULL to zero, so that results are always the same. */
static WL_CLONES void blank(wl_u64 *restrict v, const wl_u8 *valid, int n) {
  for (int i = 0; i < n; i++) v[i] = valid[i] ? v[i] : 0;
}
/* For each 8-bit mask, the indexes of its set bits in order. */
typedef wl_u16 places8 __attribute__((vector_size(16)));
static places8 places_of[256];
static void places_init(void) {
  for (int m = 0; m < 256; m++)
    for (int i = 0, k = 0; i < 8; i++)
      if (m >> i & 1) places_of[m][k++] = (wl_u16)i;
}
/* Adds the indexes of the true rows among the eight from i on. Returns how many there are now. */
static inline int keep_eight(wl_u64 truths, wl_u16 *keep, int k, int i) {
  /* Only WL_TRUE has bit 1 set. The product moves the eight bits into the top byte. */
  unsigned m = (unsigned)(((truths >> 1) & 0x0101010101010101ULL) * 0x0102040810204080ULL >> 56);
  places8 p = places_of[m] + (wl_u16)i;
  memcpy(keep + k, &p, sizeof p);
  return k + __builtin_popcount(m);
}

/* Lists the indexes of true rows in order. keep has room for n + 8. Returns their number. */
static WL_CLONES int keep_true(const wl_u8 *restrict t, wl_u16 *restrict keep, int n) {
  int k = 0, i = 0;
  wl_u64 x, many[8];
  for (; i + 64 <= n; i += 64) { /* a selective filter leaves many such blocks without a row */
    memcpy(many, t + i, 64);
    x = many[0] | many[1] | many[2] | many[3] | many[4] | many[5] | many[6] | many[7];
    if (!(x & 0x0202020202020202ULL)) continue;
    for (int j = 0; j < 8; j++) k = keep_eight(many[j], keep, k, i + 8 * j);
  }
  for (; i + 8 <= n; i += 8) {
    memcpy(&x, t + i, 8);
    k = keep_eight(x, keep, k, i);
  }
  for (; i < n; i++) {
    keep[k] = (wl_u16)i;
    k += t[i] == WL_TRUE;
  }
  return k;
}

#endif
