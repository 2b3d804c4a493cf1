/*
** How a row that warplite_prepare()'s rewrite of INSERT, UPDATE and DELETE inserts into a tablet
** table is told from a row of the user's. Such a row stands for a change that has been made
** already; it is only there to be counted, and to fail where the statement must fail. It is known
** by the value of the hidden column that is named as the table.
**
** Invariants:
** 1. The value is a random number that is good as long as the statement runs. It is the same for
**    all rows, a constant of the rewritten text, and the run at hand tells of the row; but where
**    SQLite keeps the rows in a table of its own first (RETURNING), its two low bits do.
** 2. Of a statement's rows only the last may be a violation.
*/
#ifndef WL_DMLROW_H
#define WL_DMLROW_H

#include "base/sqlite.h"
#include "base/status.h"
#include "value/types.h"

enum {
  WL_DMLROW_NEW = 0,     /* a row was inserted: xUpdate gives its rowid back */
  WL_DMLROW_CHANGED = 1, /* updated or deleted: xUpdate gives back last_insert_rowid */
  WL_DMLROW_FAILS = 2    /* xUpdate fails with code and text */
};

/* One statement's run; belongs to whoever runs it. */
typedef struct wl_dmlrun {
  struct wl_dmlrun *next; /* in the list of all; open and close keep it */
  sqlite3 *db;
  wl_i64 token;      /* its two low bits are free for the kind of the row … */
  bool at_once;      /* … which is told here instead: xUpdate sees each row as it is made */
  int kind;          /* of the row at hand, WL_DMLROW_ */
  wl_i64 rowid;      /* of the row at hand, if it is new */
  wl_i64 last_rowid; /* last_insert_rowid, as it was before the row at hand */
  int code;          /* of the violation: SQLite's extended result code … */
  char text[400];    /* … and message */
} wl_dmlrun;

wl_i64 wl_dmlrun_token(void); /* a new one */
/* token: of the text, or 0 for one of its own. */
void wl_dmlrun_open(wl_dmlrun *r, sqlite3 *db, wl_i64 token);
void wl_dmlrun_close(wl_dmlrun *r); /* one that was never opened, all zero, is fine */

/* The value for the row at hand, of a run that is not at once. */
void wl_dmlrun_number(wl_dmlrun *r, sqlite3_context *ctx);

/* For xUpdate. argv is its argument list, v the value of the hidden column. False: the row is the
** user's, and v a command or NULL. True: *rc is what xUpdate returns; on SQLITE_OK *rowid is the
** rowid it gives back, else *text is the message (borrowed, copy it). */
bool wl_dmlrow_read(sqlite3 *db, sqlite3_value **argv, sqlite3_value *v, int *rc,
                    sqlite3_int64 *rowid, const char **text);

#endif
