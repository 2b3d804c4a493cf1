/*
** The kernels' arguments: plain structs, the same for CUDA and the simulator. All addresses are
** addresses on the device.
**
** A block's shared memory:
**
**     | operands | constants | code | counts | registers | row numbers | queues | accumulators |
**
** operands: one wl_kopnd for each register and constant. constants: 16 bytes each (value,
** length, tag, valid, truth). counts: for the compaction and the queues. registers: planes of
** T * WL_K_ROWS entries. row numbers: a plane of 4-byte entries for each joined source whose
** columns are read. queues: 2 * T * WL_K_ROWS entries of 4 bytes for each number that they keep.
** accumulators: slots of T entries of 8 bytes.
*/
#ifndef WL_KARGS_H
#define WL_KARGS_H

#include "program/opcodes.h"
#include "value/keys.h"
#include "value/kinds.h"
#include "value/ops.h"

enum { WL_K_ROWS = 4 }; /* rows that a thread processes in a tile */

/* Where an operand is in shared memory. A constant has stride 0. */
typedef struct wl_kopnd {
  wl_u32 v, n, t; /* byte offsets of the planes; t: valid bytes, tags or truths */
  wl_u8 type;     /* wl_regtype */
  wl_u8 stride;
  wl_u8 nullable;
  wl_u8 pad;
} wl_kopnd;

/* An instruction. a, b, c and d index the operand table: first registers, then constants. */
typedef struct wl_kinstr {
  wl_u16 op;
  wl_i16 d, a, b, c;
  wl_i16 acc_slot; /* first slot of accumulator d */
  wl_i16 number;   /* c if it is a number; of opcodes that read row numbers their plane, from 1; of
                   ** IfNot: a Match follows, so warps without rows go on */
  wl_i16 direct; /* the operand is not a register but column a, whose row numbers are in plane b */
} wl_kinstr;

/* Operations that only kernels have. FILTER: see exec/gpu/arrange.c. CODE: see
** exec/gpu/coded.h. PASSED ends a part that tests
** candidates. ASIDE begins a part that tests them for the second time: the rows without a candidate
** do not take part, until Match brings them back (kjoin.h). UNMARKED begins a pipeline over
** unmatched rows: it drops those that are marked or do not count. */
enum { WL_K_FILTER = WL_N_OPCODES, WL_K_CODE, WL_K_PASSED, WL_K_ASIDE, WL_K_UNMARKED };

/* What WL_K_FILTER tests: whether column a of the scanned table is in a range, or outside of it.
** NULL never passes. Integers are compared with [lo, lo + span], those of columns of up to 4 bytes
** with [lo32, lo32 + span32], which is the same in 32 bits; no_32: no such integer is in the
** range. Reals are compared with [flo, fhi]. */
typedef struct wl_krange {
  wl_i64 lo;
  wl_u64 span;
  wl_i32 lo32;
  wl_u32 span32;
  double flo, fhi;
  wl_u8 no_32, real, outside;
} wl_krange;

/* Where the code is cut: the instructions from pc on are another stage (kqueue.h). An entry of its
** queue is the number of the row in the scanned table, and those in n_planes other planes. The next
** stage finds the former in row_plane. */
enum { WL_K_CUTS = 2, WL_K_CUT_PLANES = 7 };
typedef struct wl_kcut {
  wl_u32 pc, offset; /* offset: of the queue in shared memory */
  wl_u32 row_plane, n_planes;
  wl_u32 planes[WL_K_CUT_PLANES];
} wl_kcut;

/* Byte offsets in the counts of a block: rows of each warp; rows of earlier tiles; the number of a
** tile; entries in each queue. */
enum { WL_K_BEFORE = 4 * 32, WL_K_TAKEN = WL_K_BEFORE + 8, WL_K_QUEUE_COUNTS = WL_K_TAKEN + 8 };
enum { WL_K_COUNTS = WL_K_QUEUE_COUNTS + 4 * WL_K_CUTS };

typedef struct wl_kcol {
  const wl_u8 *data;
  const wl_u8 *valid; /* bitmap, or NULL */
  const wl_u8 *tags;
  const wl_u8 *heap;
  const wl_u64 *heap_base; /* where each tablet's part of the heap begins */
  wl_u64 phys;
} wl_kcol;

/* A map: see wl_map. */
typedef struct wl_kmap {
  wl_i64 base, n;
  const wl_u64 *v;
  const wl_u32 *len;
  const wl_u8 *t;
  const wl_u8 *heap;
} wl_kmap;

/* A set: see wl_inset. */
typedef struct wl_kset {
  const wl_val *v;
  wl_i64 n;
  wl_u32 coll, has_null;
} wl_kset;

/* Values of wl_kjoin.part. Keys that match nothing belong to the first part. */
enum { WL_K_WHOLE, WL_K_FIRST_PART, WL_K_PART };

