/*
** warplite_prepare() beside sqlite3_prepare_v2(): parameters, names, declared types, tails,
** byte limits, and errors must come out the same, whoever runs the statement.
**
** Invariants:
** 1. Everything is asked of both statements, and the answers compared; nothing is expected
**    by hand that SQLite can say itself.
** 2. Text passed with a byte limit lies in a block of exactly that size, so that reading
**    past it shows under a sanitizer.
*/
#include <string.h>

#include "../engines.h"
#include "../rng.h"
#include "../rows.h"
#include "../tap.h"

static sqlite3 *db;
static rows got, want;

static void exec(const char *sql) {
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
    tap_bad("set-up", "%s: %s", sql, sqlite3_errmsg(db));
    exit(tap_done());
  }
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && !strcmp(a, b));
}

/* ---- parameters */

static const char *const with_params[] = {
    "SELECT a+? FROM t",
    "SELECT ?, ?, a FROM t",
    "SELECT ?3, a FROM t WHERE a>?1",
    "SELECT :x, @y, $z, ?, ?7, :x FROM t",
    "SELECT a FROM t WHERE c=$a::b(c) OR a=$a",
    "SELECT ?2+?2, a FROM t",
    "SELECT a FROM t WHERE a IN (?,?,?)",
    "SELECT a, CASE WHEN ? THEN :p ELSE @p END FROM t",
    "SELECT CAST(? AS TEXT)||? FROM t",
    "SELECT a FROM t WHERE a BETWEEN ?1 AND ?2 AND ?1 IS NOT NULL",
    "SELECT sum(a*?), count(?), max(?||c) FROM t WHERE a<>?",
    "SELECT a FROM t WHERE c=? COLLATE NOCASE",
    "SELECT a FROM t WHERE :p IS NULL",
    "SELECT ?1 AS \"name?\", '?9', a FROM t -- ?8",
    "SELECT a FROM t LIMIT ?",
    "SELECT a FROM t LIMIT ? OFFSET ?",
    "SELECT a FROM t LIMIT :n, :m",
    "SELECT a, ?1 = a, ?1 = c, ?1 < b, ?1 IS d FROM t",
    "SELECT -?, ~?, NOT ?, ?+0, ?/2 FROM t",
};

enum { N_BIND_KINDS = 12 };

static int bind_kind(sqlite3_stmt *st, int i, int kind) {
  switch (kind) {
  case 0: return sqlite3_bind_int(st, i, 3);
  case 1: return sqlite3_bind_int64(st, i, INT64_MIN);
  case 2: return sqlite3_bind_double(st, i, 2.5);
  case 3: return sqlite3_bind_text(st, i, "two", -1, SQLITE_STATIC);
  case 4: return sqlite3_bind_text(st, i, "a\0b", 3, SQLITE_TRANSIENT);
  case 5: return sqlite3_bind_blob(st, i, "\x01\x00\xff", 3, SQLITE_TRANSIENT);
  case 6: return sqlite3_bind_null(st, i);
  case 7: return sqlite3_bind_zeroblob(st, i, 5);
  case 8: return sqlite3_bind_text16(st, i, "4\0", 2, SQLITE_TRANSIENT);
  case 9: return sqlite3_bind_double(st, i, INFINITY);
  case 10: return sqlite3_bind_text(st, i, "", 0, SQLITE_STATIC);
  default: return sqlite3_bind_text(st, i, " 2 ", -1, SQLITE_STATIC);
  }
}

