/*
** How the preload library (src/preload) runs statements with libwarplite. It opens libwarplite when
** the first statement may be worth it, and finds this table of functions by one symbol.
**
** Invariants:
** 1. All calls about a connection are made with its SQLite mutex held.
** 2. A run holds a read transaction on every database that its statement reads, from start() to
**    finish(), and all rows are of the version that this transaction sees.
** 3. SQLite is called by the addresses that bind() gets, never through the preload library.
*/
#ifndef WL_NATIVE_H
#define WL_NATIVE_H

#include "value/kinds.h"
#include "value/types.h"
#include <sqlite3ext.h>
#include <stdbool.h>
#include <stddef.h>

enum { WL_NATIVE_VERSION = 2, WL_NATIVE_TEXT = 512 };
#define WL_NATIVE_SYMBOL "warplite_native_interface"

typedef struct wl_native_run wl_native_run;

/* One result column of a batch (column/batch.h). Dictionary codes have places and heap. */
typedef struct wl_native_column {
  wl_u8 type;        /* WL_R_INT, WL_R_REAL, WL_R_TEXT or WL_R_ANY */
  wl_u8 sqlite_type; /* SQLITE_INTEGER, … of all values but NULL; 0 for WL_R_ANY */
  const wl_u64 *v;
  const wl_u8 *t; /* ANY: tags; otherwise 0 means NULL, and NULL means that there is none */
  const wl_u32 *n;
  const wl_i32 *offsets;
  const wl_u8 *heap;
  const wl_u64 *places; /* of the dictionary whose codes are in v, or NULL */
} wl_native_column;

typedef struct wl_native_rows {
  const wl_native_column *columns;
  wl_i64 first, n_rows; /* rows first … n_rows-1 of the batch are to be returned */
} wl_native_rows;

/* An execution that is about to start. */
typedef struct wl_native_ask {
  sqlite3 *db;
  sqlite3_stmt *stmt;  /* the application's statement, with its values, not running */
  bool no_functions;   /* the application has defined no SQL function on the connection */
  const char *refused; /* why SQLite must run it, or NULL */
} wl_native_ask;

typedef int wl_native_authorizer(void *arg, int code, const char *a, const char *b, const char *c,
                                 const char *d);

typedef struct wl_native_calls {
  int version;
  /* Sets SQLite's real addresses. False: warplite cannot work with this SQLite; message says why.
   */
  bool (*bind)(const sqlite3_api_routines *real, char message[WL_NATIVE_TEXT]);
  /* Sets the application's authorizer of a connection. Returns the argument for authorize(), which
  ** the callback that SQLite has calls with each question. NULL: out of memory. */
  void *(*authorizer)(sqlite3 *db, wl_native_authorizer *call, void *arg);
  wl_native_authorizer *authorize;
  /* Whether the settings of the environment can be applied to the connection. */
  bool (*open)(sqlite3 *db, char message[WL_NATIVE_TEXT]);
  /* Decides and starts. NULL: SQLite runs it. reason: "engine: why". */
  wl_native_run *(*start)(const wl_native_ask *ask, char reason[WL_NATIVE_TEXT]);
  /* Tells how many steps of its virtual machine SQLite took for an execution that start() left to
  ** it. True: far more than estimated, so the next execution should be asked about. */
  bool (*took)(sqlite3 *db, sqlite3_stmt *stmt, int n_steps);
  /* SQLITE_ROW and the next rows, SQLITE_DONE, or an error. The rows before stay in memory until
  ** the call after the next. */
  int (*next)(wl_native_run *run, wl_native_rows *out, char message[WL_NATIVE_TEXT]);
  /* Finds out whether an interrupt or a ROLLBACK has ended the run. SQLITE_OK: it has not. */
  int (*look)(wl_native_run *run, char message[WL_NATIVE_TEXT]);
  /* A statement `SELECT ?1`. The run keeps it for the column. NULL: out of memory. */
  sqlite3_stmt *(*mirror)(wl_native_run *run, int column);
  int (*step)(sqlite3_stmt *s); /* steps a statement of warplite's */
  void (*finish)(wl_native_run *run);
  /* The connection's PRAGMA empty_result_callbacks. */
  bool (*empty_result_callbacks)(sqlite3 *db);
  /* Finalizes all helper statements of a connection that is about to close. */
  void (*quiet)(sqlite3 *db);
} wl_native_calls;

typedef const wl_native_calls *wl_native_interface(int version); /* the type of the symbol */

#endif
