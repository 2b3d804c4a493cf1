/*
** The inside of the compiler: compile.c (blocks), emit.c (instructions), expr.c (expressions), in.c
** (IN), call.c (functions), entries.c (what is done once per dictionary entry), filter.c
*(conjuncts),
** aggregate.c, join.c.
*/
#ifndef WL_COMPILE_IMPL_H
#define WL_COMPILE_IMPL_H

#include "program/compile.h"
#include "program/ranges.h"
#include "column/dict.h"
#include "value/scratch.h"

typedef struct wl_operand {
  wl_i16 x;
  bool truth; /* a truth register, or a constant 0, 1, NULL that stands for one */
  wl_domain dom;
  const wl_dict *dict; /* the register holds codes of it; dom is still of the texts */
} wl_operand;

typedef struct wl_compiler {
  wl_arena *arena;
  const wl_compile_in *in;
  wl_program *p;
  wl_program *leaves; /* whose keys, aggregates and bare columns a second block reads: p, or of a
                      ** side program the query's own */
  int size_code, size_regs, size_consts;
  wl_operand *memo; /* by node id; of the block being compiled */
  bool *known;
  int block; /* first instruction of the block … */
  int stage; /* … and of what follows the last Expand or Match: nothing before is read */
  signed char places[WL_MAX_SOURCES]; /* of the query's sources: the program's; -1: no row yet */
  wl_u64 maybe;                       /* sources that may have no row */
  wl_i64 max_rows;                    /* that can come of the block */
  bool wants_group;                   /* a sum needs in->one_group */
  int size_joins;
  bool over_table;
  int *deps;                /* by node id: the one leaf it depends on, or DEPENDS_; of the block */
  wl_u8 *called;            /* by node id, of the block: whether SQLite computes part of it */
  int entry;                /* with entries: this leaf is what they are the entries of */
  const wl_column *entries; /* compiling for these; NULL: for rows */
  int size_maps, size_calls, size_insets;
  wl_domain *agg_domains;
  wl_bexpr **groups; /* what rows are grouped by: GROUP BY, or for DISTINCT the results */
  int n_groups;
  bool distinct_groups;
  wl_vctx fold;
  wl_u32 fault;
  wl_error *err;
} wl_compiler;

static inline bool wl_has(const wl_operand *o, int t) {
  return (o->dom.mask & WL_M(t)) != 0;
}
static inline bool wl_only(const wl_operand *o, unsigned types) {
  return (o->dom.mask & ~types & ~WL_M(WL_T_NULL)) == 0;
}
static inline bool wl_nullable(const wl_operand *o) {
  return wl_has(o, WL_T_NULL);
}
static inline bool wl_is_const(const wl_operand *o) {
  return WL_IS_CONST(o->x);
}
static inline wl_val wl_const_value(const wl_compiler *c, const wl_operand *o) {
  return c->p->consts[WL_CONST_OF(o->x)];
}
static inline bool wl_only_null(const wl_operand *o) {
  return (o->dom.mask & ~WL_M(WL_T_NULL)) == 0;
}

/* The collation an expression is compared under. */
static inline int wl_bexpr_coll(const wl_bexpr *e) {
  return e->has_coll ? e->coll : WL_COLL_BINARY;
}

extern const wl_operand wl_no_operand;

static inline wl_domain wl_truth_domain(bool null) {
  return wl_domain_int(0, 1, null);
}