static void check_params(const char *sql) {
  static const char *const names[] = {":x", "@y",       "$z",      "?7", "?1", "?",  ":p", "@p",
                                      "$a", "$a::b(c)", ":nosuch", "",   "x",  ":n", ":m"};
  char label[300], why[900];
  sqlite3_stmt *a = NULL, *b = NULL;
  snprintf(label, sizeof label, "parameters of %.200s", sql);
  if (warplite_prepare(db, sql, -1, &a, NULL) || sqlite3_prepare_v2(db, sql, -1, &b, NULL)) {
    tap_bad(label, "%s", sqlite3_errmsg(db));
    goto done;
  }
  int n = sqlite3_bind_parameter_count(b);
  if (sqlite3_bind_parameter_count(a) != n) {
    tap_bad(label, "count %d, SQLite %d", sqlite3_bind_parameter_count(a), n);
    goto done;
  }
  for (int i = 0; i <= n + 1; i++)
    if (!same_text(sqlite3_bind_parameter_name(a, i), sqlite3_bind_parameter_name(b, i))) {
      tap_bad(label, "name of %d is %s, SQLite %s", i, sqlite3_bind_parameter_name(a, i),
              sqlite3_bind_parameter_name(b, i));
      goto done;
    }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (sqlite3_bind_parameter_index(a, names[i]) != sqlite3_bind_parameter_index(b, names[i])) {
      tap_bad(label, "index of %s", names[i]);
      goto done;
    }
  if (sqlite3_bind_int(a, n + 1, 1) != sqlite3_bind_int(b, n + 1, 1) ||
      sqlite3_bind_int(a, 0, 1) != sqlite3_bind_int(b, 0, 1)) {
    tap_bad(label, "a bind out of range");
    goto done;
  }
  /* round 0 leaves all unbound; the rest bind kinds in turn, and clear now and then */
  for (int round = 0; round < 3 * N_BIND_KINDS; round++) {
    if (round % 7 == 6) {
      sqlite3_clear_bindings(a);
      sqlite3_clear_bindings(b);
    }
    for (int i = 1; i <= n && round; i++) {
      int kind = (round * 5 + i * (round / N_BIND_KINDS + 1)) % N_BIND_KINDS;
      if (bind_kind(a, i, kind) != bind_kind(b, i, kind)) {
        tap_bad(label, "binding kind %d to %d", kind, i);
        goto done;
      }
    }
    rows_clear(&got);
    rows_clear(&want);
    rows_step(&got, db, a);
    rows_step(&want, db, b);
    if (!rows_same(&got, &want, true, why, sizeof why)) {
      tap_bad(label, "round %d: %s", round, why);
      goto done;
    }
    if (sqlite3_reset(a) != sqlite3_reset(b)) {
      tap_bad(label, "round %d: reset gives another code", round);
      goto done;
    }
  }
  tap_ok(label);
done:
  sqlite3_finalize(a);
  sqlite3_finalize(b);
}

/* Binding while a statement runs is misuse, and a reset in the middle starts it anew. */
static void check_midway(void) {
  const char *sql = "SELECT a, ?1 FROM t WHERE a>=?1";
  sqlite3_stmt *a = NULL, *b = NULL;
  CHECK("midway: prepares",
        !warplite_prepare(db, sql, -1, &a, NULL) && !sqlite3_prepare_v2(db, sql, -1, &b, NULL));
  sqlite3_bind_int(a, 1, 2);
  sqlite3_bind_int(b, 1, 2);
  CHECK("midway: first row", sqlite3_step(a) == SQLITE_ROW && sqlite3_step(b) == SQLITE_ROW);
  CHECK("midway: bind while running", sqlite3_bind_int(a, 1, 3) == sqlite3_bind_int(b, 1, 3));
  CHECK("midway: data count", sqlite3_data_count(a) == sqlite3_data_count(b));
  CHECK("midway: busy", sqlite3_stmt_busy(a) == sqlite3_stmt_busy(b));
  CHECK("midway: reset", sqlite3_reset(a) == SQLITE_OK && sqlite3_reset(b) == SQLITE_OK);
  CHECK("midway: bind after reset", sqlite3_bind_int(a, 1, 3) == SQLITE_OK);
  CHECK("midway: again", sqlite3_step(a) == SQLITE_ROW && sqlite3_column_int(a, 0) == 3);
  CHECK("midway: readonly", sqlite3_stmt_readonly(a) == 1);
  sqlite3_finalize(a);
  sqlite3_finalize(b);
}

/* ---- names and declared types */

