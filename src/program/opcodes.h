/*
** The opcode numbers, and when a typed opcode gives NULL (the last column of shapes.def): for the
** CPU's loops, the kernels, the constant folder and the verifier. Compiles for a device too.
**
** Invariants:
** 1. The result of a shape that is STRICT, ZERO or NAN is NULL if an operand is, and also where
**    wl_null_int() or wl_null_real() say so.
*/
#ifndef WL_OPCODES_H
#define WL_OPCODES_H

#include "value/types.h"

typedef enum wl_opcode {
#define WL_OPCODE(name, shape, place, text) WL_OP__##name,
#include "program/opcodes.def"
#undef WL_OPCODE
  WL_N_OPCODES
} wl_opcode;

typedef enum wl_null_rule {
  WL_NULLS_NONE,
  WL_NULLS_MEANING,
  WL_NULLS_STRICT,
  WL_NULLS_ZERO,
  WL_NULLS_NAN
} wl_null_rule;

/* The rule of each shape as a constant: WL_NULLS_OF_I_II and so on. */
enum {
#define WL_SHAPE(name, letters, nulls) WL_NULLS_OF_##name = WL_NULLS_##nulls,
#include "program/shapes.def"
#undef WL_SHAPE
};

/* Whether a NULL operand makes the result NULL without the meaning being asked. */
WL_FN int wl_null_strict(int rule) {
  return rule >= WL_NULLS_STRICT;
}
/* Whether the result is NULL for operands that are not: of integers, by the second one. */
WL_FN int wl_null_int(int rule, wl_i64 b) {
  return rule == WL_NULLS_ZERO && b == 0;
}
/* The same of reals, by the result. */
WL_FN int wl_null_real(int rule, double r) {
  return rule == WL_NULLS_NAN && r != r;
}

#endif
