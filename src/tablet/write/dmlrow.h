/*
** Marks the rows that warplite_prepare()'s rewrite of INSERT, UPDATE and DELETE inserts into a
** tablet table. Such a row stands for a change that has been made already. SQLite only counts it,
** or fails with it if the statement must fail. The table's hidden column, which has the table's
** name, tells it from a row of the user: it has the token of the run.
**
** Invariants:
** 1. The token is a random number that is valid while the statement runs. Normally it is a constant
**    in the rewritten text, the same for all rows, and the run describes the current row. If SQLite
**    first collects the rows in a table of its own (RETURNING), the token's two low bits tell the
**    kind of the row.
** 2. Only the last row of a statement may be a violation.
*/
#ifndef WL_DMLROW_H
#define WL_DMLROW_H

#include "base/sqlite.h"
#include "base/status.h"
#include "value/types.h"

enum {
  WL_DMLROW_NEW = 0,     /* a row was inserted: xUpdate returns its rowid */
  WL_DMLROW_CHANGED = 1, /* a row was updated or deleted: xUpdate returns last_insert_rowid */
  WL_DMLROW_FAILS = 2    /* xUpdate fails with code and text */
};

/* One run of a statement. The caller owns it. */
typedef struct wl_dmlrun {
  struct wl_dmlrun *next; /* in the list of all open runs */
  sqlite3 *db;
  wl_i64 token;      /* its two low bits are 0, to make room for the kind of the row */
  bool at_once;      /* xUpdate sees each row as it is made, so kind and rowid are valid there */
  int kind;          /* of the current row, WL_DMLROW_ */
  wl_i64 rowid;      /* of the current row, if it is new */
  wl_i64 last_rowid; /* last_insert_rowid as it was before the current row */
  int code;          /* SQLite's extended result code of the violation */
  char text[400];    /* SQLite's message for it */
} wl_dmlrun;

wl_i64 wl_dmlrun_token(void); /* a new token */
/* token: the one in the rewritten text, or 0 to make a new one. */
void wl_dmlrun_open(wl_dmlrun *r, sqlite3 *db, wl_i64 token);
void wl_dmlrun_close(wl_dmlrun *r); /* accepts a run that is all zero and was never opened */

/* Returns the token with the kind of the current row to SQLite, for a run that is not at_once. */
void wl_dmlrun_number(wl_dmlrun *r, sqlite3_context *ctx);

/* Called by xUpdate. argv is its argument list, v the value of the hidden column. False: it is a
** row of the user, and v is a command or NULL. True: xUpdate must return *rc. If that is SQLITE_OK,
** rowid is the rowid to return. Otherwise *text is the message, which the caller copies. */
bool wl_dmlrow_read(sqlite3 *db, sqlite3_value **argv, sqlite3_value *v, int *rc,
                    sqlite3_int64 *rowid, const char **text);

#endif