static void check_columns(void) {
  static const char *const list[] = {
      "SELECT * FROM t",
      "SELECT a, b, c, d, e, rowid, a+1, a AS x, t.a, main.t.b FROM t",
      "SELECT \"a\", [b], `c`, 'lit', 1, NULL, x'00', ?1, :p FROM t",
      "SELECT a a, b 'b', c AS \"c \"\" d\", d AS [e f], e AS `g` FROM t",
      "SELECT count(*), sum(a), max(b), min(c) AS m, avg ( a ) FROM t",
      "SELECT a,b , c  ,d FROM t AS u",
      "SELECT u.* FROM t u",
      "SELECT t.*, t.rowid, * FROM t",
      "SELECT CASE a WHEN 1 THEN b END, CAST(a AS TEXT), a COLLATE NOCASE, (a), -a FROM t",
      "SELECT a /* comment */ + 1, a -- end\n FROM t",
      "SELECT id, rowid, oid, _rowid_, v FROM p",
  };
  static const char *const pragmas[] = {"PRAGMA full_column_names=0", "PRAGMA short_column_names=0",
                                        "PRAGMA full_column_names=1", "PRAGMA short_column_names=1",
                                        "PRAGMA full_column_names=0"};
  for (size_t p = 0; p < sizeof pragmas / sizeof pragmas[0]; p++) {
    exec(pragmas[p]);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
      sqlite3_stmt *a = NULL, *b = NULL;
      char label[300];
      snprintf(label, sizeof label, "columns of %.200s (%s)", list[i], pragmas[p]);
      if (warplite_prepare(db, list[i], -1, &a, NULL) ||
          sqlite3_prepare_v2(db, list[i], -1, &b, NULL)) {
        tap_bad(label, "%s", sqlite3_errmsg(db));
      } else if (sqlite3_column_count(a) != sqlite3_column_count(b)) {
        tap_bad(label, "%d columns, SQLite %d", sqlite3_column_count(a), sqlite3_column_count(b));
      } else {
        bool good = true;
        for (int c = 0; c < sqlite3_column_count(b) && good; c++) {
          if (!same_text(sqlite3_column_name(a, c), sqlite3_column_name(b, c)))
            good = tap_bad(label, "column %d is named %s, SQLite %s", c, sqlite3_column_name(a, c),
                           sqlite3_column_name(b, c));
          else if (!same_text(sqlite3_column_decltype(a, c), sqlite3_column_decltype(b, c)))
            good = tap_bad(label, "column %d is declared %s, SQLite %s", c,
                           sqlite3_column_decltype(a, c), sqlite3_column_decltype(b, c));
        }
        if (good) tap_ok(label);
      }
      sqlite3_finalize(a);
      sqlite3_finalize(b);
    }
  }
}

/* ---- text: tails, limits, errors */

/* Prepares n bytes of sql both ways; false with a message if anything differs. */
static bool same_prepare(const char *sql, int n, bool run, char *why, size_t n_why) {
  sqlite3_stmt *a = NULL, *b = NULL;
  const char *ta = NULL, *tb = NULL;
  bool good = false;
  int ra = warplite_prepare(db, sql, n, &a, &ta);
  int xa = sqlite3_extended_errcode(db), ea = sqlite3_errcode(db), oa = sqlite3_error_offset(db);
  char ma[400];
  snprintf(ma, sizeof ma, "%s", sqlite3_errmsg(db));
  int rb = sqlite3_prepare_v2(db, sql, n, &b, &tb);
  if (ra != rb || (ra && (xa != sqlite3_extended_errcode(db) || ea != sqlite3_errcode(db)))) {
    snprintf(why, n_why, "code %d/%d (%.100s), SQLite %d/%d (%.100s)", ra, xa, ma, rb,
             sqlite3_extended_errcode(db), sqlite3_errmsg(db));
  } else if (ra && strcmp(ma, sqlite3_errmsg(db))) {
    snprintf(why, n_why, "message \"%.150s\", SQLite \"%.150s\"", ma, sqlite3_errmsg(db));
  } else if (ra && oa != sqlite3_error_offset(db)) {
    snprintf(why, n_why, "error offset %d, SQLite %d", oa, sqlite3_error_offset(db));
  } else if (ta != tb) {
    snprintf(why, n_why, "tail at %ld, SQLite %ld", ta ? (long)(ta - sql) : -1,
             tb ? (long)(tb - sql) : -1);
  } else if (!a != !b) {
    snprintf(why, n_why, "%s statement, SQLite %s", a ? "a" : "no", b ? "one" : "none");
  } else {
    good = true;
    if (a && run) {
      rows_clear(&got);
      rows_clear(&want);
      rows_step(&got, db, a);
      rows_step(&want, db, b);
      good = rows_same(&got, &want, true, why, n_why);
    }
  }
  sqlite3_finalize(a);
  sqlite3_finalize(b);
  return good;
}

