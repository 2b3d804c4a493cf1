/*
** See surface.h. Usage: surface FOLDER wal|delete serialized|multithread [PART]
*/
#include "surface.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *surface_folder;
bool surface_wal;
int surface_flags;

void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
}

void title(const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("\n== ");
  vprintf(format, args);
  va_end(args);
  putchar('\n');
}

int code(sqlite3 *db, const char *what, int rc) {
  int now = sqlite3_errcode(db);
  /* After a row, SQLite may still show the message and offset of an earlier error. */
  bool row = now == SQLITE_ROW || now == SQLITE_DONE;
  say("%s: %d, errcode %d, extended %d, offset %d, \"%s\"", what, rc, now,
      sqlite3_extended_errcode(db), row ? -1 : sqlite3_error_offset(db),
      row ? "" : sqlite3_errmsg(db));
  return rc;
}

int run(sqlite3 *db, const char *sql) {
  char *message = NULL;
  int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
  if (rc) say("exec %s: %d %s", sql, rc, message);
  sqlite3_free(message);
  return rc;
}

sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  const char *tail = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, &tail);
  say("prepare %s", sql);
  if (rc) code(db, "prepare", rc);
  if (tail && *tail) say("tail \"%s\"", tail);
  return s;
}

static const char *text(const char *s) {
  return s ? s : "(null)";
}

void about(sqlite3_stmt *s) {
  char *expanded = sqlite3_expanded_sql(s);
  say("sql [%s] expanded [%s] readonly %d explain %d busy %d columns %d data %d parameters %d "
      "reprepared %d",
      text(sqlite3_sql(s)), text(expanded), sqlite3_stmt_readonly(s), sqlite3_stmt_isexplain(s),
      sqlite3_stmt_busy(s), sqlite3_column_count(s), sqlite3_data_count(s),
      sqlite3_bind_parameter_count(s), sqlite3_stmt_status(s, SQLITE_STMTSTATUS_REPREPARE, 0));
  sqlite3_free(expanded);
  for (int i = 0; i < sqlite3_column_count(s); i++)
    say("  column %d: %s type %s of %s.%s.%s", i, text(sqlite3_column_name(s, i)),
        text(sqlite3_column_decltype(s, i)), text(sqlite3_column_database_name(s, i)),
        text(sqlite3_column_table_name(s, i)), text(sqlite3_column_origin_name(s, i)));
}

static void hex(const void *p, int n) {
  const unsigned char *b = p;
  if (!p) printf("null");
  for (int i = 0; p && i < n && i < 40; i++) printf("%02x", b[i]);
}

/* One accessor of one column. */
static void accessor(sqlite3_stmt *s, int i, int which) {
  const void *p;
  switch (which) {
  case 0: printf(" type=%d", sqlite3_column_type(s, i)); break;
  case 1: printf(" int=%d", sqlite3_column_int(s, i)); break;
  case 2: printf(" int64=%lld", sqlite3_column_int64(s, i)); break;
  case 3: printf(" double=%.17g", sqlite3_column_double(s, i)); break;
  case 4:
    p = sqlite3_column_text(s, i);
    printf(" text=\"%s\"", p ? (const char *)p : "(null)");
    break;
  case 5: printf(" bytes=%d", sqlite3_column_bytes(s, i)); break;
  case 6:
    p = sqlite3_column_blob(s, i);
    printf(" blob=");
    hex(p, sqlite3_column_bytes(s, i));
    break;
  case 7: printf(" bytes16=%d", sqlite3_column_bytes16(s, i)); break;
  case 8:
    p = sqlite3_column_text16(s, i);
    printf(" text16=");
    hex(p, sqlite3_column_bytes16(s, i));
    break;
  case 9: {
    sqlite3_value *v = sqlite3_value_dup(sqlite3_column_value(s, i));
    printf(" value=%d/%d/%d ", sqlite3_value_type(v), sqlite3_value_numeric_type(v),
           sqlite3_value_subtype(v));
    hex(sqlite3_value_blob(v), sqlite3_value_bytes(v));
    sqlite3_value_free(v);
    break;
  }
  }
}

void row(sqlite3_stmt *s, int way) {
  /* A few orders of accessors: conversions change what later ones return. */
  static const char orders[][20] = {
      "0231450",    "0",        "4050", "604050", "80504060",          "1230405060",
      "9090405060", "70508090", "2304", "5604",   "080706050403020100"};
  const char *order = orders[way % (int)(sizeof orders / sizeof *orders)];
  printf("row data %d:", sqlite3_data_count(s));
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    printf(" [%d", i);
    for (const char *p = order; *p; p++) accessor(s, i, *p - '0');
    printf("]");
  }
  putchar('\n');
}

