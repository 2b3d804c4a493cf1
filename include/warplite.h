/*
** warplite: SQLite's SQL, with SQLite's answers, on a GPU or on every core of the CPU.
**
** This header is the whole C interface and its manual. A program that uses SQLite
** already needs two calls:
**
**     sqlite3_open("sales.db", &db);
**     warplite_enable(db);                                  // once per connection
**     warplite_prepare(db, sql, -1, &stmt, &tail);          // instead of sqlite3_prepare_v2
**     while( sqlite3_step(stmt)==SQLITE_ROW ) ...           // everything else stays
**     sqlite3_finalize(stmt);
**
** The statement is a real sqlite3_stmt: bind, step, column, reset and finalize are
** SQLite's own. A statement warplite does not take is SQLite's statement itself.
** For bulk results warplite_query() gives an Arrow C stream.
**
** The same shared library is a SQLite loadable extension (entry point
** sqlite3_warplite_init): loading it is the same as warplite_enable().
**
** Every int result is a SQLite result code. Threads: the rules of the connection's
** own threading mode hold for these calls too.
*/
#ifndef WARPLITE_H
#define WARPLITE_H

#include <stdint.h>
#include <sqlite3.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARPLITE_VERSION        "0.1.0"
#define WARPLITE_VERSION_NUMBER 1000 /* major*1000000 + minor*1000 + patch */

#if defined(__GNUC__)
#define WARPLITE_API __attribute__((visibility("default")))
#else
#define WARPLITE_API
#endif

/*
** Makes warplite available on one connection: the SQL functions warplite_version(),
** warplite_set(name, value), warplite_reason(), warplite_load(table),
** warplite_unload(table), warplite_convert(table) and warplite_check(table), the tables
** warplite_devices, warplite_cache and warplite_log, and the module tablet of CREATE VIRTUAL
** TABLE. Settings in the environment variable WARPLITE_SET
** (for example "engine=cpu,strict=1") are applied; one that is unknown or malformed
** makes the call fail with SQLITE_ERROR. Calling it twice is harmless.
** All that warplite keeps for the connection goes away with sqlite3_close(). Columns in memory are
** shared by the connections of the process that see the same version of a file, and go with the
** last of them. Together they may take the largest host_budget among the open connections; what
** one statement loads must fit the host_budget of its own connection.
** SQLITE_MISUSE if db is NULL.
*/
WARPLITE_API int warplite_enable(sqlite3 *db);

/*
** As sqlite3_prepare_v2(), same arguments, same results, same error codes and
** messages (read by sqlite3_errmsg). Where warplite takes the query, the statement
** runs natively when it is stepped; warplite_reason() says who ran it and why.
** Running it takes a shared lock on "main" too, even where the query reads only other
** databases.
** Enables warplite on the connection if that was not done. The caller owns *ppStmt
** and passes it to sqlite3_finalize().
** sqlite3_sql() of a statement that was taken shows the rewritten text. Its columns are those it
** was prepared with: where ALTER TABLE or a new view would change their number, names or declared
** types, sqlite3_step() fails with SQLITE_ERROR and a message that says so, and it must be prepared
** again. (SQLite's own statements gain and rename columns by themselves.)
*/
WARPLITE_API int warplite_prepare(sqlite3 *db, const char *zSql, int nByte, sqlite3_stmt **ppStmt,
                                  const char **pzTail);

/*
** As sqlite3_set_authorizer(): same arguments, same results. The authorizer is asked what SQLite
** asks about a statement when it prepares it, and nothing about warplite's own statements. A
** statement that gets IGNORE for an answer is run by SQLite, and warplite_reason() says so. EXPLAIN
** ANALYZE and warplite_convert() fail then. Enables warplite on the connection if that was not done.
**
** warplite must see which authorizer a connection has, and SQLite cannot be asked. A program that is
** linked with -lwarplite before -lsqlite3 need not call this: its calls of sqlite3_set_authorizer()
** come here by themselves. A program that has a SQLite of its own inside, or that finds SQLite's
** function by dlsym(), must. Of an authorizer that warplite does not see, DENY works, and columns of
** tables that it hides by IGNORE stay hidden; IGNORE of functions and of a view's columns does not
** work, and it is asked about warplite's own statements as well: those on the tables behind a tablet
** table (t_info, t_delta, …), which it must allow where the table itself is read or written.
*/
WARPLITE_API int warplite_set_authorizer(sqlite3 *db,
                                         int (*xAuth)(void *, int, const char *, const char *,
                                                      const char *, const char *),
                                         void *pArg);

