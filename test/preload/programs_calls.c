/*
** The calls of random programs (programs.h) on statements and connections.
*/
#include "programs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static connection *connection_of(const statement *t) {
  return &w.connections[t->conn];
}

static int index_of(const connection *c) {
  return (int)(c - w.connections);
}

/* ---- statements */

static void report(const statement *t, const char *what, int rc) {
  if (t->oldest && !t->orphan) sqlite3_exec(connection_of(t)->db, "", NULL, NULL, NULL);
  if (t->orphan || t->oldest)
    say("%s: %d", what, rc);
  else
    result(connection_of(t), what, rc);
}

static int step(statement *t) {
  if (t->writes && !t->orphan) note_write(t->conn, t->writes);
  return sqlite3_step(t->s);
}

/* Steps up to n times. Prints a few rows and a hash of the others. */
static void step_some(statement *t, int n) {
  uint64_t h = 14695981039346656037u;
  int rc = SQLITE_ROW, k = 0;
  for (; k < n && rc == SQLITE_ROW; k++) {
    rc = step(t);
    if (k > 5 && rc == SQLITE_ROW)
      h = hash_row(t->s, h);
    else if (rc == SQLITE_ROW)
      print_row(t->s);
    if (k < 3 && chance(30)) report(t, "step", rc);
  }
  say("%d steps, hash %llx", k, (unsigned long long)h);
  report(t, "stepped", rc);
}

static void keep_value(statement *t) {
  sqlite3_value **v = &w.values[below(N_VALUES)];
  int n = sqlite3_data_count(t->s);
  if (n == 0) return;
  sqlite3_value_free(*v);
  *v = sqlite3_value_dup(sqlite3_column_value(t->s, below(n)));
  if (*v) print_value(*v), putchar('\n');
}

void call_statement(statement *t) {
  int what = below(100);
  say("statement %d on %d", (int)(t - w.statements), t->conn);
  /* An outdated statement may only be looked at and ended. */
  if (t->outdated && what < 70) what = 70 + what % 30;
  if (what < 25) {
    step_some(t, 1 + below(4));
  } else if (what < 50) {
    step_some(t, chance(70) ? 100000 : 30 + below(200));
  } else if (what < 66) {
    int rc = sqlite3_reset(t->s);
    t->outdated = false;
    report(t, "reset", rc);
    if (chance(10)) say("clear %d", sqlite3_clear_bindings(t->s));
    if (!t->orphan) bind_some(connection_of(t), t->s);
    step_some(t, chance(60) ? 100000 : 1 + below(20));
  } else if (what < 70) {
    if (!t->orphan) bind_some(connection_of(t), t->s); /* a misuse where it runs */
  } else if (what < 82) {
    int rc = sqlite3_reset(t->s);
    t->outdated = false;
    report(t, "reset", rc);
  } else if (what < 88) {
    print_row(t->s);
    if (!t->orphan && chance(50)) result(connection_of(t), "columns", 0);
  } else if (what < 92) {
    print_statement(t->s);
  } else if (what < 95) {
    keep_value(t);
  } else {
    bool orphan = t->orphan;
    int rc = sqlite3_finalize(t->s), conn = t->conn;
    say("finalize %d", rc);
    if (!orphan) result(&w.connections[conn], "finalized", rc);
    *t = (statement){0};
  }
}

/* ---- functions and collations of the application */

static void pure(sqlite3_context *x, int n, sqlite3_value **v) {
  int plus = (int)(intptr_t)sqlite3_user_data(x);
  if (sqlite3_value_type(v[0]) == SQLITE_INTEGER)
    sqlite3_result_int64(x, sqlite3_value_int64(v[0]) / 2 + plus);
  else
    sqlite3_result_value(x, v[0]);
}

static void counted(sqlite3_context *x, int n, sqlite3_value **v) {
  sqlite3_result_int(x, ++w.n_calls % 1000);
}

static void fails(sqlite3_context *x, int n, sqlite3_value **v) {
  if (sqlite3_value_int64(v[0]) % 100 == 57)
    sqlite3_result_error(x, "57 is not wanted", -1);
  else
    sqlite3_result_value(x, v[0]);
}

static void stops(sqlite3_context *x, int n, sqlite3_value **v) {
  if (sqlite3_value_int64(v[0]) % 200 == 150) sqlite3_interrupt(sqlite3_context_db_handle(x));
  sqlite3_result_value(x, v[0]);
}