static void check_tails(void) {
  static const char *const list[] = {
      "SELECT a FROM t; SELECT b FROM t",
      "SELECT a FROM t;SELECT nosuch FROM t;",
      "  ; ; SELECT a FROM t ;  -- the end",
      "-- only a comment",
      "/* open",
      ";",
      "SELECT 'a;b', a FROM t; junk",
      "SELECT \"x;y\" FROM t;;",
      "SELECT a FROM t -- ; not here\n; SELECT 2",
      "SELECT a FROM t /* ; */ WHERE a>1; SELECT 3",
      "CREATE TABLE IF NOT EXISTS t(a); SELECT a FROM t",
      "DROP TABLE IF EXISTS zz; COMMIT;",
      "EXPLAIN QUERY PLAN VALUES(random()); SELECT a FROM t",
      "VALUES(1);SELECT a FROM t",
  };
  char label[200], why[900];
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    size_t len = strlen(list[i]);
    bool good = true;
    snprintf(label, sizeof label, "tails and limits of %.120s", list[i]);
    for (int n = -1; n <= (int)len + 1 && good; n++) { /* len+1 takes in the final NUL */
      size_t size = n < 0 ? len + 1 : (size_t)n;
      char *exact = must(malloc(size ? size : 1));
      memcpy(exact, list[i], size);
      if (!same_prepare(exact, n, true, why, sizeof why))
        good = tap_bad(label, "nByte %d: %s", n, why);
      free(exact);
    }
    if (good) tap_ok(label);
    /* the whole text, statement by statement */
    const char *pa = list[i], *pb = list[i];
    for (int k = 0; k < 10 && good && *pa; k++) {
      sqlite3_stmt *a = NULL, *b = NULL;
      int ra = warplite_prepare(db, pa, -1, &a, &pa), rb = sqlite3_prepare_v2(db, pb, -1, &b, &pb);
      sqlite3_finalize(a);
      sqlite3_finalize(b);
      if (ra != rb || pa != pb) good = tap_bad(label, "walking it: statement %d differs", k);
      if (ra) break;
    }
  }
}

