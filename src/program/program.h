/*
** The opcode program: what the compiler makes of a bound query, what EXPLAIN prints, what
** the CPU, the GPU and the simulator run.
**
** Invariants (wl_program_verify checks 1 to 5):
** 1. Plan-level opcodes stand outside Parallel … Converge, row-level ones inside.
** 2. A row-level register is written once per row before any use on every path.
** 3. Jumps go forward, to the Converge of their own block; between an Expand and its Match, to
**    that Match.
** 3a. No register is read past an Expand or Match that was set before it: only the rows of the
**    sources go on from there.
** 4. Operand types fit the opcode's shape; constants are of the register type asked for.
** 5. Every index (register, constant, column, accumulator, address) is in bounds.
** 6. The program points into the arena it was compiled in and nowhere else.
*/
#ifndef WL_PROGRAM_H
#define WL_PROGRAM_H

#include "base/arena.h"
#include "base/status.h"
#include "program/opcodes.h"
#include "sql/join_how.h"
#include "value/domain.h"

typedef enum wl_shape {
  WL_SHAPE_PLAN,
  WL_SHAPE_COLUMN,
  WL_SHAPE_FILTER,
  WL_SHAPE_RESULT,
  WL_SHAPE_GROUP,
  WL_SHAPE_PROBE,
  WL_SHAPE_MATCH,
  WL_SHAPE_FOUND,
  WL_SHAPE_I_II,
  WL_SHAPE_I_IIZ,
  WL_SHAPE_I_I,
  WL_SHAPE_I_F,
  WL_SHAPE_I_B,
  WL_SHAPE_F_FF,
  WL_SHAPE_F_I,
  WL_SHAPE_F_F,
  WL_SHAPE_B_II,
  WL_SHAPE_B_FF,
  WL_SHAPE_B_I,
  WL_SHAPE_B_F,
  WL_SHAPE_B_BB,
  WL_SHAPE_B_B,
  WL_SHAPE_B_VV,
  WL_SHAPE_B_V,
  WL_SHAPE_V_VV,
  WL_SHAPE_V_V,
  WL_SHAPE_IN,
  WL_SHAPE_CALL,
  WL_SHAPE_MAP_B,
  WL_SHAPE_MAP_I,
  WL_SHAPE_MAP_F,
  WL_SHAPE_MAP_V,
  WL_SHAPE_NULLTEST,
  WL_SHAPE_SELECT_I,
  WL_SHAPE_SELECT_F,
  WL_SHAPE_SELECT_V,
  WL_SHAPE_AGG,
  WL_SHAPE_AGG_I,
  WL_SHAPE_AGG_F,
  WL_SHAPE_AGG_V,
  WL_SHAPE_AGG_VV,
  WL_N_SHAPES
} wl_shape;

typedef struct wl_opcode_info {
  const char *name;
  const char *text;
  wl_u8 shape;
  bool host_only;
} wl_opcode_info;

extern const wl_opcode_info wl_opcodes[WL_N_OPCODES];

/* Result and operand letters of a shape: d, a, b, and c when c is a register. ' ' is none. */
extern const char wl_shapes[WL_N_SHAPES][5];

typedef struct wl_instr {
  wl_u16 op;
  wl_i16 d, a, b, c;
} wl_instr;

#define WL_CONST(k)    ((wl_i16)(-1 - (k))) /* operand naming constant k */
#define WL_IS_CONST(x) ((x) < 0)
#define WL_CONST_OF(x) (-1 - (x))

enum { WL_MAX_INSTR = 30000, WL_MAX_REGS = 30000, WL_SOURCES = 64 };

struct wl_dict;

/*
** What each value of a small set becomes, worked out before the rows run: entry v - base, or
** entry n for NULL.
*/
typedef struct wl_map {
  wl_i64 base, n;
  wl_u64 *v;   /* [n + 1] integers, bits of reals, or offsets into heap; NULL in truth maps */
  wl_u32 *len; /* [n + 1] of texts and blobs; NULL: there are none */
  wl_u8 *t;    /* [n + 1] tags; truths in truth maps */
  wl_u8 *heap;
  size_t n_heap;
} wl_map;

/* The constants of an IN: distinct, in the order of the collation. */
typedef struct wl_inset {
  wl_val *v;
  wl_i64 n;
  wl_u8 coll;
  bool has_null; /* NULL was among them: what is not found is unknown */
} wl_inset;

/* A call of SQLite: an expression over parameters, and the operands they stand for. */
typedef struct wl_call {
  const char *text;
  wl_i16 *args;
  int n;
  bool of_time;  /* "now" must not be among the arguments */
  bool fallible; /* it may raise an error, so no row that SQLite computes it for may be left out */
  wl_u8 gives;   /* the types that may come, by what is known of the function */
} wl_call;

typedef enum wl_agg_final {
  WL_AGG_COUNT,
  WL_AGG_SUM,
  WL_AGG_TOTAL,
  WL_AGG_AVG,
  WL_AGG_MINMAX,
  WL_AGG_CONCAT
} wl_agg_final;

/* What AggDistinct's values are for. */
typedef enum wl_distinct_use {
  WL_DISTINCT_COUNT,
  WL_DISTINCT_SUM,
  WL_DISTINCT_CONCAT
} wl_distinct_use;

/* One accumulator, fed by one Agg opcode. */
typedef struct wl_acc {
  wl_u16 op;
  wl_u8 coll;
  double bound; /* of |real|, or infinity when unknown */
  bool zero;    /* a real may be 0.0 or -0.0 */
  bool rowed;   /* min or max: bare columns come from the row where it is met */
  wl_distinct_use distinct;
  int set; /* of AggDistinct: its place in the program's sets */
} wl_acc;