/* Runs a SELECT of its own. */
static void nested(sqlite3_context *x, int n, sqlite3_value **v) {
  sqlite3_stmt *s = NULL;
  sqlite3 *db = sqlite3_context_db_handle(x);
  if (sqlite3_prepare_v2(db, "SELECT count(*), max(id) FROM main.t0", -1, &s, NULL) == SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW)
    sqlite3_result_int64(x, sqlite3_column_int64(s, 0) * 7 + sqlite3_column_int64(s, 1));
  else
    sqlite3_result_text(x, sqlite3_errmsg(db), -1, SQLITE_TRANSIENT);
  sqlite3_finalize(s);
}

static void own_abs(sqlite3_context *x, int n, sqlite3_value **v) {
  sqlite3_result_text(x, "own abs", -1, SQLITE_STATIC);
}

static int backwards(void *arg, int na, const void *a, int nb, const void *b) {
  int c = memcmp(b, a, (size_t)(na < nb ? na : nb));
  return c ? c : nb - na;
}

static int define(connection *c) {
  sqlite3 *db = c->db;
  int utf8 = SQLITE_UTF8, pure_flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  switch (below(9)) {
  case 0:
  case 1:
    return sqlite3_create_function(db, "pure", 1, pure_flags, (void *)(intptr_t)below(3), pure,
                                   NULL, NULL);
  case 2: return sqlite3_create_function(db, "counted", -1, utf8, NULL, counted, NULL, NULL);
  case 3: return sqlite3_create_function(db, "fails", 1, pure_flags, NULL, fails, NULL, NULL);
  case 4: return sqlite3_create_function_v2(db, "stops", 1, utf8, NULL, stops, NULL, NULL, NULL);
  case 5: return sqlite3_create_function(db, "nested", 1, utf8, NULL, nested, NULL, NULL);
  case 6: /* replaces SQLite's own, or gives it back */
    return sqlite3_create_function(db, "abs", 1, pure_flags, NULL, chance(50) ? own_abs : NULL,
                                   NULL, NULL);
  case 7: return sqlite3_create_function(db, "pure", 1, pure_flags, NULL, NULL, NULL, NULL);
  default:
    return sqlite3_create_collation(db, "backwards", utf8, NULL, chance(80) ? backwards : NULL);
  }
}

/* ---- handlers */

static int authorize(void *arg, int code, const char *a, const char *b, const char *c,
                     const char *d) {
  const char *const texts[] = {a, b, c, d};
  int mode = (int)(intptr_t)arg;
  w.n_questions++;
  w.questions = (w.questions ^ (uint64_t)code) * 0x100000001b3u;
  for (int k = 0; k < 4; k++)
    for (const char *p = texts[k]; p && *p; p++)
      w.questions = (w.questions ^ (unsigned char)*p) * 0x100000001b3u;
  if (mode == 1 && code == SQLITE_READ && b && strcmp(b, "s") == 0) return SQLITE_IGNORE;
  if (mode == 2 && code == SQLITE_READ && b && strcmp(b, "i") == 0) return SQLITE_DENY;
  if (mode == 3 && code == SQLITE_FUNCTION) return SQLITE_DENY;
  return SQLITE_OK;
}

static int progress(void *arg) {
  return arg && ++w.n_progress % 4000 == 0;
}

static int busy(void *arg, int n) {
  say("busy %d", n);
  return n < 2;
}

static void on_update(void *arg, int op, const char *schema, const char *table, sqlite3_int64 id) {
  if (++w.n_updates % 50 == 0) say("update hook %d %s.%s %lld", op, schema, table, id);
}

static int on_commit(void *arg) {
  say("commit hook");
  return arg != NULL;
}

static void on_rollback(void *arg) {
  say("rollback hook");
}

static int trace(unsigned what, void *arg, void *p, void *x) {
  if (what == SQLITE_TRACE_STMT) say("trace [%.200s]", (const char *)x);
  if (what == SQLITE_TRACE_PROFILE) say("profile [%.200s]", sqlite3_sql(p));
  return 0;
}

