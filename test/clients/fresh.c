/*
** The freshness test: whatever happens to a database, by whatever connection or process,
** a query through warplite sees the rows that SQLite sees at that moment.
**
**     fresh [SEED [STEPS [--tablets]]]  (an odd seed runs in WAL mode, an even one in DELETE mode)
**
** With --tablets most tables are tablet tables, of which queries are native inside write
** transactions too.
**
** Three warplite connections and a plain one work on one file, each with a second file,
** a memory database and TEMP tables beside it; a child process commits now and then. The
** model is SQLite: the same SELECT on the same connection, just before or just after.
**
** Invariants:
** 1. One thing happens at a time, so two reads with nothing between them must agree.
** 2. A seed makes the same steps everywhere.
** 3. Passing by falling back is no pass: in a database that is not being written the
**    native engine must have run, and inside a write transaction that has written SQLite must
**    have. Whether it has written is told by the journal file, which is there or not.
*/
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../engines.h"
#include "../rng.h"
#include "../rows.h"
#include "../tap.h"

extern char **environ;

enum { N_WARP = 3, PLAIN = 3, N_CONNS = 4, N_KEPT = 6, N_LOG = 60, MAX_SHOWN = 5 };

typedef struct kept {
  sqlite3_stmt *ours, *theirs; /* one text prepared both ways and used again and again */
  char *sql;
} kept;

typedef struct conn {
  int no;
  sqlite3 *db;
  int n_savepoints;
  bool attached;
  kept kept[N_KEPT];
} conn;

typedef struct world {
  rng r;
  bool wal, tablets;
  char dir[200], main_file[240], aux_file[240];
  conn c[N_CONNS];
  rows got, want;
  char log[N_LOG][300];
  long n_log, step;
  long n_fresh, n_native, n_kept, n_writing, n_unwritten, n_inside, n_failed, n_child, n_done[32];
} world;

static char *format(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *s = must(sqlite3_vmprintf(fmt, ap));
  va_end(ap);
  return s;
}

static void note(world *w, int who, const char *sql, int rc) {
  snprintf(w->log[w->n_log++ % N_LOG], sizeof w->log[0], "%ld: [%d] %s -> %d", w->step, who, sql,
           rc);
}

static void failed(world *w, const char *what, const char *sql, const char *why) {
  if (w->n_failed++ >= MAX_SHOWN) return;
  printf("-- the steps before it:\n");
  for (long i = w->n_log > N_LOG ? w->n_log - N_LOG : 0; i < w->n_log; i++)
    printf("--   %s\n", w->log[i % N_LOG]);
  tap_bad(what, "step %ld: %s: %s", w->step, sql, why);
}

/* Runs SQL on a connection. A busy database or a broken constraint is part of life. */
static int act(world *w, conn *c, char *sql) {
  int rc = sqlite3_exec(c->db, sql, NULL, NULL, NULL);
  note(w, c->no, sql, rc);
  if (rc != SQLITE_OK && rc != SQLITE_BUSY && rc != SQLITE_CONSTRAINT && rc != SQLITE_ERROR &&
      rc != SQLITE_LOCKED)
    failed(w, "fresh: a change", sql, sqlite3_errmsg(c->db));
  if (rc == SQLITE_BUSY && !sqlite3_get_autocommit(c->db) && rng_chance(&w->r, 60)) {
    sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    note(w, c->no, "ROLLBACK", 0);
  }
  if (sqlite3_get_autocommit(c->db)) c->n_savepoints = 0;
  sqlite3_free(sql);
  return rc;
}

static void end_all(world *w) {
  for (int i = 0; i < N_CONNS; i++)
    if (!sqlite3_get_autocommit(w->c[i].db)) {
      if (act(w, &w->c[i], format(rng_chance(&w->r, 60) ? "COMMIT" : "ROLLBACK")) != SQLITE_OK &&
          !sqlite3_get_autocommit(w->c[i].db))
        act(w, &w->c[i], format("ROLLBACK"));
    }
}

