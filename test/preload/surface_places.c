/*
** Databases in other places and forms: attached, temporary, in memory, deserialised, in a shared
** cache, in UTF-16; and texts in UTF-16.
*/
#include "surface.h"
#include <stdio.h>
#include <string.h>

static void attached(sqlite3 *db) {
  title("attached");
  char sql[1200];
  snprintf(sql, sizeof sql, "ATTACH '%s/values.db' AS \"the other\"", surface_folder);
  run(db, sql);
  static const char *const queries[] = {
      "SELECT count(*), sum(a) FROM \"the other\".t",
      "SELECT x.id, y.a FROM main.t x JOIN \"the other\".t y ON y.id = x.id WHERE x.b > 645",
      "SELECT id, c FROM \"the other\".t WHERE b > 600",
      "SELECT count(*) FROM temp.s",
      "SELECT s.x, t.c FROM temp.s JOIN t ON t.id = s.x WHERE t.id < 30",
      NULL};
  run(db, "CREATE TEMP TABLE s AS SELECT id AS x FROM t WHERE id % 3 = 0");
  for (int i = 0; queries[i]; i++) {
    sqlite3_stmt *s = prepare(db, queries[i]);
    about(s);
    rows(db, s, 2, 0);
    say("transactions %d %d", sqlite3_txn_state(db, "temp"), sqlite3_txn_state(db, "the other"));
    code(db, "detach", sqlite3_exec(db, "DETACH \"the other\"", NULL, NULL, NULL));
    run(db, sql);
    rows(db, s, 40, 1);
    say("transactions %d %d", sqlite3_txn_state(db, "temp"), sqlite3_txn_state(db, "the other"));
    code(db, "reset", sqlite3_reset(s));
    rows(db, s, 1, 0);
    code(db, "temp", sqlite3_exec(db, "INSERT INTO temp.s VALUES(1)", NULL, NULL, NULL));
    done(db, s);
  }
  code(db, "detach", sqlite3_exec(db, "DETACH \"the other\"", NULL, NULL, NULL));
  sqlite3_stmt *s = prepare(db, "SELECT sum(x) FROM s");
  run(db, "CREATE TABLE s AS SELECT 5 AS x");
  rows(db, s, 2, 0);
  sqlite3_reset(s);
  run(db, "DROP TABLE temp.s");
  rows(db, s, 2, 0);
  done(db, s);
  run(db, "DROP TABLE main.s");
}

static void read_all(sqlite3 *db) {
  static const char *const queries[] = {"SELECT count(*), sum(a), max(c) FROM t",
                                        "SELECT id, a, b, c, d FROM t WHERE b > 640",
                                        "SELECT x, y, z FROM any",
                                        "SELECT d, count(*) FROM t "
                                        "GROUP BY d ORDER BY d",
                                        NULL};
  for (int i = 0; queries[i]; i++) {
    sqlite3_stmt *s = prepare(db, queries[i]);
    for (int way = 0; way < 4; way++) {
      rows(db, s, 60, way * 3);
      code(db, "reset", sqlite3_reset(s));
    }
    done(db, s);
  }
}

