/*
** A program is a list of pipelines. A pipeline is a source of rows, steps that run for every row,
** and a sink that takes the rows. The compiler makes programs from bound queries, EXPLAIN prints
** them, and the CPU, the GPU and the simulator run them.
**
** A wl_program is one pipeline. `next` is the pipeline that reads what its sink leaves.
**
** A RIGHT or FULL join has a Mark. After the pipeline with the Mark, the pipeline `also` reads the
** rows of the joined source that were not marked. It has the same code from the instruction after
** the Mark on, the same registers and the same sink. The sources that were joined before have no
** row in it, so their columns are NULL.
**
** Invariants (wl_program_verify checks 1 to 5):
** 1. The code has the steps in the order in which they run. The opcodes of the sink (Result; Group
**    and Agg…; Build) come last.
** 2. On every path, a register is written once per row, before it is read.
** 3. Jumps go forward, to the end of the code or, between an Expand and its Match, to that Match.
** 3a. After an Expand, Match or Mark, no register that was set before it is read. Only the rows of
**    the sources continue from there.
** 4. Operand types fit the opcode's shape, and constants have the required register type. If an
**    operand may be NULL and the shape's NULL rule is strict, the result register is nullable.
** 5. Every index (register, constant, column, accumulator, address) is in bounds.
** 6. The program points only into the arena it was compiled in.
*/
#ifndef WL_PROGRAM_H
#define WL_PROGRAM_H

#include "base/arena.h"
#include "base/status.h"
#include "program/opcodes.h"
#include "sql/join_how.h"
#include "value/domain.h"
#include "value/kinds.h"

typedef enum wl_shape {
#define WL_SHAPE(name, letters, nulls) WL_SHAPE_##name,
#include "program/shapes.def"
#undef WL_SHAPE
  WL_N_SHAPES
} wl_shape;

typedef struct wl_opcode_info {
  const char *name;
  const char *text;
  wl_u8 shape;
  bool host_only;
  bool is_long; /* only some kernels contain it */
} wl_opcode_info;

extern const wl_opcode_info wl_opcodes[WL_N_OPCODES];

/* Letters of a shape's result and operands: d, a, b, and c if c is a register. ' ' means none. */
extern const char wl_shapes[WL_N_SHAPES][5];
extern const wl_u8 wl_shape_nulls[WL_N_SHAPES]; /* the wl_null_rule of each shape */

typedef struct wl_instr {
  wl_u16 op;
  wl_i16 d, a, b, c;
} wl_instr;

#define WL_CONST(k)    ((wl_i16)(-1 - (k))) /* the operand that names constant k */
#define WL_IS_CONST(x) ((x) < 0)
#define WL_CONST_OF(x) (-1 - (x))

enum { WL_MAX_INSTR = 30000, WL_MAX_REGS = 30000, WL_SOURCES = 64 };

struct wl_dict;

/*
** A precomputed result for each value of a small set: entry v - base, or entry n for NULL.
*/
typedef struct wl_map {
  wl_i64 base, n;
  wl_u64 *v;   /* [n + 1] integers, bits of reals, or offsets into heap; NULL in truth maps */
  wl_u32 *len; /* [n + 1] lengths of texts and blobs; NULL: there are none */
  wl_u8 *t;    /* [n + 1] tags; truths in truth maps */
  wl_u8 *heap;
  size_t n_heap;
} wl_map;

/* The constants of an IN: distinct, and sorted by the collation. */
typedef struct wl_inset {
  wl_val *v;
  wl_i64 n;
  wl_u8 coll;
  bool has_null; /* the list contains NULL, so a value that is not found gives NULL */
} wl_inset;

/* A call into SQLite: an expression over parameters, and the operands that they stand for. */
typedef struct wl_call {
  const char *text;
  wl_i16 *args;
  int n;
  bool of_time;  /* no argument may be "now" */
  bool fallible; /* it may raise an error, so it must run for every row for which SQLite would run
                 ** it */
  wl_u8 gives;   /* the types that the function can return */
} wl_call;

/* What the values of an AggDistinct are used for. */
typedef enum wl_distinct_use {
  WL_DISTINCT_COUNT,
  WL_DISTINCT_SUM,
  WL_DISTINCT_CONCAT
} wl_distinct_use;

/* One accumulator, fed by one Agg opcode. */
typedef struct wl_acc {
  wl_u16 op;
  wl_u8 coll;
  double bound; /* upper bound of |real|, or infinity if unknown */
  bool zero;    /* a real may be 0.0 or -0.0 */
  bool rowed;   /* min or max: bare columns are read from the row with its value */
  wl_distinct_use distinct;
  int set; /* for AggDistinct: its index in the program's sets */
} wl_acc;

/* The values that an AggDistinct collects. */
typedef struct wl_set {
  int acc;
  wl_u8 coll;
  wl_reg reg;
  wl_domain domain;
} wl_set;