/* The values that an AggDistinct gathers. */
typedef struct wl_set {
  int acc;
  wl_u8 coll;
  wl_reg reg;
  wl_domain domain;
} wl_set;

/* A column beside the groups: of the row where accumulator acc, a min or max, was met, or of
** the group's first row (acc < 0). In the second block's source, behind the aggregates. */
typedef struct wl_bare {
  int column; /* as Column's a in the table block */
  int acc;
  wl_reg reg;
} wl_bare;

/* A finished aggregate: what becomes of accumulator acc. The source of the second block. */
typedef struct wl_agg {
  wl_agg_final final;
  int acc;
  wl_reg reg;                 /* type of the column it gives */
  const struct wl_dict *dict; /* whose codes they are, or NULL */
} wl_agg;

typedef struct wl_result {
  const char *name;
  wl_i16 operand;
  wl_domain domain;           /* of the values that can come */
  const struct wl_dict *dict; /* the operand holds its codes; NULL: values */
} wl_result;

/* A group key: the operand in the table block, the first columns of the second one's source. */
typedef struct wl_key {
  wl_i16 operand;
  wl_u8 coll;
  bool desc; /* groups come out in descending order of it */
  wl_reg reg;
  wl_domain domain;           /* of the codes, where there is … */
  const struct wl_dict *dict; /* … a dictionary */
} wl_key;

/* A sort key: a result column, which may be one past those that are given out. */
typedef struct wl_order {
  int result;
  wl_u8 coll;
  bool desc, nulls_last;
} wl_order;

struct wl_lookup;

/* A join: how Probe, or Expand with its Match, finds rows of another source. After SEMI and ANTI
** that source has no row to read. */
typedef struct wl_join {
  int source; /* whose row is found, from 1 */
  wl_join_how how;
  const struct wl_lookup *lookup; /* its rows by key; held by the run */
  wl_i16 *keys;                   /* operands, as many as the lookup has keys */
  int n_keys;
  int match; /* of Expand: pc of its Match, or -1 (INNER has none: what follows filters) */
} wl_join;

typedef enum wl_source_kind { WL_SOURCE_TABLE, WL_SOURCE_AGGREGATES } wl_source_kind;

typedef struct wl_program {
  wl_instr *code;
  int n_code;
  wl_reg *regs;
  int n_regs;
  wl_val *consts;
  int n_consts;
  wl_i16 *columns; /* Column's a indexes this; gives the column's place in the table */
  const char **column_names;
  wl_reg *column_regs; /* type of each */
  int n_columns;
  wl_u8 *column_sources;     /* [n_columns]: the source each is of; NULL: all of source 0 */
  const char **source_names; /* [n_sources], printable; NULL where there is one */
  int n_sources;             /* 0 and 1: no joins */
  wl_join *joins;
  int n_joins;
  bool expands;      /* there is an Expand: a row may become many */
  bool unordered;    /* SQLite's order of the rows is not known … */
  bool checks_cut;   /* … so LIMIT must not cut between rows that ORDER BY calls equal */
  bool as_sqlite;    /* rows come in SQLite's order, so that it can go on in their midst */
  bool may_fail;     /* a row may turn out to be SQLite's to compute, or an error of its */
  const char *table; /* printable name of source 0 */
  wl_map *maps;
  int n_maps;
  wl_inset *insets;
  int n_insets;
  wl_call *calls;
  int n_calls;
  int max_pattern; /* that calls of LIKE and GLOB take */
  wl_acc *accs;
  int n_accs;
  wl_agg *aggs;
  int n_aggs;
  wl_key *keys;
  int n_keys;
  bool grouped;
  bool one_group; /* grouped without keys: there is a group even of no rows */
  bool by_first;  /* groups are given in the order of their first rows, not of their keys */
  bool in_order;  /* an aggregate must see all rows in order */
  wl_set *sets;
  int n_sets;
  wl_bare *bares;
  int n_bares;
  wl_result *results; /* those given out, then what only sorting needs */
  int n_results, n_given;
  bool distinct;
  wl_u8 *distinct_colls; /* [n_given] */
  wl_order *order;
  int n_order;
  wl_i64 limit, offset; /* limit < 0: none */
  int host_op;          /* an opcode only the host runs, or -1 */
} wl_program;

/* Types of the result columns, from the program: constants take a register type too. */
wl_reg wl_result_reg(const wl_result *r);
/* What the column holds: values of the result, or codes of its dictionary. */
wl_domain wl_result_domain(const wl_result *r);

/* A pool of batches for the results of a program. */
struct wl_pool;
wl_status wl_program_pool(const wl_program *p, wl_i64 max_rows, struct wl_pool **out,
                          wl_error *err) WL_MUST;

/* Opcodes with a list of operands (Result, Group, Call): how many, and the k-th. */
int wl_program_n_listed(const wl_program *p, const wl_instr *in);
wl_i16 wl_program_listed(const wl_program *p, const wl_instr *in, int k);
/* All operands that an instruction reads, registers and constants: how many, and the k-th. */
int wl_program_n_reads(const wl_program *p, const wl_instr *in);
wl_i16 wl_program_read(const wl_program *p, const wl_instr *in, int k);

/* Checks the invariants; a failure is a bug of the compiler, reported, never run. */
wl_status wl_program_verify(const wl_program *p, wl_error *err) WL_MUST;

/* One line of a listing, as EXPLAIN shows it. Strings live in the arena. */
typedef struct wl_listing {
  const char *opcode, *p1, *p2, *p3, *p4, *comment;
} wl_listing;
wl_status wl_program_print(const wl_program *p, int pc, wl_arena *arena, wl_listing *out) WL_MUST;

#endif
