/*
** The interface of Sphyraena (Bakkum and Skadron, 2010) over warplite: stage data on a device, run
** SELECTs against it, and read each result as one block of rows.
**
**     sqlite3 *db;
**     sphyraena s;
**     sqlite3_open("test.db", &db);
**     sphyraena_init(&s, db, 10 << 20, 10 << 20, 1);
**     sphyraena_prepare_data(&s, "SELECT * FROM test_table");
**     sphyraena_transfer_data(&s);
**     sphyraena_select(&s, "SELECT column1, column2 FROM test_table WHERE column1 < column2", 0);
**     sphyraena_transfer_results(&s);
**     const sphyraena_results *res = s.results_cpu;       // row 10, column 1:
**     int64_t v = *(const int64_t *)(res->r + 10 * res->stride + res->offsets[1]);
**     sphyraena_cleanup(&s);
**     sqlite3_close(db);
**
** What is staged are columns of tables: those that the SELECT of sphyraena_prepare_data() reads, in
** whatever clause. Later SELECTs name the same tables and find the columns where they were put.
** Answers are always SQLite's for the database as it is at the time of the SELECT: a table that has
** changed is read again, and so is a column that was not staged. To work on a snapshot, or on the
** result of a join, keep it under a name first, with the SQL function warplite_load(name, select)
** of warplite.h, and stage that.
**
** Results: every int function returns SPHYRAENA_SUCCESS or one of the errors below. After an error
** sphyraena_errmsg() says what happened and what to do, and the sphyraena can be used further.
** Threads: one at a time may use a sphyraena. It uses its connection as any other statement does.
** Memory: sphyraena_cleanup() frees everything. Call it before sqlite3_close().
*/
#ifndef SPHYRAENA_H
#define SPHYRAENA_H

#include <stddef.h>
#include <stdint.h>
#include <sqlite3.h>
#include "warplite.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what functions return */

enum {
  SPHYRAENA_SUCCESS = 0,
  SPHYRAENA_ERR_MEM,          /* out of memory; more than data_size or results_size */
  SPHYRAENA_ERR_STMT,         /* the statement is invalid or failed, or was interrupted */
  SPHYRAENA_ERR_CUDAMEMCPY,   /* a copy to the device failed */
  SPHYRAENA_ERR_CUDAMALLOC,   /* the data does not fit into the device's memory */
  SPHYRAENA_ERR_DEVICE,       /* there is no such device, or it cannot be used */
  SPHYRAENA_ERR_CUDAFREE,     /* never returned: freeing does not fail here */
  SPHYRAENA_ERR_CUDAFREEHOST, /* never returned */
  SPHYRAENA_ERR_MISUSE /* not in the original: an argument is NULL, or a call comes too early */
};

/* ---- limits */

/* Programs that need more than this run on the CPU. */
#define SPHYRAENA_MAX_OPS          512 /* opcodes */
#define SPHYRAENA_GLOBAL_REGISTERS 32  /* accumulators of aggregates */
/* SQLite runs statements that need more than this. */
#define SPHYRAENA_REGISTERS   30000 /* registers of a row */
#define SPHYRAENA_MAX_COLUMNS 32767 /* columns of a result: SQLite's own limit */
/* Defaults of the fields threads_per_block and stream_width. */
#define SPHYRAENA_THREADS_PER_BLOCK 192
#define SPHYRAENA_STREAMWIDTH       3

/* ---- results */

/* The types of values are SQLite's own. */
enum {
  SPHYRAENA_INTEGER = SQLITE_INTEGER, /* int64_t */
  SPHYRAENA_REAL = SQLITE_FLOAT,      /* double */
  SPHYRAENA_TEXT = SQLITE_TEXT,       /* sphyraena_bytes; UTF-8 */
  SPHYRAENA_BLOB = SQLITE_BLOB,       /* sphyraena_bytes */
  SPHYRAENA_NULL = SQLITE_NULL,       /* zeros */
  SPHYRAENA_MIXED = 6                 /* of a column: its values have different types */
};

/* A text or blob: `size` bytes at r + at. A NUL follows, which is not counted. */
typedef struct sphyraena_bytes {
  int64_t at, size;
} sphyraena_bytes;

/*
** A result, in one block. The value of a row and column is at r + row*stride + offsets[col]. It is
** aligned to 8 bytes, and exact: integers have 64 bits, reals are doubles.
**
** The first bytes of each row are the types of its values, one byte for each column:
**
**     r + row*stride     | type 0 | type 1 | … | padding | value 0 | value 1 | … |
**
** types[col] is the type of all values of a column but NULL. It is SPHYRAENA_NULL if all are NULL
** or there are no rows, and SPHYRAENA_MIXED if there are several types; then the byte in the row
** says what the value is. Texts lie behind the last row. The layout depends on the values only, not
** on the device.
*/
typedef struct sphyraena_results {
  int64_t rows;
  int columns;
  size_t stride;            /* bytes from one row to the next */
  int *types;               /* [columns] */
  size_t *offsets;          /* [columns] */
  const char *const *names; /* [columns] as SQLite gives them */
  size_t size;              /* bytes of r */
  char *r;
} sphyraena_results;

/* The type of one value: never SPHYRAENA_MIXED. */
static inline int sphyraena_type(const sphyraena_results *res, int64_t row, int col) {
  return res->r[(size_t)row * res->stride + (size_t)col];
}
/* The address of one value. */
static inline const void *sphyraena_value(const sphyraena_results *res, int64_t row, int col) {
  return res->r + (size_t)row * res->stride + res->offsets[col];
}
/* The bytes of a text or blob. Its size is in the sphyraena_bytes at sphyraena_value(). */
static inline const char *sphyraena_text(const sphyraena_results *res, int64_t row, int col) {
  return res->r + ((const sphyraena_bytes *)sphyraena_value(res, row, col))->at;
}