/* A bare column (neither aggregated nor in GROUP BY). It is read from the row with the value of
** accumulator acc (a min or max), or from the group's first row if acc < 0. In the columns of the
** groups, bare columns come after the aggregates. */
typedef struct wl_bare {
  int column; /* like Column's a */
  int acc;
  wl_reg reg;
} wl_bare;

/* A finished aggregate, computed from accumulator acc. In the columns of the groups, aggregates
** come after the keys. */
typedef struct wl_agg {
  wl_agg_final final;
  int acc;
  wl_reg reg;                  /* type of its column */
  const struct wl_dict *dict;  /* the dictionary of its codes, or NULL */
  const struct wl_dated *date; /* the date function of its codes, or NULL (compile_impl.h) */
} wl_agg;

typedef struct wl_result {
  const char *name;
  wl_i16 operand;
  wl_domain domain;           /* domain of the possible values */
  const struct wl_dict *dict; /* the operand holds codes of it; NULL: values */
} wl_result;

/* A group key. Keys are the first columns of the groups. */
typedef struct wl_key {
  wl_i16 operand; /* unused if column >= 0 */
  wl_u8 coll;
  bool desc; /* groups are emitted in descending order of it */
  wl_reg reg;
  wl_domain domain;            /* of the codes if dict or date is set, else of the values */
  const struct wl_dict *dict;  /* NULL: the key has no dictionary */
  const struct wl_dated *date; /* the date function of its codes, or NULL (compile_impl.h) */
  /* Only if n_finds > 0. A key is finds[by] itself, or a column of the row whose number that is
  ** (column, like Column's a), or a result of finds[by].row_keys for that row (computed). The other
  ** numbers are -1. In finds, column is the source whose row number it is, or -1. */
  int by, column, computed;
  struct wl_program *row_keys; /* a pipeline over rows of that source; NULL: nothing is computed */
} wl_key;

/* A sort key: a result column, which may be one that is not returned. */
typedef struct wl_order {
  int result;
  wl_u8 coll;
  bool desc, nulls_last;
} wl_order;

struct wl_lookup;

/* A join: how Probe, or Expand with its Match, finds rows of another source. After SEMI and ANTI
** that source has no row to read. */
typedef struct wl_join {
  int source; /* the source whose row is found, from 1 */
  int step;   /* the step of the plan that it belongs to */
  wl_join_how how;
  const struct wl_lookup *lookup; /* its rows by key; the run owns it */
  wl_i16 *keys;                   /* operands, one for each of the lookup's keys */
  int n_keys;
  int match; /* for Expand: pc of its Match, or -1 (INNER has none: the code after it filters) */
  double keeps; /* the estimated share of rows that go on */
  /* Only if there is a Mark: */
  wl_i64 n_rows; /* rows of the source */
  int live;      /* the column that says which of them count; -1: all do */
} wl_join;

typedef enum wl_source_kind {
#define WL_SOURCE_KIND(name, meaning) WL_SOURCE_##name,
#include "program/pipelines.def"
#undef WL_SOURCE_KIND
  WL_N_SOURCE_KINDS
} wl_source_kind;

typedef enum wl_sink_kind {
#define WL_SINK_KIND(name, leaves) WL_SINK_##name,
#include "program/pipelines.def"
#undef WL_SINK_KIND
  WL_N_SINK_KINDS
} wl_sink_kind;

extern const char *const wl_sink_leaves[WL_N_SINK_KINDS]; /* what each sink leaves, in words */

