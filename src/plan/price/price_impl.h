/*
** The inside of the price: trees.c finds the trees, loops.c the loops and their bounds, rows.c the
** rows of each loop, price.c how often each opcode runs.
*/
#ifndef WL_PRICE_IMPL_H
#define WL_PRICE_IMPL_H

#include "plan/price/price.h"
#include "store/tree.h"

/* A tree that the program opens. */
typedef struct wl_priced_tree {
  int db; /* SQLite's number of the database */
  wl_u32 root;
  const char *schema, *table;
  const char *index; /* NULL: the table itself; for a WITHOUT ROWID table its key */
  const char **cols; /* [tree.n_cols] names of the columns of an index; NULL: an expression */
  wl_tree tree;
} wl_priced_tree;

/* One end of a loop. Its key is in registers. */
typedef enum end_kind {
  END_OPEN,    /* no bound */
  END_KNOWN,   /* all values are known */
  END_UNKNOWN, /* a value is not known, but it is the same for the whole loop around this one */
  END_OF_ROW   /* a value comes from the row of a loop around this one */
} end_kind;

typedef struct loop_end {
  end_kind kind;
  wl_tree_bound bound; /* values are set if END_KNOWN */
  end_kind kinds[WL_TREE_COLS];
  int stamps[WL_TREE_COLS];  /* which write the value comes from */
  int cursors[WL_TREE_COLS]; /* END_OF_ROW: whose row */
} loop_end;

typedef enum loop_kind {
  LOOP_TREE,      /* entries of a tree of the database */
  LOOP_TEMPORARY, /* rows that the program has put into a temporary table or sorter */
  LOOP_COROUTINE, /* rows that another part of the program makes, one at a time */
  LOOP_VIRTUAL,   /* rows of a virtual table */
  LOOP_OTHER
} loop_kind;

typedef struct vdbe_loop {
  loop_kind kind;
  int head, tail; /* addresses; the step at tail jumps back to head */
  int start;      /* the step that begins the loop, or -1 */
  int cursor;     /* of a coroutine: its register */
  const wl_priced_tree *tree;
  loop_end low, high;
  int skips;          /* it skips to the next value of this many columns; 0: it does not */
  bool by_key;        /* of a virtual table */
  bool finds;         /* it starts with a search */
  bool empties;       /* of a temporary table that is emptied for each block of rows */
  double rows, least; /* entries, if nothing ends it early; least: see wl_sqlite_price */
  double range_pages; /* pages of the tree that an entry costs */
  /* Set by each pass over the program (price.c). */
  double entered, back, again, times;
} vdbe_loop;

enum { MAX_LOOPS = 32, MAX_CURSORS = 128, MAX_REGISTERS = 4096 };

enum { MAX_LIST = 24 };

/* list: the constants that were put into a temporary table, those of IN. n_list is -1 if there are
** other rows, or too many. */
typedef struct vdbe_cursor {
  wl_val list[MAX_LIST];
  int n_list;
  const wl_priced_tree *tree;
  bool temporary, is_virtual;
  int copy_of; /* OpenDup; else -1 */
} vdbe_cursor;

/* A tree as it is now. */
typedef struct tree_now {
  bool known; /* its pages can be read */
  wl_tree_shape shape;
  double rows, leaves, page_bytes;
} tree_now;

typedef struct pricing {
  const wl_priced *of;
  const wl_price_in *in;
  vdbe_cursor cursors[MAX_CURSORS];
  vdbe_cursor no_cursor; /* for numbers that no cursor has */
  vdbe_loop loops[MAX_LOOPS];
  int n_loops;
  double *limits; /* [n] of steps that count down: how many, or < 0 */
  bool *is_end;   /* [n] the step only tests the end of a range */
  tree_now *now;  /* [n_trees] */
  const char *unknown;
} pricing;

/* Finds loops, cursors and bounds. */
wl_status wl_price_loops(pricing *p, wl_arena *arena, wl_error *err) WL_MUST;
/* Sets the rows of each loop, and tree_now of each tree. */
wl_status wl_price_rows(pricing *p, wl_error *err) WL_MUST;

static inline tree_now *wl_price_now(const pricing *p, const wl_priced_tree *t) {
  return &p->now[t - p->of->trees];
}

#endif
