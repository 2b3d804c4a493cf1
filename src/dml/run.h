/*
** A change being made.
*/
#ifndef WL_DML_RUN_H
#define WL_DML_RUN_H

#include "dml/source_rows.h"
#include "tablet/write/dmlrow.h"

/* A list of rowids as a table, wl_rowids(pointer). */
typedef struct wl_rowlist {
  const wl_i64 *rowids;
  wl_i64 n;
} wl_rowlist;
#define WL_ROWLIST_TYPE "warplite_rowids"

typedef struct wl_running {
  wl_change *m;  /* NULL: not open */
  wl_dmlrun run; /* the row at hand is told here */
  wl_source_rows rows;
  wl_mask *mask;          /* NULL, or the authorizer's answers: SQLite finds the rows then */
  sqlite3_value **params; /* [n_params], or NULL each */
  int n_params;
  wl_i64 at;       /* rows of the source, or of its piece, that are done */
  wl_i64 n_before; /* rows of the pieces before it */
  bool counting;   /* all changes are made: the rows from at on are only counted */
  wl_i64 *rowids;  /* of a change in bulk, or of a live one; NULL: they begin at first */
  wl_i64 first;
  /* Of a statement that undoes all of its rows when one fails: the first that does, if that is
  ** known before any is written. Those before it are not written then. */
  wl_refusal refusal;
  wl_val *row;      /* the row at hand: as inserted or updated, or as it was deleted */
  wl_val *raw;      /* the row to insert as ON CONFLICT knows it by the name excluded */
  wl_val *news;     /* what SET makes of it */
  wl_val *defaults; /* [n_cols]: constant ones, */
  bool *known;      /* [n_cols]: if they have been evaluated */
  bool *bound;      /* [n_clauses]: its statement has this run's parameters */
  wl_arena *texts;  /* of defaults and news */
  sqlite3_stmt *live;
  wl_rowlist *list; /* of the live statement */
  bool ended;
  bool in_bulk;  /* some of the changes were made at once */
  wl_i64 newest; /* rowid of the row inserted last, or last_insert_rowid */
  wl_i64 n_changes;
  double started;
  char reason[WL_REASON_SIZE];
} wl_running;

/* args: values of the parameters that occur, in the order of their numbers. mask: NULL, or the
** authorizer's answers, of which one is IGNORE; the run's from here on. */
wl_status wl_running_open(wl_conn *c, const char *sql, wl_i64 token, sqlite3_value **args,
                          int n_args, wl_mask *mask, wl_running *out, wl_error *err) WL_MUST;
/* Makes the next change, which run and row then tell; *end: there is none. */
wl_status wl_running_next(wl_running *r, bool *end, wl_error *err) WL_MUST;
/* The same where all changes are made and rows are only counted: fast. False: they are not. */
bool wl_running_count(wl_running *r, bool *end);
void wl_running_close(wl_running *r); /* one that was never opened, all zero, is fine */

/* ---- bulk.c */
/* Makes all changes at once; WL_NOT_TAKEN, with nothing written: one by one then. */
wl_status wl_running_bulk(wl_running *r, wl_error *err) WL_MUST;
/* The default of a column. */
wl_status wl_running_default(wl_running *r, int col, wl_val *out, wl_error *err) WL_MUST;

/* ---- upsert.c */
/* What stands in the way of a new row, in the order of the ON CONFLICT clauses; v->code 0: nothing.
** *clause: the one that speaks of it, or NULL. given: the rowid is not one that was found free. */
wl_status wl_upsert_conflict(wl_running *r, const wl_val *values, wl_i64 rowid, bool given,
                             wl_violation *v, const wl_clause **clause, wl_error *err) WL_MUST;
/* What SET of a clause makes of the row at old, into r->news; *updates false: its WHERE does not
** hold. values and rowid are excluded. */
wl_status wl_upsert_values(wl_running *r, const wl_clause *clause, const wl_val *values,
                           wl_i64 rowid, wl_i64 old, bool *updates, wl_error *err) WL_MUST;
/* A statement of the run's, its parameters bound. */
wl_status wl_running_prepare(wl_running *r, char *sql, sqlite3_stmt **out, wl_error *err) WL_MUST;
void wl_params_bind(sqlite3_stmt *s, sqlite3_value **params, int n_params);
/* Columns of the row that a statement stands on, from `first` on, kept in r->texts. */
wl_status wl_running_read(wl_running *r, sqlite3_stmt *s, int first, int n, wl_val *out,
                          wl_error *err) WL_MUST;

#endif
