/*
** The inside of the CPU machine; see exec.h. Shared by exec_open.c (a worker and its registers),
** exec.c (straight code), exec_columns.c (columns as vectors), exec_agg.c (Agg opcodes, Group),
** exec_probe.c (Probe, Build) and exec_join.c (Expand, Match).
**
** Invariants:
** 1. lists[s] are the rows of source s in the vector, as dense as the registers, and live in
**    rooms[depth][s]. Source 0 has none before the first Expand: its rows are sel, from `row` on.
** 2. Of a source that nothing reads any more (last_read) the list is stale.
** 3. depth Expands are open; levels[depth - 1] is the one whose chunk is in the vector.
*/
#ifndef WL_EXEC_IMPL_H
#define WL_EXEC_IMPL_H

#include "exec/cpu/exec.h"
#include "exec/cpu/marks.h"
#include "column/lookup.h"
#include "program/liveness.h"

/* A register's vector: v values or text addresses, n lengths, t valid bytes, tags or truths. */
typedef struct plane {
  wl_u8 type;
  int stride; /* 0: a constant, one value for all rows */
  wl_u64 *v;
  wl_u32 *n;
  wl_u8 *t; /* NULL: every row has a value */
} plane;

/* An Expand: the rows it was reached with, and how far their candidates are done. */
typedef struct level {
  int pc, match;
  const wl_join *join;
  const wl_u32 *candidates; /* what begin and end count in; NULL: rows themselves */
  wl_u32 begin[WL_VECTOR + 1], end[WL_VECTOR]; /* of each row's candidates */
  wl_u8 matched[WL_VECTOR];                    /* some candidate passed the test */
  wl_u32 origin[WL_VECTOR];                    /* of each pair of the chunk: its row */
  int n, row;                                  /* rows; the row whose candidates are next */
  wl_u32 at;                                   /* the next candidate of that row */
  int settled;                                 /* rows before this one have been emitted */
  bool first_only;                             /* one candidate that passes is enough */
} level;

struct wl_exec {
  const wl_program *p;
  int end; /* number of instructions */
  wl_column **cols;
  const void ***tablets;   /* [n_columns]: of a joined source's column, the data of each tablet */
  const wl_srccol *source; /* the columns of groups, or NULL */
  plane *regs, *consts;
  wl_liveness live;
  int *direct;     /* of each register: the result column it is loaded straight into, or -1 */
  wl_i16 *pending; /* of each register: the column it will be loaded from when it is read, or -1 */
  int tablet;      /* the tablet that the vector reads */
  wl_i32 row;      /* the first row of the vector in the tablet */
  int n;           /* rows of the vector that are left */
  void *memory;
  wl_u16 sel[WL_VECTOR], keep[WL_VECTOR + 8];
  bool selected;           /* sel holds; else all rows in a row */
  wl_u64 room[WL_VECTOR];  /* for values packed together */
  bool *ran;               /* of each instruction: it has run (exec/executed.h) */
  wl_sorter *sorter;       /* takes the sort keys, or NULL */
  int sort_worker;         /* the number of this worker there */
  wl_groups *groups;       /* of the run in progress, or NULL */
  wl_vec *keys;            /* [n_keys]: the group keys of the vector */
  bool numbers_rows;       /* the groups need the numbers of rows */
  wl_u32 group[WL_VECTOR]; /* of each row, once Group has run */
  wl_i64 rows[WL_VECTOR];  /* its number in the table, or among what a join makes of it; zeros if
                           ** the groups do not need it */
  wl_val *call_room;       /* arguments and results of a call; made when first needed */
  wl_u32 fault;
  wl_vctx ctx;
  /* joins */
  wl_u32 **lists; /* [n_sources] */
  wl_u32 **rooms; /* [n_levels + 1][n_sources]: places for lists; NULL where none is needed */
  int *last_read; /* of each source: the last instruction that reads of it */
  int *set_at;    /* of each source: the instruction that finds its rows; -1: source 0 */
  bool *misses;   /* of each source: it may have no row */
  level *levels;  /* of the pipeline's Expands, in order */
  int n_levels, depth;
  void *join_memory;
  int test_end;      /* pc of the Match that ends the test the vector is in, or -1 */
  wl_u32 *origin;    /* of the pairs in a test: compacted like a list; else NULL */
  wl_i32 at, stop;   /* rows of the tablet that are still to come */
  wl_i64 made, most; /* rows grouped of this vector so far, and at most */
  unsigned n_chunks; /* since the last poll */
  double polled;     /* when check was called last */
  wl_stop *stop_by;  /* the flag that can end the work early, or NULL */
  bool asks;         /* this thread may call the check of stop_by */
  wl_tally *tally;   /* counts of each instruction, for EXPLAIN ANALYZE; or NULL */
  wl_tally *total;   /* where tally is added when the worker is closed */
  int ticking;       /* the instruction whose time is measured now, or -1 */
  double ticked;     /* when that began */
  wl_build_sink *sink;
  wl_marks *marks;
  wl_u64 words[WL_VECTOR]; /* join keys as words */
  wl_u8 there[WL_VECTOR];  /* whether each key can match */
  wl_u32 found[WL_VECTOR]; /* for rows of a source that nothing reads */
  wl_u32 slots[WL_VECTOR]; /* of hashed words */
};

