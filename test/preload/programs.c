/*
** See programs.h. Usage: programs FOLDER SEED FIRST COUNT [--spoil]
** Runs programs FIRST to FIRST+COUNT-1 of a seed. --spoil changes one printed value of each, to
** test the comparison.
*/
#include "programs.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

world w;
static bool spoil;

void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
}

int below(int n) {
  return rng_below(&w.r, n);
}

bool chance(int percent) {
  return rng_chance(&w.r, percent);
}

const char *pick_text(const char *const *texts, int n) {
  return texts[below(n)];
}

int result(connection *c, const char *what, int rc) {
  int now = sqlite3_errcode(c->db);
  bool good = now == SQLITE_ROW || now == SQLITE_DONE,
       placed = rc == SQLITE_ERROR && strcmp(what, "prepare") == 0;
  say("%s: %d errcode %d %d offset %d \"%s\"", what, rc, now, sqlite3_extended_errcode(c->db),
      placed ? sqlite3_error_offset(c->db) : -1, good ? "" : sqlite3_errmsg(c->db));
  return rc;
}

void note_write(int conn, unsigned tables) {
  for (int k = 0; k < N_STATEMENTS; k++) {
    statement *t = &w.statements[k];
    if (t->s && t->conn == conn && t->reads & tables && sqlite3_stmt_busy(t->s)) t->outdated = true;
  }
}

/* ---- connections */

static int exec(connection *c, const char *sql) {
  char *message = NULL;
  int rc = sqlite3_exec(c->db, sql, NULL, NULL, &message);
  say("exec [%.300s] %d %s", sql, rc, message ? message : "");
  sqlite3_free(message);
  return rc;
}

static bool is_new(const connection *c) {
  int n = -1;
  sqlite3_stmt *s = NULL;
  sqlite3_prepare_v2(c->db, "SELECT count(*) FROM sqlite_schema", -1, &s, NULL);
  if (sqlite3_step(s) == SQLITE_ROW) n = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return n == 0;
}

static void fill(connection *c, const char *schema) {
  char sql[MAX_SQL];
  sql_tables(c, schema, sql);
  exec(c, sql);
}

connection *open_connection(int k) {
  /* 0 and 1 share a file. 2 is in memory with another file attached, which 3 opens as well. */
  static const char *const files[N_CONNECTIONS] = {"a.db", "a.db", ":memory:", "b.db"};
  connection *c = &w.connections[k];
  char path[1000], sql[1200];
  *c = (connection){.file = files[k], .main_in_memory = k == 2};
  snprintf(path, sizeof path, k == 2 ? ":memory:" : "%s/%s", w.folder, files[k]);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | (chance(20) ? SQLITE_OPEN_EXRESCODE : 0);
  int rc = chance(20) ? sqlite3_open(path, &c->db) : sqlite3_open_v2(path, &c->db, flags, NULL);
  result(c, "open", rc);
  if (is_new(c)) {
    if (chance(15)) exec(c, "PRAGMA encoding='UTF-16'");
    if (chance(30)) exec(c, "PRAGMA page_size=1024");
    if (w.wal && k != 2) exec(c, "PRAGMA journal_mode=wal");
    fill(c, "main");
  }
  if (k == 2 || chance(30)) {
    snprintf(sql, sizeof sql, "ATTACH '%s/b.db' AS aux", w.folder);
    if (k == 3) sprintf(sql, "ATTACH ':memory:' AS aux");
    c->attached = exec(c, sql) == SQLITE_OK;
    if (k == 3 && c->attached) fill(c, "aux");
  }
  if (chance(40)) {
    fill(c, "temp");
    c->temporary = true;
  }
  return c;
}

static void close_connection(int k) {
  connection *c = &w.connections[k];
  bool orphans = chance(30) && !w.patterns;
  end_blob(k);
  int n = 0;
  for (int j = 0; j < N_STATEMENTS; j++) {
    statement *t = &w.statements[j];
    if (!t->s || t->conn != k) continue;
    if (!orphans && chance(70)) {
      say("finalize %d", sqlite3_finalize(t->s));
      t->s = NULL;
    } else if (!t->orphan) {
      n++;
    }
  }
  if (orphans) {
    for (int j = 0; j < N_STATEMENTS; j++)
      if (w.statements[j].s && w.statements[j].conn == k) w.statements[j].orphan = true;
    say("close_v2 %d", sqlite3_close_v2(c->db));
    c->db = NULL;
    return;
  }
  int rc = sqlite3_close(c->db);
  say("close %d with %d statements", rc, n);
  if (rc)
    result(c, "close", rc);
  else
    c->db = NULL;
}

/* ---- one call of the program */

static void state(connection *c) {
  int n = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(c->db, NULL); s; s = sqlite3_next_stmt(c->db, s))
    n += 1 + 100 * sqlite3_stmt_busy(s);
  say("changes %d %d last %lld autocommit %d txn %d statements %d", sqlite3_changes(c->db),
      sqlite3_total_changes(c->db), sqlite3_last_insert_rowid(c->db), sqlite3_get_autocommit(c->db),
      sqlite3_txn_state(c->db, NULL), n);
}

