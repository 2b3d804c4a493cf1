/*
** DuckDB, as one more side to compare with: its shared library opened at run time, the
** few calls of its C interface used here declared by hand.
**
** 1. Nothing of DuckDB is needed to build: no library, or one without these calls, means
**    that the side is left out, with the reason in why.
** 2. Integer columns are INTEGER. Real columns are DOUBLE by default, for SQLite's
**    arithmetic and so SQLite's rows; FLOAT on request, which is half the bytes.
** 3. There is no index on id: none of the queries could use it.
*/
#ifndef BENCH_DUCK_H
#define BENCH_DUCK_H

#include <dlfcn.h>
#include <time.h>
#include "digest.h"
#include "suite.h"

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
#define X(result, name, arguments) result(*name) arguments;
  DUCK_CALLS(X)
#undef X
};

static inline void duck_close(struct duck *d) {
  if (d->con) d->disconnect(&d->con);
  if (d->db) d->close(&d->db);
  /* the library stays: unloading one that has had threads is asking for trouble */
  d->db = d->con = NULL;
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

static inline bool duck_load_strings(struct duck *d, const struct suite *s, int64_t n_rows,
                                     char *why, size_t n_why) {
  void *app = NULL;
  int failed = 0;
  char text[STRING_MAX];
  if (!duck_exec(d, "CREATE TABLE strings(id INTEGER, s VARCHAR, kind VARCHAR)", why, n_why))
    return false;
  failed = d->appender_create(d->con, NULL, "strings", &app);
  struct generator g = generator_start(s);
  for (int64_t id = 1; id <= n_rows && !failed; id++) {
    int n = string_of(&g, id, text);
    const char *kind = kind_of(&g);
    failed |= d->append_int32(app, (int32_t)id);
    failed |= d->append_varchar_length(app, text, (uint64_t)n);
    failed |= d->append_varchar_length(app, kind, strlen(kind));
    failed |= d->appender_end_row(app);
  }
  if (app) failed |= d->appender_destroy(&app);
  if (failed) snprintf(why, n_why, "appending strings failed");
  return !failed;
}

/* A fresh in-memory database with the suite's tables. */
static inline bool duck_load(struct duck *d, const struct suite *s, int64_t n_rows, bool as_float,
                             char *why, size_t n_why) {
  void *app = NULL;
  int failed = 0;
  char ddl[256];
  const char *real = as_float ? "FLOAT" : "DOUBLE";
  duck_close(d);
  if (d->open(NULL, &d->db) || d->connect(d->db, &d->con)) {
    snprintf(why, n_why, "cannot open an in-memory database");
    return false;
  }
  snprintf(ddl, sizeof ddl,
           "CREATE TABLE test(id INTEGER, uniformi INTEGER, normali5 INTEGER, normali20 INTEGER, "
           "uniformf %s, normalf5 %s, normalf20 %s)",
           real, real, real);
  if (!duck_exec(d, ddl, why, n_why)) return false;
  if (d->appender_create(d->con, NULL, "test", &app)) {
    snprintf(why, n_why, "cannot append to its table");
    failed = 1;
  }
  struct generator g = generator_start(s);
  for (int64_t n = 0; n < n_rows && !failed; n++) {
    struct row r;
    generator_row(&g, &r);
    failed |= d->append_int32(app, (int32_t)r.id);
    for (int k = 0; k < 3; k++) failed |= d->append_int32(app, r.i[k]);
    for (int k = 0; k < 3; k++) failed |= d->append_double(app, r.f[k]);
    failed |= d->appender_end_row(app);
    if (failed) snprintf(why, n_why, "appending row %lld failed", (long long)n);
  }
  if (app && d->appender_destroy(&app) && !failed) {
    snprintf(why, n_why, "its appender failed at the end");
    failed = 1;
  }
  if (!failed && s->strings) return duck_load_strings(d, s, n_rows, why, n_why);
  return !failed;
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
