/*
** Writing a tablet table: row by row (row.c) and in bulk (bulk.c). Every way to change a table,
** through SQLite's virtual table interface or through warplite_prepare, ends here.
**
** Invariants:
** 1. Called inside a write transaction on the table's database, from code that SQLite runs.
** 2. A function that reports a violation has written nothing.
** 3. After any other failure SQLite must roll the statement back, or the transaction.
*/
#ifndef WL_WRITE_H
#define WL_WRITE_H

#include "tablet/table/table.h"

/* The constraint that a row breaks. */
typedef struct wl_violation {
  int code;       /* SQLite's extended result code; 0: none */
  int key;        /* uniqueness: the key's number, -1 the rowid; -2: not a matter of uniqueness */
  wl_i64 rowid;   /* uniqueness: of the row that is there already */
  char text[400]; /* SQLite's message */
} wl_violation;

/* ---- one row */

/* Empties the scratch: texts that were made for the row before are gone. */
void wl_row_begin(wl_tablets *t);
/* The row that has these values in the columns of a key (values[] by column). */
wl_status wl_row_find_key(wl_tablets *t, int key, const wl_val *values, wl_i64 rowid, bool *found,
                          wl_i64 *out, wl_error *err) WL_MUST;

/* Brings values[0..n_cols) to the columns' affinities (new text lives in the table's scratch, until
** wl_row_begin), then NOT NULL, then CHECK. The rowid's column is not looked at here. replace: the
** statement says OR REPLACE, which looks at NOT NULL columns in another order. */
wl_status wl_row_check(wl_tablets *t, wl_val *values, wl_i64 rowid, bool replace, wl_violation *out,
                       wl_error *err) WL_MUST;
/* NOT NULL columns whose value is NULL get their default, as OR REPLACE has it. Before _check. */
wl_status wl_row_defaults(wl_tablets *t, wl_val *values, wl_error *err) WL_MUST;
/* The default of a column, evaluated; lives in the table's scratch. */
wl_status wl_row_default(wl_tablets *t, int col, wl_val *out, wl_error *err) WL_MUST;
/* A rowid that is free: one more than the largest, as SQLite has it. */
wl_status wl_row_new_rowid(wl_tablets *t, wl_i64 *out, wl_error *err) WL_MUST;
/* The first row that the new one may not stand beside. skip: a rowid that does not count (the row
** that is being changed), or NULL. Values are as _check left them. */
wl_status wl_row_conflict(wl_tablets *t, const wl_val *values, wl_i64 rowid, const wl_i64 *skip,
                          wl_violation *out, wl_error *err) WL_MUST;
/* Writes; the row has been checked, and nothing stands in its way. */
wl_status wl_row_put(wl_tablets *t, wl_i64 rowid, const wl_val *values, wl_error *err) WL_MUST;
wl_status wl_row_delete(wl_tablets *t, wl_i64 rowid, bool *found, wl_error *err) WL_MUST;
/* Changes the row at old, which is there, to (rowid, values); checked as for put. */
wl_status wl_row_change(wl_tablets *t, wl_i64 old, wl_i64 rowid, const wl_val *values,
                        wl_error *err) WL_MUST;
/* The row at a rowid; texts live in the table's scratch until wl_row_begin. */
wl_status wl_row_get(wl_tablets *t, wl_i64 rowid, wl_val *values, bool *found,
                     wl_error *err) WL_MUST;

/* A value as a rowid: *integer false: it is none, "datatype mismatch". */
wl_status wl_row_rowid(wl_tablets *t, wl_val v, bool *integer, wl_i64 *out, wl_error *err) WL_MUST;
/* Whether there is a row at a rowid. */
wl_status wl_row_there(wl_tablets *t, wl_i64 rowid, bool *out, wl_error *err) WL_MUST;
/* The violation of a key, or with -1 of the rowid, in SQLite's words. */
void wl_row_say_unique(const wl_tablets *t, int key, wl_violation *out);

/* ---- in bulk. WL_NOT_TAKEN, with nothing written: do it row by row. */

/* The first row that breaks a constraint, which is the reason for WL_NOT_TAKEN. All rows before it
** could be written. */
typedef struct wl_refusal {
  wl_i64 row; /* -1: there is another reason */
  int key;    /* that it breaks, or -2: NOT NULL or CHECK, as wl_row_check says */
  bool dry;   /* given: rows to append are only looked at; if all are good, row is their number */
} wl_refusal;

/* Appends n_rows rows. cols[i] is the column of n_rows values for column i (that of the INTEGER
** PRIMARY KEY is not looked at; it may be NULL); rowids rise and lie above all that is in tablets,
** live or dead, and in the delta; or NULL: first, first + 1, …. Values need not have the columns'
** affinities yet. */
wl_status wl_bulk_append(wl_tablets *t, wl_i64 n_rows, wl_column *const *cols, const wl_i64 *rowids,
                         wl_i64 first, int n_threads, wl_refusal *refusal, wl_error *err) WL_MUST;
/* Sets columns set[0..n_set) of rows rowids[0..n), which rise and are all there, to the values of
** cols[0..n_set). None of the columns is of a key, nor the rowid. Folds the delta first. */
wl_status wl_bulk_update(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, const int *set, int n_set,
                         wl_column *const *cols, int n_threads, wl_refusal *refusal,
                         wl_error *err) WL_MUST;
/* Deletes rows rowids[0..n), which rise and are all there. */
wl_status wl_bulk_delete(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, int n_threads,
                         wl_error *err) WL_MUST;

/* ---- upkeep */
wl_status wl_tablets_fold(wl_tablets *t, wl_error *err) WL_MUST; /* the delta into tablets */
/* Folds, then rewrites tablets that are not full or have dead rows, and puts dictionaries in order,
** without texts that no row has any more. */
wl_status wl_tablets_optimize(wl_tablets *t, wl_error *err) WL_MUST;
/* NULL in *problem: all is well. sqlite3_free it. */
wl_status wl_tablets_check(wl_tablets *t, char **problem, wl_error *err) WL_MUST;

#endif
