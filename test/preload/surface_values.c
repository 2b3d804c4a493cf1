/*
** Rows of many kinds of queries, conversions of values, parameters of every kind, misuse.
*/
#include "surface.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const queries[] = {
    "SELECT count(*), sum(a), avg(b), min(c), max(d), total(a) FROM t",
    "SELECT * FROM t",
    "SELECT * FROM t WHERE a > 990 ORDER BY a DESC, id",
    "SELECT a, count(*), group_concat(id) FROM t WHERE a<20 GROUP BY a ORDER BY a",
    "SELECT d, count(*) AS \"how many\", sum(b) FROM t GROUP BY d ORDER BY 2 DESC, 1",
    "SELECT DISTINCT d FROM t ORDER BY d",
    "SELECT x, y, z, typeof(x), typeof(y), typeof(z) FROM any",
    "SELECT x, y, z FROM any ORDER BY rowid DESC",
    "SELECT p, q, r FROM w WHERE q < 40",
    "SELECT count(*), sum(q), max(p) FROM w",
    "SELECT * FROM v WHERE a < 12",
    "SELECT v.n, k.name FROM v JOIN k ON k.id = v.a WHERE v.total > 100 ORDER BY k.name",
    "SELECT t.id, k.name FROM t LEFT JOIN k ON k.id = t.a WHERE t.id < 60",
    "WITH top(a, s) AS (SELECT a, sum(b) FROM t GROUP BY a) SELECT a, s FROM top ORDER BY s LIMIT "
    "9",
    "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<5) SELECT i, (SELECT "
    "count(*) FROM t WHERE a=i) FROM c",
    "SELECT id, row_number() OVER (ORDER BY b DESC) FROM t WHERE id<8",
    "SELECT a FROM t WHERE a IN (SELECT id FROM k WHERE id<5) UNION SELECT id FROM k WHERE id<9",
    "SELECT * FROM f WHERE f MATCH 'two'",
    "SELECT name, type FROM pragma_table_info('t')",
    "SELECT value, key FROM json_each('[1,2.5,\"x\",null]')",
    "SELECT c FROM t WHERE id = 77",
    "SELECT a+1, b*2, c||'!', -a, a%7, a/0, b/0, a=b, c LIKE 'row 1%' FROM t WHERE id<12",
    "SELECT upper(c), length(c), substr(c,2,3), abs(a), round(b,1), coalesce(a,'none') FROM t "
    "WHERE id BETWEEN 95 AND 99",
    "SELECT max(id), c FROM t",
    "SELECT * FROM t WHERE id > 100000",
    "SELECT sum(a) FROM t WHERE id > 100000",
    "SELECT a, b FROM t LIMIT 5 OFFSET 2990",
    "SELECT 1, 2.5, 'x', x'00', NULL",
    "VALUES(1,2),(3,4)",
    "EXPLAIN SELECT 1",
    "SELECT t.*, w.q FROM t, w WHERE t.c = w.p AND t.id < 10",
    "SELECT EXISTS(SELECT 1 FROM t WHERE a=5), (SELECT max(b) FROM t), 5 IN (SELECT a FROM t)",
    "  -- a comment\n /* another */ SELECT sum(id) FROM t; SELECT 2",
    "SELECT date('2024-01-31','+1 month'), strftime('%Y', '2024-05-06') FROM t WHERE id<3",
    "SELECT \"a\", [b], `c`, 't' FROM \"t\" WHERE \"id\" < 4",
    "SELECT id AS x, a AS x, b \"\" FROM t WHERE id<3",
    NULL};

static void all_queries(sqlite3 *db) {
  for (int i = 0; queries[i]; i++) {
    title("query %d", i);
    sqlite3_stmt *s = prepare(db, queries[i]);
    for (int again = 0; again < 2; again++) {
      about(s);
      rows(db, s, i == 1 ? 3100 : 400, i + again);
      state(db, s);
      row(s, 0);
      code(db, "column after the end", 0);
      if (again == 0 && i % 3 == 0) continue; /* SQLite resets it by itself */
      code(db, "reset", sqlite3_reset(s));
    }
    about(s);
    say("runs %d", sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 1));
    say("runs %d", sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 0));
    done(db, s);
  }
}

