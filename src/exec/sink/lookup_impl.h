/*
** The internals of building a lookup: lookup.c collects pairs of a word and a row, lookup_table.c
** makes a table of them.
*/
#ifndef WL_LOOKUP_IMPL_H
#define WL_LOOKUP_IMPL_H

#include "exec/sink/lookup.h"
#include "exec/sink/sink.h"

/* The pairs of one tablet. */
typedef struct wl_build_part {
  wl_u64 *words;
  wl_u32 *rows;
  wl_i64 n;
  wl_u64 lo, hi; /* range of the words */
  bool has_null;
} wl_build_part;

/* Consecutive places of the table, which one task fills. */
typedef struct wl_build_area {
  wl_i64 first; /* pairs before it */
  wl_i64 n;     /* pairs in it */
  wl_u32 *rest; /* HASH: dealt pairs that found no place in it */
  int n_rest, size_rest;
} wl_build_area;

typedef struct wl_build {
  wl_sink sink;
  const wl_build_in *in;
  wl_lookup *l;
  wl_build_part *parts; /* by tablet */
  int n_parts;
  int threads;
  wl_build_sink *sinks; /* by worker: room for the pairs of a tablet */
  wl_i64 n, n_bytes;
  wl_u64 lo, hi; /* range of all words */
  wl_u64 base;   /* subtracted from every word */
  /* filling the table */
  wl_u64 n_places;      /* of the table */
  int shift;            /* place p is in area p >> shift */
  wl_build_area *areas; /* [n_areas] */
  int n_areas;
  bool dealt;      /* words and rows have all pairs, by area */
  wl_u32 *offsets; /* [n_parts][n_areas] while pairs are dealt */
  wl_u64 *words;
  wl_u32 *rows;
  wl_u32 *places; /* HASH: the slot of each dealt pair */
  atomic_bool has_duplicates;
  wl_stop stop;
} wl_build;

/* Whether there is memory for n more bytes. */
bool wl_build_fits(const wl_build *b, wl_i64 n);

/* Counts bytes. WL_NOT_TAKEN: they are more than the lookup may use. */
wl_status wl_build_spend(wl_build *b, wl_i64 n, wl_error *err) WL_MUST;

/* Make a table of the pairs. b->base and the lookup's span are set. */
wl_status wl_build_direct(wl_build *b, wl_error *err) WL_MUST;
wl_status wl_build_hash(wl_build *b, wl_error *err) WL_MUST;
void wl_build_close_tables(wl_build *b);

#endif
