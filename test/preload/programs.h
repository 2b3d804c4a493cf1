/*
** Random programs of SQLite calls. Nothing here knows of warplite. Every result is printed: codes,
** errors, values, types, names, counts. The driver (programs_test.py) runs the same programs with
** and without the preload library, and both outputs must be equal.
**
** A program opens connections to files, in memory and with attached databases, and then makes a
** few hundred random calls on them: it prepares and steps many statements in turn, binds, writes,
** changes schemas, sets handlers, and so on. Choices depend only on the seed and on earlier
** results.
**
** docs/limits.md lists what may differ. The programs avoid it:
** 1. Rows that a connection changes ahead of its own running SELECT. A write marks the running
**    statements of its connection that read the table as outdated, and these are only read where
**    they stand, reset or finalized.
** 2. Orders that SQL leaves open. Statements have a complete ORDER BY, return one row, or scan a
**    table that has no index.
** 3. Sums of REAL values that need rounding, and averages of integers beyond 2^53. Columns r and i
**    hold anything, so only sums of integers, and of column e, whose sums are exact.
** 4. Counters of sqlite3_stmt_status() for work inside a statement, EXPLAIN, calls of progress
**    handlers. A handler that stops statements is called at each step, which makes SQLite run them
**    all.
** 5. Locks on main by statements that read only attached or TEMP tables. Only connections whose
**    main database is in memory run such statements.
** 6. Messages after a successful step, the offset of an error without a place in the text (SQLite
**    keeps that of an earlier error), sqlite3_value_frombind(), lists of modules and functions.
** 7. The number of calls of a deterministic function.
** 8. The connection's error after steps of sqlite3_prepare()'s statements, which may set it or not.
** 9. Statements with a parameter as pattern of LIKE are prepared once more after a native run. A
**    program that has them does not set authorizers, which would be asked again, nor low limits. It
**    does not use sqlite3_close_v2(), after which nothing can be prepared. It does not print how
**    often they ran, because SQLite counts a run that finds an old schema twice.
*/
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "../rng.h"
#include <sqlite3.h>
#include <stdbool.h>

enum {
  N_CONNECTIONS = 4,
  N_STATEMENTS = 10,
  N_VALUES = 4,
  MAX_SQL = 8000,
  /* Bits of tables, shifted by 8 for attached and by 16 for TEMP ones. */
  T_MIXED = 1, /* t0: every type, an INTEGER PRIMARY KEY */
  T_KEYED = 2, /* t1: a primary key of two columns, often WITHOUT ROWID */
  T_PLAIN = 4, /* t2: no key, never an index */
  T_EMPTY = 8, /* t3 */
  T_LOG = 16,  /* the target of triggers */
  ATTACHED = 8,
  TEMPORARY = 16,
  T_SCHEMA = 1 << 24
};

typedef struct connection {
  sqlite3 *db; /* NULL: not open */
  const char *file;
  bool attached; /* has the database aux */
  bool main_in_memory;
  bool temporary;  /* has TEMP tables */
  bool authorized; /* has an authorizer */
  int n_added;     /* columns that were added to t0 */
} connection;

typedef struct statement {
  sqlite3_stmt *s; /* NULL: none */
  int conn;
  unsigned reads, writes; /* bits of tables */
  bool outdated;          /* its connection has changed rows that it may still read */
  bool orphan;            /* its connection was closed by sqlite3_close_v2() */
  bool oldest;            /* sqlite3_prepare(): steps set no error of their own */
} statement;

typedef struct world {
  rng r;
  const char *folder;
  bool wal;
  bool patterns; /* parameters as patterns of LIKE */
  connection connections[N_CONNECTIONS];
  statement statements[N_STATEMENTS];
  sqlite3_value *values[N_VALUES]; /* copies of column values */
  sqlite3_blob *blob;
  int blob_conn;
  int n_destroyed;           /* calls of functions that free bound values */
  int n_calls;               /* of the function counted() */
  int n_questions;           /* to authorizers */
  uint64_t questions;        /* a hash of them */
  int n_progress, n_updates; /* calls of these handlers */
} world;

extern world w;

/* ---- programs.c */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int below(int n); /* a random number 0 … n-1 */
bool chance(int percent);
const char *pick_text(const char *const *texts, int n);
#define PICK(array) pick_text(array, (int)(sizeof(array) / sizeof *(array)))
/* Prints a result and the connection's error. Returns the code. */
int result(connection *c, const char *what, int rc);
connection *open_connection(int k);
void note_write(int conn, unsigned tables); /* marks statements as outdated */

/* ---- programs_sql.c: texts */
void sql_tables(connection *c, const char *schema, char *out); /* CREATE TABLE and rows */
unsigned sql_select(connection *c, char *out); /* a SELECT; returns the tables that it reads */
unsigned sql_write(connection *c, char *out);  /* INSERT, UPDATE, DELETE; tables that it writes */
unsigned sql_schema(connection *c, char *out); /* DDL and PRAGMAs; tables that it writes */
void sql_transaction(char *out);

/* ---- programs_rows.c: values */
void print_bytes(const void *bytes, int n);
void print_row(sqlite3_stmt *s);
void bind_some(connection *c, sqlite3_stmt *s);
void print_value(sqlite3_value *v);
void print_statement(sqlite3_stmt *s);
uint64_t hash_row(sqlite3_stmt *s, uint64_t h);

/* ---- programs_calls.c: other calls */
void call_statement(statement *t);   /* one call on a statement */
void call_connection(connection *c); /* one call on a connection */
void end_blob(int conn);             /* closes the blob if it is the connection's; -1: any */

#endif