/* Every order of accessors over the table with all kinds of values. */
static void conversions(sqlite3 *db) {
  title("conversions");
  for (int way = 0; way < 11; way++) {
    sqlite3_stmt *s = prepare(db, "SELECT x, y, z, x||'', CAST(z AS TEXT) FROM any");
    for (int k = 0; sqlite3_step(s) == SQLITE_ROW; k++) row(s, way);
    done(db, s);
    s = prepare(db, "SELECT a, b, c, d, id FROM t WHERE id > 2990 OR a IS NULL AND id < 200 "
                    "ORDER BY id");
    while (sqlite3_step(s) == SQLITE_ROW) row(s, way);
    done(db, s);
  }
}

static int n_destroyed;
static void destroy(void *p) {
  n_destroyed++;
  free(p);
}

static void parameters(sqlite3 *db) {
  title("parameters");
  sqlite3_stmt *s = prepare(db, "SELECT count(*), sum(a), ?2, typeof(?2), :name, $x, @y FROM t "
                                "WHERE a > ?1 AND coalesce(c, '') <> ?5");
  for (int i = 0; i <= 8; i++) {
    const char *name = sqlite3_bind_parameter_name(s, i);
    say("parameter %d %s", i, name ? name : "(null)");
  }
  say("index %d %d", sqlite3_bind_parameter_index(s, ":name"),
      sqlite3_bind_parameter_index(s, "none"));
  for (int kind = 0; kind < 16; kind++) {
    sqlite3_stmt *other = NULL;
    code(db, "bind 1", sqlite3_bind_int(s, 1, 100 + kind));
    int rc = SQLITE_OK;
    switch (kind) {
    case 0: rc = sqlite3_bind_int64(s, 2, -9223372036854775807LL - 1); break;
    case 1: rc = sqlite3_bind_double(s, 2, 0.1); break;
    case 2: rc = sqlite3_bind_double(s, 2, NAN); break;
    case 3: rc = sqlite3_bind_text(s, 2, "text and more", 4, SQLITE_STATIC); break;
    case 4: rc = sqlite3_bind_text(s, 2, strdup("own"), -1, destroy); break;
    case 5: rc = sqlite3_bind_text16(s, 2, "a\0b\0\0\0", -1, SQLITE_TRANSIENT); break;
    case 6: rc = sqlite3_bind_blob(s, 2, "\0\1\2", 3, SQLITE_TRANSIENT); break;
    case 7: rc = sqlite3_bind_zeroblob(s, 2, 7); break;
    case 8: rc = sqlite3_bind_blob64(s, 2, strdup("xyz"), 3, destroy); break;
    case 9: rc = sqlite3_bind_text64(s, 2, "abc", 3, SQLITE_TRANSIENT, SQLITE_UTF8); break;
    case 10: rc = sqlite3_bind_null(s, 2); break;
    case 11: rc = sqlite3_bind_pointer(s, 2, strdup("p"), "kind", destroy); break;
    case 12: rc = sqlite3_bind_zeroblob64(s, 2, 3); break;
    case 13:
      sqlite3_prepare_v2(db, "SELECT b FROM t WHERE id=3", -1, &other, NULL);
      sqlite3_step(other);
      rc = sqlite3_bind_value(s, 2, sqlite3_column_value(other, 0));
      break;
    case 14:
      sqlite3_prepare_v2(db, "SELECT d, count(*) FROM t GROUP BY d", -1, &other, NULL);
      sqlite3_step(other);
      rc = sqlite3_bind_value(s, 2, sqlite3_column_value(other, 0));
      break;
    case 15: rc = sqlite3_bind_blob(s, 2, "", 0, SQLITE_STATIC); break;
    }
    code(db, "bind 2", rc);
    sqlite3_finalize(other);
    sqlite3_bind_text(s, 3, "named", -1, SQLITE_STATIC);
    about(s);
    rows(db, s, 1, kind);
    code(db, "bind while busy", sqlite3_bind_int(s, 1, 1));
    code(db, "bind while busy", sqlite3_bind_text(s, 1, strdup("x"), -1, destroy));
    code(db, "bind while busy", sqlite3_bind_pointer(s, 1, strdup("x"), "p", destroy));
    rows(db, s, 1, 0);
    code(db, "bind after the end", sqlite3_bind_null(s, 1));
    code(db, "reset", sqlite3_reset(s));
    code(db, "bind out of range", sqlite3_bind_int(s, 99, 1));
    if (kind % 5 == 4) say("clear %d", sqlite3_clear_bindings(s));
    say("destroyed %d", n_destroyed);
  }
  about(s);
  rows(db, s, 2, 0);
  done(db, s);
}