#define WL_K_NO_ROW 0xffffffffu /* WL_NO_ROW */
enum { WL_K_KEYS = 16 };        /* WL_LOOKUP_KEYS */

/* How Probe finds a row, and Expand its candidates: see wl_join and wl_lookup. */
typedef struct wl_kjoin {
  const wl_key_part *parts; /* [n_keys]: see wl_key_plan */
  const wl_u64 *words;      /* the keys in a hash table; NULL: the key is the slot number */
  const wl_u32 *slots;      /* NULL: the key is an index into starts */
  const wl_u32 *counts;     /* rows of each slot; NULL: each slot has one row */
  const wl_u32 *starts;
  const wl_u32 *rows; /* row numbers; NULL: slots contains the row numbers */
  const wl_u32 *bits; /* not NULL: there is no more than a bit for each key that has a row */
  wl_u64 mask, wrap;  /* a search goes on at (slot + 1) & wrap */
  wl_u64 first_slot, n_own; /* of a part: the range of slots where its searches begin */
  wl_u32 n_keys;
  wl_u32 first, n_first; /* without keys: first candidate and number of candidates of every row */
  wl_u32 plane;          /* plane for the row numbers, from 1; 0: they are not needed */
  wl_u32 start, count;   /* planes of an Expand: first candidate, number of candidates */
  wl_u8 drops_lost, drops_found; /* drop rows that found no row; drop rows that found one */
  wl_u8 by_value; /* the word of a row is a hash of its keys, under the collations coll */
  wl_u8 part;     /* the arrays begin at first_slot, and rows whose search begins elsewhere go */
  wl_u8 coll[WL_K_KEYS];
  wl_u32 *marks; /* bits of the rows of its source that were found; NULL: there is no Mark */
  /* for Build */
  wl_u64 *taken; /* HASH: the words of the slots, or WL_K_FREE; NULL: the word is the slot number */
  wl_u32 *table; /* the slots, which it fills; or NULL */
  wl_u32 *set;   /* the bits, which it sets; or NULL */
  wl_u64 *pairs; /* slots and row numbers, which it lists in any order: slot << 32 | row; or NULL */
  wl_u64 n_pairs;   /* the size of pairs */
  wl_u64 *n_listed; /* how many there are */
  wl_u64 *built;    /* [WL_K_BUILT] */
} wl_kjoin;

/* A free slot of a hash table that is being built. No key has this word. */
#define WL_K_FREE 0xffffffffffffffffULL

/* What Build counts: rows with a key, those of them whose key was there already, rows with a NULL
** key, and rows that found no slot. */
enum { WL_K_BUILT_ROWS, WL_K_BUILT_AGAIN, WL_K_BUILT_NULLS, WL_K_BUILT_LOST, WL_K_BUILT };

/* Makes the lists of a lookup from n sorted pairs: rows, and starts[s] for each slot s in 0 … span;
** or, in a hash table of span slots, slots[s] and counts[s]. */
typedef struct wl_klists {
  const wl_u64 *pairs;
  wl_u64 n, span;
  wl_u32 *starts; /* NULL: a hash table */
  wl_u32 *slots, *counts, *rows;
} wl_klists;

/* Row numbers that are the input of a part of a block, and are copied into a plane: entry i of a
** list for row i, the number of the row that is scanned, or none for any row. */
enum { WL_K_LIST_ROWS, WL_K_LIST_SCAN, WL_K_LIST_NONE };
typedef struct wl_klist {
  const wl_u32 *rows;
  wl_u32 plane, of;
} wl_klist;

/* Values of wl_kout.type in a part that ends in an Expand: the output is a plane of row numbers, or
** the row numbers of the scan. It is written to wl_kout.n. */
enum { WL_K_OUT_PLANE = 16, WL_K_OUT_SCAN };

typedef struct wl_kout {
  wl_u64 *v;
  wl_u32 *n;
  wl_u8 *t;
  wl_i64 operand; /* index into the operand table */
  wl_u64 type;    /* type of the output column */
} wl_kout;

/* An accumulator of the one group of a query without GROUP BY: its opcode, its first slot, its
** first word in the group's record (kgargs.h), and for sums of reals the unit of their digits. */
typedef struct wl_kacc {
  wl_u32 op, slot, word, pad;
  double unit;
} wl_kacc;

