/*
** Authorizers: every policy with every answer, over ordinary and tablet tables, statement by
** statement against SQLite.
**
** Invariants:
** 1. The oracle is a connection that warplite never saw, with ordinary tables of the same rows and
**    an authorizer that SQLite alone knows.
** 2. Rows, column names, codes, messages, changes() and the tables afterwards must be the same;
**    over ordinary tables also what the authorizer was asked, question by question.
** 3. A statement that got IGNORE is SQLite's; any other runs where it runs without an authorizer.
** 4. The authorizer refuses only while a statement of the matrix is prepared or stepped. At all
**    other times the same callback says OK: it changes its mind without being set again.
*/
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

typedef int set_fn(sqlite3 *,
                   int (*)(void *, int, const char *, const char *, const char *, const char *),
                   void *);

static set_fn *set_plain, *set_ours; /* SQLite's own, and the one an application finds */

/* ---- policies */

static bool is(const char *x, const char *y) {
  return x && strcmp(x, y) == 0;
}

static bool read_column(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_READ && is(a, "t") && is(b, "secret");
}
static bool read_table(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_READ && is(a, "t");
}
static bool read_other(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_READ && is(a, "u");
}
static bool read_inside(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_READ && is(d, "v") && (is(b, "secret") || is(b, "name"));
}
static bool read_view(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_READ && is(a, "v") && is(b, "secret");
}
static bool one_function(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_FUNCTION && is(b, "upper");
}
static bool all_functions(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_FUNCTION;
}
static bool selects(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_SELECT;
}
static bool recursions(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_RECURSIVE;
}
static bool inserts(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_INSERT;
}
static bool updates(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_UPDATE && (is(b, "name") || !is(a, "t"));
}
static bool deletes(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_DELETE;
}
static bool others(int code, const char *a, const char *b, const char *d) {
  return code == SQLITE_PRAGMA || code == SQLITE_TRANSACTION || code == SQLITE_SAVEPOINT ||
         code == SQLITE_ATTACH || code == SQLITE_ANALYZE;
}
/* Only what the application knows by name: nothing of warplite's own may need more. */
static bool unknown_names(int code, const char *a, const char *b, const char *d) {
  static const char *const known[] = {"t", "u", "v", "w", "k", "c"};
  if (code != SQLITE_READ && code != SQLITE_INSERT && code != SQLITE_UPDATE &&
      code != SQLITE_DELETE)
    return code == SQLITE_FUNCTION && b && strncmp(b, "w", 1) == 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (is(a, known[i])) return false;
  return true;
}
static bool nothing(int code, const char *a, const char *b, const char *d) {
  return false;
}

static const struct {
  const char *name;
  bool (*hits)(int code, const char *a, const char *b, const char *d);
} policies[] = {{"READ of t.secret", read_column},
                {"READ of t", read_table},
                {"READ of u", read_other},
                {"READ inside view v", read_inside},
                {"READ of v.secret", read_view},
                {"FUNCTION upper", one_function},
                {"FUNCTION", all_functions},
                {"SELECT", selects},
                {"RECURSIVE", recursions},
                {"INSERT", inserts},
                {"UPDATE", updates},
                {"DELETE", deletes},
                {"PRAGMA, TRANSACTION and SAVEPOINT", others},
                {"names that are not the application's", unknown_names},
                {"nothing", nothing}};
enum { N_POLICIES = sizeof policies / sizeof *policies };

/* One connection's authorizer, and what it was asked. */
typedef struct guard {
  int policy, verdict;
  bool on;
  int n_hits;
  char log[20000];
  size_t n_log;
} guard;

static const char *text(const char *s) {
  return s ? s : "-";
}

static int authorize(void *p, int code, const char *a, const char *b, const char *c,
                     const char *d) {
  guard *g = p;
  if (!g->on) return SQLITE_OK;
  if (g->n_log < sizeof g->log - 200)
    g->n_log += (size_t)snprintf(g->log + g->n_log, 200, "%d %s %s %s %s\n", code, text(a), text(b),
                                 text(c), text(d));
  if (!policies[g->policy].hits(code, a, b, d)) return SQLITE_OK;
  g->n_hits++;
  return g->verdict;
}

/* ---- statements */

enum { READS, WRITES, EXPLAINS };

