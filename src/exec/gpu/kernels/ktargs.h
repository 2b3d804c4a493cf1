/*
** The arguments of the kernels that sort rows by texts and values of several types (kties.h). All
** addresses are addresses on the device.
**
** Rows that are equal so far are a run. Each row of a run has the same place: the word of the key
** that is compared next. Entry j of the arrays is one such row; the rows of a run are neighbours.
** In the first round all rows are one run, and there are no arrays.
*/
#ifndef WL_KTARGS_H
#define WL_KTARGS_H

#include "exec/gpu/kernels/kgargs.h"

/* A part of a sort key, and the column that it encodes. */
typedef struct wl_ktfield {
  wl_key_part part;
  const wl_u64 *v;
  const wl_u32 *n;
  const wl_u8 *t; /* types, or whether it is not NULL; NULL: it never is */
  wl_u64 type;    /* wl_regtype */
} wl_ktfield;

/* A sort key: its words, and the fields of each. Word w has fields [ends[w - 1], ends[w]). A
** TEXT or VALUE part is alone in its word. */
typedef struct wl_ktkey {
  const wl_ktfield *fields;
  const wl_u32 *ends;
  wl_u32 n_words;
} wl_ktkey;

/* A word of the key, or one inside of its TEXT or VALUE part, which begins at `at`. */
typedef struct wl_ktplace {
  wl_u32 word, at;
} wl_ktplace;

/* Rows in runs. In the first round row is NULL: then entry j is row list[j], or j. */
typedef struct wl_kties {
  wl_u32 *row;  /* row numbers */
  wl_u32 *slot; /* where in the list of all rows the j-th of these rows goes; it ascends */
  wl_u32 *run;  /* numbers of the runs, which ascend */
  wl_ktplace *place;
  wl_u32 *start;  /* [runs]: the first entry of each */
  wl_u32 *common; /* [runs]: where the next word of its text begins */
  const wl_u32 *list;
  wl_u64 n;
} wl_kties;

/* common[run] = how far the texts of a run agree, if that is where they continue: at most `step`
** bytes beyond their place. It is ~0 before. */
typedef struct wl_ktskip {
  wl_ktkey key;
  wl_kties t;
  wl_u32 step;
} wl_ktskip;

/* Writes the word of each entry, to sort by: keys[i], values[i] = i, or the row in the first round.
** words: a copy of the keys, or NULL. */
typedef struct wl_ktwords {
  wl_ktkey key;
  wl_kties t;
  wl_u64 *keys, *words;
  wl_u32 *values;
} wl_ktwords;

/* keys[j] = run[values[j]]. */
typedef struct wl_ktruns {
  const wl_u32 *run, *values;
  wl_u64 *keys;
  wl_u64 n;
} wl_ktruns;

/* After the sort: says which entries stay tied, and which of them begin a run. Writes the rows into
** their slots of out. Rows from `most` on are dropped, unless their run begins before. */
typedef struct wl_ktsplit {
  wl_ktkey key;
  wl_kties t;
  const wl_u32 *values; /* entries in their new order, or rows */
  const wl_u64 *words;  /* of entries, before the sort; NULL: sorted has them in the new order */
  const wl_u64 *sorted;
  wl_u32 *out;                /* NULL: values is the list */
  wl_u32 *keep, *head;        /* [n] */
  const wl_u64 *kept, *heads; /* [n + 1]: their sums, for wl_ties_next */
  wl_u64 most;
  wl_kties to; /* for wl_ties_next: the entries of the next round */
} wl_ktsplit;

#endif