static connection *some_connection(int *k) {
  *k = below(N_CONNECTIONS);
  connection *c = &w.connections[*k];
  return c->db ? c : open_connection(*k);
}

static int prepare16(connection *c, statement *t, const char *sql) {
  uint16_t wide[MAX_SQL];
  const void *tail = NULL;
  int n = 0;
  for (; sql[n]; n++) wide[n] = (unsigned char)sql[n]; /* the texts of SQL are ASCII */
  wide[n] = 0;
  int rc = sqlite3_prepare16_v2(c->db, wide, chance(50) ? -1 : 2 * n, &t->s, &tail);
  bool none = rc == SQLITE_OK && !tail; /* longer than a limit: SQLite leaves the error as it is */
  say("tail16 %d", tail ? (int)((const char *)tail - (const char *)wide) : -1);
  return none ? rc : result(c, "prepare", rc);
}

static int prepare8(connection *c, statement *t, char *sql) {
  int n = (int)strlen(sql), rc;
  const char *tail = NULL;
  switch (below(6)) {
  case 0: strcat(sql, "; SELECT 'the tail'"); break;
  case 1: n++; break; /* the length with the NUL */
  case 2: n = chance(20) ? below(n + 1) : n; break;
  default: n = -1;
  }
  t->oldest = chance(4);
  if (t->oldest)
    rc = sqlite3_prepare(c->db, sql, n, &t->s, &tail);
  else if (chance(20))
    rc = sqlite3_prepare_v3(c->db, sql, n, SQLITE_PREPARE_PERSISTENT, &t->s, &tail);
  else
    rc = sqlite3_prepare_v2(c->db, sql, n, &t->s, &tail);
  say("tail [%s]", rc == SQLITE_OK && tail ? tail : "");
  return result(c, "prepare", rc);
}

static void prepare(statement *t) {
  char sql[MAX_SQL];
  if (t->s) {
    int conn = t->conn;
    bool orphan = t->orphan;
    say("finalize %d", sqlite3_finalize(t->s));
    t->s = NULL;
    if (!orphan) result(&w.connections[conn], "finalized", 0);
  }
  *t = (statement){0};
  connection *c = some_connection(&t->conn);
  if (chance(75))
    t->reads = sql_select(c, sql);
  else
    t->writes = sql_write(c, sql);
  say("prepare %d on %d [%s]", (int)(t - w.statements), t->conn, sql);
  if (chance(10))
    prepare16(c, t, sql);
  else
    prepare8(c, t, sql);
  if (t->s) print_statement(t->s);
  if (t->s) bind_some(c, t->s);
}

/* Some calls are repeated, so that statements of several connections alternate. */
static void act(void) {
  int k, what = below(100);
  statement *t = &w.statements[below(N_STATEMENTS)];
  if (what < 14) {
    prepare(t);
  } else if (what < 75) {
    if (!t->s) prepare(t);
    if (t->s) call_statement(t);
  } else if (what < 97) {
    connection *c = some_connection(&k);
    call_connection(c);
    if (chance(30)) state(c);
  } else {
    some_connection(&k);
    if (chance(50)) close_connection(k);
  }
}

static void remove_files(void) {
  static const char *const names[] = {"a.db", "b.db"}, *const ends[] = {"", "-journal", "-wal",
                                                                        "-shm"};
  char path[1000];
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 4; k++) {
      snprintf(path, sizeof path, "%s/%s%s", w.folder, names[i], ends[k]);
      unlink(path);
    }
  }
}

static void program(uint64_t seed, int k, const char *folder) {
  w = (world){.r = {seed * 1000003 + (uint64_t)k}, .folder = folder};
  say("== program %d", k);
  w.wal = chance(50);
  w.patterns = chance(50);
  remove_files();
  open_connection(3);
  open_connection(0);
  for (int n = 60 + below(300); n > 0; n--) {
    act();
    if (spoil && n == 5) say("spoilt");
  }
  for (int j = 0; j < N_STATEMENTS; j++) sqlite3_finalize(w.statements[j].s);
  for (int j = 0; j < N_VALUES; j++) sqlite3_value_free(w.values[j]);
  end_blob(-1);
  for (int j = 0; j < N_CONNECTIONS; j++)
    if (w.connections[j].db) say("close %d", sqlite3_close(w.connections[j].db));
  say("memory %lld", sqlite3_memory_used());
  remove_files();
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  uint64_t seed = strtoull(argv[2], NULL, 10);
  int first = atoi(argv[3]), count = atoi(argv[4]);
  spoil = argc > 5;
  setvbuf(stdout, NULL, _IOLBF, 1 << 16);
  for (int k = first; k < first + count; k++) program(seed, k, argv[1]);
  return 0;
}