int rows(sqlite3 *db, sqlite3_stmt *s, int n, int way) {
  int rc = SQLITE_OK;
  for (int k = 0; k < n; k++) {
    rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
      code(db, "step", rc);
      return rc;
    }
    row(s, way + k);
    if (k < 3) code(db, "step", rc);
  }
  return rc;
}

void state(sqlite3 *db, sqlite3_stmt *s) {
  say("busy %d data %d autocommit %d transaction %d/%d changes %d total %d last %lld",
      sqlite3_stmt_busy(s), sqlite3_data_count(s), sqlite3_get_autocommit(db),
      sqlite3_txn_state(db, NULL), sqlite3_txn_state(db, "main"), sqlite3_changes(db),
      sqlite3_total_changes(db), sqlite3_last_insert_rowid(db));
}

int done(sqlite3 *db, sqlite3_stmt *s) {
  return code(db, "finalize", sqlite3_finalize(s));
}

/* ---- databases */

sqlite3 *surface_open(const char *name) {
  char path[1000];
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/%s", surface_folder, name ? name : "");
  int rc = sqlite3_open_v2(
      name ? path : ":memory:", &db,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | surface_flags, NULL);
  if (rc) say("open: %d", rc);
  run(db, surface_wal ? "PRAGMA journal_mode=wal" : "PRAGMA journal_mode=delete");
  run(db, "PRAGMA synchronous=off");
  return db;
}

void surface_fill(sqlite3 *db) {
  run(db, "DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS w; DROP TABLE IF EXISTS k;"
          "DROP TABLE IF EXISTS any; DROP VIEW IF EXISTS v; DROP TABLE IF EXISTS f");
  run(db,
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT, d VARCHAR(20) COLLATE NOCASE);"
      "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<3000) "
      "INSERT INTO t SELECT i, i*7919%1009, i*0.25-100, 'row '||i, substr('aBcDeFgH',i%8+1,3) "
      "FROM n;"
      "UPDATE t SET a=NULL, b=NULL, c=NULL WHERE id%97=0;"
      "CREATE TABLE w(p TEXT, q INT, r BLOB, PRIMARY KEY(p, q)) WITHOUT ROWID;"
      "INSERT INTO w SELECT c, a, CAST(c AS BLOB) FROM t WHERE c IS NOT NULL AND id<1500;"
      "CREATE TABLE k(id INTEGER PRIMARY KEY, name TEXT);"
      "INSERT INTO k SELECT DISTINCT a, 'key '||a FROM t WHERE a<200;"
      "CREATE VIEW v AS SELECT a, count(*) AS n, sum(b) AS total FROM t GROUP BY a;"
      "CREATE TABLE any(x, y NUMERIC, z ANY);"
      "INSERT INTO any VALUES(1,1,1),(-1,'2','2'),(2.5,'2.5',x'3132'),('',' ',x''),"
      "(NULL,NULL,NULL),('12abc','1e3','12abc'),('3.75xyz',9223372036854775807,x'00ff'),"
      "(9223372036854775807,-9223372036854775808,1e300),(1e18,-1e19,-0.0),(9e999,-9e999,0.1),"
      "('h\xc3\xa9llo \xe2\x82\xac "
      "\xf0\x9f\x98\x80','\xc3\xa9','z'),(x'68c3a9','0x10',zeroblob(5)),"
      "('a'||char(0)||'b',123456789012,-2147483649),(1.0,100.0,1e15),('  42  ','+7','-7.');");
  /* Makes the file large enough that warplite thinks about its statements. */
  run(db, "CREATE TABLE IF NOT EXISTS filler AS SELECT zeroblob(1500000) AS x");
  run(db, "CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES('one two'),('two three')");
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  surface_folder = argv[1];
  surface_wal = strcmp(argv[2], "wal") == 0;
  bool serialized = strcmp(argv[3], "serialized") == 0;
  surface_flags = serialized ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX;
  const char *part = argc > 4 ? argv[4] : "";
  if (!*part || strcmp(part, "values") == 0) surface_values();
  if (!*part || strcmp(part, "changes") == 0) surface_changes();
  if (!*part || strcmp(part, "handlers") == 0) surface_handlers();
  if (!*part || strcmp(part, "places") == 0) surface_places();
  if (!*part || strcmp(part, "beside") == 0) surface_beside();
  return 0;
}