/* ---- tables */

static const char *const tables[] = {"main.t0", "main.t1", "main.t2",
                                     "aux2.a0", "mem.m0",  "temp.x0"};

static const char *any_table(world *w, const conn *c) {
  int k = rng_below(&w->r, 10);
  if (c->no == PLAIN) return tables[rng_below(&w->r, 3)];
  return k < 6 ? tables[k / 2] : tables[k - 4];
}

static char *create_sql(world *w, const char *table) {
  static const char *const shapes[] = {
      "(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT, x BLOB)",
      "(a, b NUMERIC, c TEXT COLLATE NOCASE, x)",
      "(c TEXT, b REAL, a INTEGER, extra TEXT DEFAULT 'e', x)",
      "(id INTEGER NOT NULL PRIMARY KEY, a INTEGER, b REAL, c TEXT, x) WITHOUT ROWID",
      "(a INTEGER, b REAL, c TEXT)"};
  const char *shape = shapes[rng_chance(&w->r, 60) ? 0 : rng_below(&w->r, 5)];
  if (w->tablets && !strstr(shape, "WITHOUT") && rng_chance(&w->r, 80))
    return format("CREATE VIRTUAL TABLE IF NOT EXISTS %s USING tablet%s", table, shape);
  return format("CREATE TABLE IF NOT EXISTS %s%s", table, shape);
}

static char *insert_sql(world *w, const char *table) {
  int n = rng_chance(&w->r, 5) ? 300 : 1 + rng_below(&w->r, 8), k = rng_below(&w->r, 1000);
  static const char *const ors[] = {"", "OR REPLACE ", "OR IGNORE ", "OR ROLLBACK ", "OR FAIL "};
  if (rng_chance(&w->r, 15)) /* sets the key, and so may collide */
    return format("INSERT %sINTO %s(id,a,b,c) VALUES(%d,%d,0.5,'key')", ors[rng_below(&w->r, 5)],
                  table, rng_below(&w->r, 60), k);
  return format(
      "INSERT INTO %s(a,b,c) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
      "WHERE i<%d) SELECT (i*%d)%%1000, CASE WHEN i%%7 THEN i*%d/8.0 END, 'w'||(i%%%d) "
      "FROM n",
      table, n, k + 1, k % 50, 1 + k % 11);
}

static char *change_sql(world *w, const char *table) {
  int k = rng_below(&w->r, 1000);
  if (w->tablets && rng_chance(&w->r, 15))
    return format("INSERT INTO %s(%s) VALUES(%Q)", table, strchr(table, '.') + 1,
                  k % 3 ? "fold" : "optimize");
  switch (rng_below(&w->r, 9)) {
  case 0: return format("UPDATE %s SET a=a+1 WHERE a<%d", table, k);
  case 1: return format("UPDATE %s SET b=b/2, c=c||'u' WHERE a>%d AND length(c)<9", table, k);
  case 2: return format("UPDATE %s SET a=NULL WHERE a%%%d=0", table, 2 + k % 9);
  case 3:
    return format("UPDATE %s SET a=%s WHERE a=%d", table, k % 2 ? "9223372036854775807" : "'text'",
                  k % 20);
  case 4: return format("DELETE FROM %s WHERE a>%d", table, k);
  case 5: return format(k < 100 ? "DELETE FROM %s" : "DELETE FROM %s WHERE a IS NULL", table);
  default: return insert_sql(w, table);
  }
}

/* ---- steps */

static void attach(world *w, conn *c) {
  char *sql = format("ATTACH %Q AS aux2", w->aux_file);
  if (act(w, c, sql) == SQLITE_OK) c->attached = true;
}

/* A commit by another process, in it or by this program run once more. */
static void child(world *w) {
  char seed[32];
  char *argv[] = {(char *)"fresh", (char *)(w->tablets ? "--child-tablets" : "--child"),
                  rng_chance(&w->r, 70) ? w->main_file : w->aux_file, seed, NULL};
  pid_t pid;
  int status = -1;
  snprintf(seed, sizeof seed, "%d", rng_below(&w->r, 1000000));
  if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0) waitpid(pid, &status, 0);
  note(w, 9, argv[2], status);
  w->n_child += status == 0;
}

