/*
** What the planner knows about the values of one column, whatever a query asks. It is estimated from
** a sample when it is first asked for, and kept with this version of the column.
*/
#ifndef WL_COLUMN_STATISTICS_H
#define WL_COLUMN_STATISTICS_H

#include "column/column.h"

/* The estimated number of distinct values, at least 1. NULL is not counted. Two threads may compute
** it at the same time. Both get the same number. */
double wl_column_distinct(wl_column *c);

#endif