static void check_errors(void) {
  static const char *const list[] = {
      "",
      " ",
      "S",
      "SELECT",
      "SELECT FROM t",
      "SELECT * FROM",
      "SELECT a FROM nosuch",
      "SELECT nosuch FROM t",
      "SELECT t.nosuch FROM t",
      "SELECT x.a FROM t",
      "SELECT a FROM x.t",
      "SELECT x.t.a FROM t",
      "SELECT a FROM t WHERE",
      "SELECT a FROM t WHERE nosuch>1",
      "SELECT a FROM t LIMIT",
      "SELECT a FROM t LIMIT a",
      "SELECT a FROM t OFFSET 1",
      "SELECT a, FROM t",
      "SELECT (a FROM t",
      "SELECT a) FROM t",
      "SELECT a FROM t)",
      "SELECT a b c FROM t",
      "SELECT 'a FROM t",
      "SELECT \"a FROM t",
      "SELECT x'0' FROM t",
      "SELECT x'zz' FROM t",
      "SELECT 1a FROM t",
      "SELECT 0x FROM t",
      "SELECT 1e FROM t",
      "SELECT 0x123456789abcdef01 FROM t",
      "SELECT @ FROM t",
      "SELECT : FROM t",
      "SELECT # FROM t",
      "SELECT ?0 FROM t",
      "SELECT ?32767 FROM t",
      "SELECT ?99999999999 FROM t",
      "SELECT sum() FROM t",
      "SELECT sum(a,b) FROM t",
      "SELECT count(a,b) FROM t",
      "SELECT nosuch(a) FROM t",
      "SELECT sum(sum(a)) FROM t",
      "SELECT a FROM t WHERE sum(a)>1",
      "SELECT max(*) FROM t",
      "SELECT a COLLATE nosuch='x' FROM t",
      "SELECT CAST(a AS) FROM t",
      "SELECT CAST(a) FROM t",
      "SELECT CASE END FROM t",
      "SELECT CASE WHEN a END FROM t",
      "SELECT CASE a ELSE 1 END FROM t",
      "SELECT a BETWEEN 1 FROM t",
      "SELECT a IN FROM t",
      "SELECT a IN (1,) FROM t",
      "SELECT a IN (SELECT a,b FROM t) FROM t",
      "SELECT (1,2) FROM t",
      "SELECT (a,b)=1 FROM t",
      "SELECT a NOT FROM t",
      "SELECT a IS FROM t",
      "SELECT a || FROM t",
      "SELECT * + 1 FROM t",
      "SELECT t.* + 1 FROM t",
      "SELECT u.* FROM t",
      "SELECT *, FROM t",
      "SELECT DISTINCT FROM t",
      "SELECT a FROM t GROUP BY",
      "SELECT a FROM t ORDER",
      "SELECT a FROM t ORDER BY 9",
      "SELECT a FROM t UNION SELECT a,b FROM t",
      "SELECT a FROM t HAVING a",
      "SELECT a FROM t JOIN",
      "SELECT a FROM t INDEXED BY nosuch",
      "SELECT RAISE(ABORT,'x') FROM t",
      "SELECT a FROM t WINDOW",
      "SELECT a->> FROM t",
      "SELECT rowid FROM w",
      "SELECT a FROM t, t",
      "SELECT a FROM t WHERE a = = 1",
      "SELECT a FROM t WHERE AND a",
      "INSERT INTO nosuch VALUES(1)",
      "DROP TABLE nosuch",
      "CREATE TABLE t(a)",
      "SELEC a FROM t",
      "SELECT a FRM t",
      "EXPLAIN",
      "EXPLAIN SELECT nosuch FROM t",
      "EXPLAIN QUERY PLAN SELECT nosuch FROM t",
      "EXPLAIN ANALYZE INSERT INTO t VALUES(1)",
      "EXPLAIN ANALYZE WITH x AS (SELECT 1) DELETE FROM t",
      "EXPLAIN ANALYZE",
      "WITH x AS (SELECT 1) SELECT y FROM x",
      "WITH SELECT 1",
      "SELECT a FROM t;SELECT",
      "\xff\xfe",
      "SELECT \xc3\x28 FROM t",
      "SELECT a FROM t WHERE c LIKE",
      "SELECT a FROM t WHERE c LIKE 'x' ESCAPE 'long'",
      "SELECT a FROM t LIMIT 1.5",
      "SELECT a FROM t LIMIT 'x'",
      "SELECT a FROM t LIMIT NULL",
      "SELECT a FROM t LIMIT 1 OFFSET 'x'",
      "SELECT sum(big) FROM o",
  };
  char label[200], why[900];
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    snprintf(label, sizeof label, "error of \"%.150s\"", list[i]);
    if (same_prepare(list[i], -1, true, why, sizeof why))
      tap_ok(label);
    else
      tap_bad(label, "%s", why);
  }
}

/* Valid queries with bytes changed, dropped, doubled and swapped. */
static void check_mutations(int n) {
  static const char *const seeds[] = {
      "SELECT a, b+1, c||'x' FROM t WHERE a>1 AND b<=2.5 OR c='y' LIMIT 3 OFFSET 1",
      "SELECT count(*), sum(a), avg(b), max(c) FROM main.t WHERE a BETWEEN 1 AND 9",
      "SELECT CASE a WHEN 1 THEN 'one' ELSE x'00' END AS z, CAST(b AS INTEGER) FROM t u",
      "SELECT a IN (1,2,?), \"c\" IS NOT NULL, -~a, NOT [b] FROM t WHERE c COLLATE NOCASE='A'",
  };
  static const char bytes[] =
      " ,()'\"[]`;*+-/%|&<>=~.?:@$#!\\\n\t0123456789abctxyzABCEILNORST\x80\xff";
  rng r = {42};
  char text[300], why[900];
  int n_bad = 0;
  for (int i = 0; i < n && n_bad < 10; i++) {
    size_t len = (size_t)snprintf(text, sizeof text - 20, "%s", seeds[rng_below(&r, 4)]);
    for (int k = 1 + rng_below(&r, 3); k > 0; k--) {
      size_t at = (size_t)rng_below(&r, (int)len), other = (size_t)rng_below(&r, (int)len);
      switch (rng_below(&r, 4)) {
      case 0: text[at] = bytes[rng_below(&r, (int)sizeof bytes - 1)]; break;
      case 1: memmove(text + at, text + at + 1, len-- - at); break;
      case 2:
        memmove(text + at + 1, text + at, ++len - at);
        text[at] = bytes[rng_below(&r, (int)sizeof bytes - 1)];
        break;
      default: {
        char c = text[at];
        text[at] = text[other];
        text[other] = c;
      }
      }
    }
    if (same_prepare(text, -1, true, why, sizeof why)) continue;
    n_bad++;
    tap_bad("a mutated query", "%s: %s", text, why);
  }
  if (!n_bad) tap_ok("mutated queries");
}

