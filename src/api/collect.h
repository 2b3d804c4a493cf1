/*
** Returns the rows of a statement that SQLite runs in batches like those of a native run.
*/
#ifndef WL_COLLECT_H
#define WL_COLLECT_H

#include "route/answer.h"

/* Reads all rows of SQLite's statement into columns. The answer then has a run that returns them.
** An error after some rows is raised after those rows have been returned. */
wl_status wl_collect(wl_answer *a, wl_error *err) WL_MUST;

#endif
