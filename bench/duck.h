/*
** DuckDB, as one more side to compare with: its shared library opened at run time, the
** few calls of its C interface used here declared by hand.
**
** 1. Nothing of DuckDB is needed to build: no library, or one without these calls, means
**    that the side is left out, with the reason in why.
** 2. Tables are written into a file once. Cold runs open it; for the others its tables are copied
**    into a database in memory.
*/
#ifndef BENCH_DUCK_H
#define BENCH_DUCK_H

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "digest.h"

typedef struct {
  uint64_t column_count, row_count, rows_changed;
  void *columns;
  char *error_message;
  void *internal;
} duck_result;

enum {
  DUCK_TINYINT = 2,
  DUCK_SMALLINT,
  DUCK_INTEGER,
  DUCK_BIGINT,
  DUCK_FLOAT = 10,
  DUCK_DOUBLE,
  DUCK_DATE = 13,
  DUCK_HUGEINT = 16,
  DUCK_VARCHAR
};

/* A sum of integers; those of these queries fit into the lower half. */
typedef struct {
  uint64_t lower;
  int64_t upper;
} duck_hugeint;

/* Up to 12 bytes stand right behind the length, longer ones where the pointer says. */
typedef struct {
  uint32_t n;
  char prefix[4];
  const char *there;
} duck_text;

/* name in the library is "duckdb_" and the name here */
#define DUCK_CALLS(X)                                                                              \
  X(const char *, library_version, (void))                                                         \
  X(int, open, (const char *path, void **db))                                                      \
  X(void, close, (void **db))                                                                      \
  X(int, connect, (void *db, void **con))                                                          \
  X(void, disconnect, (void **con))                                                                \
  X(int, query, (void *con, const char *sql, duck_result *out))                                    \
  X(const char *, result_error, (duck_result * r))                                                 \
  X(void, destroy_result, (duck_result * r))                                                       \
  X(uint64_t, column_count, (duck_result * r))                                                     \
  X(int, column_type, (duck_result * r, uint64_t c))                                               \
  X(void *, fetch_chunk, (duck_result r))                                                          \
  X(uint64_t, data_chunk_get_size, (void *chunk))                                                  \
  X(void *, data_chunk_get_vector, (void *chunk, uint64_t c))                                      \
  X(void *, vector_get_data, (void *vector))                                                       \
  X(uint64_t *, vector_get_validity, (void *vector))                                               \
  X(void, destroy_data_chunk, (void **chunk))                                                      \
  X(int, appender_create, (void *con, const char *schema, const char *table, void **out))          \
  X(int, appender_end_row, (void *appender))                                                       \
  X(int, appender_destroy, (void **appender))                                                      \
  X(int, append_int32, (void *appender, int32_t v))                                                \
  X(int, append_int64, (void *appender, int64_t v))                                                \
  X(int, append_date, (void *appender, int32_t days))                                              \
  X(int, append_double, (void *appender, double v))                                                \
  X(int, append_varchar_length, (void *appender, const char *v, uint64_t n))

struct duck {
  void *lib, *db, *con;
  int n_threads; /* that were set; 0: as it opens */
#define X(result, name, arguments) result(*name) arguments;
  DUCK_CALLS(X)
#undef X
};

static inline void duck_close(struct duck *d) {
  if (d->con) d->disconnect(&d->con);
  if (d->db) d->close(&d->db);
  /* the library stays: unloading one that has had threads is asking for trouble */
  d->db = d->con = NULL;
  d->n_threads = 0;
}

static inline bool duck_find(struct duck *d, const char *path, char *why, size_t n_why) {
  memset(d, 0, sizeof *d);
  d->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!d->lib) {
    snprintf(why, n_why, "%s", dlerror());
    return false;
  }
