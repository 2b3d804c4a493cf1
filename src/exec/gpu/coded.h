/*
** Group keys and distinct values that are texts, or values of several types, become codes before
** the groups are found. A code is an integer that stands for all equal values: its place in a hash
** table on the device, a coder (kernels/kcode.h). GROUP BY then works with integers.
**
** Equal values may look different, like 1 and 1.0. Then the key has a second coder, whose codes
** stand for values that look the same, and a group remembers the code of its first row (its look).
**
** The pipeline gets one more instruction for each coder, before the Group or AggDistinct that uses
** it; for looks after Group, because it puts them into the records. Its opcode is one with the same
** operands (WL_CODE_OPCODE). What tells it apart is its register: the registers [first, first + n)
** hold codes, in the order of the coders. wl_lower() makes WL_K_CODE of it.
*/
#ifndef WL_CODED_H
#define WL_CODED_H

#include "program/program.h"

enum { WL_CODERS = 32, WL_CODED_KEYS = 16, WL_CODE_OPCODE = WL_OP__Length };

typedef struct wl_coder {
  wl_i16 operand; /* the values: a register or a constant of the program */
  wl_u8 coll;
  bool look;  /* its codes stand for values that look the same */
  bool shown; /* values of its codes are keys of the groups */
  int pc;     /* its instruction comes before this one of the program */
} wl_coder;

typedef struct wl_coded {
  wl_program p; /* its keys are those that find groups (wl_program_finds). They and its sets are
                ** integers; otherwise it is the same */
  int first, n;
  wl_coder coders[WL_CODERS];
  /* Of each key: the coder that groups are found by, and the one whose values are shown, or -1. */
  int of_key[WL_CODED_KEYS], look_of_key[WL_CODED_KEYS];
  int *of_set; /* the coder of each set, or -1 */
} wl_coded;

/* Memory comes from the arena. The keys and sets have codes of 0 only. */
wl_status wl_code_keys(wl_arena *arena, const wl_program *p, wl_coded *out, wl_error *err) WL_MUST;
/* Says that codes are less than n. */
void wl_coded_set_range(wl_coded *x, wl_i64 n);

#endif