static void handlers(connection *c) {
  switch (below(8)) {
  case 0:
  case 1:
    c->authorized = chance(60) && !w.patterns;
    result(c, "authorizer",
           sqlite3_set_authorizer(c->db, c->authorized ? authorize : NULL,
                                  (void *)(intptr_t)below(4)));
    break;
  case 2: { /* Only a handler that is called at each step may stop statements. */
    bool often = chance(30);
    sqlite3_progress_handler(c->db, often ? 1 : 5000, chance(70) ? progress : NULL,
                             often ? c : NULL);
    break;
  }
  case 3: sqlite3_busy_handler(c->db, chance(70) ? busy : NULL, NULL); break;
  case 4: sqlite3_update_hook(c->db, chance(70) ? on_update : NULL, NULL); break;
  case 5: sqlite3_commit_hook(c->db, chance(70) ? on_commit : NULL, chance(20) ? c : NULL); break;
  case 6: sqlite3_rollback_hook(c->db, chance(70) ? on_rollback : NULL, NULL); break;
  default:
    say("trace %d", sqlite3_trace_v2(c->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE,
                                     chance(40) ? trace : NULL, NULL));
  }
  say("questions %d %llx", w.n_questions, (unsigned long long)w.questions);
}

/* ---- limits */

static void limits(connection *c) {
  static const int ids[] = {
      SQLITE_LIMIT_LENGTH,       SQLITE_LIMIT_SQL_LENGTH,          SQLITE_LIMIT_COLUMN,
      SQLITE_LIMIT_EXPR_DEPTH,   SQLITE_LIMIT_COMPOUND_SELECT,     SQLITE_LIMIT_VDBE_OP,
      SQLITE_LIMIT_FUNCTION_ARG, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, SQLITE_LIMIT_VARIABLE_NUMBER,
      SQLITE_LIMIT_ATTACHED,     SQLITE_LIMIT_TRIGGER_DEPTH};
  static int least[] = {60, 100, 3, 3, 2, 300, 1, 3, 2, 1, 1};
  int k = below(11);
  bool back = w.patterns || chance(70); /* most limits are soon lifted */
  int before = sqlite3_limit(c->db, ids[k], back ? 1 << 30 : least[k]);
  say("limit %d was %d", ids[k], before);
}

/* ---- sqlite3_exec() and the like */

typedef struct exec_state {
  int n_rows, stop_at;
} exec_state;

static int on_row(void *arg, int n, char **values, char **names) {
  exec_state *x = arg;
  if (x->n_rows++ < 4) {
    printf("exec row %d:", n);
    for (int k = 0; k < n; k++)
      printf(" %s=%s", names[k], values && values[k] ? values[k] : "NULL");
    putchar('\n');
  }
  return x->n_rows == x->stop_at;
}

static void exec(connection *c, const char *sql, unsigned writes, bool callback) {
  exec_state x = {0, chance(20) ? 1 + below(5) : -1};
  char *message = NULL;
  note_write(index_of(c), writes);
  int rc = sqlite3_exec(c->db, sql, callback ? on_row : NULL, &x, chance(90) ? &message : NULL);
  say("exec on %d [%s] %d rows %d \"%s\"", index_of(c), sql, rc, x.n_rows, message ? message : "");
  result(c, "exec", rc);
  sqlite3_free(message);
}

static void exec_several(connection *c) {
  char sql[4 * MAX_SQL] = "", one[MAX_SQL];
  unsigned writes = 0;
  for (int n = 1 + below(3); n > 0; n--) {
    if (chance(75))
      sql_select(c, one);
    else
      writes |= sql_write(c, one);
    strcat(sql, one);
    strcat(sql, chance(90) ? "; " : " /* no end */ ");
  }
  exec(c, sql, writes, true);
}

static void table(connection *c) {
  char sql[MAX_SQL], **cells = NULL, *message = NULL;
  int n_rows = 0, n_columns = 0;
  sql_select(c, sql);
  int rc = sqlite3_get_table(c->db, sql, &cells, &n_rows, &n_columns, &message);
  say("get_table [%s] %d: %d x %d \"%s\"", sql, rc, n_rows, n_columns, message ? message : "");
  for (int k = 0; cells && k < (n_rows + 1) * n_columns && k < 20; k++)
    printf(" %s", cells[k] ? cells[k] : "NULL");
  putchar('\n');
  sqlite3_free(message);
  sqlite3_free_table(cells);
}

/* ---- blobs and backups */

void end_blob(int conn) {
  if (w.blob && (conn < 0 || w.blob_conn == conn)) {
    say("blob_close %d", sqlite3_blob_close(w.blob));
    w.blob = NULL;
  }
}

