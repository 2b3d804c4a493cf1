/*
** Plans of date functions: their format and modifiers, read once. Host only.
**
** Versions of SQLite differ in what date functions accept and return. The running one is asked,
** once per process. If its answers to a few dozen questions are not those of date_ops.h, date
** functions stay calls into SQLite.
*/
#ifndef WL_DATE_PLAN_H
#define WL_DATE_PLAN_H

#include "base/arena.h"
#include "value/ops.h"

typedef enum wl_date_function {
  WL_DATE_DATE,
  WL_DATE_TIME,
  WL_DATE_DATETIME,
  WL_DATE_JULIANDAY,
  WL_DATE_UNIXEPOCH,
  WL_DATE_STRFTIME
} wl_date_function;

typedef enum wl_date_answer {
  WL_DATE_PLANNED,
  WL_DATE_IS_NULL, /* a modifier or the format is wrong: the result is always NULL */
  WL_DATE_LEFT,    /* SQLite must compute it */
  WL_DATE_NO_MEMORY
} wl_date_answer;

/* Makes the plan of a call, a blob in the arena. strftime_format: its first argument, or
** NULL. x: for conversions. */
wl_date_answer wl_date_plan_make(wl_arena *arena, wl_vctx *x, wl_date_function f,
                                 wl_val strftime_format, const wl_val *modifiers, int n_modifiers,
                                 wl_val *out);

/* The same plan without its first n steps. */
wl_val wl_date_plan_after(wl_arena *arena, wl_val plan, int n); /* NULL: out of memory */

/* One more than the largest code of a text, or 0 if texts have no codes. years: no year is before
** 0. */
wl_i64 wl_date_n_codes(wl_val plan, bool years);

/* Which part of a time decides the result of a plan: its day, its hour or minute of any day, or all
** of it. */
typedef enum wl_date_unit {
  WL_DATE_BY_DAY,
  WL_DATE_BY_HOUR,
  WL_DATE_BY_MINUTE,
  WL_DATE_BY_MS
} wl_date_unit;
wl_date_unit wl_date_depends(wl_val plan);

/* Whether a later time never has an earlier text, from the year 0 on. */
bool wl_date_ascends(wl_val plan);

/* The most milliseconds by which the steps of a plan can move a time, if they keep it in the range
** of years. */
wl_i64 wl_date_reach(wl_val plan);

/* The plan in words, for EXPLAIN: "'%Y-%m', unixepoch". NULL: out of memory. */
const char *wl_date_plan_words(wl_arena *a, wl_val plan);

#endif