static const struct {
  int kind;
  const char *sql;
} statements[] = {
    {READS, "SELECT * FROM t"},
    {READS, "SELECT id, secret FROM t"},
    {READS, "SELECT name FROM t"},
    {READS, "SELECT count(*) FROM t"},
    {READS, "SELECT sum(secret), max(name) FROM t"},
    {READS, "SELECT name, count(*), sum(secret) FROM t GROUP BY name"},
    {READS, "SELECT secret, count(*) FROM t GROUP BY secret"},
    {READS, "SELECT name FROM t WHERE secret = 11"},
    {READS, "SELECT name FROM t WHERE secret IS NULL"},
    {READS, "SELECT name FROM t ORDER BY secret, id"},
    {READS, "SELECT DISTINCT secret FROM t"},
    {READS, "SELECT upper(name) FROM t"},
    {READS, "SELECT id FROM t WHERE length(name) > 3"},
    {READS, "SELECT abs(secret), upper(name) FROM t WHERE name LIKE 'a%'"},
    {READS, "SELECT * FROM v"},
    {READS, "SELECT secret, shout FROM v"},
    {READS, "SELECT count(*) FROM v WHERE secret > 12"},
    {READS, "SELECT * FROM w"},
    {READS, "SELECT t.name, u.note FROM t JOIN u ON u.t_id = t.id"},
    {READS, "SELECT t.name, u.note FROM t LEFT JOIN u ON u.t_id = t.secret"},
    {READS, "SELECT name FROM t WHERE id IN (SELECT t_id FROM u)"},
    {READS, "SELECT name FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.secret)"},
    {READS, "SELECT (SELECT max(secret) FROM t), count(*) FROM u"},
    {READS, "WITH c AS (SELECT id, secret FROM t) SELECT count(*), sum(secret) FROM c"},
    {READS, "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i<5) "
            "SELECT i, name FROM k JOIN t ON id = i"},
    {READS, "SELECT name FROM t UNION SELECT note FROM u"},
    {READS, "SELECT id FROM t EXCEPT SELECT t_id FROM u"},
    {READS, "SELECT name, row_number() OVER (ORDER BY secret, id) FROM t"},
    {READS, "SELECT id, name FROM t WHERE id = 3"},
    {READS, "SELECT coalesce(secret, -1), ifnull(n, 0) FROM t"},
    {READS, "SELECT name FROM t ORDER BY n DESC LIMIT 3"},
    {READS, "SELECT CASE WHEN secret > 12 THEN 'x' ELSE name END FROM t"},
    {READS, "SELECT name FROM t WHERE secret BETWEEN ?1 AND 13 OR secret IS ?1"},
    {READS, "SELECT t1.id FROM t t1, t t2 WHERE t1.secret = t2.id + 9"},
    {READS, "SELECT no_such_column FROM t"},
    {READS, "SELECT 1"},
    {READS, "PRAGMA user_version"},
    {EXPLAINS, "EXPLAIN QUERY PLAN SELECT secret FROM t"},
    {EXPLAINS, "EXPLAIN SELECT sum(secret) FROM t"},
    {WRITES, "INSERT INTO t VALUES(100, 'new', 7, 1.5)"},
    {WRITES, "INSERT INTO t(id, name) SELECT id + 200, note FROM u"},
    {WRITES, "INSERT INTO t(id, name, secret) SELECT id + 300, upper(name), secret FROM t"},
    {WRITES, "INSERT INTO t(id, name) VALUES(101, 'back') RETURNING id, name, secret"},
    {WRITES, "INSERT OR REPLACE INTO t(id, name) VALUES(3, 'put'), (102, 'put')"},
    {WRITES, "INSERT OR IGNORE INTO t(id, name) VALUES(3, 'no'), (103, 'yes')"},
    {WRITES, "INSERT INTO t(id, name) VALUES(3, 'twice')"},
    {WRITES, "INSERT INTO t(id, name) VALUES(3, 'up'), (104, 'in') ON CONFLICT(id) DO UPDATE SET "
             "name = excluded.name || coalesce(secret, 'none'), n = 2"},
    {WRITES, "INSERT INTO t(id, name) VALUES(3, 'up') ON CONFLICT(id) DO UPDATE SET "
             "secret = secret + 1 WHERE secret > 5 RETURNING id, name, secret"},
    {WRITES, "INSERT INTO t(id, name) VALUES(3, 'up') ON CONFLICT DO NOTHING"},
    {WRITES, "UPDATE t SET name = secret"},
    {WRITES, "UPDATE t SET name = upper(name), secret = secret + 1 WHERE secret = 11"},
    {WRITES, "UPDATE t SET secret = 0, name = 'none' WHERE id = 3 RETURNING id, name, secret"},
    {WRITES, "UPDATE t SET n = secret * 2 WHERE secret IS NOT 11 RETURNING id, n"},
    {WRITES, "UPDATE t SET name = (SELECT note FROM u WHERE t_id = t.id)"},
    {WRITES, "UPDATE t SET name = note FROM u WHERE t_id = t.secret"},
    {WRITES, "DELETE FROM t WHERE secret = 11"},
    {WRITES, "DELETE FROM t WHERE secret IS NULL RETURNING id, name"},
    {WRITES, "DELETE FROM t WHERE id IN (SELECT t_id FROM u)"},
    {WRITES, "DELETE FROM t"},
    {WRITES, "SAVEPOINT inside"},
};
enum { N_STATEMENTS = sizeof statements / sizeof *statements };

