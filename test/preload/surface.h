/*
** A program that knows nothing of warplite and prints every value of SQLite's interface. The
** driver (preload_test.py) runs it with and without the preload library. Both outputs must be equal
** byte for byte.
*/
#ifndef SURFACE_H
#define SURFACE_H

#include <sqlite3.h>
#include <stdbool.h>

/* ---- surface.c: helpers */
extern const char *surface_folder; /* where databases are made */
extern bool surface_wal;           /* databases are in WAL mode */
extern int surface_flags;          /* threading mode for sqlite3_open_v2() */

sqlite3 *surface_open(const char *name); /* NULL: a database in memory */
void surface_fill(sqlite3 *db);          /* the tables of the test */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void title(const char *format, ...) __attribute__((format(printf, 1, 2)));
int run(sqlite3 *db, const char *sql); /* sqlite3_exec(), prints code and message if it fails */
sqlite3_stmt *prepare(sqlite3 *db, const char *sql);
/* Prints a result code with the connection's error. */
int code(sqlite3 *db, const char *what, int rc);
void about(sqlite3_stmt *s);        /* prints all facts about a statement */
void row(sqlite3_stmt *s, int way); /* prints the row by accessors in the order `way` */
/* Steps up to n times and prints the rows. Returns the last code. */
int rows(sqlite3 *db, sqlite3_stmt *s, int n, int way);
void state(sqlite3 *db, sqlite3_stmt *s); /* prints what can change while statements run */
int done(sqlite3 *db, sqlite3_stmt *s);   /* finalizes and prints */

/* ---- the parts */
void surface_values(void);  /* surface_values.c: rows, conversions, parameters */
void surface_changes(void); /* surface_changes.c: transactions, schemas and closing while reading */
void surface_handlers(void); /* surface_handlers.c: authorizer, trace, progress, busy, interrupt */
void surface_beside(void);   /* surface_beside.c: calls that leave traces beside native statements */
void surface_places(void);   /* surface_places.c: ATTACH, TEMP, memory, UTF-16, shared cache, WAL */

#endif
