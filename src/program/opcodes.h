/* The opcode numbers and register types alone, for code that also compiles for a device. */
#ifndef WL_OPCODES_H
#define WL_OPCODES_H

typedef enum wl_opcode {
#define WL_OPCODE(name, shape, place, text) WL_OP__##name,
#include "program/opcodes.def"
#undef WL_OPCODE
  WL_N_OPCODES
} wl_opcode;

typedef enum wl_regtype { WL_R_INT, WL_R_REAL, WL_R_TRUTH, WL_R_TEXT, WL_R_ANY } wl_regtype;

/* Physical column types; see store/column.h. */
typedef enum wl_phys {
  WL_P_I8,
  WL_P_I16,
  WL_P_I32,
  WL_P_I64,
  WL_P_F32,
  WL_P_F64,
  WL_P_TEXT, /* 8-byte places into the heap */
  WL_P_ANY   /* a tag a row, and 8 bytes: integer, real, or place in the heap */
} wl_phys;

#endif