static const char *const schema =
    "CREATE TABLE u(id INTEGER PRIMARY KEY, t_id INTEGER, note TEXT);"
    "INSERT INTO u VALUES(1,1,'one'),(2,3,'three'),(3,3,'more'),(4,12,'twelve'),(5,NULL,'apple');"
    "INSERT INTO t VALUES(1,'apple',10,0.5),(2,'bread',11,1.5),(3,'apple',12,NULL),"
    "(4,'Anis',NULL,2.5),(5,'tea',11,3.25),(6,NULL,13,0.25),(7,'corn',14,-1),(8,'apple',11,9);"
    "CREATE VIEW v AS SELECT id, name, secret, upper(name) AS shout FROM t WHERE secret IS NOT 13;"
    "CREATE VIEW w AS SELECT v.name, u.note FROM v JOIN u ON u.t_id = v.id;";

/* ---- two connections */

typedef struct side {
  sqlite3 *db;
  prepare_fn *prepare;
  set_fn *set;
  guard guard;
  rows result, tables[2];
  int n_changes;
  char reason[512];
} side;

static side ours, plain;
static char dir[] = "/tmp/warplite-authorizer-XXXXXX", path[100];

static void quietly(side *s, const char *sql) {
  if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
    tap_bad("set-up", "%.100s: %s", sql, sqlite3_errmsg(s->db));
}

static void open_sides(const char *engine, bool tablets) {
  static const char *const columns = "id INTEGER PRIMARY KEY, name TEXT, secret INTEGER, n REAL";
  char sql[300];
  unlink(path);
  memset(&ours, 0, sizeof ours);
  memset(&plain, 0, sizeof plain);
  ours.prepare = warplite_prepare;
  plain.prepare = sqlite3_prepare_v2;
  ours.set = set_ours;
  plain.set = set_plain;
  if (sqlite3_open(path, &ours.db) || sqlite3_open(":memory:", &plain.db) ||
      !use_engine(ours.db, engine)) {
    tap_bad("authorizer", "cannot open: %s", sqlite3_errmsg(ours.db));
    exit(tap_done());
  }
  quietly(&ours, "PRAGMA synchronous = OFF");
  snprintf(sql, sizeof sql, "CREATE TABLE t(%s)", columns);
  quietly(&plain, sql);
  if (tablets) snprintf(sql, sizeof sql, "CREATE VIRTUAL TABLE t USING tablet(%s)", columns);
  quietly(&ours, sql);
  quietly(&plain, schema);
  quietly(&ours, schema);
}

static void close_side(side *s) {
  if (sqlite3_close(s->db) != SQLITE_OK) tap_bad("close", "%s", sqlite3_errmsg(s->db));
  rows_free(&s->result);
  rows_free(&s->tables[0]);
  rows_free(&s->tables[1]);
}

/* Runs one statement of the matrix, in a transaction that is rolled back if it writes. */
static void run(side *s, int k) {
  guard *g = &s->guard;
  bool writes = statements[k].kind == WRITES;
  if (writes) quietly(s, "SAVEPOINT before");
  g->n_log = 0;
  g->log[0] = 0;
  g->n_hits = 0;
  int before = sqlite3_total_changes(s->db);
  g->on = true;
  rows_query(&s->result, s->db, s->prepare, statements[k].sql);
  g->on = false;
  s->n_changes = sqlite3_total_changes(s->db) - before;
  if (s == &ours) snprintf(s->reason, sizeof s->reason, "%s", warplite_reason(s->db));
  rows_sort(&s->result);
  if (!writes) return;
  rows_query(&s->tables[0], s->db, sqlite3_prepare_v2, "SELECT * FROM t ORDER BY id");
  rows_query(&s->tables[1], s->db, sqlite3_prepare_v2, "SELECT * FROM u ORDER BY id");
  quietly(s, "ROLLBACK TO before; RELEASE before");
}

