/*
** The internals of sorting; see sort.h. Shared by sort.c (all threads) and sort_items.c (one thread
** sorts some of the rows).
*/
#ifndef WL_SORT_IMPL_H
#define WL_SORT_IMPL_H

#include "exec/sort/sort.h"

typedef struct sort_item {
  wl_u64 key; /* the word that is compared now */
  wl_u32 row;
} sort_item;

/* Which word that is: of the words, or inside a text. Rows that are equal so far share it. */
typedef struct sort_place {
  int word;
  wl_u32 at; /* 0: the word itself; else the place in the text that begins there */
} sort_place;

typedef enum sort_next {
  SORT_EQUAL,   /* the rows are equal */
  SORT_COMPARE, /* s->tie decides */
  SORT_MORE     /* there is another word */
} sort_next;

/* Asks whether to stop, after every OFTEN rows of a worker. */
typedef struct sort_watcher {
  wl_stop *stop;
  int worker;
  wl_i64 n; /* rows since it last asked */
  bool stopped;
} sort_watcher;

/* Called before work on n rows. Returns whether to stop. */
static inline bool sort_stops(sort_watcher *w, wl_i64 n) {
  enum { OFTEN = 1 << 15 };
  w->n += n;
  if (w->n < OFTEN || w->stopped) return w->stopped;
  w->n = 0;
  return w->stopped = wl_stop_now(w->stop, w->worker);
}

/* The part of the layout that is a text and has this word, or NULL. */
const wl_key_part *wl_sort_text(const wl_sort *s, int word);
/* Moves the place of rows whose word is `key` to the next word. */
sort_next wl_sort_advance(const wl_sort *s, wl_u64 key, sort_place *p);
/* Sets the keys of items to their words at a place. Returns which bits differ from `first`. */
wl_u64 wl_sort_fill(const wl_sort *s, sort_place p, sort_item *a, wl_i64 n, wl_u64 first);
/* How far the texts of items agree with that of row `first`, at most `most`. They do up to p.at. */
wl_u32 wl_sort_common(const wl_sort *s, sort_place p, wl_u32 first, const sort_item *a, wl_i64 n,
                      wl_u32 most);

/* Sorts words by their bits from lo up to hi; the bits from hi up are equal. t has room for n. If w
** stops, a is left in any order. */
void wl_sort_range(wl_u64 *a, wl_u64 *t, wl_i64 n, int lo, int hi, sort_watcher *w);
/* Sorts items by their keys, which are words at a place, then by what follows. */
void wl_sort_items(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p,
                   sort_watcher *w);
/* Sorts items that are equal before a place, by the word there and by what follows. */
void wl_sort_rest(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p,
                  sort_watcher *w);
/* Sorts items that only s->tie can tell apart. */
void wl_sort_ties(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_watcher *w);

#endif
