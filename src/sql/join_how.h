/*
** The kinds of joins that a bound query and a program have.
*/
#ifndef WL_JOIN_HOW_H
#define WL_JOIN_HOW_H

/* What happens to a row, depending on the matching rows of another source. */
typedef enum wl_join_how {
  WL_HOW_INNER, /* one row for each match */
  WL_HOW_LEFT,  /* one row for each match; without a match, one row with NULLs */
  WL_HOW_SEMI,  /* the row, if there is a match */
  WL_HOW_ANTI,  /* the row, if there is no match */
  WL_HOW_MARK,  /* the row, with its first match if there is one */
  WL_HOW_RIGHT, /* from the binder: INNER, plus the other source's rows without a match */
  WL_HOW_FULL   /* from the binder: LEFT and RIGHT at once */
} wl_join_how;

#endif