/* Handles that are stepped in turns, and two handles of one text. */
static void interleaved(sqlite3 *db) {
  enum { N = 8 };
  sqlite3_stmt *s[N];
  title("interleaved");
  for (int i = 0; i < N; i++) {
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT id, a, c FROM t WHERE id %% %d = 0 AND b > ?", i / 2 + 2);
    s[i] = prepare(db, sql);
    sqlite3_bind_double(s[i], 1, i * 10);
  }
  for (int k = 0; k < 120; k++) {
    int i = (k * 5 + k / 7) % N;
    int rc = sqlite3_step(s[i]);
    printf("%d: ", i);
    if (rc == SQLITE_ROW)
      row(s[i], k);
    else
      code(db, "step", rc);
    if (k % 29 == 28) code(db, "reset", sqlite3_reset(s[(k / 29) % N]));
    if (k == 60) {
      say("statements:");
      for (sqlite3_stmt *x = sqlite3_next_stmt(db, NULL); x; x = sqlite3_next_stmt(db, x))
        say("  %s busy %d", sqlite3_sql(x), sqlite3_stmt_busy(x));
    }
  }
  sqlite3_stmt *inner = prepare(db, "SELECT sum(b), count(*) FROM t WHERE a = ?");
  while (sqlite3_step(s[7]) == SQLITE_ROW && sqlite3_column_int(s[7], 0) < 300) {
    sqlite3_bind_value(inner, 1, sqlite3_column_value(s[7], 1));
    rows(db, inner, 1, 0);
    sqlite3_reset(inner);
  }
  done(db, inner);
  for (int i = 0; i < N; i++) done(db, s[i]);
}

static void misuse(sqlite3 *db) {
  title("misuse");
  sqlite3_stmt *s = prepare(db, "SELECT id, b FROM t");
  row(s, 0);
  code(db, "column before the first step", 0);
  rows(db, s, 1, 0);
  for (int i = -1; i < 4; i += 3) {
    say("%d %d %s", sqlite3_column_type(s, i), sqlite3_column_int(s, i),
        sqlite3_column_text(s, i) ? "text" : "null");
    code(db, "column out of range", 0);
    say("%d %g %d %d", sqlite3_column_bytes(s, i), sqlite3_column_double(s, i),
        sqlite3_value_type(sqlite3_column_value(s, i)), sqlite3_column_bytes16(s, i));
  }
  rows(db, s, 2, 1);
  code(db, "reset", sqlite3_reset(s));
  code(db, "reset", sqlite3_reset(s));
  done(db, s);
  code(db, "finalize nothing", sqlite3_finalize(NULL));
  say("nothing: %d %d %d", sqlite3_reset(NULL), sqlite3_data_count(NULL), sqlite3_stmt_busy(NULL));
  say("step nothing %d", sqlite3_step(NULL));
  say("bind nothing %d", sqlite3_bind_int(NULL, 1, 1));
  static const char *const bad[] = {"SELECT",
                                    "SELECT nothing FROM t",
                                    "SELECT * FROM nothing",
                                    "SELECT 'abc",
                                    "SELECT (1",
                                    "",
                                    " ; ",
                                    "-- nothing",
                                    "SELECT a FROM t WHERE b ===== 3",
                                    NULL};
  for (int i = 0; bad[i]; i++) {
    s = prepare(db, bad[i]);
    code(db, "bad", 0);
    sqlite3_finalize(s);
  }
}

