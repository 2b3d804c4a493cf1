/*
** The kernels' arguments for groups and ORDER BY. All addresses are addresses on the device.
**
** A group is a record of 64-bit words in global memory. It is all zero while the group does not
** exist:
**
**     | key words | rows | first | row | looks | words of accumulator 0 | … |
**
** key words: none if the key's word is the record's address; else that word plus 1; or, if the key
** has several words (value/keys.h), a tag and these words. first: only if a key is real, see
** kg_note_zero(). row: 2^32 - 1 less the first row, if groups are in the order of first rows.
** looks: for keys whose equal values may look different, the first row in the same form, and the
** code of its look (exec/gpu/coded.h). Words of an accumulator (the count only if its operand may be NULL):
**
**     Rows    -                       Sum of integers   sum, count
**     Count   count                   Sum in 128 bits   low, high, |low|, |high|, count
**     Min/Max best, extra             Sum of reals      3 digits low, 3 digits high, count
**     Sum of numbers                  as in 128 bits, digits low and high, count of reals, count
**     Min/Max of numbers              as of integers, as of reals
**     Min/Max of any values           2^32 - 1 less the row << 32 | place of the value, from 1
**
** An aggregate of DISTINCT values has the words of Count or of a sum, and a set
** (wl_kvalues). The thread that puts a pair of a group and a value into the set adds the value to
** the group, so each value is added once. Such a query has a table of groups even without GROUP BY.
**
** Without GROUP BY there is one record, in which every accumulator but min and max has its count.
** Each thread of wl_interp gathers in slots of its own, a block merges them, and then adds them to
** the record. A slot of min or max is a value and its row.
**
** With GROUP BY, in a block's shared memory, a group has the same content in 32-bit pieces, because 32-bit
** atomics are fast there. A count is one piece and a sum is two; the words of min and max stay
** whole. There are `copies` copies of each piece, side by side. A lane uses the copy given by its
** number modulo `copies`.
**
**     | whole words [n_whole][n_slots][copies] | pieces [n_pieces][n_slots][copies] |
*/
#ifndef WL_KGARGS_H
#define WL_KGARGS_H

#include "exec/gpu/kernels/kargs.h"

typedef enum wl_kgmode {
  WL_KG_ONE,    /* no keys: one group, gathered by each thread first */
  WL_KG_SHARED, /* by address, gathered in shared memory first */
  WL_KG_DIRECT, /* by address, in global memory */
  WL_KG_HASH,   /* by a key of one word, open addressing */
  WL_KG_WIDE    /* by a key of several words, open addressing */
} wl_kgmode;

typedef struct wl_kgacc {
  wl_u32 op;
  wl_u32 word;    /* its first word in the record */
  wl_u32 place;   /* its first piece, or whole word, in shared memory */
  wl_u16 counted; /* it has its own count */
  wl_u16 set;     /* of its distinct values, from 1; 0: none */
  wl_u32 coder;   /* of min and max of any values: what has the memory for them; of sums of distinct
                  ** values that are codes: their coder */
  double unit;    /* unit of the digits of reals */
} wl_kgacc;

/* A set of pairs of a group's slot and a value's code, with open addressing. A free entry is all
** zero. An entry is one word, slot * span + code + 1, or, if that does not fit 64 bits, two: slot
** + 2 and the code. The first is 1 while the second is being written. alone: there is only slot 0, and
** the entry is the code of a real, which is not 0. */
typedef struct wl_kvalues {
  wl_key_part part; /* how a value becomes a code */
  wl_u64 *table;
  wl_u64 n_slots;
  wl_u32 n_words, alone;
} wl_kvalues;

/* A coder (exec/gpu/coded.h): a hash table with open addressing. A free entry is all zero. Else it
** has two words: a tag, and the place of the value in the heap. The tag is 1 while the entry is
** being written, 2 if there was no room for its value, then the hash with the top bit set. A value
** in the heap is a word with its type and its number of bytes, and then the bytes of a text or
** blob, or a number. The coder of a min() or max() of any values has only a heap, for values that
** were the best for a time. */
typedef struct wl_kcoder {
  wl_u64 *table;
  wl_u64 n_slots;
  wl_u64 *heap;
  wl_u64 size;  /* words of the heap */
  wl_u64 *used; /* words of the heap that are in use */
  wl_u32 coll;
  wl_u32 look;   /* its codes stand for values that look the same; of min and max: equal values may
                 ** look different */
  wl_u32 strict; /* its values are added: an integer that is equal to a real is WL_KG_TIED */
  wl_u32 word;   /* looks: the word of a record that has the first row's code; 0: no look */
} wl_kcoder;