static void check_nulls(void) {
  sqlite3_stmt *st = (sqlite3_stmt *)&db;
  const char *tail = "x";
  CHECK("NULL connection: prepare",
        warplite_prepare(NULL, "SELECT 1", -1, &st, &tail) == SQLITE_MISUSE);
  CHECK("NULL connection: enable", warplite_enable(NULL) == SQLITE_MISUSE);
  CHECK("NULL connection: reason", warplite_reason(NULL) != NULL);
  CHECK("NULL connection: message", warplite_errmsg(NULL) != NULL);
  struct ArrowArrayStream s;
  memset(&s, 0, sizeof s);
  CHECK("NULL connection: query", warplite_query(NULL, "SELECT 1", &s) == SQLITE_MISUSE);
  st = NULL;
  int theirs = sqlite3_prepare_v2(db, NULL, -1, &st, NULL);
  CHECK("NULL text", warplite_prepare(db, NULL, -1, &st, NULL) == theirs && !st);
  CHECK("empty text", warplite_prepare(db, "", -1, &st, &tail) == SQLITE_OK && !st && !*tail);
  CHECK("no tail wanted",
        warplite_prepare(db, "SELECT a FROM t", -1, &st, NULL) == SQLITE_OK && st);
  sqlite3_finalize(st);
  CHECK("version", !strcmp(warplite_version(), WARPLITE_VERSION));
}

/* SQLite treats the arguments of a virtual table differently from the sixteenth on. */
static void check_many_params(void) {
  static const int counts[] = {14, 15, 16, 17, 63, 64, 65, 99, 100, 101, 250, 1500};
  char sql[8000], label[60];
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    size_t at = (size_t)snprintf(sql, sizeof sql, "SELECT a, d FROM t WHERE ?1 IS NULL OR a IN (?");
    for (int k = 2; k < counts[i]; k++) at += (size_t)snprintf(sql + at, sizeof sql - at, ",?");
    snprintf(sql + at, sizeof sql - at, ")");
    snprintf(label, sizeof label, "%d parameters are taken", counts[i]);
    sqlite3_stmt *st = NULL;
    int rc = warplite_prepare(db, sql, -1, &st, NULL);
    CHECK(label, rc == SQLITE_OK && !strncmp(warplite_reason(db), "cpu", 3));
    sqlite3_finalize(st);
    check_params(sql);
  }
}

/* Lists longer than the stack is deep, and than a program can be. */
static void check_long_lists(void) {
  static const struct {
    int n;
    const char *engine;
  } lists[] = {{9000, "cpu"}, {60000, "sqlite"}};
  for (int i = 0; i < 2; i++) {
    size_t size = (size_t)lists[i].n * 8 + 100, at;
    char label[60], why[900], *sql = malloc(size);
    if (!sql) abort();
    at = (size_t)snprintf(sql, size, "SELECT a FROM t WHERE a IN (2");
    for (int k = 1; k < lists[i].n; k++) at += (size_t)snprintf(sql + at, size - at, ",%d", k * 4);
    snprintf(sql + at, size - at, ")");
    snprintf(label, sizeof label, "IN with %d constants", lists[i].n);
    sqlite3_stmt *a = NULL, *b = NULL;
    rows_clear(&got);
    rows_clear(&want);
    if (warplite_prepare(db, sql, -1, &a, NULL) || sqlite3_prepare_v2(db, sql, -1, &b, NULL)) {
      tap_bad(label, "%s", sqlite3_errmsg(db));
    } else {
      rows_step(&got, db, a);
      rows_step(&want, db, b);
      if (!rows_same(&got, &want, true, why, sizeof why))
        tap_bad(label, "%s", why);
      else if (strncmp(warplite_reason(db), lists[i].engine, strlen(lists[i].engine)) != 0)
        tap_bad(label, "%s", warplite_reason(db));
      else
        tap_ok(label);
    }
    sqlite3_finalize(a);
    sqlite3_finalize(b);
    free(sql);
  }
}

/* ---- how far a load is */

typedef struct told {
  int n_calls, n_ends;
  bool wrong, begun;
  char table[20];
} told;

