/*
** The plan of a join: which source is scanned, in which order and by which keys the others are
** looked up, and where each condition is tested.
**
** Invariants:
** 1. Every conjunct of WHERE is tested once. If it uses one source, it is tested when that source
**    is scanned or its lookup is built; else at the first step where all its sources have rows.
**    Equalities that are keys are tested by the lookup itself.
** 1a. No conjunct of WHERE is tested before the last RIGHT or FULL join. The same is true for an ON
**    and the RIGHT and FULL joins before it in the text.
** 2. A step's keys, tests and conjuncts use only its own source and sources of earlier steps.
*/
#ifndef WL_PLAN_JOIN_H
#define WL_PLAN_JOIN_H

#include "sql/bind.h"

/* An equality between the step's source (inner) and sources before it (outer). */
typedef struct wl_jkey {
  const wl_bexpr *cond; /* a comparison by = or IS */
  const wl_bexpr *inner, *outer;
} wl_jkey;

typedef struct wl_jlist {
  const wl_bexpr **e;
  int n;
} wl_jlist;

typedef struct wl_jstep {
  int source;
  wl_join_how how;
  wl_jkey *keys;
  int n_keys;
  wl_jlist filters; /* conditions on this source only, tested when its lookup is built */
  wl_jlist tests;   /* other conditions of ON; an INNER step has none: they are in after */
  wl_jlist after;   /* conjuncts of WHERE that can be tested after this step */
  wl_u64 reducers;  /* later steps whose lookups reduce the rows of this one, a bit for each */
  double left;      /* as a reducer: the estimated share of rows that it leaves */
  bool unread;      /* after the lookup, no column of it is read */
  double n_build;   /* estimated rows in its lookup */
  double n_out;     /* estimated rows after this step */
} wl_jstep;

typedef struct wl_jplan {
  int driver;
  wl_jlist filters; /* conditions on the driver only, or on no source */
  wl_jstep *steps;
  int n_steps;
  double n_first; /* estimated rows of the driver that pass the filters */
  double cost;
} wl_jplan;

typedef struct wl_jplan_in {
  const wl_query *q;
  const wl_i64 *n_rows; /* rows of each source */
  wl_column **cols;     /* the columns q->cols; NULL: they are not loaded */
  /* Estimates the share of a source's rows that pass these conjuncts. */
  double (*share)(void *arg, int source, const wl_jlist *list);
  void *arg;
  int driver;      /* the source that must be scanned; -1: any */
  bool may_fail;   /* computing a row may fail, so no source may drop rows that SQLite reads */
  bool for_device; /* a device scans; the host builds the lookups and copies them to it */
} wl_jplan_in;

/* WL_NOT_TAKEN if the sources depend on each other in a cycle. */
wl_status wl_jplan_make(wl_arena *arena, const wl_jplan_in *in, wl_jplan **out,
                        wl_error *err) WL_MUST;

#endif
