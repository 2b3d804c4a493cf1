/*
** Opcodes over constants, for the compiler: the same meanings, applied once.
*/
#include "program/compile.h"

static wl_val of_truth(wl_u8 t) {
  return t == WL_UNKNOWN ? wl_null() : wl_int(t == WL_TRUE);
}
static wl_u8 truth_of(wl_val v) {
  return v.t == WL_T_NULL ? WL_UNKNOWN : v.v ? WL_TRUE : WL_FALSE;
}

#define NULLS1 (a.t == WL_T_NULL)
#define NULLS2 (a.t == WL_T_NULL || b.t == WL_T_NULL)
#define I(x)   ((wl_i64)(x).v)
#define F(x)   wl_as_f64((x).v)

/* One case per shape; F0 is the meaning. */
#define FOLD_PLAN(F0)   return false;
#define FOLD_COLUMN(F0) return false;
#define FOLD_FILTER(F0) return false;
#define FOLD_RESULT(F0) return false;
#define FOLD_GROUP(F0)  return false;
#define FOLD_PROBE(F0)  return false;
#define FOLD_MATCH(F0)  return false;
#define FOLD_MARK(F0)   return false;
#define FOLD_FOUND(F0)  return false;
#define FOLD_ROW(F0)    return false;
#define FOLD_AGG(F0)    return false;
#define FOLD_IN(F0)     return false;
#define FOLD_CALL(F0)   return false;
#define FOLD_MAP_B(F0)  return false;
#define FOLD_MAP_I(F0)  return false;
#define FOLD_MAP_F(F0)  return false;
#define FOLD_MAP_V(F0)  return false;
#define FOLD_AGG_I(F0)  return false;
#define FOLD_AGG_F(F0)  return false;
#define FOLD_AGG_V(F0)  return false;
#define FOLD_AGG_VV(F0) return false;
/* Typed shapes: NULL if an operand is, or by the shape's rule. */
#define FOLD_INT2(F0, RULE)                                                                        \
  *out = NULLS2 || wl_null_int(RULE, I(b)) ? wl_null() : wl_int(F0(I(a), I(b)));                   \
  return true;
#define FOLD_REAL2(F0, RULE)                                                                       \
  double r = NULLS2 ? 0 : F0(F(a), F(b));                                                          \
  *out = NULLS2 || wl_null_real(RULE, r) ? wl_null() : wl_real(r);                                 \
  return true;
#define FOLD_TRUTH2(F0, T)                                                                         \
  *out = NULLS2 ? wl_null() : wl_int(F0(T(a), T(b)));                                              \
  return true;
#define FOLD_ONE(MAKE, F0, T)                                                                      \
  *out = NULLS1 ? wl_null() : MAKE(F0(T(a)));                                                      \
  return true;
#define FOLD_I_II(F0)   FOLD_INT2(F0, WL_NULLS_OF_I_II)
#define FOLD_I_DATE(F0) FOLD_INT2(F0, WL_NULLS_OF_I_DATE)
#define FOLD_I_IIZ(F0)  FOLD_INT2(F0, WL_NULLS_OF_I_IIZ)
#define FOLD_F_FF(F0)   FOLD_REAL2(F0, WL_NULLS_OF_F_FF)
#define FOLD_B_II(F0)   FOLD_TRUTH2(F0, I)
#define FOLD_B_FF(F0)   FOLD_TRUTH2(F0, F)
#define FOLD_I_I(F0)    FOLD_ONE(wl_int, F0, I)
#define FOLD_I_F(F0)    FOLD_ONE(wl_int, F0, F)
#define FOLD_F_F(F0)    FOLD_ONE(wl_real, F0, F)
#define FOLD_F_I(F0)    FOLD_ONE(wl_real, F0, I)
#define FOLD_B_I(F0)    FOLD_ONE(wl_int, F0, I)
#define FOLD_B_F(F0)    FOLD_ONE(wl_int, F0, F)
#define FOLD_I_B(F0)                                                                               \
  *out = a;                                                                                        \
  return true;
#define FOLD_B_BB(F0)                                                                              \
  *out = of_truth(F0(truth_of(a), truth_of(b)));                                                   \
  return true;
#define FOLD_B_B(F0)                                                                               \
  *out = of_truth(F0(truth_of(a)));                                                                \
  return true;
#define FOLD_B_VV(F0)                                                                              \
  *out = of_truth(F0(x, a, b, number));                                                            \
  return true;
#define FOLD_B_V(F0)                                                                               \
  *out = of_truth(F0(x, a, b, number));                                                            \
  return true;
#define FOLD_V_DATE(F0) FOLD_V_VV(F0)
#define FOLD_V_VV(F0)                                                                              \
  *out = F0(x, a, b, number);                                                                      \
  return true;
#define FOLD_V_V(F0)                                                                               \
  *out = F0(x, a, b, number);                                                                      \
  return true;
#define FOLD_NULLTEST(F0)                                                                          \
  *out = wl_int(a.t == WL_T_NULL);                                                                 \
  return true;
#define FOLD_SELECT_I(F0)                                                                          \
  *out = truth_of(c) == WL_TRUE ? a : b;                                                           \
  return true;
#define FOLD_SELECT_F(F0)                                                                          \
  *out = truth_of(c) == WL_TRUE ? a : b;                                                           \
  return true;
#define FOLD_SELECT_V(F0)                                                                          \
  *out = truth_of(c) == WL_TRUE ? a : b;                                                           \
  return true;

bool wl_fold(wl_vctx *x, wl_u16 op, wl_val a, wl_val b, wl_val c, int number, wl_val *out) {
  switch (op) {
#define WL_OPCODE(name, shape, place, text)                                                        \
  case WL_OP__##name: {                                                                            \
    FOLD_##shape(wl_op_##name)                                                                     \
  }
#include "program/opcodes.def"
#undef WL_OPCODE
  }
  return false;
}