static bool same(int k, bool tablets, char *why, size_t n_why) {
  if (statements[k].kind == EXPLAINS) {
    if (ours.result.rc != plain.result.rc || strcmp(ours.result.err, plain.result.err)) {
      snprintf(why, n_why, "code %d (%s), SQLite %d (%s)", ours.result.rc, ours.result.err,
               plain.result.rc, plain.result.err);
      return false;
    }
  } else if (!rows_same(&ours.result, &plain.result, false, why, n_why)) {
    return false;
  }
  for (int i = 0; i < 2 && statements[k].kind == WRITES; i++) {
    char what[900];
    if (rows_same(&ours.tables[i], &plain.tables[i], false, what, sizeof what)) continue;
    snprintf(why, n_why, "table %s afterwards: %.900s", i ? "u" : "t", what);
    return false;
  }
  if (!tablets && ours.n_changes != plain.n_changes) {
    snprintf(why, n_why, "%d changes, SQLite %d", ours.n_changes, plain.n_changes);
    return false;
  }
  if (!tablets && strcmp(ours.guard.log, plain.guard.log)) {
    snprintf(why, n_why, "it was asked\n%.700sSQLite asks\n%.700s", ours.guard.log,
             plain.guard.log);
    return false;
  }
  return true;
}

/* ---- the matrix */

static char usual[N_STATEMENTS][8]; /* who runs each without an authorizer */

static void engine_of(const char *reason, char *out) {
  size_t n = strcspn(reason, ":");
  snprintf(out, 8, "%.*s", (int)(n < 7 ? n : 7), reason);
}

static bool right_engine(int k, char *why, size_t n_why) {
  char engine[8];
  if (ours.result.rc != SQLITE_DONE || statements[k].kind != READS) return true;
  bool ignored = ours.guard.n_hits && ours.guard.verdict == SQLITE_IGNORE;
  engine_of(ours.reason, engine);
  if (strcmp(engine, ignored ? "sqlite" : usual[k]) == 0 &&
      (!ignored || strstr(ours.reason, "IGNORE") || strcmp(usual[k], "sqlite") == 0))
    return true;
  snprintf(why, n_why, "%s by the reason %s", ignored ? "it got IGNORE and ran" : "it ran",
           ours.reason);
  return false;
}

/* All statements; writes: those that write, too. Gives how many were wrong. */
static int all(const char *label, bool tablets, bool writes) {
  int n_wrong = 0;
  for (int k = 0; k < N_STATEMENTS; k++) {
    char why[2000], name[400];
    if (statements[k].kind == WRITES && !writes) continue;
    /* a subquery in SET whose SELECT is ignored: SQLite reads memory that it never set, and may
    ** crash */
    if (strstr(statements[k].sql, "SET name = (SELECT") && ours.guard.policy >= 0 &&
        policies[ours.guard.policy].hits == selects && ours.guard.verdict == SQLITE_IGNORE)
      continue;
    run(&ours, k);
    run(&plain, k);
    if (same(k, tablets, why, sizeof why) && right_engine(k, why, sizeof why)) continue;
    n_wrong++;
    snprintf(name, sizeof name, "%s: %.200s", label, statements[k].sql);
    tap_bad(name, "%s", why);
  }
  return n_wrong;
}

static void use(int policy, int verdict) {
  side *const sides[] = {&ours, &plain};
  for (int i = 0; i < 2; i++) {
    sides[i]->guard.policy = policy;
    sides[i]->guard.verdict = verdict;
    sides[i]->set(sides[i]->db, policy < 0 ? NULL : authorize, &sides[i]->guard);
  }
}

