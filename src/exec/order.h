/*
** DISTINCT and ORDER BY over collected result batches, at the end of a run.
*/
#ifndef WL_ORDER_H
#define WL_ORDER_H

#include "column/batch.h"
#include "program/program.h"

/* Which rows are passed. */
typedef enum wl_order_of {
  WL_ORDER_ALL,  /* all rows */
  WL_ORDER_SOME, /* more will follow, so the output includes sort keys for the next call */
  WL_ORDER_LEFT  /* what is left of all rows after calls with WL_ORDER_SOME */
} wl_order_of;

/* Replaces the list of batches by one that is distinct and sorted as the program says. At most
** `most` rows are needed (< 0: all). check is called from time to time and may stop the work. */
wl_status wl_order_batches(const wl_program *p, wl_pool *pool, wl_order_of of, wl_batch **list,
                           wl_i64 most, int threads, wl_status (*check)(void *arg, wl_error *err),
                           void *check_arg, wl_error *err) WL_MUST;

#endif
