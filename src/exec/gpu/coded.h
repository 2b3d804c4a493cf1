/*
** Group keys and distinct values that are texts, or values of several types, become codes before
** the groups are found. A code is an integer that stands for all equal values: its place in a hash
** table on the device, a coder (kernels/kcode.h). GROUP BY then works with integers.
**
** Equal values may look different, like 1 and 1.0. Then the key has a second coder, whose codes
** stand for values that look the same, and a group remembers the code of its first row (its look).
**
** min() and max() of such values have a coder, too. It only gives memory to the values.
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
  bool look;   /* its codes stand for values that look the same */
  bool shown;  /* values of its codes are keys of the groups */
  bool strict; /* its values are added to a sum: if 1 and 1.0 have one code, that is reported */
  bool keeps;  /* it makes no codes, but has memory for the values of a min() or max() */
  int pc;      /* its instruction comes before this one of the program; -1: it has none */
} wl_coder;

typedef struct wl_coded {
  wl_program p; /* its keys are those that find groups (wl_program_finds). They and its sets are
                ** integers; otherwise it is the same */
  int first, n;
  wl_coder coders[WL_CODERS];
  /* Of each key: the coder that groups are found by, and the one whose values are shown, or -1. */
  int of_key[WL_CODED_KEYS], look_of_key[WL_CODED_KEYS];
  int *of_set; /* the coder of each set, or -1 */
  int *of_acc; /* the coder of each accumulator that is a min or max of any values, or -1 */
} wl_coded;

/* Whether an accumulator is a min() or max() of texts or of values of several types. */
static inline bool wl_keeps_values(const wl_acc *a) {
  return a->op == WL_OP__AggMinV || a->op == WL_OP__AggMaxV;
}
/* Whether the values of a set become codes, and their numbers are added. */
static inline bool wl_adds_codes(const wl_program *p, const wl_set *s) {
  return s->reg.type > WL_R_REAL && p->accs[s->acc].distinct == WL_DISTINCT_SUM;
}
/* Whether the one group of a pipeline is gathered by each thread in slots of its own. Otherwise
** there is a table of groups. */
static inline bool wl_gathers_in_slots(const wl_program *p) {
  bool can = !p->n_keys && !p->n_sets;
  for (int k = 0; k < p->n_accs; k++) can &= !wl_keeps_values(&p->accs[k]);
  return can;
}

/* Memory comes from the arena. The keys and sets have codes of 0 only. */
wl_status wl_code_keys(wl_arena *arena, const wl_program *p, wl_coded *out, wl_error *err) WL_MUST;
/* Says that codes are less than n. */
void wl_coded_set_range(wl_coded *x, wl_i64 n);

#endif