static void hear(void *arg, const char *table, sqlite3_int64 done, sqlite3_int64 total) {
  told *t = arg;
  t->n_calls++;
  t->n_ends += done == total;
  t->wrong |= done > total || done < 0 || (done == 0) == t->begun;
  t->begun = done < total;
  snprintf(t->table, sizeof t->table, "%s", table);
}

static void check_progress(void) {
  told t = {0};
  exec("CREATE TABLE far(a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE "
       "i<100000) INSERT INTO far SELECT i, i FROM n");
  CHECK("progress: set", warplite_progress(db, hear, &t) == SQLITE_OK);
  rows_query(&got, db, warplite_prepare, "SELECT sum(a) FROM far");
  CHECK("progress: begins, goes on, ends", t.n_calls > 3 && t.n_ends == 1 && !t.wrong);
  CHECK("progress: the table's name", !strcmp(t.table, "far"));
  t.n_calls = 0;
  rows_query(&got, db, warplite_prepare, "SELECT max(a) FROM far");
  CHECK("progress: nothing to load, nothing to tell", t.n_calls == 0);
  warplite_progress(db, NULL, NULL);
  rows_query(&got, db, warplite_prepare, "SELECT max(b) FROM far");
  CHECK("progress: unset", t.n_calls == 0 && got.rc == SQLITE_DONE);
  CHECK("progress: no connection", warplite_progress(NULL, hear, &t) == SQLITE_MISUSE);
}

/* ---- by cost: few rows through an index, or the first of a scan, are SQLite's */

static void check_routing(void) {
  static const struct {
    const char *sql, *engine;
  } cases[] = {{"SELECT a, b FROM far WHERE a<20", "sqlite:"},
               {"SELECT a, b FROM far WHERE 99990<a", "sqlite:"},
               {"SELECT a, b FROM far WHERE a BETWEEN 500 AND 600 ORDER BY b", "sqlite:"},
               {"SELECT a, b FROM far WHERE a>20000 AND a<90000", "cpu:"},
               {"SELECT a, b FROM far LIMIT 5", "sqlite:"},
               {"SELECT a, b FROM far ORDER BY a DESC LIMIT 5", "sqlite:"},
               {"SELECT a, b FROM far ORDER BY b LIMIT 5", "cpu:"}};
  exec("CREATE INDEX far_a ON far(a)");
  rows_query(&got, db, warplite_prepare, "SELECT sum(a), sum(b) FROM far");
  exec("SELECT warplite_set('route', 'cost')");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rows_query(&got, db, warplite_prepare, cases[i].sql);
    const char *reason = warplite_reason(db);
    if (strncmp(reason, cases[i].engine, strlen(cases[i].engine)) == 0)
      tap_ok(cases[i].sql);
    else
      tap_bad(cases[i].sql, "wanted %s got %s", cases[i].engine, reason);
  }
  exec("SELECT warplite_set('route', 'always')");
}

int main(void) {
  if (sqlite3_open(":memory:", &db) || !use_engine(db, "cpu")) {
    tap_bad("api", "cannot set the engine: %s", sqlite3_errmsg(db));
    return tap_done();
  }
  exec("CREATE TABLE t(a INTEGER, b DOUBLE PRECISION, c VARCHAR(10), d, e NUMERIC(10,5));"
       "INSERT INTO t VALUES(1,1.5,'one',1,1),(2,2.5,'two','two',2.5),(3,NULL,NULL,NULL,NULL),"
       "(4,-1,'4',4.0,'x'),(5,0,' 2 ',x'0100ff','5');"
       "CREATE TABLE p(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO p VALUES(7,'seven'),(9,NULL);"
       "CREATE TABLE w(k TEXT PRIMARY KEY) WITHOUT ROWID;"
       "CREATE TABLE o(big INTEGER); INSERT INTO o VALUES(9223372036854775807),(1);");
  for (size_t i = 0; i < sizeof with_params / sizeof with_params[0]; i++)
    check_params(with_params[i]);
  check_many_params();
  check_long_lists();
  check_midway();
  check_columns();
  check_tails();
  check_errors();
  check_mutations(TEST_SANITIZED ? 3000 : 20000);
  check_nulls();
  check_progress();
  check_routing();
  CHECK("the connection closes", sqlite3_close(db) == SQLITE_OK);
  rows_free(&got);
  rows_free(&want);
  return tap_done();
}
