/*
** warplite: SQLite's SQL, with SQLite's answers, on a GPU or on all cores of the CPU.
**
** This header is the whole C interface and its manual. A program that uses SQLite
** already needs two calls:
**
**     sqlite3_open("sales.db", &db);
**     warplite_enable(db);                                  // once per connection
**     warplite_prepare(db, sql, -1, &stmt, &tail);          // instead of sqlite3_prepare_v2
**     while( sqlite3_step(stmt)==SQLITE_ROW ) ...           // everything else stays the same
**     sqlite3_finalize(stmt);
**
** The statement is a real sqlite3_stmt. Use it with SQLite's own bind, step, column, reset and
** finalize functions. A statement that warplite does not run is an unchanged statement of
** SQLite. warplite_query() returns rows as an Arrow C stream, which is faster for many rows.
**
** The same shared library is a SQLite loadable extension. Its entry point is
** sqlite3_warplite_init(). Loading it does the same as warplite_enable().
**
** Results: every int is a SQLite result code.
** Threads: the threading mode of the connection applies to these calls too.
** Memory: columns in memory are shared by all connections of the process that see the same
** version of the same file. docs/limits.md lists the databases whose columns are private.
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
** Makes warplite available on one connection. This adds
**   functions  warplite_version(), warplite_set(name, value), warplite_reason(),
**              warplite_load(table), warplite_load(name, select), warplite_unload(table),
**              warplite_sql(text),
**              warplite_convert(table [, 'tablet' or 'table']), warplite_check(table)
**   tables     warplite_devices, warplite_cache, warplite_log
**   modules    tablet and warplite, for CREATE VIRTUAL TABLE
** and applies the settings in the environment variable WARPLITE_SET, for example
** "engine=cpu,strict=1".
**
** warplite_sql(text) is for programs that load the extension and cannot call warplite_prepare(). It
** returns the text to prepare instead: a SELECT with the same columns (names and declared types) and
** the same parameters. Where SQLite is to run the statement, it returns the text as it is. An error in
** the text is an error of the function. A returned text belongs to this connection.
**
** warplite_load(name, select) runs a SELECT, keeps its rows under the name, reads them into memory
** and returns their number. Later statements of the connection use the name like a table. It is a
** temporary tablet table with the columns that CREATE TEMP TABLE name AS select gives. Another call
** with the same name replaces the rows; the SELECT may read the old ones. DROP TABLE removes them.
** Any other table or view of that name is an error. After an error nothing has changed.
**
** CREATE VIRTUAL TABLE temp.q USING warplite('SELECT ...') makes a statement a table. Each scan runs
** the statement. The table must be temporary, and the statement has no parameters.
**
** The library finds SQLite in the program or in a shared library, also in one that was loaded for
** another library alone (RTLD_LOCAL), as Python's is. db must belong to that SQLite.
**
** Calling it twice is harmless. sqlite3_close() frees everything that belongs to the connection.
** Connections of one process that see the same version of a file share its columns, which are freed
** with the last of them. Together they may use the largest host_budget of the open connections; what
** one statement loads must fit the host_budget of its own connection.
** Results: SQLITE_OK; SQLITE_MISUSE if db is NULL; SQLITE_ERROR if a setting in WARPLITE_SET is
** unknown or malformed, or if SQLite is older than 3.38. warplite_errmsg() has the message.
*/
WARPLITE_API int warplite_enable(sqlite3 *db);

/*
** Like sqlite3_prepare_v2(): same arguments, results, error codes and messages (read them with
** sqlite3_errmsg()). If warplite can run the query, and expects to be faster than SQLite, the
** statement runs natively when it is stepped. warplite_reason() says which engine ran it and why.
** Enables warplite on the connection if necessary. The caller owns *ppStmt and passes it to
** sqlite3_finalize().
**
** Native statements differ from SQLite's own in these ways:
**   - Running one takes a shared lock on "main", even if it reads only other databases.
**   - sqlite3_sql() returns the rewritten text.
**   - It keeps the columns that it was prepared with. If ALTER TABLE or a new view would change
**     their number, names or declared types, sqlite3_step() fails with SQLITE_ERROR and a message
**     that says so. Prepare the statement again. (SQLite's own statements adapt by themselves.)
**
** EXPLAIN QUERY PLAN of a SELECT begins with the engine that would run it with the same parameters,
** and the reason. To know them, it prepares the run in full: it may load columns and run subqueries.
** Some things show only during a run: a function raises an error, LIMIT cuts between rows that
** ORDER BY treats as equal, a sum overflows on a device, or memory runs out. Then another engine may
** take over, and warplite_reason() says so after the run. After EXPLAIN QUERY PLAN it gives the
** engine and reason that the plan shows.
*/
WARPLITE_API int warplite_prepare(sqlite3 *db, const char *zSql, int nByte, sqlite3_stmt **ppStmt,
                                  const char **pzTail);

