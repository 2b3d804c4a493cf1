/*
** The compiler's internal interface: compile.c (pipelines), emit.c (instructions), expr.c
** (expressions), in.c (IN), call.c (functions), entries.c (work done once per dictionary entry),
** filter.c (conjuncts), group/ (aggregates and the keys of groups), join.c, pipelines.c.
*/
#ifndef WL_COMPILE_IMPL_H
#define WL_COMPILE_IMPL_H

#include "program/compile.h"
#include "program/ranges.h"
#include "column/dict.h"
#include "value/scratch.h"

/* The texts of a date function, as codes. */
typedef struct wl_dated {
  wl_val plan;
  wl_domain codes;
} wl_dated;

/*
** A register of texts may hold codes, integers that compare as the texts do: positions in a
** dictionary, or codes of a date function. The domain describes the texts all the same.
*/
typedef struct wl_operand {
  wl_i16 x;
  bool truth; /* a truth register, or a constant 0, 1 or NULL used as one */
  wl_domain dom;
  const wl_dict *dict;  /* the register holds codes of this dictionary */
  const wl_dated *date; /* the register holds codes of this date function */
} wl_operand;

typedef struct wl_compiler {
  wl_arena *arena;
  const wl_compile_in *in;
  wl_program *p;
  wl_program *leaves; /* the query's first pipeline. A pipeline over its groups reads its keys,
                      ** aggregates and bare columns */
  int size_code, size_regs, size_consts;
  wl_operand *memo; /* by node id, for the current pipeline */
  bool *known;
  int stage; /* first instruction after the last Expand, Match or Mark; registers set before it are
              *not
              ** read */
  signed char places[WL_MAX_SOURCES]; /* by source of the query: its number in the program, or -1 if
                                      ** it has no row yet */
  wl_u64 maybe;                       /* sources that may have no row */
  wl_i64 max_rows;                    /* the most rows that the pipeline can produce */
  bool over_table;
  int *deps;                /* by node id, for the current pipeline: the one leaf it depends on, or
                            ** DEPENDS_... */
  wl_u8 *called;            /* by node id, for the current pipeline: whether it contains a call into
                            ** SQLite */
  int entry;                /* if entries is set: the leaf whose entries they are */
  const wl_column *entries; /* the entries to compile for; NULL: compile for rows */
  int size_maps, size_calls, size_insets;
  wl_domain *agg_domains;
  wl_bexpr **groups; /* the group keys: GROUP BY, or all results for DISTINCT */
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

/* What the register of an operand holds: codes or values. */
static inline wl_domain wl_operand_held(const wl_operand *o) {
  return o->dict   ? wl_domain_int(0, o->dict->n - 1, wl_nullable(o))
         : o->date ? o->date->codes
                   : o->dom;
}

extern const wl_operand wl_no_operand;

static inline wl_domain wl_truth_domain(bool null) {
  return wl_domain_int(0, 1, null);
}

/* ---- expr.c */
/* Compile an expression into an operand: of values (wl_compile_expr), possibly of dictionary codes
** (wl_compile_coded), or a truth (wl_compile_truth). */
wl_status wl_compile_expr(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_coded(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
/* Refuses comparison e of these operands if the arms of a compound give it affinities that may lead
** to different results (wl_bexpr.arm_affinity). */
wl_status wl_compile_arms_agree(const wl_compiler *c, const wl_bexpr *e, const wl_operand *a,
                                const wl_operand *b) WL_MUST;
wl_status wl_compile_truth(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_arith(wl_compiler *c, wl_op op, wl_operand *a, wl_operand *b,
                           wl_operand *out) WL_MUST;
wl_status wl_compile_compare(wl_compiler *c, wl_op op, char affinity, int coll, wl_operand *a,
                             wl_operand *b, wl_operand *out) WL_MUST;
/* a AND b, or a OR b; both are truths */
wl_status wl_compile_either(wl_compiler *c, bool and, wl_operand *a, wl_operand *b,
                            wl_operand *out) WL_MUST;
wl_status wl_compile_is_null(wl_compiler *c, wl_operand *a, wl_operand *out) WL_MUST;
/* Whether all integers of the operand are exact as reals. */
bool wl_exact_as_real(const wl_operand *o);

/* ---- pipelines.c */
/* If the last pipeline sorts rows of one table, computes their results after the sort, if
** possible. */
wl_status wl_compile_split(wl_compiler *c) WL_MUST;
/* Adds a pipeline (wl_program.also) for each Mark of the first pipeline. All others are complete.
 */
wl_status wl_compile_unmatched(wl_compiler *c) WL_MUST;

/* ---- emit.c */
wl_status wl_compile_constant(wl_compiler *c, wl_val v, wl_operand *out) WL_MUST;
/* Emits op over a, b and truth t or number k. Folds it if all are constants. dom: its possible
** results. */
wl_status wl_compile_emit(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                          const wl_operand *t, int k, wl_domain dom, wl_operand *out) WL_MUST;
wl_status wl_compile_emit1(wl_compiler *c, wl_opcode op, const wl_operand *a, wl_domain dom,
                           wl_operand *out) WL_MUST;
wl_status wl_compile_emit2(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                           wl_domain dom, wl_operand *out) WL_MUST;
wl_status wl_compile_reg(wl_compiler *c, wl_opcode op, wl_reg r, wl_i16 a, wl_i16 b, wl_i16 k,
                         wl_i16 *out) WL_MUST;
wl_status wl_compile_value(wl_compiler *c, wl_operand *o) WL_MUST;    /* a truth becomes 0, 1 or
                                                                      ** NULL */
wl_status wl_compile_text(wl_compiler *c, wl_operand *o) WL_MUST;     /* as CAST(o AS TEXT) */
wl_status wl_compile_real(wl_compiler *c, wl_operand *o) WL_MUST;     /* from integers */
wl_status wl_compile_int(wl_compiler *c, wl_operand *o) WL_MUST;      /* as CAST(o AS INTEGER) */
wl_status wl_compile_as_truth(wl_compiler *c, wl_operand *o) WL_MUST; /* as a condition */
/* Doubles an arena array when it is full. */
wl_status wl_compile_room(wl_compiler *c, void **array, int n, int *size, size_t width,
                          int most) WL_MUST;

/* ---- in.c */
wl_status wl_compile_in_list(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
wl_status wl_compile_in_sub(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
/* Refuses IN with a REAL column: it turns integers into reals first, which is visible for large
** ones. */
wl_status wl_compile_in_real(wl_compiler *c, const wl_bexpr *e, const wl_operand *a,
                             const wl_operand *b) WL_MUST;

/* entries.c: turns codes into texts */
wl_status wl_compile_plain(wl_compiler *c, wl_operand *o) WL_MUST;

/* ---- date.c */
/* Compiles a date function. *done: false if SQLite must be called. */
wl_status wl_compile_date(wl_compiler *c, wl_native f, wl_operand *args, int n, bool *done,
                          wl_operand *out) WL_MUST;
wl_status wl_compile_date_text(wl_compiler *c, wl_operand *o) WL_MUST; /* from codes */
/* Compares texts that are codes with a constant text. *done: false if it is no such comparison. */
wl_status wl_compile_compare_codes(wl_compiler *c, wl_op op, const wl_operand *a,
                                   const wl_operand *b, bool *done, wl_operand *out) WL_MUST;
/* Compares the text of a date function with a constant text by the integers that the function
** reads, if the texts grow with them. */
wl_status wl_compile_compare_times(wl_compiler *c, const wl_bexpr *e, bool *done,
                                   wl_operand *out) WL_MUST;

/* filter.c: drops the rows where e is not true */
wl_status wl_compile_filter(wl_compiler *c, const wl_bexpr *e) WL_MUST;
/* The same for a list. scan: they read only the scanned source, so they can be tried on a
** sample. */
wl_status wl_compile_conjuncts(wl_compiler *c, const wl_jlist *list, bool scan) WL_MUST;

/* join.c: the sources of the query, with all conjuncts of WHERE */
wl_status wl_compile_sources(wl_compiler *c) WL_MUST;
wl_status wl_compile_found(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
/* The types that an expression over the sources can have. After outer joins it may have more than
** with a row of each source, like coalesce(a.x, b.x); then it has no dictionary. */
wl_status wl_compile_type(const wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;
/* entries.c: turns codes of o's dictionary into codes of `to`. A text that `to` lacks becomes
** NULL. */
wl_status wl_compile_translate(wl_compiler *c, const wl_dict *to, wl_operand *o) WL_MUST;
/* Turns codes of two dictionaries into integers that compare as the texts do. */
wl_status wl_compile_common(wl_compiler *c, wl_operand *a, wl_operand *b) WL_MUST;
/* compile.c */
wl_status wl_compile_open(wl_compiler *c) WL_MUST; /* sets up the program's columns and the notes */
void wl_compile_close(wl_compiler *c);
/* Whether a row may stop the run: a function fails or asks for the time, or a text exceeds SQLite's
** limit and that limit is low enough to be reached. */
bool wl_compile_may_stop(const wl_compiler *c, const wl_program *p);
void wl_compile_forget(wl_compiler *c); /* forgets all registers: none is valid from here on */
/* Applies an affinity to both sides of a comparison, as SQLite does first. */
wl_status wl_compile_affinity(wl_compiler *c, char affinity, wl_operand *a, wl_operand *b) WL_MUST;

/* group/group_keys.c: the group keys, and the opcode that finds each row's group. No GROUP BY is one
** group. */
wl_status wl_compile_group_keys(wl_compiler *c) WL_MUST;
/* group/aggregate.c: the query's aggregate k. */
wl_status wl_compile_aggregate(wl_compiler *c, int k) WL_MUST;
/* Whether no sum() of the query can overflow, over any of the rows. */
bool wl_compile_sums_fit(const wl_compiler *c);
/* Whether equal values can look different: 1 and 1.0, or text that is equal under a collation. */
bool wl_compile_ties(const wl_compiler *c, const wl_operand *a, int coll);
/* Refuses such values if SQLite would read them in index order. Which of them is shown depends on
** the order of rows. */
wl_status wl_compile_check_ties(const wl_compiler *c, const wl_domain *d, int coll,
                                const char *what) WL_MUST;

/* call.c */
wl_status wl_compile_call(wl_compiler *c, const wl_bexpr *e, wl_operand *out) WL_MUST;

/* entries.c: tries to compute e once per entry of the only leaf it depends on. */
wl_status wl_compile_entries(wl_compiler *c, const wl_bexpr *e, bool *done,
                             wl_operand *out) WL_MUST;

/* The operand that has values[x - base] where the integer leaf is x, and values[n] where the leaf
** is NULL. n is the number of values without the last. */
wl_status wl_compile_map(wl_compiler *c, wl_val *values, wl_i64 base, wl_i64 n, bool truth,
                         const wl_operand *leaf, wl_operand *out) WL_MUST;

/* Turns codes into ranks under a collation. Equal texts have equal ranks. */
wl_status wl_compile_ranks(wl_compiler *c, int coll, wl_operand *o) WL_MUST;

wl_status wl_compile_append(wl_compiler *c, wl_instr in) WL_MUST;
void wl_compile_begin(wl_compiler *c, wl_source_kind source); /* starts the code of a pipeline */
void wl_compile_end(wl_compiler *c, wl_sink_kind sink);

/* Opens a compiler for a side program with n_results columns and starts its code. It must be
** closed, even if this fails. */
wl_status wl_compile_side(const wl_compiler *c, int n_results, wl_compiler *out) WL_MUST;
void wl_compile_side_give(wl_compiler *s, const wl_operand *o); /* adds a result column */
wl_status wl_compile_side_end(wl_compiler *s) WL_MUST;          /* completes the program */
void wl_compile_side_close(wl_compiler *s);

/* The leaf that a node is, or -1. A leaf is a column of the table or, in a pipeline over groups,
** a key, an aggregate or a bare column. */
int wl_compile_leaf(wl_compiler *c, const wl_bexpr *e);
wl_status wl_compile_leaf_operand(wl_compiler *c, int leaf, wl_operand *out) WL_MUST;

#endif