/* A value in the heap. */
WL_FN wl_val wl_code_value(const wl_u64 *w) {
  wl_u8 t = (wl_u8)w[0];
  if (t < WL_T_TEXT) return wl_val_make(t, w[1], 0);
  return wl_val_make(t, (wl_u64)(size_t)(w + 1), (wl_u32)(w[0] >> 8));
}

/* What wl_kgroup.full is set to: the table of groups was full, or a set, or a coder, or the heap of
** a coder. The number of the set or coder is added. TIED: values to be added are equal but have
** different types, so that only the order of rows tells which one counts. */
enum {
  WL_KG_FULL_GROUPS = 1,
  WL_KG_FULL_SET = 2,
  WL_KG_FULL_CODER = 64,
  WL_KG_FULL_HEAP = 128,
  WL_KG_TIED = 192
};

enum { WL_KG_KEYS = 16, WL_KG_PARTS = 2 * WL_KG_KEYS, WL_KG_ACCS = 32 };

/* Keys and accumulators are part of the arguments, which are in constant memory: all lanes read the
** same one. */
typedef struct wl_kgroup {
  wl_key_part key_parts[WL_KG_PARTS]; /* how keys become words */
  wl_kgacc accs[WL_KG_ACCS];
  wl_u64 *table;
  wl_u64 n_slots;
  wl_u64 base;    /* shared and direct mode: the word of record 0 */
  wl_u64 row0;    /* number of the launch's first row in the table */
  wl_u64 *n_made; /* number of groups in the hash table */
  wl_u64 most;    /* the most groups that the hash table may hold */
  wl_u64 *full;   /* set when a group or a value did not fit */
  const wl_kvalues *sets;
  const wl_kcoder *coders;
  wl_u64 *side;   /* triples (accumulator, slot, bits of a real) that the digits cannot hold */
  wl_u64 *n_side;
  wl_u64 side_size;
  wl_u32 mode, n_key_parts, n_accs, n_sets, n_coders;
  wl_u32 words;         /* number of words in a record */
  wl_u32 rows_word;     /* index of the word that counts rows */
  wl_u32 first_word;    /* 0: none */
  wl_u32 row_word;      /* 0: none */
  wl_u32 part, n_parts; /* hash: this pass takes only keys of `part`; n_parts is a power of two */
  wl_u32 split;         /* with many rows, add digits to the low and high words directly */
  wl_u32 offset;        /* byte offset of the table in shared memory */
  wl_u32 copies;        /* 0: there is no table in shared memory */
  wl_u32 n_whole, n_pieces;
  wl_u32 flush_tiles; /* tiles after which a block flushes its table to global memory */
} wl_kgroup;

typedef struct wl_kgargs {
  wl_kargs k;
  wl_kgroup g;
} wl_kgargs;

/* Packs the records of slots [first, end) that have rows. Each follows its slot number. */
typedef struct wl_kgpack {
  const wl_u64 *table;
  wl_u64 first, end;
  wl_u64 *out; /* [groups][1 + words] */
  wl_u64 *n_out;
  wl_u32 words, rows_word;
} wl_kgpack;

/* ---- order */

enum { WL_KO_FIELDS = 64 };

/* A part of a sort key, and the column that it encodes. */
typedef struct wl_kofield {
  wl_key_part part;
  const wl_u64 *v;
  const wl_u8 *t; /* validity bytes; NULL: the column has no NULLs */
} wl_kofield;

/* keys[i] = the fields of row from[i] in one word. If from is NULL, those of row i; then
** rows[i] = i is written too. */
typedef struct wl_kokeys {
  const wl_kofield *fields;
  const wl_u32 *from;
  wl_u64 *keys;
  wl_u32 *rows;
  wl_u64 n;
  wl_u32 n_fields;
} wl_kokeys;

/* keep[rows[i]] = row rows[i] differs from row rows[i - 1] in some word. */
typedef struct wl_kofirst {
  const wl_kofield *fields;
  const wl_u32 *ends; /* [n_words]: one past each word's last field */
  const wl_u32 *rows;
  wl_u32 *keep;
  wl_u64 n;
  wl_u32 n_words;
} wl_kofirst;

/* rows[places[i]] = i for each i with keep[i]. */
typedef struct wl_kokept {
  const wl_u32 *keep;
  const wl_u64 *places;
  wl_u32 *rows;
  wl_u64 n;
} wl_kokept;

/* to[i] = from[rows[i]], entries of width 8, 4 or 1 bytes. */
typedef struct wl_kopermute {
  const wl_u8 *from;
  wl_u8 *to;
  const wl_u32 *rows;
  wl_u64 n;
  wl_u32 width;
} wl_kopermute;

#endif