/* Errors in the middle of a statement. */
static void failures(sqlite3 *db) {
  static const char *const sql[] = {
      "SELECT abs(id - 9223372036854775807 - 11) FROM t WHERE id < 20",
      "SELECT sum(9223372036854775807) FROM t",
      "SELECT json(c) FROM t WHERE id > 5",
      "SELECT json_extract('{\"a\":1}', 'x') FROM t",
      "SELECT a, sum(id * 9223372036854775) FROM t GROUP BY a ORDER BY a LIMIT 3",
      "SELECT id, c LIKE 'x' ESCAPE 'ab' FROM t",
      "SELECT zeroblob(2000000000) FROM t",
      "SELECT replace(hex(zeroblob(1000)), '00', hex(zeroblob(1000))) FROM t WHERE id < 3",
      "SELECT load_extension('nothing') FROM t",
      "SELECT (SELECT id FROM t t2 WHERE t2.id = t.id AND abs(t2.a) > 0) FROM t WHERE id < 10",
      NULL};
  title("failures");
  for (int i = 0; sql[i]; i++) {
    sqlite3_stmt *s = prepare(db, sql[i]);
    for (int again = 0; again < 2; again++) {
      rows(db, s, 30, i % 3 == 0 ? 1 : 0);
      state(db, s);
      if (again == 0) code(db, "reset", sqlite3_reset(s));
    }
    done(db, s);
  }
  int before = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000);
  sqlite3_stmt *s = prepare(db, "SELECT group_concat(c) FROM t");
  rows(db, s, 2, 0);
  done(db, s);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, before);
}

static int print_row(void *arg, int n, char **values, char **names) {
  int *left = arg;
  for (int i = 0; i < n; i++)
    printf("%s=%s ", names[i], values && values[i] ? values[i] : "(null)");
  putchar('\n');
  return --*left == 0;
}

static void exec(sqlite3 *db) {
  static const char *const sql[] = {"SELECT a, count(*), sum(b), c FROM t WHERE id<40 GROUP BY a",
                                    "SELECT id FROM t; SELECT count(*) FROM w;",
                                    "SELECT count(*) FROM t WHERE 0; SELECT nothing",
                                    "SELECT * FROM t WHERE id < 0; UPDATE t SET a=a WHERE id=1; "
                                    " SELECT changes(), sum(a) FROM t -- end",
                                    " ; ;; SELECT sum(id) FROM t ; /* x */",
                                    "",
                                    NULL};
  title("exec");
  for (int i = 0; sql[i]; i++) {
    for (int left = 0; left < 3; left++) {
      char *message = NULL;
      int n = left, rc = sqlite3_exec(db, sql[i], print_row, &n, &message);
      code(db, "exec", rc);
      say("message %s", message ? message : "(null)");
      sqlite3_free(message);
    }
  }
  run(db, "PRAGMA empty_result_callbacks=1");
  for (int i = 0; sql[i]; i++) {
    int left = 0;
    code(db, "exec", sqlite3_exec(db, sql[i], print_row, &left, NULL));
  }
  run(db, "PRAGMA empty_result_callbacks=0");
  code(db, "exec", sqlite3_exec(db, "SELECT sum(a) FROM t", NULL, NULL, NULL));
  code(db, "exec", sqlite3_exec(db, NULL, print_row, NULL, NULL));
  char **table, *message = NULL;
  int n_rows, n_columns;
  int rc = sqlite3_get_table(db, "SELECT d, count(*) FROM t GROUP BY d", &table, &n_rows,
                             &n_columns, &message);
  code(db, "get_table", rc);
  for (int i = 0; i < (n_rows + 1) * n_columns; i++) say("%s", table[i] ? table[i] : "(null)");
  sqlite3_free_table(table);
}

void surface_values(void) {
  sqlite3 *db = surface_open("values.db");
  surface_fill(db);
  all_queries(db);
  conversions(db);
  parameters(db);
  interleaved(db);
  misuse(db);
  failures(db);
  exec(db);
  say("extended %d", sqlite3_extended_result_codes(db, 1));
  failures(db);
  code(db, "close", sqlite3_close(db));
}