/*
** Like sqlite3_set_authorizer(): same arguments, same results. The authorizer is asked the
** questions that SQLite asks when it prepares a statement, and nothing about warplite's own
** statements. If it answers SQLITE_IGNORE, SQLite runs the statement, and warplite_reason() says
** so; EXPLAIN ANALYZE and warplite_convert() fail. Enables warplite on the connection if necessary.
**
** warplite must know the authorizer of a connection, and SQLite has no call that returns it.
** A program that is linked with -lwarplite before -lsqlite3 need not call this function: its calls
** of sqlite3_set_authorizer() arrive here. A program that contains its own SQLite, or that finds
** SQLite's function by dlsym(), must call it.
**
** If warplite does not know the authorizer:
**   - SQLITE_DENY works, with one exception: if the program is linked with -lwarplite, the authorizer
**     is not asked again about a text that ran natively before. Columns of tables that it hides with
**     SQLITE_IGNORE stay hidden.
**   - SQLITE_IGNORE for functions and for columns of views does not work.
**   - The authorizer is also asked about warplite's own statements. It must allow reading and
**     writing the tables behind a tablet table t (t_info, t_delta, ...) wherever it allows this
**     for t.
*/
WARPLITE_API int warplite_set_authorizer(sqlite3 *db,
                                         int (*xAuth)(void *, int, const char *, const char *,
                                                      const char *, const char *),
                                         void *pArg);

/*
** Which engine the latest statement of this connection used, and why. This counts statements of
** warplite_prepare() and warplite_query(). The text is "cpu", "gpu" or "sqlite", then ": " and the
** reason in words. It is updated when a statement is prepared and again when it runs.
** Valid until the next warplite call on the connection. Never NULL.
*/
WARPLITE_API const char *warplite_reason(sqlite3 *db);

/*
** The message of the latest warplite_enable(), warplite_query(), warplite_query_device() or warplite_append() that failed
** on this connection, or of a stream of rows on the host that failed. If warplite is not enabled on
** the connection: why the calling thread's latest attempt to enable it failed, including attempts
** by warplite_prepare(). Valid until the next warplite call. Never NULL.
** For errors of warplite_prepare() and sqlite3_step() use sqlite3_errmsg().
*/
WARPLITE_API const char *warplite_errmsg(sqlite3 *db);

/*
** Sets a function that reports the progress of reading a table into memory, for example for a
** progress bar. NULL removes it. It is called on the thread that runs the statement:
**   - once with nDone == 0 when the reading begins;
**   - repeatedly with nDone < nTotal while it continues. Both count rows or pages. nTotal may be an
**     estimate and may change;
**   - once with nDone == nTotal when it is over, whether it succeeded or not.
** zTable is the table's name, valid during the call. The function must not use the connection,
** except with sqlite3_interrupt().
*/
WARPLITE_API int warplite_progress(sqlite3 *db,
                                   void (*xProgress)(void *pArg, const char *zTable,
                                                     sqlite3_int64 nDone, sqlite3_int64 nTotal),
                                   void *pArg);

/* The version string, the same as from the SQL function warplite_version(). */
WARPLITE_API const char *warplite_version(void);

/*
** The Arrow C data interface and C stream interface, as in their specification.
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
** The Arrow C device data interface and C device stream interface, as in their specification.
*/
#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE

typedef int32_t ArrowDeviceType;

