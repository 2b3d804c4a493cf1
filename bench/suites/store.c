/*
** The two sinks for rows: SQLite's prepared INSERT and DuckDB's appender; see store.h.
*/
#include "store.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void refuse(struct sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(struct sink *s, const char *format, ...) {
  va_list args;
  s->failed = true;
  va_start(args, format);
  vsnprintf(s->why, sizeof s->why, format, args);
  va_end(args);
}

/* CREATE TABLE with the names that an engine has for the types; returns n columns. */
static int ddl_of(const struct table *t, const char *const types[N_COLUMN_TYPES], bool keys,
                  char *ddl, size_t n_ddl) {
  int n = snprintf(ddl, n_ddl, "CREATE TABLE %s(", t->name), c = 0;
  for (; t->columns[c].name; c++)
    n += snprintf(ddl + n, n_ddl - (size_t)n, "%s%s %s", c ? ", " : "", t->columns[c].name,
                  types[t->columns[c].type]);
  if (keys && t->key) n += snprintf(ddl + n, n_ddl - (size_t)n, ", PRIMARY KEY(%s)", t->key);
  snprintf(ddl + n, n_ddl - (size_t)n, ")");
  return c;
}

/* ---- SQLite ---- */

struct sqlite_sink {
  struct sink sink;
  sqlite3 *db;
  sqlite3_stmt *insert;
  int at;
  bool keys;
};

static void sqlite_finish(struct sqlite_sink *q) {
  sqlite3_finalize(q->insert);
  q->insert = NULL;
}

static void sqlite_table(struct sink *s, const struct table *t) {
  static const char *const types[] = {"INTEGER PRIMARY KEY", "INTEGER", "REAL", "TEXT", "TEXT"};
  struct sqlite_sink *q = (struct sqlite_sink *)s;
  char sql[2048];
  int n_columns = ddl_of(t, types, q->keys, sql, sizeof sql);
  sqlite_finish(q);
  bool ok = sqlite3_exec(q->db, sql, NULL, NULL, NULL) == SQLITE_OK;
  int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", t->name);
  for (int c = 1; c < n_columns; c++) n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
  snprintf(sql + n, sizeof sql - (size_t)n, ")");
  if (!ok || sqlite3_prepare_v2(q->db, sql, -1, &q->insert, NULL) != SQLITE_OK)
    refuse(s, "table %s: %s", t->name, sqlite3_errmsg(q->db));
  q->at = 0;
}

static void sqlite_integer(struct sink *s, int64_t v) {
  struct sqlite_sink *q = (struct sqlite_sink *)s;
  sqlite3_bind_int64(q->insert, ++q->at, v);
}

static void sqlite_real(struct sink *s, double v) {
  struct sqlite_sink *q = (struct sqlite_sink *)s;
  sqlite3_bind_double(q->insert, ++q->at, v);
}

/* Copied, since the row is written later than the text is made. */
static void sqlite_text(struct sink *s, const char *p, int n) {
  struct sqlite_sink *q = (struct sqlite_sink *)s;
  sqlite3_bind_text(q->insert, ++q->at, p, n, SQLITE_TRANSIENT);
}

static void sqlite_date(struct sink *s, int day) {
  struct sqlite_sink *q = (struct sqlite_sink *)s;
  sqlite3_bind_text(q->insert, ++q->at, days()[day].text, 10, SQLITE_STATIC);
}

static void sqlite_row(struct sink *s) {
  struct sqlite_sink *q = (struct sqlite_sink *)s;
  if (sqlite3_step(q->insert) != SQLITE_DONE || sqlite3_reset(q->insert) != SQLITE_OK)
    refuse(s, "inserting: %s", sqlite3_errmsg(q->db));
  q->at = 0;
}

static bool fill_sqlite(sqlite3 *db, const struct tables *t, double scale, bool keys, char *why,
                        size_t n_why) {
  struct sqlite_sink q = {
      {false, "", sqlite_table, sqlite_integer, sqlite_real, sqlite_text, sqlite_date, sqlite_row},
      db,
      NULL,
      0,
      keys};
  if (sqlite3_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL, NULL,
                   NULL) != SQLITE_OK)
    refuse(&q.sink, "%s", sqlite3_errmsg(db));
  if (!q.sink.failed) t->make(&q.sink, scale);
  sqlite_finish(&q);
  if (!q.sink.failed &&
      sqlite3_exec(db, t->analyze ? "COMMIT; ANALYZE" : "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
    refuse(&q.sink, "%s", sqlite3_errmsg(db));
  if (q.sink.failed) snprintf(why, n_why, "%s", q.sink.why);
  return !q.sink.failed;
}

static bool open_sqlite(sqlite3 **db, const char *path, char *why, size_t n_why) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path, db, flags, NULL) == SQLITE_OK) return true;
  snprintf(why, n_why, "%s: %s", path, sqlite3_errmsg(*db));
  sqlite3_close(*db);
  *db = NULL;
  return false;
}