/*
** Why the latest statement prepared through warplite on this connection went where
** it went. The text begins with the engine: "cpu", "gpu" or "sqlite", then ": " and
** the reason in words. Valid until the next warplite call on the connection.
** Never NULL.
*/
WARPLITE_API const char *warplite_reason(sqlite3 *db);

/*
** The message of the latest warplite_enable() or warplite_query() that failed on this
** connection, or of a stream that it gave. Valid until the next warplite call. While
** warplite is not enabled on the connection: why the calling thread's latest try to enable
** it, by warplite_prepare() too, failed.
** Never NULL.
*/
WARPLITE_API const char *warplite_errmsg(sqlite3 *db);

/*
** Sets a function that is told how far the reading of a table into memory has come, for
** a progress bar; NULL ends that. It is called on the thread that runs the statement: with
** nDone 0 when the reading begins, now and then while it goes on (nDone < nTotal; rows or
** pages, nTotal may be an estimate and change), and with nDone == nTotal when it is over,
** whether it succeeded or not. zTable is the table's name, valid for the call. The function
** must not use the connection, but for sqlite3_interrupt().
*/
WARPLITE_API int warplite_progress(sqlite3 *db,
                                   void (*xProgress)(void *pArg, const char *zTable,
                                                     sqlite3_int64 nDone, sqlite3_int64 nTotal),
                                   void *pArg);

/* The version string, as the SQL function warplite_version() gives it. */
WARPLITE_API const char *warplite_version(void);

/*
** The Arrow C data and C stream interface, as their specification lays them out.
*/
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};
#endif

/*
** Runs one SELECT, or EXPLAIN [QUERY PLAN | ANALYZE] of one, and gives its rows as an Arrow
** stream of struct arrays, one child a result column, in batches. A query that warplite does
** not take runs in SQLite and comes out through the same stream. Parameters in the text are NULL.
**
** Column types, one for the whole stream and settled before its first row is computed: by
** what the values can be, going by the types and ranges of what the table's columns hold
** now. A value that the WHERE clause or LIMIT drops, or that only might have come of an
** expression, therefore counts too (where SQLite runs the query, only those that came do):
**   only integers  int64 ("l")        only text   utf8 ("u")
**   only reals     float64 ("g")      only blobs  binary ("z")
**   integers and reals, every integer exact as a real: float64
**   any other mixture: dense union ("+ud:0,1,2,3") of int64, float64, utf8, binary
**   nothing but NULLs: by the affinity of the declared type (NUMERIC as float64), else
**   null ("n")
**
** The caller owns *out and calls out->release(out) before sqlite3_close(db). Arrays
** and schemas taken from the stream have their own release and may outlive it and
** the connection.
** The stream sees one snapshot: what was committed (or written by this connection)
** when warplite_query() was called.
**
** An error at a row (a function that fails, an interrupt) comes from get_next(), after the rows
** before it, as from sqlite3_step(); one before the first row may come from warplite_query()
** itself. Where SQLite has to go on behind rows that were given and a table has been written to
** since, get_next() fails and says so: run the query again.
*/
WARPLITE_API int warplite_query(sqlite3 *db, const char *zSql, struct ArrowArrayStream *out);

/*
** Appends the rows of an Arrow stream of struct arrays to a tablet table, in bulk: one child a
** column, in their order, of the formats u, U, z, Z, l, g or n. Values are brought to the columns'
** affinities as INSERT would bring them. Rows get the next rowids, or those of the INTEGER PRIMARY
** KEY. zSchema may be NULL: then the table is found as SQLite finds it. It may be inside a
** transaction; if it is not, it is one. The stream is released, also after an error.
** The result is SQLITE_OK, or with nothing appended, and the words in warplite_errmsg():
**   SQLITE_NOTFOUND    the table is not there, or is no tablet table
**   SQLITE_CONSTRAINT  a row breaks a constraint, or rowids do not rise above those that are
**                      there: INSERT row by row says which, or works
** or another code of SQLite's.
*/
WARPLITE_API int warplite_append(sqlite3 *db, const char *zSchema, const char *zTable,
                                 struct ArrowArrayStream *in);

/* The loadable extension's entry point. */
WARPLITE_API int sqlite3_warplite_init(sqlite3 *db, char **pzErrMsg, const void *pApi);

#ifdef __cplusplus
}
#endif
#endif /* WARPLITE_H */
