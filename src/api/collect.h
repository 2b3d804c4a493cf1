/*
** The rows of a statement that SQLite runs, given out in batches like those of a native run.
*/
#ifndef WL_COLLECT_H
#define WL_COLLECT_H

#include "route/answer.h"

/* Reads all rows of SQLite's statement into columns; the answer then has a run that gives them out.
** An error that comes after rows is given out behind them. */
wl_status wl_collect(wl_answer *a, wl_error *err) WL_MUST;

#endif