#define ARROW_DEVICE_CPU          1
#define ARROW_DEVICE_CUDA         2
#define ARROW_DEVICE_CUDA_HOST    3
#define ARROW_DEVICE_OPENCL       4
#define ARROW_DEVICE_VULKAN       7
#define ARROW_DEVICE_METAL        8
#define ARROW_DEVICE_VPI          9
#define ARROW_DEVICE_ROCM         10
#define ARROW_DEVICE_ROCM_HOST    11
#define ARROW_DEVICE_EXT_DEV      12
#define ARROW_DEVICE_CUDA_MANAGED 13
#define ARROW_DEVICE_ONEAPI       14
#define ARROW_DEVICE_WEBGPU       15
#define ARROW_DEVICE_HEXAGON      16

struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  ArrowDeviceType device_type;
  void *sync_event;
  int64_t reserved[3];
};
#endif

#ifndef ARROW_C_DEVICE_STREAM_INTERFACE
#define ARROW_C_DEVICE_STREAM_INTERFACE
struct ArrowDeviceArrayStream {
  ArrowDeviceType device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowDeviceArrayStream *, struct ArrowDeviceArray *out);
  const char *(*get_last_error)(struct ArrowDeviceArrayStream *);
  void (*release)(struct ArrowDeviceArrayStream *);
  void *private_data;
};
#endif

/*
** Runs one statement that returns rows, such as SELECT, EXPLAIN or INSERT ... RETURNING, and
** returns its rows as an Arrow stream. The stream consists of struct arrays (batches) with one child
** per result column. A statement that warplite does not run natively runs in SQLite, and its rows
** come through the same stream; in that case all rows are collected before the first batch.
** Parameters in the text are NULL; warplite_query_stmt() takes values for them. Text after the first
** statement is ignored.
**
** Each column has one type for the whole stream:
**   only integers  int64 ("l")        only text   utf8 ("u")
**   only reals     float64 ("g")      only blobs  binary ("z")
**   integers and reals, if every integer is exact as a real: float64
**   any other mixture: dense union ("+ud:0,1,2,3") of int64, float64, utf8, binary
**   only NULLs: by the affinity of the declared type (NUMERIC as float64), else null ("n")
** The types are fixed before the first row is computed. They follow from the types and ranges of
** the values that the table's columns hold now. So a value counts even if WHERE or LIMIT drops it,
** or if an expression could return it but does not. If SQLite runs the query, only the actual
** values count.
**
** Ownership: the caller owns *out and calls out->release(out) before sqlite3_close(db). Arrays and
** schemas taken from the stream have their own release. They may outlive the stream and the
** connection.
**
** The stream sees one snapshot: what was committed, or written by this connection, when
** warplite_query() was called.
**
** Errors: an error at a row (a function fails, an interrupt) comes from get_next(), after the rows
** before it, as from sqlite3_step(). An error before the first row may come from warplite_query()
** itself. Sometimes SQLite has to continue a query after the first rows. If a table has been
** written to since then, get_next() fails with a message that says so. Run the query again.
*/
WARPLITE_API int warplite_query(sqlite3 *db, const char *zSql, struct ArrowArrayStream *out);

/*
** The same for a prepared statement, with the values that are bound to its parameters:
**
**     warplite_prepare(db, "SELECT x, y FROM t WHERE z > ?1", -1, &stmt, NULL);
**     sqlite3_bind_int(stmt, 1, 7);
**     warplite_query_stmt(stmt, &stream);
**
** The statement may come from warplite_prepare() or from sqlite3_prepare_v2(). Only its text and its
** bindings are used. It is not stepped, keeps its bindings, and may be changed or finalized while the
** stream is open.
** Results: as warplite_query(); SQLITE_MISUSE if the statement is running (sqlite3_stmt_busy()).
** SQLITE_ERROR if it has parameters and SQLite was built without its deprecated functions.
*/
WARPLITE_API int warplite_query_stmt(sqlite3_stmt *pStmt, struct ArrowArrayStream *out);