/* ---- expr.c */
/* An expression: its operand, of values (wl_compile_expr) or maybe of dictionary codes. */
wl_status wl_compile_expr(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_coded(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_truth(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_arith(wl_compiler *c, wl_op op, wl_operand *a, wl_operand *b,
                           wl_operand *out) WL_MUST;
wl_status wl_compile_compare(wl_compiler *c, wl_op op, char affinity, int coll, wl_operand *a,
                             wl_operand *b, wl_operand *out) WL_MUST;
/* a AND b, or a OR b; both are truths */
wl_status wl_compile_either(wl_compiler *c, bool and, wl_operand *a, wl_operand *b,
                            wl_operand *out) WL_MUST;
wl_status wl_compile_is_null(wl_compiler *c, wl_operand *a, wl_operand *out) WL_MUST;
/* Whether all integers that can come are exact as reals. */
bool wl_exact_as_real(const wl_operand *o);

/* ---- emit.c */
wl_status wl_compile_constant(wl_compiler *c, wl_val v, wl_operand *out) WL_MUST;
/* op over a, b and truth t or number k, folded when all are constants. dom: what it yields. */
wl_status wl_compile_emit(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                          const wl_operand *t, int k, wl_domain dom, wl_operand *out) WL_MUST;
wl_status wl_compile_emit1(wl_compiler *c, wl_opcode op, const wl_operand *a, wl_domain dom,
                           wl_operand *out) WL_MUST;
wl_status wl_compile_emit2(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                           wl_domain dom, wl_operand *out) WL_MUST;
wl_status wl_compile_reg(wl_compiler *c, wl_opcode op, wl_reg r, wl_i16 a, wl_i16 b, wl_i16 k,
                         wl_i16 *out) WL_MUST;
wl_status wl_compile_value(wl_compiler *c, wl_operand *o) WL_MUST;    /* a truth as 0, 1 or NULL */
wl_status wl_compile_text(wl_compiler *c, wl_operand *o) WL_MUST;     /* as CAST(o AS TEXT) */
wl_status wl_compile_real(wl_compiler *c, wl_operand *o) WL_MUST;     /* of integers */
wl_status wl_compile_int(wl_compiler *c, wl_operand *o) WL_MUST;      /* as CAST(o AS INTEGER) */
wl_status wl_compile_as_truth(wl_compiler *c, wl_operand *o) WL_MUST; /* as a condition */
/* Doubles an arena array when it is full. */
wl_status wl_compile_room(wl_compiler *c, void **array, int n, int *size, size_t width,
                          int most) WL_MUST;

/* ---- in.c */
wl_status wl_compile_in_list(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_in_sub(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
/* IN of a REAL column makes integers reals first, which shows in large ones: not taken. */
wl_status wl_compile_in_real(wl_compiler *c, const wl_bexpr *e, const wl_operand *a,
                             const wl_operand *b) WL_MUST;

/* entries.c: codes become texts */
wl_status wl_compile_plain(wl_compiler *c, wl_operand *o) WL_MUST;

/* filter.c: drops the rows where e is not true */
wl_status wl_compile_filter(wl_compiler *c, const wl_bexpr *e) WL_MUST;
/* The same of a list. scan: they are over the source that is scanned, and rows can be tried. */
wl_status wl_compile_conjuncts(wl_compiler *c, const wl_jlist *list, bool scan) WL_MUST;

/* join.c: the sources of the query, with all conjuncts of WHERE */
wl_status wl_compile_sources(wl_compiler *c) WL_MUST;
wl_status wl_compile_found(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
/* entries.c: codes of o's dictionary become those of `to`; a text that it lacks becomes NULL */
wl_status wl_compile_translate(wl_compiler *c, const wl_dict *to, wl_operand *o) WL_MUST;
/* Codes of two dictionaries become integers that compare as the texts do. */
wl_status wl_compile_common(wl_compiler *c, wl_operand *a, wl_operand *b) WL_MUST;
/* compile.c */
wl_status wl_compile_open(wl_compiler *c) WL_MUST; /* the program's columns and notes */
void wl_compile_close(wl_compiler *c);
void wl_compile_forget(wl_compiler *c); /* no register goes on from here */
/* What SQLite does to both sides of a comparison first. */
wl_status wl_compile_affinity(wl_compiler *c, char affinity, wl_operand *a, wl_operand *b) WL_MUST;

/* aggregate.c: the query's aggregate k */
wl_status wl_compile_aggregate(wl_compiler *c, int k) WL_MUST;
/* Equal values that look different: 1 and 1.0, or text that a collation calls equal. */
bool wl_compile_ties(const wl_compiler *c, const wl_operand *a, int coll);

/* call.c */
wl_status wl_compile_call(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;

/* entries.c: tries to work e out once per entry of the only leaf it depends on. */
wl_status wl_compile_entries(wl_compiler *c, const wl_bexpr *e, bool *done,
                             wl_operand *out) WL_MUST;

/* Codes become ranks under a collation: equal texts have equal ones. */
wl_status wl_compile_ranks(wl_compiler *c, int coll, wl_operand *o) WL_MUST;

wl_status wl_compile_append(wl_compiler *c, wl_instr in) WL_MUST;
wl_status wl_compile_begin(wl_compiler *c, wl_source_kind source) WL_MUST; /* a block … */
wl_status wl_compile_end(wl_compiler *c) WL_MUST;                          /* … and its end */

/* A compiler for a program of its own beside c's, which gives n_results columns, its block begun;
** to be closed, also when this fails. */
wl_status wl_compile_side(const wl_compiler *c, int n_results, wl_compiler *out) WL_MUST;
void wl_compile_side_give(wl_compiler *s, const wl_operand *o); /* its next result column */
wl_status wl_compile_side_end(wl_compiler *s) WL_MUST;          /* the program is complete */
void wl_compile_side_close(wl_compiler *s);

/* The leaf that a node is, or -1: a column of the table; a key, aggregate or bare column of the
** second block. */
int wl_compile_leaf(wl_compiler *c, const wl_bexpr *e);
wl_status wl_compile_leaf_operand(wl_compiler *c, int leaf, wl_operand *out) WL_MUST;

#endif