static void check_matrix(const char *engine, bool tablets) {
  open_sides(engine, tablets);
  for (int k = 0; k < N_STATEMENTS; k++) {
    run(&ours, k);
    engine_of(ours.reason, usual[k]);
  }
  for (int p = 0; p < N_POLICIES; p++) {
    for (int v = SQLITE_DENY; v <= SQLITE_IGNORE; v++) {
      char label[200];
      snprintf(label, sizeof label, "%s of %s, %s tables, %s", v == SQLITE_DENY ? "DENY" : "IGNORE",
               policies[p].name, tablets ? "tablet" : "ordinary", engine);
      /* in turn: the columns are in memory, or are read while the authorizer is there */
      if (v == SQLITE_IGNORE)
        quietly(&ours, "SELECT warplite_unload('t'), warplite_unload('u')");
      else
        quietly(&ours, "SELECT warplite_load('t'), warplite_load('u')");
      use(p, v);
      int n_wrong = all(label, tablets, true);
      use(-1, 0);
      n_wrong += all("after it was removed", tablets, false);
      if (!n_wrong) tap_ok(label);
    }
  }
  close_side(&ours);
  close_side(&plain);
}

/* ---- statements that live longer than the authorizer */

static int number(sqlite3_stmt *s) {
  int n = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL
              ? sqlite3_column_int(s, 0)
              : -1;
  sqlite3_reset(s);
  return n;
}

static void check_lives(const char *engine, bool tablets) {
  char label[200];
  const char *sql = "SELECT sum(secret) FROM t WHERE id < 6";
  open_sides(engine, tablets);
  side *const sides[] = {&ours, &plain};
  for (int k = 0; k < 6; k++) {
    static const char *const what[] = {"prepared before it is set",
                                       "prepared before it is set, and it ignores",
                                       "prepared while it ignores, run after it is removed",
                                       "prepared while it ignores, run when it no longer does",
                                       "prepared while it allows, run when it ignores",
                                       "ignores, then is replaced by one that denies"};
    int got[2][3];
    for (int i = 0; i < 2; i++) {
      side *s = sides[i];
      sqlite3_stmt *st = NULL;
      guard *g = &s->guard;
      *g = (guard){.policy = 0, .verdict = k ? SQLITE_IGNORE : SQLITE_DENY, .on = k != 4};
      if (k >= 2) s->set(s->db, authorize, g);
      s->prepare(s->db, sql, -1, &st, NULL);
      if (k < 2) s->set(s->db, authorize, g);
      if (k == 2) s->set(s->db, NULL, NULL);
      if (k == 3) g->on = false;
      if (k == 4) g->on = true;
      if (k == 5) g->verdict = SQLITE_DENY;
      if (k == 5) s->set(s->db, authorize, g);
      got[i][0] = number(st);
      got[i][1] = sqlite3_errcode(s->db);
      s->set(s->db, NULL, NULL);
      got[i][2] = number(st);
      sqlite3_finalize(st);
    }
    snprintf(label, sizeof label, "%s, %s, %s", what[k], tablets ? "tablet" : "ordinary", engine);
    if (memcmp(got[0], got[1], sizeof got[0]) == 0)
      tap_ok(label);
    else
      tap_bad(label, "%d code %d, then %d; SQLite %d code %d, then %d", got[0][0], got[0][1],
              got[0][2], got[1][0], got[1][1], got[1][2]);
  }
  /* a change that was prepared before */
  int n[2];
  for (int i = 0; i < 2; i++) {
    side *s = sides[i];
    sqlite3_stmt *st = NULL;
    s->guard = (guard){.policy = 0, .verdict = SQLITE_IGNORE, .on = true};
    s->prepare(s->db, "UPDATE t SET name = secret WHERE secret IS NULL", -1, &st, NULL);
    s->set(s->db, authorize, &s->guard);
    sqlite3_step(st);
    n[i] = sqlite3_changes(s->db);
    sqlite3_finalize(st);
    s->set(s->db, NULL, NULL);
  }
  snprintf(label, sizeof label, "UPDATE prepared before it ignores, %s, %s",
           tablets ? "tablet" : "ordinary", engine);
  if (n[0] == n[1])
    tap_ok(label);
  else
    tap_bad(label, "%d changes, SQLite %d", n[0], n[1]);
  close_side(&ours);
  close_side(&plain);
}

/* ---- the other ways to run a statement */