bool store_file(const char *folder, const struct tables *t, double scale, bool keys, char *path,
                size_t n_path, char *why, size_t n_why) {
  char part[600];
  sqlite3 *db;
  snprintf(path, n_path, "%s/%s-%g%s-v%d.db", folder, t->suite, scale, keys ? "-keys" : "",
           t->version);
  if (access(path, R_OK) == 0) return true;
  snprintf(part, sizeof part, "%s.part-%d", path, (int)getpid());
  if (!open_sqlite(&db, part, why, n_why)) return false;
  bool ok = fill_sqlite(db, t, scale, keys, why, n_why);
  sqlite3_close(db);
  if (ok && rename(part, path) != 0) {
    snprintf(why, n_why, "%s cannot be renamed", part);
    ok = false;
  }
  if (!ok) remove(part);
  return ok;
}

bool store_sqlite(sqlite3 **db, const char *folder, const struct tables *t, double scale, bool keys,
                  char *why, size_t n_why) {
  char path[512];
  if (folder)
    return store_file(folder, t, scale, keys, path, sizeof path, why, n_why) &&
           open_sqlite(db, path, why, n_why);
  if (!open_sqlite(db, ":memory:", why, n_why)) return false;
  if (fill_sqlite(*db, t, scale, keys, why, n_why)) return true;
  sqlite3_close(*db);
  *db = NULL;
  return false;
}

/* ---- DuckDB ---- */

struct duck_sink {
  struct sink sink;
  struct duck *duck;
  void *appender;
  int bad; /* the appender's own words come out at its end */
};

static void duck_finish(struct duck_sink *k) {
  if (k->appender && (k->duck->appender_destroy(&k->appender) || k->bad) && !k->sink.failed)
    refuse(&k->sink, "DuckDB's appender failed");
  k->appender = NULL;
}

static void duck_table(struct sink *s, const struct table *t) {
  static const char *const types[] = {"INTEGER", "INTEGER", "DOUBLE", "VARCHAR", "DATE"};
  struct duck_sink *k = (struct duck_sink *)s;
  char sql[2048];
  ddl_of(t, types, false, sql, sizeof sql);
  duck_finish(k);
  if (s->failed) return;
  if (!duck_exec(k->duck, sql, s->why, sizeof s->why)) s->failed = true;
  if (!s->failed && k->duck->appender_create(k->duck->con, NULL, t->name, &k->appender))
    refuse(s, "cannot append to %s", t->name);
}

static void duck_integer(struct sink *s, int64_t v) {
  struct duck_sink *k = (struct duck_sink *)s;
  k->bad |= k->duck->append_int64(k->appender, v);
}

static void duck_real(struct sink *s, double v) {
  struct duck_sink *k = (struct duck_sink *)s;
  k->bad |= k->duck->append_double(k->appender, v);
}

static void duck_string(struct sink *s, const char *p, int n) {
  struct duck_sink *k = (struct duck_sink *)s;
  k->bad |= k->duck->append_varchar_length(k->appender, p, (uint64_t)n);
}

static void duck_date(struct sink *s, int day) {
  struct duck_sink *k = (struct duck_sink *)s;
  k->bad |= k->duck->append_date(k->appender, day + 8035); /* from 1970 to 1992 */
}

static void duck_row(struct sink *s) {
  struct duck_sink *k = (struct duck_sink *)s;
  k->bad |= k->duck->appender_end_row(k->appender);
}

struct duck_filling {
  const struct tables *tables;
  double scale;
};

/* Fills the open database (a duck_fill_fn). */
static bool fill_duck(struct duck *d, const void *what, char *why, size_t n_why) {
  const struct duck_filling *f = what;
  struct duck_sink k = {
      {false, "", duck_table, duck_integer, duck_real, duck_string, duck_date, duck_row},
      d,
      NULL,
      0};
  f->tables->make(&k.sink, f->scale);
  duck_finish(&k);
  if (k.sink.failed) snprintf(why, n_why, "%s", k.sink.why);
  return !k.sink.failed;
}

bool store_duck(struct duck *d, const char *folder, const struct tables *t, double scale,
                char *path, size_t n_path, char *why, size_t n_why) {
  struct duck_filling filling = {t, scale};
  snprintf(path, n_path, "%s/%s-%g-v%d-%s.duckdb", folder, t->suite, scale, t->version,
           d->library_version());
  return duck_make_file(d, path, fill_duck, &filling, why, n_why);
}