typedef struct wl_kargs {
  const wl_kinstr *code;
  const wl_kopnd *opnds;
  const wl_val *consts;
  const wl_kcol *cols;
  const wl_kmap *maps;
  const wl_kset *sets;
  const wl_kjoin *joins;
  const wl_klist *lists;
  const wl_kout *outs;
  const wl_kacc *accs;
  const wl_krange *ranges;
  wl_kcut cuts[WL_K_CUTS];
  wl_u32 n_cuts;
  wl_u32 n_code, n_opnds, n_regs, n_consts, n_outs, n_accs, n_slots, n_lists;
  wl_u32 const_offset, code_offset, count_offset, plane_offset, acc_offset; /* in shared memory */
  wl_u64 n_rows, n_tiles;
  const wl_u32 *live; /* a bit for each row that counts; NULL: all do */
  wl_u64 row0;    /* number of the first row in the table */
  wl_u64 *ticket; /* number of the next tile */
  wl_u64 *tiles;  /* look-back states, one for each tile */
  wl_u64 *n_out;  /* number of rows written */
  wl_u64 *record; /* the words of the one group, if n_slots > 0 */
  wl_u32 *passed; /* by tuple: its first candidate that passed a test, or WL_K_NO_ROW */
  wl_u64 *side;   /* triples (accumulator, 0, bits of a real) that the digits cannot hold */
  wl_u64 *n_side;
  wl_u64 side_size;
  wl_vctx ctx;
  wl_u32 has_long;     /* the program has LONG opcodes */
  wl_u32 only_numbers; /* its values are all numbers or truths */
} wl_kargs;

/* Makes the combinations [first, first + n) of tuples with their candidates. Those of tuple t are
** numbered places[t] up to, but not including, places[t + 1]. A candidate is an index into the
** lookup's row numbers. */
enum { WL_K_LISTS = 64 };
typedef struct wl_kexpand {
  const wl_u64 *places;
  wl_u64 n_tuples, first, n;
  const wl_u32 *start; /* each tuple's first candidate */
  wl_u64 skip;         /* candidates of each tuple to leave out */
  const wl_u32 *rows;  /* the lookup's row numbers; NULL: start + i is the row number */
  wl_u32 *found;       /* out: the row of each combination's candidate; NULL: not needed */
  wl_u32 *tuple;       /* out: the tuple of each combination; NULL: not needed */
  wl_u32 *candidate;   /* out: its candidate; NULL: not needed */
  wl_u64 n_lists;      /* lists of row numbers to copy from tuples to combinations */
  const wl_u32 *from[WL_K_LISTS];
  wl_u32 *to[WL_K_LISTS];
} wl_kexpand;

/* Rounds of a test. Each round tests the next candidates of the tuples that have none that passed.
** So a tuple whose first candidates pass takes little time and memory, however many it has. */
typedef struct wl_kround {
  wl_u64 n_tuples;
  wl_u32 *start, *count; /* candidates of each tuple; when the test has ended: those that go on */
  const wl_u32 *passed;  /* see wl_kargs */
  wl_u32 *now;           /* out: how many candidates of each tuple the round tests */
  wl_u64 skip, most;     /* candidates of each tuple in the rounds before, and in this one */
  wl_u8 ended;           /* the test has ended: set start and count */
  /* what becomes of a tuple: */
  wl_u8 drops_lost;  /* it goes, if no candidate passed; else it goes on without a row */
  wl_u8 drops_found; /* it goes, if one did; else it goes on with that candidate … */
  wl_u8 repeats;     /* … and those after it */
} wl_kround;

/* Copies bytes in whole tiles of WL_K_TILE bytes. Both addresses are aligned to WL_K_TILE. */
enum { WL_K_TILE = 512 };
typedef struct wl_ktiles {
  const wl_u64 *from;
  wl_u64 *to;
  wl_u64 n_tiles;
} wl_ktiles;

/* Packs n rows of result columns, so that few bytes go over the bus (exec/gpu/pack.h). */
enum { WL_K_PACK_COLS = 64 };
typedef struct wl_kpack_col {
  const wl_u64 *v;
  const wl_u8 *t; /* 1: there is a value; NULL: there always is */
  wl_u64 base;    /* subtracted from integers */
  wl_u32 phys;    /* I8, I16, I32: the lowest bytes, without a sign; F32 */
  /* Byte offsets of the values and their bitmap in a chunk of chunk_rows rows, and in the last
  ** chunk, which may have fewer. */
  wl_u32 values[2], valid[2];
} wl_kpack_col;
typedef struct wl_kpack {
  wl_u8 *to;
  wl_u64 n, chunk_rows, chunk_bytes; /* chunk_rows is a multiple of 32 */
  wl_u32 n_cols;
  wl_kpack_col cols[WL_K_PACK_COLS];
} wl_kpack;

typedef struct wl_kgather {
  const wl_u64 *from;        /* address of each text, or its code in a dictionary … */
  const wl_u64 *dict_places; /* … with these places: offset | length << 32; NULL: an address */
  const wl_u8 *dict_heap;
  const wl_u32 *n;  /* its number of bytes */
  const wl_u64 *to; /* offsets into heap */
  wl_u8 *heap;
  wl_u64 n_rows;
} wl_kgather;

#endif