#define X(result, name, arguments)                                                                 \
  *(void **)&d->name = dlsym(d->lib, "duckdb_" #name);                                             \
  if (!d->name) {                                                                                  \
    snprintf(why, n_why, "%s has no duckdb_" #name, path);                                         \
    return false;                                                                                  \
  }
  DUCK_CALLS(X)
#undef X
  return true;
}

static inline bool duck_exec(struct duck *d, const char *sql, char *why, size_t n_why) {
  duck_result r;
  bool ok = d->query(d->con, sql, &r) == 0;
  if (!ok) snprintf(why, n_why, "%s", d->result_error(&r));
  d->destroy_result(&r);
  return ok;
}

/* Opens a file, or a database in memory where path is NULL. */
static inline bool duck_open(struct duck *d, const char *path, char *why, size_t n_why) {
  duck_close(d);
  if (d->open(path, &d->db) == 0 && d->connect(d->db, &d->con) == 0) return true;
  snprintf(why, n_why, "cannot open %.400s", path ? path : "a database in memory");
  duck_close(d);
  return false;
}

/* A database in memory with the tables of a file. */
static inline bool duck_copy(struct duck *d, const char *path, char *why, size_t n_why) {
  char attach[600];
  snprintf(attach, sizeof attach, "ATTACH '%s' AS filed (READ_ONLY)", path);
  return duck_open(d, NULL, why, n_why) && duck_exec(d, attach, why, n_why) &&
         duck_exec(d, "COPY FROM DATABASE filed TO memory", why, n_why) &&
         duck_exec(d, "DETACH filed", why, n_why);
}

static inline bool duck_threads(struct duck *d, int n, char *why, size_t n_why) {
  char sql[64];
  if (d->n_threads == n) return true;
  snprintf(sql, sizeof sql, "SET threads = %d", n);
  d->n_threads = n;
  return duck_exec(d, sql, why, n_why);
}

/*
** Fills a file of DuckDB's, if it is not there yet. It is written under another name and renamed
** when it is whole. fill() writes the tables of `what` into the open database.
*/
typedef bool duck_fill_fn(struct duck *d, const void *what, char *why, size_t n_why);

static inline bool duck_make_file(struct duck *d, const char *path, duck_fill_fn *fill,
                                  const void *what, char *why, size_t n_why) {
  char part[600];
  if (access(path, R_OK) == 0) return true;
  snprintf(part, sizeof part, "%s.part-%d", path, (int)getpid());
  bool ok = duck_open(d, part, why, n_why) && fill(d, what, why, n_why) &&
            duck_exec(d, "CHECKPOINT", why, n_why);
  duck_close(d);
  if (ok && rename(part, path) != 0) {
    snprintf(why, n_why, "%.400s cannot be renamed", part);
    ok = false;
  }
  if (!ok) remove(part);
  return ok;
}

static inline bool duck_value(struct digest *d, int c, int type, const void *data, uint64_t i) {
  switch (type) {
  case DUCK_TINYINT: digest_int(d, c, ((const int8_t *)data)[i]); return true;
  case DUCK_SMALLINT: digest_int(d, c, ((const int16_t *)data)[i]); return true;
  case DUCK_INTEGER: digest_int(d, c, ((const int32_t *)data)[i]); return true;
  case DUCK_BIGINT: digest_int(d, c, ((const int64_t *)data)[i]); return true;
  case DUCK_FLOAT: digest_real(d, c, ((const float *)data)[i]); return true;
  case DUCK_DOUBLE: digest_real(d, c, ((const double *)data)[i]); return true;
  case DUCK_HUGEINT: {
    duck_hugeint v = ((const duck_hugeint *)data)[i];
    digest_int(d, c, (int64_t)v.lower);
    return v.upper == (int64_t)v.lower >> 63;
  }
  case DUCK_DATE: {
    char text[32];
    time_t seconds = (time_t)((const int32_t *)data)[i] * 86400;
    struct tm t;
    gmtime_r(&seconds, &t);
    digest_bytes(d, c, SQLITE_TEXT, text, (int64_t)strftime(text, sizeof text, "%Y-%m-%d", &t));
    return true;
  }
  case DUCK_VARCHAR: {
    const duck_text *t = (const duck_text *)data + i;
    digest_bytes(d, c, SQLITE_TEXT, t->n <= 12 ? (const char *)t + 4 : t->there, t->n);
    return true;
  }
  default: return false;
  }
}

static inline uint64_t duck_width(int type) {
  switch (type) {
  case DUCK_TINYINT: return 1;
  case DUCK_SMALLINT: return 2;
  case DUCK_INTEGER:
  case DUCK_DATE:
  case DUCK_FLOAT: return 4;
  case DUCK_BIGINT:
  case DUCK_DOUBLE: return 8;
  case DUCK_HUGEINT: return sizeof(duck_hugeint);
  case DUCK_VARCHAR: return sizeof(duck_text);
  default: return 0; /* not one of these queries' types: the first byte, twice */
  }
}

/* Runs one query and reads its chunks, whole or by first and last value. */
static inline bool duck_run(struct duck *k, const char *sql, struct digest *d, char *why,
                            size_t n_why) {
  duck_result r;
  bool ok = false;
  void *chunk;
  if (k->query(k->con, sql, &r)) {
    snprintf(why, n_why, "%s", k->result_error(&r));
    goto done;
  }
  d->n_columns = (int)k->column_count(&r);
  while ((chunk = k->fetch_chunk(r))) {
    uint64_t n = k->data_chunk_get_size(chunk);
    if (d->full) digest_begin(d, (int64_t)n);
    for (int c = 0; c < d->n_columns && n > 0; c++) {
      int type = k->column_type(&r, (uint64_t)c);
      void *vector = k->data_chunk_get_vector(chunk, (uint64_t)c);
      const void *data = k->vector_get_data(vector);
      const uint64_t *valid = k->vector_get_validity(vector);
      if (d->full) {
        for (uint64_t i = 0; i < n; i++) {
          d->at = (int64_t)i;
          if (valid && !(valid[i >> 6] >> (i & 63) & 1)) {
            digest_null(d, c);
          } else if (!duck_value(d, c, type, data, i)) {
            snprintf(why, n_why, "column %d has DuckDB's type %d", c, type);
            k->destroy_data_chunk(&chunk);
            goto done;
          }
        }
      } else {
        const unsigned char *bytes = data;
        d->touched ^= (uint64_t)bytes[0] ^ bytes[(n - 1) * duck_width(type)];
      }
    }
    if (d->full) digest_end(d, (int64_t)n);
    d->n_rows += (int64_t)n;
    k->destroy_data_chunk(&chunk);
  }
  ok = true;
done:
  digest_free(d);
  k->destroy_result(&r);
  return ok;
}

#endif
