/*
** The plan of a join: which source is scanned, in which order the others are looked up, by which
** keys, and where each condition is tested.
**
** Invariants:
** 1. Every conjunct of WHERE is tested once: over one source when that is scanned or its lookup
**    built, else at the first step where all its sources have rows. Equalities that are keys are
**    tested by finding the row.
** 2. A step's keys, tests and conjuncts need only sources of the steps before it and its own.
*/
#ifndef WL_PLAN_JOIN_H
#define WL_PLAN_JOIN_H

#include "sql/bind.h"

/* An equality between the step's source (inner) and those before it (outer). */
typedef struct wl_jkey {
  const wl_bexpr *cond; /* COMPARE of =, or IS */
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
  wl_jlist filters; /* over the source alone, when its lookup is built */
  wl_jlist tests;   /* what else a match must pass; INNER has none: see after */
  wl_jlist after;   /* conjuncts of WHERE that can be tested now */
  wl_u64 reducers;  /* later steps whose lookups thin out this one's rows, a bit each */
  bool unread;      /* no column of it is read once it has been found */
  double n_build;   /* estimates: rows in its lookup … */
  double n_out;     /* … and rows after this step */
} wl_jstep;

typedef struct wl_jplan {
  int driver;
  wl_jlist filters; /* over the driver alone, and over nothing */
  wl_jstep *steps;
  int n_steps;
  double n_first; /* estimate: rows of the driver that pass the filters */
  double cost;
} wl_jplan;

typedef struct wl_jplan_in {
  const wl_query *q;
  const wl_i64 *n_rows; /* of each source */
  wl_column **cols;     /* of q->cols; NULL: not loaded, and nothing is known of them */
  /* The share of a source's rows that pass these conjuncts. */
  double (*share)(void *arg, int source, const wl_jlist *list);
  void *arg;
  int driver;      /* the source that must be scanned; -1: any */
  bool for_device; /* a device scans; the host builds the lookups, and they go there */
} wl_jplan_in;

/* WL_NOT_TAKEN where the sources depend on one another in a circle. */
wl_status wl_jplan_make(wl_arena *arena, const wl_jplan_in *in, wl_jplan **out,
                        wl_error *err) WL_MUST;

#endif