/*
** The same rows as from warplite_query(), left in the memory of the GPU if the GPU has computed
** them, for a program that goes on there:
**
**     warplite_query_device(db, "SELECT x, y FROM t WHERE z > 7", &stream);
**     stream.get_schema(&stream, &schema);
**     while( stream.get_next(&stream, &a)==0 && a.array.release ){
**       if( a.device_type==ARROW_DEVICE_CUDA ) ...   // buffers are addresses on the GPU
**       a.array.release(&a.array);
**     }
**     stream.release(&stream);
**
** out->device_type says where the rows are. It is the same for all arrays of the stream.
**
**   ARROW_DEVICE_CUDA  All rows are on the GPU, and the statement has ended when
**                      warplite_query_device() returns. device_id is the number of the GPU as the
**                      CUDA runtime counts in this process; it is always 0. sync_event is NULL:
**                      get_next() gives an array when all work on it is done, so any CUDA stream
**                      may read it at once. Texts are large_utf8 ("U") and blobs large_binary ("Z"),
**                      with 64-bit offsets; a text column is never dictionary-encoded. Other columns
**                      have the types of warplite_query(). There are no unions.
**   ARROW_DEVICE_CPU   The rows are on the host. device_id is -1 and sync_event NULL. The schema and
**                      the arrays are those of warplite_query(). This happens if
**                        - the CPU or SQLite runs the statement, or its last step;
**                        - a column may have values of several types (it would be a union);
**                        - the memory of the GPU, or device_budget, has no room for the rows.
**                      warplite_reason() says why. If the GPU finds out late, the statement runs
**                      twice.
** With the simulator (device=sim), the memory of the device is that of the host. Its rows have the
** layout of rows on the GPU ("U", "Z"), and the device type ARROW_DEVICE_CPU.
**
** Ownership: the caller owns *out and calls out->release(out) before sqlite3_close(db). Schemas and
** arrays taken from the stream have their own release (array.release). They may outlive the stream,
** the statement and the connection.
** Threads: one thread at a time may use a stream. Any thread may release arrays, children that were
** moved out of them too. Rows on the GPU must not be in use there when they are released: first
** wait for the kernels that read them.
** Memory: the rows stay until the last array that shares them is released. Other statements never
** evict or change them. Until then they count as used by device_budget, and leave less memory of the
** GPU to the columns and statements of all connections of the process. Memory that was released goes
** to the pool of the GPU's memory that this process uses.
** After fork(), the child cannot read rows that are on the GPU. Releasing them there is harmless.
**
** Snapshot and errors: as with warplite_query(). An error at a row comes from get_next() of a stream
** of rows on the host. get_next() of a stream of rows on the GPU fails only with ENOMEM. An
** interrupt ends warplite_query_device() with SQLITE_INTERRUPT.
*/
WARPLITE_API int warplite_query_device(sqlite3 *db, const char *zSql,
                                       struct ArrowDeviceArrayStream *out);

/*
** The same for a prepared statement, with the values that are bound to its parameters. What
** warplite_query_stmt() says about the statement and the result code is true here, too.
*/
WARPLITE_API int warplite_query_stmt_device(sqlite3_stmt *pStmt,
                                            struct ArrowDeviceArrayStream *out);

/*
** Appends the rows of an Arrow stream to a tablet table, in bulk. The stream consists of struct
** arrays with one child per column of the table, in the same order. The formats are u, U, z, Z, l,
** g and n. Values are converted to the affinities of the columns, as by INSERT. Rows get
** the next rowids, or those in the column that is the INTEGER PRIMARY KEY.
**
** zSchema is the name of the database ("main", ...). If it is NULL, the table is found as SQLite
** finds it. The call may be part of a transaction. Otherwise it is a transaction of its own.
** The stream is always released, even after an error.
**
** Results: SQLITE_OK. With any other code nothing was appended, and warplite_errmsg() has the
** message:
**   SQLITE_NOTFOUND    there is no such table, or it is not a tablet table
**   SQLITE_CONSTRAINT  a row breaks a constraint, or the rowids do not rise above the existing
**                      ones. INSERT of single rows works, or says which row it is
**   or another code of SQLite.
*/
WARPLITE_API int warplite_append(sqlite3 *db, const char *zSchema, const char *zTable,
                                 struct ArrowArrayStream *in);

/* The entry point of the loadable extension. SQLite calls it. */
WARPLITE_API int sqlite3_warplite_init(sqlite3 *db, char **pzErrMsg, const void *pApi);

#ifdef __cplusplus
}
#endif
#endif /* WARPLITE_H */
