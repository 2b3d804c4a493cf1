/* The opcode numbers alone, for code that also compiles for a device. */
#ifndef WL_OPCODES_H
#define WL_OPCODES_H

typedef enum wl_opcode {
#define WL_OPCODE(name, shape, place, text) WL_OP__##name,
#include "program/opcodes.def"
#undef WL_OPCODE
  WL_N_OPCODES
} wl_opcode;

#endif
