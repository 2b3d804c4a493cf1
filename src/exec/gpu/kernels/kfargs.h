/*
** The arguments of the kernels that make columns (kfinish.h, kmade.h). All addresses are addresses
** on the device.
*/
#ifndef WL_KFARGS_H
#define WL_KFARGS_H

#include "exec/gpu/kernels/kgargs.h"

/* Moves a result column to a column that stays, and collects facts about its values: the greatest
** rank, the greatest complement of a rank, and how many are not NULL. They are zero at first. */
enum { WL_KM_GREATEST, WL_KM_LEAST, WL_KM_VALUES, WL_KM_FACTS };
typedef struct wl_kmade {
  const wl_u64 *v;
  const wl_u8 *t; /* NULL: no NULLs */
  wl_u64 *data;
  wl_u32 *valid; /* a bitmap; NULL: the column has no NULLs */
  wl_u64 *facts; /* [WL_KM_FACTS] */
  wl_u64 n;
  wl_u32 real;
} wl_kmade;

/* bases[t] = places[t << WL_K_TABLET_SHIFT] for each tablet t, and places[n] after the last one. */
enum { WL_K_TABLET_SHIFT = 16 };
typedef struct wl_ktextbases {
  const wl_u64 *places; /* [n + 1] */
  wl_u64 *bases;        /* [n_tablets + 1] */
  wl_u64 n, n_tablets;
} wl_ktextbases;

/* Makes a column of texts, or of values of any type. Their bytes are in one heap, at `places`. */
typedef struct wl_ktextcolumn {
  wl_kout from;
  const wl_u64 *places, *bases;
  wl_u64 *data;  /* of a text its offset from the base of its tablet | length << 32 */
  wl_u32 *valid; /* a bitmap; or NULL */
  wl_u8 *tags;   /* of values of any type; or NULL */
  wl_u64 n;
} wl_ktextcolumn;

/* Prepares a column of results that leaves the run on the device. What is NULL is not wanted. */
typedef struct wl_kstay {
  const wl_u64 *v;
  const wl_u8 *t; /* tags, or 0 for NULL; NULL: there are no NULLs */
  wl_u64 n;
  wl_u64 *data;         /* the values. Those with the tag of an integer become reals */
  wl_u32 *valid;        /* a bitmap of those that are not NULL … */
  wl_u64 *n_valid;      /* … and their number, which is zero at first */
  wl_u32 *lengths;      /* the bytes of their texts in a dictionary */
  const wl_u64 *places; /* of that dictionary */
} wl_kstay;

/* keep[i] = 1 if slot i has a group. */
typedef struct wl_kfkeep {
  const wl_u64 *table;
  wl_u32 *keep;
  wl_u64 n_slots;
  wl_u32 words, rows_word;
} wl_kfkeep;

/* keys[i] = the word at `word` of the record at slots[i], minus `minus`. down: its complement. */
typedef struct wl_kfwords {
  const wl_u64 *table;
  const wl_u32 *slots;
  wl_u64 *keys;
  wl_u64 n;
  wl_u32 words, word, minus, down;
} wl_kfwords;

/* What a column of the finished groups holds: a key, or an aggregate as value/kinds.h names it. */
typedef enum wl_kfkind {
  WL_KF_KEY,
  WL_KF_COUNT,
  WL_KF_SUM,
  WL_KF_TOTAL,
  WL_KF_AVG,
  WL_KF_BEST
} wl_kfkind;

typedef struct wl_kfcol {
  wl_u64 *v;
  wl_u32 *valid;   /* a bitmap; NULL: the column has no NULLs, or tags */
  wl_u8 *tags;     /* for values of several types, and for texts; or NULL */
  wl_u32 *lengths; /* for texts and blobs, whose values are addresses; or NULL */
  wl_u32 kind;
  wl_u32 part;   /* KEY: its first part */
  wl_u32 zero;   /* KEY: the bit of a zero's sign in the record's first word, from 1; 0: none */
  wl_u32 coder;  /* KEY: the coder of its codes, from 1; 0: none */
  wl_u32 acc;    /* else: its accumulator */
  wl_i32 anchor; /* of the digits of reals */
} wl_kfcol;

/* Fills the columns of n groups. Group i is the record at slots[i], or at i if slots is NULL. With
** live, records may have no group; it gets a bit for each of those that do. */
typedef struct wl_kfinish {
  wl_kgroup g;
  const wl_kfcol *cols;
  const wl_u32 *slots;
  wl_u32 *live;
  wl_u64 *unsure; /* set if the host must finish: a result may depend on the order of the rows */
  wl_u64 n;
  wl_u32 n_cols;
} wl_kfinish;

#endif
