/*
** The opcode numbers, and when a typed opcode returns NULL (the last column of shapes.def). Used by
** the CPU's loops, the kernels, the constant folder and the verifier. Also compiles for a device.
**
** Invariants:
** 1. If a shape's rule is STRICT, ZERO or NAN, the result is NULL if an operand is NULL, and also
**    if wl_null_int() or wl_null_real() returns true.
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

/* Whether a NULL operand makes the result NULL without evaluating the opcode. */
WL_FN int wl_null_strict(int rule) {
  return rule >= WL_NULLS_STRICT;
}
/* Whether integer operands that are not NULL give NULL. The second one decides. */
WL_FN int wl_null_int(int rule, wl_i64 b) {
  return rule == WL_NULLS_ZERO && b == 0;
}
/* The same for reals. The result decides. */
WL_FN int wl_null_real(int rule, double r) {
  return rule == WL_NULLS_NAN && r != r;
}

#endif