static int child_main(const char *file, const char *seed, bool tablets) {
  world *w = must(calloc(1, sizeof *w));
  sqlite3 *db;
  int rc = SQLITE_OK;
  w->r.s = strtoull(seed, NULL, 10);
  if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 2;
  w->tablets = tablets;
  if (tablets && warplite_enable(db) != SQLITE_OK) return 2;
  sqlite3_exec(db, "PRAGMA synchronous=OFF; BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (sqlite3_get_autocommit(db)) rc = SQLITE_BUSY;
  for (int i = 0; i < 3 && rc == SQLITE_OK; i++) {
    char *sql = change_sql(w, strstr(file, "aux") ? "main.a0" : tables[rng_below(&w->r, 3)]);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
  }
  if (rc == SQLITE_OK) rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
  sqlite3_close(db);
  free(w);
  return rc == SQLITE_OK ? 0 : 1;
}

/* Bytes of a stored blob changed in place: a commit without any SQL. */
static void blob_write(world *w, conn *c) {
  sqlite3_blob *b = NULL;
  int rc;
  char byte = (char)('a' + rng_below(&w->r, 26));
  act(w, c,
      format("UPDATE main.t0 SET x=x'61626364' WHERE rowid=(SELECT min(rowid) FROM main.t0)"));
  sqlite3_stmt *st = NULL;
  sqlite3_int64 rowid = 0;
  if (sqlite3_prepare_v2(c->db, "SELECT min(rowid) FROM main.t0", -1, &st, NULL) == SQLITE_OK &&
      sqlite3_step(st) == SQLITE_ROW)
    rowid = sqlite3_column_int64(st, 0);
  sqlite3_finalize(st);
  rc = sqlite3_blob_open(c->db, "main", "t0", "x", rowid, 1, &b);
  if (rc == SQLITE_OK) rc = sqlite3_blob_write(b, &byte, 1, rng_below(&w->r, 4));
  sqlite3_blob_close(b);
  note(w, c->no, "blob write", rc);
}

/* The memory database overwritten by the backup interface, page by page. */
static void backup_into(world *w, conn *c) {
  sqlite3 *src;
  int rc = sqlite3_open(":memory:", &src);
  char *sql = create_sql(w, "main.m0"), *more = insert_sql(w, "main.m0");
  sqlite3_exec(src, sql, NULL, NULL, NULL);
  sqlite3_exec(src, more, NULL, NULL, NULL);
  sqlite3_backup *b = sqlite3_backup_init(c->db, "mem", src, "main");
  if (b) {
    sqlite3_backup_step(b, -1);
    rc = sqlite3_backup_finish(b);
  }
  note(w, c->no, "backup into mem", b ? rc : -1);
  sqlite3_free(sql);
  sqlite3_free(more);
  sqlite3_close(src);
}

/* Returns the connection that it was about. */
static conn *random_step(world *w) {
  conn *c = &w->c[rng_below(&w->r, N_CONNS)];
  bool open = !sqlite3_get_autocommit(c->db);
  const char *t = any_table(w, c);
  int k = rng_below(&w->r, 1000), kind = 0;
  if (c->n_savepoints && rng_chance(&w->r, 25)) {
    int s = rng_below(&w->r, c->n_savepoints);
    kind = 4;
    if (rng_chance(&w->r, 65)) {
      if (act(w, c, format("ROLLBACK TO s%d", s)) == SQLITE_OK) c->n_savepoints = s + 1;
    } else if (act(w, c, format("RELEASE s%d", s)) == SQLITE_OK) {
      c->n_savepoints = s;
    }
  } else if (open && rng_chance(&w->r, 25)) { /* or nobody else could ever write */
    kind = 1;
    if (act(w, c, format(rng_chance(&w->r, 60) ? "COMMIT" : "ROLLBACK")) != SQLITE_OK &&
        !sqlite3_get_autocommit(c->db))
      act(w, c, format("ROLLBACK"));
  } else if (k < 60) {
    kind = 2, act(w, c, format(rng_chance(&w->r, 50) ? "BEGIN" : "BEGIN IMMEDIATE"));
  } else if (k < 170 && (open || k < 75)) {
    kind = 3;
    if (act(w, c, format("SAVEPOINT s%d", c->n_savepoints)) == SQLITE_OK) c->n_savepoints++;
  } else if (k >= 210 && k < 230) {
    kind = 5, act(w, c,
                  format("ALTER TABLE %s ADD COLUMN n%d %s", t, rng_below(&w->r, 12),
                         rng_chance(&w->r, 50) ? "INTEGER DEFAULT 7" : "TEXT"));
  } else if (k >= 230 && k < 255) {
    kind = 6;
    if (act(w, c, format("DROP TABLE IF EXISTS %s", t)) == SQLITE_OK && rng_chance(&w->r, 90)) {
      act(w, c, create_sql(w, t));
      act(w, c, insert_sql(w, t));
    }
  } else if (k >= 255 && k < 265) {
    kind = 7, act(w, c, create_sql(w, t));
  } else if (k >= 265 && k < 280) {
    kind = 8;
    if (rng_chance(&w->r, 70)) end_all(w);
    int rc = act(w, c, format("VACUUM main"));
    if (rc == SQLITE_ERROR && sqlite3_get_autocommit(c->db))
      failed(w, "fresh: VACUUM", "VACUUM main", sqlite3_errmsg(c->db));
  } else if (k >= 280 && k < 310 && c->no != PLAIN) {
    kind = 9;
    if (!c->attached) {
      attach(w, c);
    } else if (act(w, c, format("DETACH aux2")) == SQLITE_OK) {
      c->attached = false;
    } else if (!open) {
      failed(w, "fresh: DETACH outside a transaction", "DETACH aux2", sqlite3_errmsg(c->db));
    }
  } else if (k >= 310 && k < 325) {
    kind = 10;
    if (rng_chance(&w->r, 60)) end_all(w);
    child(w);
  } else if (k >= 325 && k < 340) {
    kind = 11, blob_write(w, c);
  } else if (k >= 340 && k < 350 && c->no != PLAIN) {
    kind = 12, backup_into(w, c);
  } else if (k >= 350 && k < 360 && c->no != PLAIN) { /* a TEMP table in front of main's */
    kind = 13;
    act(w, c,
        format(rng_chance(&w->r, 50) ? "CREATE TEMP TABLE IF NOT EXISTS t1(a, b, c, x)"
                                     : "DROP TABLE IF EXISTS temp.t1"));
    act(w, c, format("INSERT INTO temp.t1 VALUES(1,2.5,'temp',NULL)"));
  } else if (k >= 360 && k < 368) {
    static const char *const pragmas[] = {"PRAGMA wal_checkpoint", "PRAGMA user_version=5",
                                          "REINDEX", "ANALYZE", "PRAGMA optimize"};
    kind = 14, act(w, c, format("%s", pragmas[rng_below(&w->r, 5)]));
  } else if (k >= 368 && k < 376) {
    kind = 15;
    act(w, c, format("CREATE INDEX IF NOT EXISTS %s_i ON %s(a)", t, strchr(t, '.') + 1));
    act(w, c, format("DROP INDEX IF EXISTS %s_i", t));
  } else if (k >= 376 && k < 400) {
    kind = 16, end_all(w);
  } else {
    kind = 17, act(w, c, change_sql(w, t));
  }
  w->n_done[kind]++;
  return c;
}

/* ---- comparing */

static char *select_sql(world *w, const char *t, bool stable) {
  int k = rng_below(&w->r, 1000);
  switch (rng_below(&w->r, stable ? 7 : 10)) {
  case 0: return format("SELECT count(*), sum(a), min(a), max(a) FROM %s", t);
  case 1: return format("SELECT a, b, c FROM %s WHERE a>%d", t, k);
  case 2: return format("SELECT c, a FROM %s WHERE c='w%d'", t, k % 7);
  case 3: return format("SELECT total(b), count(b), max(b), min(c) FROM %s WHERE a<%d", t, k);
  case 4: return format("SELECT a+1, b*2, c||'!' FROM %s LIMIT %d OFFSET %d", t, k % 9, k % 5);
  case 5: return format("SELECT x, c FROM %s WHERE x IS NOT NULL OR a=%d", t, k);
  case 6: return format("SELECT b FROM %s WHERE a BETWEEN %d AND %d", t, k, k + 100);
  case 7: return format("SELECT * FROM %s WHERE a IS NULL OR a%%3=0", t);
  case 8: return format("SELECT rowid, a FROM %s WHERE a<>%d", t, k);
  default: return format("SELECT * FROM %s", t);
  }
}

/* The same rows; in another order only if an index is there to blame. */
static bool same_rows(world *w, conn *c, const char *sql, char *why, size_t n_why) {
  if (rows_same(&w->got, &w->want, true, why, n_why)) return true;
  if (strstr(sql, "LIMIT") || !plan_uses_index(c->db, sql)) return false;
  rows_sort(&w->got);
  rows_sort(&w->want);
  return rows_same(&w->got, &w->want, true, why, n_why);
}

static int schema_state(sqlite3 *db, const char *table) {
  char schema[16];
  snprintf(schema, sizeof schema, "%.*s", (int)strcspn(table, "."), table);
  return sqlite3_txn_state(db, schema);
}

/* Whether the write transaction that is open on a table's database may have written. */
static bool has_written(const world *w, const char *table) {
  char journal[300];
  bool aux = strncmp(table, "aux2.", 5) == 0;
  if (w->wal || (!aux && strncmp(table, "main.", 5) != 0)) return true;
  snprintf(journal, sizeof journal, "%s-journal", aux ? w->aux_file : w->main_file);
  return access(journal, F_OK) == 0;
}

static bool is_virtual(sqlite3 *db, const char *table) {
  int at = (int)strcspn(table, ".");
  sqlite3_stmt *st = NULL;
  char *sql = format("SELECT 1 FROM \"%.*s\".sqlite_schema WHERE name=%Q AND sql LIKE 'CREATE "
                     "VIRTUAL%%'",
                     at, table, table + at + 1);
  bool is =
      sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;
  sqlite3_finalize(st);
  sqlite3_free(sql);
  return is;
}

static void compare_fresh(world *w, conn *c) {
  const char *t = any_table(w, c);
  bool bare = !strncmp(t, "main.", 5) && rng_chance(&w->r, 30);
  char *sql = select_sql(w, bare ? t + 5 : t, false), why[900], reason[300];
  bool writing = schema_state(c->db, t) == SQLITE_TXN_WRITE;
  bool theirs_first = rng_chance(&w->r, 40);
  if (theirs_first) rows_query(&w->want, c->db, sqlite3_prepare_v2, sql);
  rows_query(&w->got, c->db, warplite_prepare, sql);
  snprintf(reason, sizeof reason, "%s", warplite_reason(c->db));
  if (!theirs_first) rows_query(&w->want, c->db, sqlite3_prepare_v2, sql);
  note(w, c->no, sql, w->want.rc);
  if (!same_rows(w, c, sql, why, sizeof why)) {
    size_t n = strlen(why);
    snprintf(why + n, sizeof why - n, " (%.200s)", reason);
    failed(w, "fresh: a query", sql, why);
  }
  if (w->want.rc == SQLITE_DONE) {
    w->n_fresh++;
    w->n_native += strncmp(reason, "sqlite", 6) != 0;
    if (writing && !bare && w->tablets && is_virtual(c->db, t)) {
      w->n_inside++;
      if (strncmp(reason, "sqlite", 6) == 0)
        failed(w, "fresh: a tablet table inside a write transaction", sql, reason);
    } else if (writing && !bare && !has_written(w, t)) {
      w->n_unwritten += strncmp(reason, "sqlite", 6) != 0;
    } else if (writing && !bare) {
      w->n_writing++;
      if (strncmp(reason, "sqlite:", 7) || !strstr(reason, "write transaction"))
        failed(w, "fresh: reason inside a write transaction", sql, reason);
    }
  }
  sqlite3_free(sql);
}

/*
** A native statement locks main as well as the database it reads, for its virtual table is
** of main: SQLITE_BUSY may come where SQLite, which need not look at main, has rows.
*/
static bool main_is_locked(world *w, conn *c, const char *sql) {
  if (w->got.rc != SQLITE_BUSY || strstr(sql, "main.")) return false;
  return sqlite3_exec(c->db, "SELECT 1 FROM main.sqlite_schema", NULL, NULL, NULL) == SQLITE_BUSY;
}

/* A statement prepared long ago, stepped again after all that has changed since. */
static void compare_kept(world *w, conn *c) {
  kept *k = &c->kept[rng_below(&w->r, N_KEPT)];
  char why[900] = "";
  bool same;
  if (!k->sql || rng_chance(&w->r, 4)) {
    sqlite3_finalize(k->ours);
    sqlite3_finalize(k->theirs);
    sqlite3_free(k->sql);
    k->ours = k->theirs = NULL;
    k->sql = select_sql(w, any_table(w, c), true);
    if (warplite_prepare(c->db, k->sql, -1, &k->ours, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(c->db, k->sql, -1, &k->theirs, NULL) != SQLITE_OK) {
      sqlite3_finalize(k->ours);
      sqlite3_finalize(k->theirs);
      sqlite3_free(k->sql);
      memset(k, 0, sizeof *k);
      return;
    }
  }
  rows_clear(&w->got);
  rows_clear(&w->want);
  rows_step(&w->got, c->db, k->ours);
  sqlite3_reset(k->ours);
  rows_step(&w->want, c->db, k->theirs);
  sqlite3_reset(k->theirs);
  note(w, c->no, k->sql, w->want.rc);
  w->n_kept++;
  if (w->want.rc != SQLITE_DONE) /* its table may be gone: then both fail, in their own words */
    same = w->got.rc != SQLITE_DONE;
  else
    same = main_is_locked(w, c, k->sql) || same_rows(w, c, k->sql, why, sizeof why);
  if (!same) failed(w, "fresh: a statement used again", k->sql, *why ? why : w->want.err);
}

/* ---- the whole */

static bool open_all(world *w) {
  for (int i = 0; i < N_CONNS; i++) {
    conn *c = &w->c[i];
    c->no = i;
    if (sqlite3_open(w->main_file, &c->db) != SQLITE_OK) return false;
    act(w, c, format("PRAGMA synchronous=OFF"));
    if (w->tablets && warplite_enable(c->db) != SQLITE_OK) return false;
    if (i == 0) {
      act(w, c, format("PRAGMA journal_mode=%s", w->wal ? "WAL" : "DELETE"));
      attach(w, c);
      act(w, c, format("PRAGMA aux2.journal_mode=%s", w->wal ? "WAL" : "DELETE"));
      for (int t = 0; t < 4; t++) {
        act(w, c, create_sql(w, tables[t]));
        act(w, c, insert_sql(w, tables[t]));
      }
    }
    if (i == PLAIN) continue;
    if (!use_engine(c->db, "cpu")) return false;
    act(w, c, format("ATTACH ':memory:' AS mem"));
    for (int t = 4; t < 6; t++) {
      act(w, c, create_sql(w, tables[t]));
      act(w, c, insert_sql(w, tables[t]));
    }
    if (i > 0) attach(w, c);
  }
  return true;
}

static void close_all(world *w) {
  for (int i = 0; i < N_CONNS; i++) {
    conn *c = &w->c[i];
    for (int k = 0; k < N_KEPT; k++) {
      sqlite3_finalize(c->kept[k].ours);
      sqlite3_finalize(c->kept[k].theirs);
      sqlite3_free(c->kept[k].sql);
    }
    if (sqlite3_close(c->db) != SQLITE_OK)
      failed(w, "fresh: close", "sqlite3_close", sqlite3_errmsg(c->db));
  }
}

int main(int argc, char **argv) {
  if (argc == 4 && !strncmp(argv[1], "--child", 7))
    return child_main(argv[2], argv[3], !strcmp(argv[1], "--child-tablets"));
  world *w = must(calloc(1, sizeof *w));
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  long n_steps = argc > 2 ? atol(argv[2]) : TEST_SANITIZED ? 3000 : 20000;
  const char *tmp = getenv("TMPDIR");
  char name[200], cmd[300];
  w->r.s = seed * 7919;
  w->wal = seed % 2;
  w->tablets = argc > 3 && !strcmp(argv[3], "--tablets");
  snprintf(w->dir, sizeof w->dir, "%s/fresh-XXXXXX", tmp && strlen(tmp) < 150 ? tmp : "/tmp");
  if (!mkdtemp(w->dir)) {
    tap_bad("fresh", "cannot make a folder %s", w->dir);
    return tap_done();
  }
  snprintf(w->main_file, sizeof w->main_file, "%s/main.db", w->dir);
  snprintf(w->aux_file, sizeof w->aux_file, "%s/aux.db", w->dir);
  if (!open_all(w)) {
    tap_bad("fresh", "cannot open: %s", sqlite3_errmsg(w->c[0].db));
    return tap_done();
  }
  for (w->step = 1; w->step <= n_steps && w->n_failed < MAX_SHOWN; w->step++) {
    conn *last = random_step(w);
    for (int i = rng_below(&w->r, 3); i > 0; i--) {
      conn *c = &w->c[rng_below(&w->r, N_WARP)];
      if (last->no != PLAIN && rng_chance(&w->r, 60)) c = last;
      if (rng_chance(&w->r, 65))
        compare_fresh(w, c);
      else
        compare_kept(w, c);
    }
  }
  close_all(w);
  printf("  %s, %ld steps, %ld comparisons (%ld native, %ld inside a write transaction), "
         "%ld of statements used again, %ld commits by other processes\n",
         w->wal ? "WAL" : "DELETE", w->step - 1, w->n_fresh, w->n_native, w->n_writing, w->n_kept,
         w->n_child);
  printf("  steps by kind:");
  for (int i = 1; i < 18; i++) printf(" %ld", w->n_done[i]);
  printf("\n");
  snprintf(name, sizeof name, "fresh seed %llu %s %ld steps", (unsigned long long)seed,
           w->wal ? "WAL" : "DELETE", w->step - 1);
  if (!w->n_failed) tap_ok(name);
  snprintf(name, sizeof name, "fresh seed %llu enough native runs", (unsigned long long)seed);
  if (w->n_native * 10 <= w->n_fresh * 3)
    tap_bad(name, "%ld of %ld, not over 30 %%", w->n_native, w->n_fresh);
  else
    tap_ok(name);
  snprintf(name, sizeof name, "fresh seed %llu every kind of step", (unsigned long long)seed);
  if (!w->n_child || !w->n_writing || !w->n_kept || (!w->wal && !w->n_unwritten) ||
      (w->tablets && !w->n_inside))
    tap_bad(name, "some kind of step never happened");
  else
    tap_ok(name);
  snprintf(cmd, sizeof cmd, "rm -rf '%s'", w->dir);
  if (system(cmd) != 0) tap_bad(name, "cannot remove %s", w->dir);
  rows_free(&w->got);
  rows_free(&w->want);
  free(w);
  return tap_done();
}