static void check_others(void) {
  struct ArrowArrayStream stream;
  struct ArrowArray batch = {0};
  open_sides("cpu", false);
  side *s = &ours;
  s->guard = (guard){.policy = 0, .verdict = SQLITE_IGNORE, .on = true};
  s->set(s->db, authorize, &s->guard);
  bool ok = warplite_query(s->db, "SELECT secret, id FROM t", &stream) == SQLITE_OK;
  if (ok) ok = stream.get_next(&stream, &batch) == 0 && batch.length == 8;
  ok = ok && batch.children[0]->null_count == 8 && batch.children[1]->null_count == 0;
  CHECK("warplite_query gives NULLs", ok && strstr(warplite_reason(s->db), "IGNORE"));
  CHECK("warplite_query asks once", strcmp(s->guard.log, "21 - - - -\n20 t secret main -\n"
                                                         "20 t id main -\n") == 0);
  if (batch.release) batch.release(&batch);
  if (ok) stream.release(&stream);
  rows_query(&s->result, s->db, warplite_prepare, "EXPLAIN ANALYZE SELECT secret FROM t");
  CHECK("EXPLAIN ANALYZE says no", s->result.rc == SQLITE_ERROR && strstr(s->result.err, "IGNORE"));
  rows_query(&s->result, s->db, warplite_prepare, "SELECT warplite_convert('t')");
  CHECK("warplite_convert says no", s->result.rc == SQLITE_AUTH);
  s->guard.on = false;
  rows_query(&s->result, s->db, sqlite3_prepare_v2, "SELECT sum(secret) FROM t");
  CHECK("the table is as it was", s->result.n_rows == 1 && s->result.cells[0].u.i == 82);
  rows_query(&s->result, s->db, warplite_prepare, "SELECT warplite_convert('t')");
  CHECK("warplite_convert when it may", s->result.rc == SQLITE_DONE);
  s->set(s->db, NULL, NULL);
  close_side(&ours);
  close_side(&plain);
}