/* The bytes of a constant, and among them its truth; see lay_constants(). */
enum { CONST_BYTES = 32, CONST_TRUTH = 17 };

static inline bool has_lengths(wl_u8 type) {
  return type == WL_R_TEXT || type == WL_R_ANY;
}

static inline wl_val get(const plane *q, int i) {
  int k = q->stride ? i : 0;
  wl_u8 t = q->t ? q->t[i * (q->stride || q->type != WL_R_ANY)] : 1;
  switch (q->type) {
  case WL_R_INT: return t ? wl_val_make(WL_T_INT, q->v[k], 0) : wl_null();
  case WL_R_REAL: return t ? wl_val_make(WL_T_REAL, q->v[k], 0) : wl_null();
  case WL_R_TEXT: return t ? wl_val_make(WL_T_TEXT, q->v[k], q->n[k]) : wl_null();
  case WL_R_TRUTH: return t == WL_UNKNOWN ? wl_null() : wl_int(t == WL_TRUE);
  default: return wl_val_make(t, q->v[k], q->n[k]);
  }
}

static inline wl_vec vec_of(const plane *q) {
  return (wl_vec){q->type, q->stride, q->v, q->n, q->t};
}

/* ---- exec_columns.c */
/* An operand, loaded if it has not been: only now, for the rows that are left. */
const plane *wl_exec_operand(wl_exec *x, wl_i16 o);
/* A column of numbers against a constant: over the column itself, which stays unloaded. False: in
** is no such comparison. */
bool wl_exec_compare_column(wl_exec *x, const wl_instr *in, int n);
/* Texts of a plain column against a constant, for = and <>: few have its length, and only of those
** are the bytes looked at. False: in is no such comparison. */
bool wl_exec_equals_text(wl_exec *x, const wl_instr *in, int n);
/* search.c: runs a LIKE or GLOB that is a search for a word. Returns false if it is not. */
bool wl_exec_like(wl_exec *x, const wl_instr *in, int n);
/* A column of the groups: rows from `row` of a tablet on. */
void wl_exec_load_source(wl_exec *x, const wl_instr *in, int tablet, wl_i32 row, int n);

/* ---- exec.c */
void wl_exec_prepare(void); /* the tables that all workers share; once */
/* Truths of rows that are not valid become unknown. */
void wl_exec_truth_nulls(wl_u8 *d, const wl_u8 *valid, int n);
/* Keeps the k rows of x->keep, in registers and lists that are read after pc. */
void wl_exec_keep(wl_exec *x, int pc, int k);
/* The places of true rows into x->keep. */
int wl_exec_true(wl_exec *x, const wl_u8 *truths, int n);
/* Bits of a bitmap as bytes. */
void wl_exec_bits(wl_u8 *d, const wl_u8 *bits, wl_i32 first, const wl_u16 *sel, int n);
/* Runs the instructions from *pc on; stops at the end, an Expand or a Match, and says where. */
wl_status wl_exec_steps(wl_exec *x, int *pc, wl_batch *out) WL_MUST;
wl_status wl_exec_failure(const wl_exec *x, wl_status rc, wl_error *err) WL_MUST;

/* n rows come to the instruction, which the time is counted for from now on. Only with a tally. */
void wl_exec_tick(wl_exec *x, int pc, wl_i64 n);
void wl_exec_tock(wl_exec *x);   /* for none */
void wl_exec_add_up(wl_exec *x); /* the worker's counts into the totals; its tally is freed */
/* n values of the column are read. */
void wl_exec_reads(wl_exec *x, const wl_column *c, wl_i64 n);

/* ---- exec_agg.c */
void wl_exec_use_groups(wl_exec *x, wl_groups *groups); /* what Agg opcodes add to, or NULL */
wl_status wl_exec_find_groups(wl_exec *x, int n) WL_MUST;
/* Adds the vector's values to an Agg opcode's accumulator in their groups. */
wl_status wl_exec_aggregate(wl_exec *x, const wl_instr *in, int n) WL_MUST;

/* ---- exec_probe.c */
/* Makes words of the keys of n rows: x->words, and x->there for those that can match. Returns
** whether a row cannot match for a NULL. */
bool wl_exec_words(wl_exec *x, const wl_key_plan *plan, const wl_i16 *keys, int n);
/* The slot of each word in a hashed lookup, into x->slots. */
void wl_exec_slots(wl_exec *x, const wl_lookup *l, int n);
/* The row that each row of the vector finds in a lookup of unique keys, or WL_NO_ROW. */
void wl_exec_find_rows(wl_exec *x, const wl_join *j, int n, wl_u32 *out);
int wl_exec_probe(wl_exec *x, int pc, int n); /* the rows that are left */
wl_status wl_exec_build(wl_exec *x, const wl_join *j, int n) WL_MUST;

/* ---- exec_join.c */
wl_status wl_exec_open_joins(wl_exec *x) WL_MUST;
void wl_exec_close_joins(wl_exec *x);

/* Where the list of a source's rows is kept while `depth` Expands are open. */
static inline wl_u32 *wl_exec_list_room(const wl_exec *x, int depth, int source) {
  return x->rooms[depth * x->p->n_sources + source];
}

#endif
