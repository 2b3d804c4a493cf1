/*
** How the compiler reads a call of a date function: its plan, and the numbers that it starts from.
*/
#ifndef WL_PROGRAM_DATE_H
#define WL_PROGRAM_DATE_H

#include "program/compile_impl.h"
#include "value/date/plan.h"

/* No year of a time from here on is before 0. */
#define WL_FIRST_YEAR_MS (1721060 * WL_DAY_MS)

/* How a plan begins: as numbers that are times, to which a constant is added. */
typedef struct wl_date_beginning {
  bool unix;    /* seconds since 1970, not Julian days */
  wl_i64 later; /* milliseconds that are added */
  int n_steps;  /* of the plan that are done with this */
} wl_date_beginning;

/* Integers as times: source * scale + offset is the time in milliseconds. */
typedef struct wl_int_times {
  wl_operand source;
  wl_i64 scale, offset;
} wl_int_times;

/* The argument of a call that is its time. */
static inline int wl_date_time_at(wl_native f) {
  return f == WL_NATIVE_STRFTIME ? 1 : 0;
}

/* Makes the plan of a call. LEFT: the time is constant, or another argument is not. */
wl_date_answer wl_date_plan_of_call(wl_compiler *c, wl_native f, const wl_operand *args, int n,
                                    wl_val *out);
wl_date_beginning wl_date_beginning_of(const wl_operand *a, wl_val plan);
/* Whether all values of an integer operand are times, before and after the addition. */
bool wl_date_are_times(const wl_operand *a, const wl_date_beginning *b, wl_int_times *out);

#endif