static void blobs(connection *c) {
  char bytes[100];
  if (!w.blob) {
    w.blob_conn = index_of(c);
    bool write = chance(50);
    int rc = sqlite3_blob_open(c->db, "main", chance(90) ? "t0" : "t9", chance(70) ? "b" : "s",
                               1 + below(40), write, &w.blob);
    result(c, "blob_open", rc);
    if (rc != SQLITE_OK) w.blob = NULL;
    return;
  }
  c = &w.connections[w.blob_conn];
  int n = sqlite3_blob_bytes(w.blob), rc;
  switch (below(4)) {
  case 0:
    rc = sqlite3_blob_read(w.blob, bytes, n < 100 ? n : 100, chance(90) ? 0 : 2);
    result(c, "blob_read", rc);
    if (rc == SQLITE_OK) print_bytes(bytes, n < 100 ? n : 100), putchar('\n');
    break;
  case 1:
    note_write(w.blob_conn, T_MIXED);
    result(c, "blob_write", sqlite3_blob_write(w.blob, "new", n < 3 ? n : 3, 0));
    break;
  case 2: result(c, "blob_reopen", sqlite3_blob_reopen(w.blob, 1 + below(60))); break;
  default: end_blob(w.blob_conn);
  }
}

/* Copies a database to the one in memory, whose connection must not be used meanwhile. */
static void back_up(connection *c) {
  connection *to = &w.connections[2];
  char sql[MAX_SQL];
  int rc;
  if (!to->db || c == to) return;
  if (!sqlite3_get_autocommit(to->db)) return; /* it may hold a lock on main, see 5. */
  for (int k = 0; k < N_STATEMENTS; k++) {
    statement *t = &w.statements[k];
    if (t->s && t->conn == 2 && sqlite3_stmt_busy(t->s)) return; /* so may this */
  }
  note_write(2, 0xffffff | T_SCHEMA);
  sqlite3_backup *b = sqlite3_backup_init(to->db, "main", c->db, chance(95) ? "main" : "none");
  result(to, "backup_init", b != NULL);
  if (!b) return;
  do {
    rc = sqlite3_backup_step(b, chance(50) ? -1 : 5);
    say("backup_step %d: %d of %d left", rc, sqlite3_backup_remaining(b),
        sqlite3_backup_pagecount(b));
    if (rc == SQLITE_OK && chance(10)) exec(c, sql, sql_write(c, sql), false);
  } while (rc == SQLITE_OK && chance(95));
  result(to, "backup_finish", sqlite3_backup_finish(b));
}

/* ---- one call on a connection */

static void others(connection *c) {
  const char *type = NULL, *collation = NULL;
  int not_null = 0, key = 0, increments = 0, rc;
  switch (below(7)) {
  case 0: sqlite3_interrupt(c->db), say("interrupt"); break;
  case 1:
    rc = sqlite3_table_column_metadata(c->db, "main", "t0", chance(80) ? "s" : "none", &type,
                                       &collation, &not_null, &key, &increments);
    result(c, "metadata", rc);
    break;
  case 2: say("extended %d", sqlite3_extended_result_codes(c->db, below(2))); break;
  case 3: sqlite3_db_release_memory(c->db), result(c, "release", 0); break;
  case 4: result(c, "cacheflush", sqlite3_db_cacheflush(c->db)); break;
  case 5: {
    const uint16_t *m = sqlite3_errmsg16(c->db);
    printf("errmsg16");
    int now = sqlite3_errcode(c->db);
    for (int k = 0; now != SQLITE_ROW && now != SQLITE_DONE && m[k]; k++) printf(" %x", m[k]);
    putchar('\n');
    break;
  }
  default:
    say("readonly %d %d", sqlite3_db_readonly(c->db, "main"), sqlite3_db_readonly(c->db, "no"));
  }
}

void call_connection(connection *c) {
  char sql[MAX_SQL];
  unsigned writes = 0;
  int what = below(100);
  say("connection %d", index_of(c));
  if (what < 25) {
    writes = sql_write(c, sql);
    exec(c, sql, writes, chance(30));
  } else if (what < 37) {
    writes = sql_schema(c, sql);
    exec(c, sql, writes, chance(30));
  } else if (what < 53) {
    sql_transaction(sql);
    exec(c, sql, 0, false);
  } else if (what < 65) {
    exec_several(c);
  } else if (what < 67) {
    table(c);
  } else if (what < 77) {
    result(c, "define", define(c));
  } else if (what < 84) {
    handlers(c);
  } else if (what < 88) {
    limits(c);
  } else if (what < 92) {
    blobs(c);
  } else if (what < 95) {
    back_up(c);
  } else {
    others(c);
  }
}
