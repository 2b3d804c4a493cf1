/*
** Fills the tables of the one-table suites: a file of SQLite's and one of DuckDB's.
**
** Stands between the suites (suite.h, onetable.h), which say what the rows are, and bench.c.
**
** 1. A file is written under another name and renamed when it is whole. Its name has the suite, the
**    number of rows and TABLES_VERSION, of DuckDB's also the version of DuckDB; a file of that name
**    is taken as it is.
** 2. In DuckDB integer columns are INTEGER. Real columns are DOUBLE by default, for SQLite's
**    arithmetic and so SQLite's rows; FLOAT on request, which is half the bytes.
** 3. DuckDB has no index on id: none of the queries could use it.
*/
#ifndef BENCH_TABLES_H
#define BENCH_TABLES_H

#include "side.h"
#include "suite.h"

enum { TABLES_VERSION = 1 }; /* to be raised with every change of the rows */

/* Fills the table of strings, inside the caller's transaction. */
static inline bool sqlite_load_strings(sqlite3 *db, const struct suite *s, int64_t n_rows) {
  sqlite3_stmt *stmt = NULL;
  char text[STRING_MAX];
  bool ok =
      sqlite3_exec(db, "CREATE TABLE strings(id INTEGER PRIMARY KEY, s TEXT, kind TEXT)", NULL,
                   NULL, NULL) == SQLITE_OK &&
      sqlite3_prepare_v2(db, "INSERT INTO strings VALUES(?,?,?)", -1, &stmt, NULL) == SQLITE_OK;
  struct generator g = generator_start(s);
  for (int64_t id = 1; id <= n_rows && ok; id++) {
    int n = string_of(&g, id, text);
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_text(stmt, 2, text, n, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, kind_of(&g), -1, SQLITE_STATIC);
    ok = sqlite3_step(stmt) == SQLITE_DONE && sqlite3_reset(stmt) == SQLITE_OK;
  }
  sqlite3_finalize(stmt);
  return ok;
}

/* A new database with the suite's tables, in a file or in memory (":memory:"). If it returns false,
** why has the message. */
static inline bool sqlite_load(sqlite3 **pdb, const char *path, const struct suite *s,
                               int64_t n_rows, char *why) {
  sqlite3 *db = NULL;
  sqlite3_stmt *stmt = NULL;
  bool ok = false;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      NULL) != SQLITE_OK ||
      sqlite3_exec(db,
                   "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE test(id INTEGER "
                   "PRIMARY KEY, uniformi INTEGER, normali5 INTEGER, "
                   "normali20 INTEGER, uniformf REAL, normalf5 REAL, normalf20 REAL); BEGIN",
                   NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(db, "INSERT INTO test VALUES(?,?,?,?,?,?,?)", -1, &stmt, NULL) !=
          SQLITE_OK)
    goto done;
  struct generator g = generator_start(s);
  for (int64_t n = 0; n < n_rows; n++) {
    struct row r;
    generator_row(&g, &r);
    sqlite3_bind_int64(stmt, 1, r.id);
    for (int k = 0; k < 3; k++) sqlite3_bind_int(stmt, 2 + k, r.i[k]);
    for (int k = 0; k < 3; k++) sqlite3_bind_double(stmt, 5 + k, r.f[k]);
    if (sqlite3_step(stmt) != SQLITE_DONE || sqlite3_reset(stmt) != SQLITE_OK) goto done;
  }
  sqlite3_finalize(stmt);
  stmt = NULL;
  if (s->strings && !sqlite_load_strings(db, s, n_rows)) goto done;
  ok = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
done:
  if (!ok) snprintf(why, WHY, "filling SQLite's table: %s", sqlite3_errmsg(db));
  sqlite3_finalize(stmt);
  if (ok) {
    *pdb = db;
  } else {
    sqlite3_close(db);
  }
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

struct duck_filling {
  const struct suite *suite;
  int64_t n_rows;
  bool as_float;
};

/* Fills the open database (a duck_fill_fn). */
static inline bool duck_load(struct duck *d, const void *what, char *why, size_t n_why) {
  const struct duck_filling *f = what;
  const struct suite *s = f->suite;
  const int64_t n_rows = f->n_rows;
  void *app = NULL;
  int failed = 0;
  char ddl[256];
  const char *real = f->as_float ? "FLOAT" : "DOUBLE";
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

/* Makes sure that both files are there, and says in b where. */
static inline bool make_files(struct bench *b, const char *folder, const struct suite *s,
                              int64_t n_rows, char *why) {
  static char file[512], duck_file[512];
  char part[600];
  sqlite3 *db = NULL;
  struct duck_filling filling = {s, n_rows, b->duck_float};
  snprintf(file, sizeof file, "%s/one-%c-%lld-v%d.db", folder, s->letter, (long long)n_rows,
           TABLES_VERSION);
  snprintf(duck_file, sizeof duck_file, "%s/one-%c-%lld%s-v%d-%s.duckdb", folder, s->letter,
           (long long)n_rows, b->duck_float ? "-float" : "", TABLES_VERSION,
           b->duck.lib ? b->duck.library_version() : "");
  b->file = file;
  b->duck_file = duck_file;
  if (access(file, R_OK) != 0) {
    snprintf(part, sizeof part, "%s.part-%d", file, (int)getpid());
    bool ok = sqlite_load(&db, part, s, n_rows, why);
    if (ok) sqlite3_close(db);
    if (ok && rename(part, file) != 0) {
      snprintf(why, WHY, "%.400s cannot be renamed", part);
      ok = false;
    }
    if (!ok) {
      remove(part);
      return false;
    }
  }
  char duck_why[WHY];
  if (has_duck(b) &&
      !duck_make_file(&b->duck, duck_file, duck_load, &filling, duck_why, sizeof duck_why))
    leave_out_duck(b, duck_why);
  if (!has_duck(b)) b->duck_file = NULL;
  return true;
}

#endif
