/*
** The kinds of joins that a bound query and a program have.
*/
#ifndef WL_JOIN_HOW_H
#define WL_JOIN_HOW_H

/* What becomes of a row by the rows of another source that match it. */
typedef enum wl_join_how {
  WL_HOW_INNER, /* one row for each match */
  WL_HOW_LEFT,  /* the same, and one without a match where there is none */
  WL_HOW_SEMI,  /* the row, if there is a match */
  WL_HOW_ANTI,  /* the row, if there is none */
  WL_HOW_MARK,  /* the row, with its first match if there is one */
  WL_HOW_RIGHT, /* from the binder: as INNER, and the rows of the other source without a match */
  WL_HOW_FULL   /* from the binder: LEFT and RIGHT at once */
} wl_join_how;

#endif
