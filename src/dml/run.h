/*
** A running change.
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
  wl_dmlrun run; /* describes the current row */
  wl_source_rows rows;
  wl_mask *mask;          /* the authorizer's answers, or NULL; with them SQLite finds the rows */
  sqlite3_value **params; /* [n_params]; NULL for those that do not occur */
  int n_params;
  wl_i64 at;       /* rows of the current piece of the source that are done */
  wl_i64 n_before; /* rows of earlier pieces */
  bool counting;   /* all changes are made; the rows from at on are only counted */
  wl_i64 *rowids;  /* for a bulk or live change; NULL: they start at first */
  wl_i64 first;
  /* For a statement that undoes all rows if one fails: the first row that fails, if it is known
  ** before any row is written. Then the rows before it are not written. */
  wl_refusal refusal;
  wl_val *row;      /* the current row: as inserted, updated, or deleted */
  wl_val *raw;      /* the row to insert as ON CONFLICT sees it in excluded */
  wl_val *news;     /* the new values of SET */
  wl_val *defaults; /* [n_cols] values of constant defaults */
  bool *known;      /* [n_cols] the default has been evaluated */
  bool *bound;      /* [n_clauses] its statement has this run's parameters */
  wl_arena *texts;  /* texts of defaults and news */
  sqlite3_stmt *live;
  wl_rowlist *list; /* rows of the live statement */
  bool ended;
  bool in_bulk;  /* some changes were made in bulk */
  wl_i64 newest; /* rowid of the last inserted row, or last_insert_rowid */
  wl_i64 n_changes;
  double started;
  char reason[WL_REASON_SIZE];
} wl_running;

/* Opens a run. args: values of the parameters that occur, in the order of their numbers. mask:
** NULL, or the authorizer's answers with an IGNORE among them. The run takes the mask. */
wl_status wl_running_open(wl_conn *c, const char *sql, wl_i64 token, sqlite3_value **args,
                          int n_args, wl_mask *mask, wl_running *out, wl_error *err) WL_MUST;
/* Makes the next change, which r->run and r->row then describe. *end: there is none. */
wl_status wl_running_next(wl_running *r, bool *end, wl_error *err) WL_MUST;
/* A fast form of wl_running_next() for rows that are only counted. False: there are changes to
** make. */
bool wl_running_count(wl_running *r, bool *end);
void wl_running_close(wl_running *r); /* accepts one that is all zero */

/* ---- bulk.c */
/* Makes all changes at once. WL_NOT_TAKEN: nothing was written, and they must be made one by
** one. */
wl_status wl_running_bulk(wl_running *r, wl_error *err) WL_MUST;
/* Evaluates the default of a column. */
wl_status wl_running_default(wl_running *r, int col, wl_val *out, wl_error *err) WL_MUST;

/* ---- upsert.c */
/* Finds the conflict of a new row, in the order of the ON CONFLICT clauses; v->code 0: none.
** *clause: the clause for it, or NULL. given: the rowid was given, and not chosen as a free one. */
wl_status wl_upsert_conflict(wl_running *r, const wl_val *values, wl_i64 rowid, bool given,
                             wl_violation *v, const wl_clause **clause, wl_error *err) WL_MUST;
/* Computes the values that SET of a clause gives the row at old, into r->news. *updates false: its
** WHERE is not true. values and rowid are the row excluded. */
wl_status wl_upsert_values(wl_running *r, const wl_clause *clause, const wl_val *values,
                           wl_i64 rowid, wl_i64 old, bool *updates, wl_error *err) WL_MUST;
/* Prepares a statement for the run and binds its parameters. */
wl_status wl_running_prepare(wl_running *r, char *sql, sqlite3_stmt **out, wl_error *err) WL_MUST;
void wl_params_bind(sqlite3_stmt *s, sqlite3_value **params, int n_params);
/* Reads columns of the statement's current row, from `first` on. Their texts live in r->texts. */
wl_status wl_running_read(wl_running *r, sqlite3_stmt *s, int first, int n, wl_val *out,
                          wl_error *err) WL_MUST;

#endif
