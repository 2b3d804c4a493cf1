/*
** Estimates how many entries of a b-tree are in a range, from the interior pages at its ends. Reads
** a few pages, whatever the size of the tree.
**
** Invariants:
** 1. Pages are read as the loader reads them (pages.h), inside a read transaction, and only if the
**    connection has not written in it. Otherwise wl_trees_begin() refuses.
** 2. The file may contain anything. Every length and offset is checked before it is used. A page
**    that does not fit the format makes the result unknown (false), never a wrong read.
** 3. A range whose ends are in the same leaf or in neighbouring leaves is counted exactly. For
**    others, subtrees between the ends are assumed to be of average size.
*/
#ifndef WL_TREE_H
#define WL_TREE_H

#include "store/pages.h"
#include "value/value.h"

enum { WL_TREE_COLS = 16, WL_TREE_DEPTH = 20 };

/* A b-tree. The keys of a table are rowids. The keys of an index are records, of which the first
** n_cols columns are compared. */
typedef struct wl_tree {
  wl_u32 root;
  bool of_table;
  int n_cols;
  wl_u8 coll[WL_TREE_COLS];
  bool desc[WL_TREE_COLS];
} wl_tree;

/* A place in the order of a tree: before or after the entries whose first n columns are key. */
typedef struct wl_tree_bound {
  wl_val key[WL_TREE_COLS];
  int n;
  bool after;
} wl_tree_bound;

/* The average pages of a tree, by level. Level 0 is the root, level depth - 1 has the leaves. */
typedef struct wl_tree_shape {
  int depth;
  double cells[WL_TREE_DEPTH];   /* cells of a page */
  double entries[WL_TREE_DEPTH]; /* entries in the subtree of a page */
  double n_leaves;
} wl_tree_shape;

/* A database whose trees can be read. */
typedef struct wl_trees {
  wl_store *store;
  wl_pages pages;
  wl_u8 *page;
  bool open, locked;
} wl_trees;

/* WL_NOT_TAKEN, with the reason, if pages cannot be read. wl_trees_end() must follow in any
** case. */
wl_status wl_trees_begin(wl_store *s, const char *schema, wl_trees *out, wl_error *err) WL_MUST;
void wl_trees_end(wl_trees *t);

/* All three return false if a page cannot be decoded. */

/* Estimates the size of a tree from a few of its pages. */
bool wl_tree_measure(wl_trees *in, const wl_tree *t, wl_tree_shape *out);
/* Estimates the number of entries between two places. NULL: the first or the last entry. */
bool wl_tree_range(wl_trees *in, const wl_tree *t, const wl_tree_shape *shape,
                   const wl_tree_bound *low, const wl_tree_bound *high, double *out);
/* Estimates how many entries have the same first n columns, on average. */
bool wl_tree_per_key(wl_trees *in, const wl_tree *t, const wl_tree_shape *shape, int n,
                     double *out);

#endif
