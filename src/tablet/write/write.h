/*
** Writes to a tablet table: row by row (row.c) and in bulk (bulk.c). All changes of a table,
** through SQLite's virtual table interface or through warplite_prepare, use these functions.
**
** Invariants:
** 1. The functions are called inside a write transaction on the table's database, from code that
**    SQLite runs.
** 2. A function that reports a violation has written nothing.
** 3. After any other failure SQLite must roll back the statement or the transaction.
*/
#ifndef WL_WRITE_H
#define WL_WRITE_H

#include "tablet/table/table.h"

/* The constraint that a row breaks. */
typedef struct wl_violation {
  int code;       /* SQLite's extended result code; 0: none */
  int key;        /* UNIQUE: the key's number, or -1 for the rowid; -2: another constraint */
  wl_i64 rowid;   /* UNIQUE: the rowid of the existing row */
  char text[400]; /* SQLite's message */
} wl_violation;

/* ---- one row */

/* Clears the scratch memory, and with it the texts of the row before. */
void wl_row_begin(wl_tablets *t);
/* Finds the row with these values in the columns of a key. values[] has all columns. */
wl_status wl_row_find_key(wl_tablets *t, int key, const wl_val *values, wl_i64 rowid, bool *found,
                          wl_i64 *out, wl_error *err) WL_MUST;

/* Converts values[0..n_cols) to the columns' affinities, then checks NOT NULL, then CHECK. New
** texts live in the table's scratch memory until wl_row_begin. The rowid's column is not checked
** here. replace: the statement says OR REPLACE, which checks NOT NULL columns in another order. */
wl_status wl_row_check(wl_tablets *t, wl_val *values, wl_i64 rowid, bool replace, wl_violation *out,
                       wl_error *err) WL_MUST;
/* Replaces NULLs in NOT NULL columns by the columns' defaults, as OR REPLACE does. Call it before
** wl_row_check. */
wl_status wl_row_defaults(wl_tablets *t, wl_val *values, wl_error *err) WL_MUST;
/* Evaluates the default of a column. A text lives in the table's scratch memory. */
wl_status wl_row_default(wl_tablets *t, int col, wl_val *out, wl_error *err) WL_MUST;
/* A free rowid: one more than the largest, as SQLite chooses it. */
wl_status wl_row_new_rowid(wl_tablets *t, wl_i64 *out, wl_error *err) WL_MUST;
/* The first existing row that the new one conflicts with. skip: a rowid that is ignored (of the row
** that is being changed), or NULL. Values are as wl_row_check left them. */
wl_status wl_row_conflict(wl_tablets *t, const wl_val *values, wl_i64 rowid, const wl_i64 *skip,
                          wl_violation *out, wl_error *err) WL_MUST;
/* Inserts a row that was checked and conflicts with no other. */
wl_status wl_row_put(wl_tablets *t, wl_i64 rowid, const wl_val *values, wl_error *err) WL_MUST;
wl_status wl_row_delete(wl_tablets *t, wl_i64 rowid, bool *found, wl_error *err) WL_MUST;
/* Changes the row at old, which exists, to (rowid, values), which were checked as for wl_row_put.
 */
wl_status wl_row_change(wl_tablets *t, wl_i64 old, wl_i64 rowid, const wl_val *values,
                        wl_error *err) WL_MUST;
/* Reads the row at a rowid. Texts live in the table's scratch memory until wl_row_begin. */
wl_status wl_row_get(wl_tablets *t, wl_i64 rowid, wl_val *values, bool *found,
                     wl_error *err) WL_MUST;

/* Converts a value to a rowid. *integer is false if it is not one: a "datatype mismatch". */
wl_status wl_row_rowid(wl_tablets *t, wl_val v, bool *integer, wl_i64 *out, wl_error *err) WL_MUST;
/* Whether there is a row at a rowid. */
wl_status wl_row_there(wl_tablets *t, wl_i64 rowid, bool *out, wl_error *err) WL_MUST;
/* Sets the violation of a key, or of the rowid if key is -1, with SQLite's message. */
void wl_row_say_unique(const wl_tablets *t, int key, wl_violation *out);

/* ---- in bulk. After WL_NOT_TAKEN nothing is written: the caller must write row by row. */

/* The reason for WL_NOT_TAKEN, if it is a row that breaks a constraint. All rows before it could be
** written. dry is set by the caller: the rows are only checked, not written. If all are good, row
** is their number. */
typedef struct wl_refusal {
  wl_i64 row; /* the first row that breaks a constraint; -1: there is another reason */
  int key;    /* the key that it breaks; -2: NOT NULL or CHECK, as wl_row_check reports it */
  bool dry;
} wl_refusal;

/* Appends n_rows rows. cols[i] has the n_rows values of column i. They need not have the column's
** affinity yet. The column of the INTEGER PRIMARY KEY is not used and may be NULL. rowids are
** ascending, and larger than all rowids in tablets (live or dead) and in the delta. If rowids is
** NULL, they are first, first + 1 and so on. */
wl_status wl_bulk_append(wl_tablets *t, wl_i64 n_rows, wl_column *const *cols, const wl_i64 *rowids,
                         wl_i64 first, int n_threads, wl_refusal *refusal, wl_error *err) WL_MUST;
/* Sets the columns set[0..n_set) of the rows rowids[0..n) to the values of cols[0..n_set). The
** rowids are ascending and the rows exist. No column is the rowid or belongs to a key. Segments
** of which few rows change get patches. */
wl_status wl_bulk_update(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, const int *set, int n_set,
                         wl_column *const *cols, int n_threads, wl_refusal *refusal,
                         wl_error *err) WL_MUST;
wl_i64 wl_patch_limit(const wl_tablet *a); /* the most rows of a patch of a tablet's column */
/* Deletes the rows rowids[0..n). The rowids are ascending and the rows exist. */
wl_status wl_bulk_delete(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, int n_threads,
                         wl_error *err) WL_MUST;

/* ---- upkeep */
/* Moves the delta into tablets. */
wl_status wl_tablets_fold(wl_tablets *t, wl_error *err) WL_MUST;
/* Folds, then rewrites tablets that are not full or have dead rows, applies all patches, sorts
** dictionaries and removes unused texts from them. */
wl_status wl_tablets_optimize(wl_tablets *t, wl_error *err) WL_MUST;
/* Sets *problem to NULL, or to a description of what is wrong. The caller frees it with
** sqlite3_free. */
wl_status wl_tablets_check(wl_tablets *t, char **problem, wl_error *err) WL_MUST;

#endif