typedef struct wl_program {
  wl_source_kind source;
  wl_sink_kind sink;
  struct wl_program *next; /* the pipeline that reads what the sink leaves, or NULL */
  struct wl_program *also; /* the pipeline that runs after this one, into the same sink, or NULL */
  int unmatched;           /* for the source UNMATCHED: the join whose rows it reads */
  bool may_miss;           /* for the source SORTED: there may be no row, which is one of NULLs */
  wl_i64 n_before;         /* rows of the sources whose pipelines ran before, into the same sink */
  wl_instr *code;
  int n_code;
  wl_reg *regs;
  int n_regs;
  wl_val *consts;
  int n_consts;
  wl_i16 *columns; /* by Column's a: the column's index in the table */
  const char **column_names;
  wl_reg *column_regs; /* type of each column */
  int n_columns;
  wl_u8 *column_sources;     /* [n_columns]: the source of each, or WL_NO_SOURCE; NULL: all belong
                             ** to source 0 */
  const char **source_names; /* [n_sources], printable; NULL if there is only one */
  int n_sources;             /* 0 or 1: no joins */
  wl_join *joins;
  int n_joins;
  bool expands;      /* there is an Expand, so a row may become many */
  bool unordered;    /* SQLite's order of the rows is not known */
  bool checks_cut;   /* LIMIT must not separate rows that are equal in ORDER BY (needed if
                     ** unordered) */
  bool as_sqlite;    /* rows come in SQLite's order, so SQLite can continue after any of them */
  bool may_fail;     /* some row may turn out to need SQLite, or to raise an error */
  const char *table; /* printable name of source 0 */
  wl_map *maps;
  int n_maps;
  wl_inset *insets;
  int n_insets;
  wl_call *calls;
  int n_calls;
  int max_pattern; /* SQLite's limit for patterns in calls of LIKE and GLOB */
  wl_acc *accs;
  int n_accs;
  wl_agg *aggs;
  int n_aggs;
  wl_key *keys;
  int n_keys;
  /* What Group finds groups by, if that is not the keys: the number of a source's row in place of
  ** the keys that are columns of that source, and the other keys. The keys are read from the rows at
  ** the end, and groups with equal keys are joined. n_finds is 0 if groups are found by keys. */
  wl_key *finds;
  int n_finds;
  bool grouped;   /* there is a Group, and the next pipeline reads the groups */
  bool one_group; /* no GROUP BY: there are no keys, and there is a group even without rows */
  bool by_first;  /* groups are emitted in the order of their first rows, not of their keys */
  bool in_order;  /* an aggregate must see all rows in order */
  wl_set *sets;
  int n_sets;
  wl_bare *bares;
  int n_bares;
  wl_result *results; /* first those that are returned, then those that only sorting needs */
  int n_results, n_given;
  wl_u8 *distinct_colls; /* [n_given]: by which DISTINCT compares */
  wl_order *order;       /* by which Sort and Sort keys sort */
  int n_order;
  bool sorted;          /* the rows come in the order of ORDER BY */
  wl_i64 limit, offset; /* which rows the last pipeline leaves; limit < 0: all after offset. A sort
                        ** before it has the same numbers: other rows are not needed */
  double keeps;         /* the estimated share of the source's rows that pass the filters on it; 0:
                        ** not known */
  int host_op;          /* an opcode that only the host can run, or -1 */
} wl_program;

/* The last pipeline, whose sink takes the results. */
static inline const wl_program *wl_program_last(const wl_program *p) {
  while (p->next) p = p->next;
  return p;
}

/* The pipeline that runs after p, or NULL. All that run into one sink come before those that read
** it. */
static inline const wl_program *wl_program_after(const wl_program *p) {
  return p->also ? p->also : p->next;
}

/* What Group finds groups by. */
static inline const wl_key *wl_program_finds(const wl_program *p) {
  return p->n_finds ? p->finds : p->keys;
}
static inline int wl_program_n_finds(const wl_program *p) {
  return p->n_finds ? p->n_finds : p->n_keys;
}

/* Whether a sink takes batches of rows, which Result fills. */
static inline bool wl_sink_takes_rows(wl_sink_kind k) {
  return k == WL_SINK_ROWS || k == WL_SINK_DISTINCT || k == WL_SINK_SORT;
}

enum { WL_NO_SOURCE = 255 }; /* of a column that nothing reads: the plan left its source out */

/* The source of a column of the program. */
static inline int wl_column_source(const wl_program *p, int column) {
  return p->column_sources ? p->column_sources[column] : 0;
}

/* Types of the result columns. Constants have a register type, too. */
wl_reg wl_result_reg(const wl_result *r);
/* The domain of the column: values of the result, or codes of its dictionary. */
wl_domain wl_result_domain(const wl_result *r);

/* A pool of batches for the results of a program. */
struct wl_pool;
wl_status wl_program_pool(const wl_program *p, wl_i64 max_rows, struct wl_pool **out,
                          wl_error *err) WL_MUST;

/* For opcodes with a list of operands (Result, Group, Call): their number, and the k-th. */
int wl_program_n_listed(const wl_program *p, const wl_instr *in);
wl_i16 wl_program_listed(const wl_program *p, const wl_instr *in, int k);
/* All operands that an instruction reads, registers and constants: their number, and the k-th. */
int wl_program_n_reads(const wl_program *p, const wl_instr *in);
wl_i16 wl_program_read(const wl_program *p, const wl_instr *in, int k);

/* Checks the invariants. A failure is a compiler bug. It is reported and the program never runs. */
wl_status wl_program_verify(const wl_program *p, wl_error *err) WL_MUST;

/* One line of a listing, as EXPLAIN shows it. Strings live in the arena. */
typedef struct wl_listing {
  const char *opcode, *p1, *p2, *p3, *p4, *comment;
} wl_listing;
/* The listing of a pipeline has a line for the source, one for each instruction, and lines for what
** the sink does with all rows. base: the address of its first line. */
int wl_program_n_lines(const wl_program *p);
/* A call into SQLite with its constants and columns, like strftime('%Y', t.day). */
const char *wl_program_call_text(const wl_program *p, const wl_instr *in, wl_arena *arena);
wl_status wl_program_print(const wl_program *p, int line, int base, wl_arena *arena,
                           wl_listing *out) WL_MUST;

#endif
