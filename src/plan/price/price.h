/*
** What SQLite's own plan for a statement costs. The price is computed from SQLite's program
** (program.h): how often each of its opcodes runs, and what that takes.
**
** How many rows a loop has comes from the tree that it reads. The bounds of a range are in the
** program: literals, constant expressions, and parameters if they are bound. Entries between them
** are estimated from the pages at the ends (store/tree.h), or counted by SQLite up to a limit.
*/
#ifndef WL_PRICE_H
#define WL_PRICE_H

#include "plan/price/program.h"
#include "store/store.h"
#include "value/value.h"

/* SQLite's program and the trees that it reads. Kept with the text of a statement. */
typedef struct wl_priced {
  wl_vdbe program;
  struct wl_priced_tree *trees;
  int n_trees;
} wl_priced;

/*
** ns: the estimated time.
** least_ns: the same if ranges whose bounds are not known are empty. In ns they are whole indexes.
** whole_ns: the same if no LIMIT ends anything early.
** n_rows: rows that it returns.
** by_pages: the pages of all tables can be read.
** by_values: it depends on values that were not known: another price with them may differ.
** unknown: the table with a range whose bounds are not known. Empty: all are known.
*/
typedef struct wl_sqlite_price {
  double ns, least_ns, whole_ns;
  double n_rows;
  bool by_pages, by_values;
  char unknown[64];
} wl_sqlite_price;

/* What the price depends on besides the database. */
typedef struct wl_price_in {
  wl_store *store;
  sqlite3 *db;
  const wl_val *params; /* NULL: not known yet */
  int n_params;
  double virtual_rows; /* of the virtual tables that it reads */
  double worth_ns;     /* what running it elsewhere takes. Counting rows costs little beside it. */
} wl_price_in;

/* Reads SQLite's program. It lives in the arena, like the text. */
wl_status wl_priced_read(sqlite3 *db, const wl_store *store, const char *sql, size_t n,
                         wl_arena *arena, wl_priced *out, wl_error *err) WL_MUST;
/* The table of tree i of n_trees, which may be that of another tree too. */
void wl_priced_table(const wl_priced *p, int i, const char **schema, const char **table);

wl_status wl_priced_price(const wl_priced *p, const wl_price_in *in, wl_sqlite_price *out,
                          wl_error *err) WL_MUST;

#endif
