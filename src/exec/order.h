/*
** The end of a plan: DISTINCT and ORDER BY over result batches that have all arrived.
*/
#ifndef WL_ORDER_H
#define WL_ORDER_H

#include "column/batch.h"
#include "program/program.h"

/* Which rows these are. */
typedef enum wl_order_of {
  WL_ORDER_ALL,  /* all there are */
  WL_ORDER_SOME, /* more will come: sort keys are kept for the next time */
  WL_ORDER_LEFT  /* what is left of all, after some calls with SOME */
} wl_order_of;

/* Replaces the list of batches by one that is distinct and sorted as the program says; at
** most `most` rows are needed (< 0: all). check is called now and then and may stop it. */
wl_status wl_order_batches(const wl_program *p, wl_pool *pool, wl_order_of of, wl_batch **list,
                           wl_i64 most, int threads, wl_status (*check)(void *arg, wl_error *err),
                           void *check_arg, wl_error *err) WL_MUST;

#endif