/* The tables that native statements and changes are made of, written by hand: whatever text they
** are given, and however, the authorizer is asked about it. */
static void check_by_hand(bool tablets) {
  static const char *const froms[] = {
      "%s('SELECT secret AS id FROM t',%s)",
      "%s((SELECT 'SELECT secret AS id FROM t' WHERE 1),%s)",
      "%s('SELECT secret AS id FROM t',%s) WHERE sql > 'SELECT id FROM t'",
      "%s(:text,%s)",
  };
  static const char *const texts[] = {
      "SELECT 1 FROM wl_analysis('SELECT id FROM t WHERE secret = 11')",
      "SELECT 1 FROM wl_analysis((SELECT 'SELECT id FROM t WHERE secret = 11' WHERE 1))",
      "SELECT 1 FROM wl_program((SELECT 'SELECT id FROM t WHERE secret = 11' WHERE 1))",
      "INSERT INTO u(note) SELECT k FROM wl_dml('DELETE FROM t WHERE secret = 11', 5)",
      "INSERT INTO u(note) SELECT k FROM wl_dml((SELECT 'DELETE FROM t WHERE secret = 11'), 5)",
      "INSERT INTO u(note) SELECT k FROM wl_dml('DELETE FROM t WHERE secret = 11', 5, NULL, 'x')",
  };
  enum { N_FROMS = sizeof froms / sizeof *froms, N_TEXTS = sizeof texts / sizeof *texts };
  char name[40] = "", hash[40] = "", from[300], sql[400], label[200];
  sqlite3_stmt *st = NULL;
  open_sides("cpu", tablets);
  side *s = &ours;
  warplite_prepare(s->db, "SELECT id FROM t", -1, &st, NULL);
  const char *made = sqlite3_sql(st), *at = made ? strstr(made, "wl_") : NULL;
  bool native = at && sscanf(at, "%39[a-z0-9_]('SELECT id FROM t',%39[-0-9]", name, hash) == 2;
  sqlite3_finalize(st);
  CHECK("the name of a native statement", native);
  for (int verdict = 1; verdict <= 2 && native; verdict++) {
    s->guard = (guard){.policy = 0, .verdict = verdict, .on = true};
    s->set(s->db, authorize, &s->guard);
    for (int k = 0; k < N_FROMS + N_TEXTS; k++) {
      snprintf(from, sizeof from, froms[k < N_FROMS ? k : 0], name, hash);
      snprintf(sql, sizeof sql, "SELECT c0 FROM %s", from);
      if (k >= N_FROMS) snprintf(sql, sizeof sql, "%s", texts[k - N_FROMS]);
      bool given = false;
      if (warplite_prepare(s->db, sql, -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_text(st, 1, "SELECT secret AS id FROM t", -1, SQLITE_STATIC);
        while (sqlite3_step(st) == SQLITE_ROW) given |= sqlite3_column_type(st, 0) != SQLITE_NULL;
      }
      sqlite3_finalize(st);
      snprintf(label, sizeof label, "by hand, %s, %s: %.120s", tablets ? "tablet" : "ordinary",
               verdict == SQLITE_DENY ? "DENY" : "IGNORE", sql);
      CHECK(label, !given);
    }
    s->set(s->db, NULL, NULL);
    rows_query(&s->result, s->db, sqlite3_prepare_v2, "SELECT count(*) FROM t");
    CHECK("by hand: no row is deleted", s->result.n_rows == 1 && s->result.cells[0].u.i == 8);
  }
  close_side(&ours);
  close_side(&plain);
}

/* An INSERT that is written in pieces, of rows that it reads from its own table. */
static void check_pieces(void) {
  open_sides("cpu", true);
  side *s = &ours;
  quietly(s, "SELECT warplite_set('host_budget', 65536)");
  quietly(s, "INSERT INTO t WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE "
             "i<5000) SELECT i + 1000, 'n' || i, i, 0 FROM k");
  s->guard = (guard){.policy = 0, .verdict = SQLITE_IGNORE, .on = true};
  s->set(s->db, authorize, &s->guard);
  rows_query(&s->result, s->db, warplite_prepare,
             "INSERT INTO t SELECT id + 10000, 'new', secret + 1, 0 FROM t WHERE true ON CONFLICT "
             "DO NOTHING");
  bool ok = s->result.rc == SQLITE_DONE;
  s->set(s->db, NULL, NULL);
  rows_query(&s->result, s->db, sqlite3_prepare_v2,
             "SELECT count(*), count(secret) FROM t WHERE name = 'new'");
  CHECK("an INSERT in pieces that gets IGNORE",
        ok && s->result.cells[0].u.i == 5008 && s->result.cells[1].u.i == 0);
  close_side(&ours);
  close_side(&plain);
}

/* Set before warplite is enabled, and on an address that had one before. */
static void check_early(void) {
  for (int round = 0; round < 4; round++) {
    guard g = {.policy = 0, .verdict = SQLITE_IGNORE, .on = true};
    sqlite3 *db;
    rows r = {0};
    bool guarded = round % 2 == 0;
    if (sqlite3_open(":memory:", &db)) exit(1);
    sqlite3_exec(db, "CREATE TABLE t(secret); INSERT INTO t VALUES(1),(2)", NULL, NULL, NULL);
    if (guarded) sqlite3_set_authorizer(db, authorize, &g);
    g.on = false;
    bool enabled = round == 3 || use_engine(db, "cpu"); /* or closed without */
    g.on = true;
    rows_query(&r, db, warplite_prepare, "SELECT sum(secret) FROM t");
    bool null = r.n_rows == 1 && r.cells[0].type == SQLITE_NULL;
    bool three = r.n_rows == 1 && r.cells[0].u.i == 3;
    if (set_ours == sqlite3_set_authorizer)
      CHECK(guarded ? "set before warplite is enabled" : "a new connection has none",
            enabled && (guarded ? null : three));
    rows_free(&r);
    sqlite3_close(db);
  }
}

int main(void) {
  void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD);
  void *own = dlopen("libwarplite.so", RTLD_NOW | RTLD_NOLOAD);
  void *found = own ? dlsym(own, "sqlite3_set_authorizer") : NULL;
  set_plain = lib ? (set_fn *)dlsym(lib, "sqlite3_set_authorizer") : sqlite3_set_authorizer;
  set_ours = sqlite3_set_authorizer;
  if ((void *)set_ours != found) set_ours = warplite_set_authorizer; /* SQLite is linked in */
  if (!mkdtemp(dir)) return 1;
  snprintf(path, sizeof path, "%s/a.db", dir);
  static const char *const engines[] = {"cpu", "sim"};
  for (int e = 0; e < 2; e++) {
    for (int tablets = 0; tablets < 2; tablets++) {
      check_matrix(engines[e], tablets);
      check_lives(engines[e], tablets);
    }
  }
  check_others();
  check_by_hand(false);
  check_by_hand(true);
  check_pieces();
  check_early();
  unlink(path);
  rmdir(dir);
  return tap_done();
}
