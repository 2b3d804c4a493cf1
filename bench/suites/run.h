/*
** One suite of the benchmark, or of the test: what there is to run, and on what.
**
** Stands between the options (suites.c) and the sides (../side.h).
*/
#ifndef SUITES_RUN_H
#define SUITES_RUN_H

#include "../report.h"
#include "queries.h"
#include "store.h"

struct many {
  const char *name, *title, *what; /* what: the unit of the scale */
  const struct tables *tables;
  double scale;      /* of the benchmark where none is asked for */
  const char *probe; /* a query that every engine takes, to see whether a device is there */
};

extern const struct many suites_of_tables[3]; /* not `suites`: that is ../suite.h's */

struct plan {
  struct bench b;
  double scale;        /* 0: the suite's own */
  const char *queries; /* folder of the query files */
  const char *data;    /* folder of the SQLite files */
  const char *only;    /* names of queries by commas; NULL: all */
  bool keys;           /* keys of several columns are declared */
  const char *engine;  /* of the test */
  bool allow_sqlite;   /* in the test: what is not native yet may run in SQLite */
};

bool query_wanted(const struct plan *p, const char *name);
double scale_of(const struct plan *p, const struct many *u);

/* Measures a suite on the sides that are on; false if it could not be set up. */
bool suite_measure(struct plan *p, const struct many *u, struct json *j);
/* The test of a suite: `ok`, `not ok` lines. */
void suite_check(struct plan *p, const struct many *u);
/* The test of the literals (literals.h). */
void literals_check(void);

#endif