/* ---- state */

/* Columns that are staged. */
typedef struct sphyraena_data {
  char *sql;  /* the SELECT that names them */
  int tables; /* they belong to so many tables */
  int columns;
  size_t size; /* their bytes */
} sphyraena_data;

struct sphyraena_rows; /* rows as the engine left them */

/*
** All fields are for reading, except threads_per_block and stream_width, which may be set between
** calls.
*/
typedef struct sphyraena {
  sqlite3 *db;
  sphyraena_data *data_cpu;           /* in main memory; NULL: nothing is staged */
  sphyraena_data *data_gpu;           /* on the device; NULL: nothing is there */
  sphyraena_results *results_cpu;     /* set by sphyraena_transfer_results() */
  struct sphyraena_rows *results_gpu; /* set by sphyraena_select() */
  sqlite3_stmt *stmt_cpu;             /* the latest SELECT. Bind values to its parameters, but do
                                      ** not step it; sphyraena_vm() runs it again */
  size_t data_size, results_size;
  int pinned_memory;
  int threads_per_block; /* of a device: the power of two below, from 32 to 512.
                         ** SPHYRAENA_THREADS_PER_BLOCK: the device chooses */
  int stream_width;      /* blocks in progress at once when data streams, 1 to 8 */
  const char *device;    /* "auto", "cpu", "cuda" or "sim" */
  int sqlite_code;       /* SQLite's code for the latest error, such as SQLITE_INTERRUPT */
  char message[256];     /* use sphyraena_errmsg() */
} sphyraena;

/*
** Initializes *s, whatever it holds, and enables warplite on the connection (warplite_enable()).
** data_size: the most bytes that staged columns may take. Columns are stored narrow: integers in 1
** to 8 bytes, reals in 4 or 8, repeated texts as numbers. results_size: the most bytes of a result,
** sphyraena_results.size. 0: no limit but warplite's settings host_budget and device_budget.
** pinned_memory: whether copies to the device go through pinned memory, which is faster.
** After an error *s is all zero, but for the message.
*/
WARPLITE_API int sphyraena_init(sphyraena *s, sqlite3 *db, size_t data_size, size_t results_size,
                                int pinned_memory);

/* Frees everything, and drops the staged columns from memory. Calling it again is harmless. */
WARPLITE_API int sphyraena_cleanup(sphyraena *s);

/*
** Chooses the device for all later calls (not in the original, which had one kind of device):
**   "auto"  what warplite chooses by the settings of the connection, by default the fastest for
**           each statement. This is the default
**   "cpu"   all cores
**   "cuda"  the GPU
**   "sim"   the GPU's kernels, simulated on the CPU; slow, for tests
** Except with "auto", every SELECT that can run there does, however small it is.
** What the device cannot run, the CPU runs, or SQLite; warplite_reason(s->db) says who ran the
** latest SELECT and why. Data that was on another device is no longer counted as transferred.
** SPHYRAENA_ERR_DEVICE: there is no such device; the one before stays.
*/
WARPLITE_API int sphyraena_set_device(sphyraena *s, const char *device);

/*
** Reads the columns that a SELECT names into main memory: those of all its tables, in joins and
** subqueries too, with all rows. If only SQLite can run it, all columns of its tables. Replaces
** what was staged before. The SELECT itself does not run.
** SPHYRAENA_ERR_STMT: it is invalid, and what was staged before stays; or it reads something that
** has no columns to keep, such as json_each(), and nothing is staged. The message says which.
** SPHYRAENA_ERR_MEM: it takes more than data_size or host_budget; nothing is staged.
*/
WARPLITE_API int sphyraena_prepare_data(sphyraena *s, const char *sql_stmt);

/*
** Copies the staged columns to the device, where they stay. Without a GPU there is nothing to do:
** data_gpu stays NULL. SELECTs work before this call too; the first then copies what it needs.
** SPHYRAENA_ERR_CUDAMALLOC: they do not fit. SELECTs with streaming work nevertheless.
*/
WARPLITE_API int sphyraena_transfer_data(sphyraena *s);

/*
** Runs a SELECT. Its rows stay where the engine leaves them until sphyraena_transfer_results().
** streaming: the columns pass through the device in blocks, while one is copied another runs, and
** nothing stays there. Otherwise columns that fit stay on the device. Parameters are NULL. The
** results of the SELECT before are freed.
** SPHYRAENA_ERR_MEM: the result takes more than results_size.
** SPHYRAENA_ERR_MISUSE: nothing is staged.
*/
WARPLITE_API int sphyraena_select(sphyraena *s, const char *sql_stmt, int streaming);

/* Run stmt_cpu again, with the values that are bound to it, without or with streaming. */
WARPLITE_API int sphyraena_vm(sphyraena *s);
WARPLITE_API int sphyraena_vm_streaming(sphyraena *s);

/* Brings the rows of the latest SELECT to results_cpu, where they stay until the next SELECT. */
WARPLITE_API int sphyraena_transfer_results(sphyraena *s);

/* Prints the names and the first n rows of the latest SELECT to stdout; all rows if n < 0. */
WARPLITE_API void sphyraena_print_results(sphyraena *s, int n);

/* The message of the latest call that failed. Never NULL. */
WARPLITE_API const char *sphyraena_errmsg(const sphyraena *s);

#ifdef __cplusplus
}
#endif
#endif /* SPHYRAENA_H */