static void memory(void) {
  title("in memory");
  sqlite3 *db = surface_open(NULL);
  surface_fill(db);
  read_all(db);
  sqlite3_int64 n = 0;
  unsigned char *image = sqlite3_serialize(db, "main", &n, 0);
  sqlite3 *other = surface_open(NULL);
  int rc = sqlite3_deserialize(other, "main", image, n, n,
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
  code(other, "deserialize", rc);
  read_all(other);
  run(other, "UPDATE t SET a = a + 1");
  read_all(other);
  sqlite3_backup *b = sqlite3_backup_init(db, "main", other, "main");
  code(db, "backup", sqlite3_backup_step(b, -1));
  code(db, "backup", sqlite3_backup_finish(b));
  read_all(db);
  sqlite3_stmt *s = prepare(db, "SELECT id FROM t");
  rows(db, s, 2, 0);
  sqlite3_blob *blob = NULL;
  code(db, "blob", sqlite3_blob_open(db, "main", "t", "c", 5, 0, &blob));
  char bytes[4];
  rows(db, s, 1, 0);
  code(db, "blob write", sqlite3_blob_write(blob, "x", 1, 0));
  rows(db, s, 1, 0);
  code(db, "blob read", sqlite3_blob_read(blob, bytes, 1, 1 << 20));
  rows(db, s, 1, 0);
  code(db, "blob reopen", sqlite3_blob_reopen(blob, 6));
  rows(db, s, 1, 0);
  code(db, "blob reopen", sqlite3_blob_reopen(blob, 1 << 30));
  rows(db, s, 1, 0);
  code(db, "blob close", sqlite3_blob_close(blob));
  rows(db, s, 2, 0);
  b = sqlite3_backup_init(db, "main", other, "main");
  code(db, "backup", b ? sqlite3_backup_step(b, -1) : -1);
  rows(db, s, 1, 0);
  code(db, "backup", sqlite3_backup_finish(b));
  rows(db, s, 2, 0);
  done(db, s);
  code(db, "close", sqlite3_close(db));
  code(other, "close", sqlite3_close(other));
}

static void shared_cache(void) {
  title("shared cache");
  sqlite3 *db[2];
  for (int i = 0; i < 2; i++)
    sqlite3_open_v2("file:shared?mode=memory&cache=shared", &db[i],
                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | surface_flags,
                    NULL);
  surface_fill(db[0]);
  read_all(db[1]);
  sqlite3_stmt *s = prepare(db[1], "SELECT id FROM t");
  rows(db[1], s, 2, 0);
  code(db[0], "locked", sqlite3_exec(db[0], "UPDATE t SET a=1", NULL, NULL, NULL));
  done(db[1], s);
  run(db[0], "BEGIN; UPDATE t SET a=1");
  s = prepare(db[1], "SELECT sum(a) FROM t");
  if (s) rows(db[1], s, 2, 0);
  sqlite3_finalize(s);
  run(db[0], "ROLLBACK");
  for (int i = 0; i < 2; i++) sqlite3_close(db[i]);
}

/* ASCII text as UTF-16. */
static const void *wide(const char *s) {
  static unsigned short text[500];
  int n = 0;
  for (; s[n]; n++) text[n] = (unsigned char)s[n];
  text[n] = 0;
  return text;
}

static void utf16(void) {
  title("UTF-16");
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  char path[1000];
  snprintf(path, sizeof path, "%s/utf16.db", surface_folder);
  sqlite3_open16(wide(path), &db);
  surface_fill(db);
  read_all(db);
  sqlite3_close(db);
  db = surface_open("values.db");
  static const char *const queries[] = {"SELECT id, c, a FROM t WHERE b > 640; SELECT 2",
                                        "SELECT sum(a) AS s FROM t WHERE d = ?", "SELECT nothing",
                                        NULL};
  for (int i = 0; queries[i]; i++) {
    const void *text = wide(queries[i]), *tail = NULL;
    int rc = i % 2 ? sqlite3_prepare16_v2(db, text, -1, &s, &tail)
                   : sqlite3_prepare16_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &s, &tail);
    code(db, "prepare16", rc);
    say("tail %d", tail ? (int)((const char *)tail - (const char *)text) : -1);
    if (!s) continue;
    sqlite3_bind_text16(s, 1, wide("aBc"), -1, SQLITE_TRANSIENT);
    about(s);
    rows(db, s, 40, 4);
    done(db, s);
  }
  sqlite3_prepare(db, "SELECT id, c FROM t WHERE id < 5", -1, &s, NULL);
  rows(db, s, 10, 0);
  run(db, "CREATE TABLE IF NOT EXISTS x16(a); DROP TABLE x16");
  rows(db, s, 10, 0);
  done(db, s);
  sqlite3_close(db);
}

void surface_places(void) {
  sqlite3 *db = surface_open("values.db");
  surface_fill(db);
  sqlite3_close(db);
  db = surface_open("places.db");
  surface_fill(db);
  attached(db);
  read_all(db);
  code(db, "close", sqlite3_close(db));
  memory();
  shared_cache();
  utf16();
}
