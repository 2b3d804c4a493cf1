/*
** The schedule of a statement: its queries in the order in which they run, and the pipelines that
** each of them became.
**
** A statement is a query that may read derived sources (views, CTEs, subqueries in FROM) and
** subqueries of expressions. Each is a node. A node is planned and compiled when the nodes it needs
** have run, because types, ranges and the kind of a join come from the data. So pipelines are added
** to the schedule while it runs.
**
** Invariants:
** 1. Nodes are in an order in which every node comes after those it needs. The statement is last.
** 2. A derived source is one node, even if several queries read it.
** 3. An error in a node that another one needs becomes WL_NOT_TAKEN, because SQLite might never run
**    that query.
*/
#ifndef WL_SCHEDULE_H
#define WL_SCHEDULE_H

#include "column/rows.h"
#include "exec/query.h"

typedef struct wl_node {
  struct wl_node *next;
  const wl_query *q;         /* the statement, or a subquery; NULL: a derived source */
  const wl_derived *derived; /* a derived source; its arms run one after the other */
  const wl_bsub *sub;        /* the subquery, or NULL */
  struct wl_node **needs;    /* what must have run before */
  int n_needs;
  int *pipelines; /* if they are listed for EXPLAIN: the numbers of those that leave its rows */
  int n_pipelines;
  /* what it leaves */
  wl_rows rows;    /* a derived source */
  wl_val value;    /* a subquery that is a value, or that is tested with EXISTS */
  wl_column *list; /* a subquery that is a list of values */
} wl_node;

typedef struct wl_schedule {
  const wl_query_env *env;
  wl_arena arena;
  wl_node *first, **end;
  wl_node **of_derived; /* [n_derived]: their nodes, once they are in the schedule */
  bool **needed;        /* [n_derived]: which of their columns are read */
  bool computes_unread; /* SQLite also computes columns of subqueries that are not read */
  int n_on_device;      /* nodes that the device ran */
  wl_budget budget;     /* what the nodes and the lookups hold */
  wl_seen *seen;        /* every table that was read */
  int n_seen;
} wl_schedule;

/* The node of a subquery. */
const wl_node *wl_schedule_sub(const wl_schedule *s, const wl_bsub *sub);

/* Makes a query ready to run: gets its columns, plans its joins, builds its lookups, compiles it
** (query.c). needed: which results are needed; NULL: all. top: it is the statement. */
wl_status wl_ready_make(wl_schedule *s, wl_node *node, const wl_query *q, const bool *needed,
                        bool rowid_order, bool top, wl_ready *out, wl_error *err) WL_MUST;

#endif
