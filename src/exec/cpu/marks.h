/*
** Which rows of the sources of RIGHT and FULL joins have been found. The opcode Mark sets a bit for
** each row that was found, and a pipeline with the source UNMATCHED reads the rows without one.
**
** Invariants:
** 1. The bits belong to one run. Lookups, which several runs may share, do not have them.
** 2. All workers set bits at the same time, by atomic operations. A pipeline that reads them starts
**    when those that set them have ended.
*/
#ifndef WL_MARKS_H
#define WL_MARKS_H

#include "exec/budget.h"
#include "program/program.h"

typedef struct wl_marks wl_marks;

/* Opens marks for the joins of a pipeline that have a Mark. WL_NOT_TAKEN: the budget has no room.
 */
wl_status wl_marks_open(const wl_program *p, wl_budget *budget, wl_marks **out,
                        wl_error *err) WL_MUST;
void wl_marks_close(wl_marks *m); /* m may be NULL */

/* Marks n rows of the join's source. Those that are WL_NO_ROW are left out. */
void wl_marks_set(wl_marks *m, int join, const wl_u32 *rows, int n);
/* The rows of [first, first + n) that are not marked. Returns their number. */
int wl_marks_left(const wl_marks *m, int join, wl_u32 first, int n, wl_u32 *out);

/* The bits of a join's rows, for a copy on a device; NULL if the join has no Mark. */
wl_u64 *wl_marks_bits(wl_marks *m, int join, size_t *n_bytes);

#endif
