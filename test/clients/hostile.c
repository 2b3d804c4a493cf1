/*
** Hostile files: what somebody would write who wants to harm the reader. The shadow tables of
** tablet tables are changed with every checksum made right again, so that the checks behind them
** are reached; and the schema is changed, so that other things stand in their place. Then the
** tables are read, written, folded and checked, through SQLite and natively. Any rows may come, and
** any error; never a crash, a step outside (under a sanitizer), a hang, or memory without bound.
**
**     hostile [--n N] [--seed S] [--only K] [--engine E] [BUILD]
**
** Invariants:
** 1. Each file is made from a fresh copy by a connection that knows nothing of tablet tables.
** 2. What is done to file K depends on the seed and K alone: --only K does it again.
*/
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hostile_file.h"

enum { SECONDS = 60, MOST_ROWS = 1000000, N_TABLES = 4 };

#if TEST_SANITIZED
/* Large blocks are refused as they would be by a machine of less memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=2000:hard_rss_limit_mb=6000";
}
#endif

static const struct table {
  const char *name, *decl;
} tables[N_TABLES] = {
    {"e", "id INTEGER PRIMARY KEY, con INT, nar INT, pac INT, run INT, dic TEXT COLLATE NOCASE, "
          "txt TEXT, mix, rea REAL, dec REAL, nul INT, blo BLOB, big INT, key TEXT UNIQUE"},
    {"w", "x INT, y TEXT"},
    {"d", "a, b TEXT, PRIMARY KEY(a, b)"},
    {"odd \" na_me", "x INT NOT NULL DEFAULT 5, y TEXT, z REAL CHECK(z IS NULL OR z < 1e9)"},
};

static const char *const setup_sql =
    "CREATE TABLE seq(n INTEGER PRIMARY KEY);"
    "INSERT INTO seq WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<66500) "
    "SELECT n FROM k;"
    "INSERT INTO e SELECT n, 7, n*7919%251, 1000000+n*31%1000, n/300, 'word '||(n%40), "
    "'text '||n*7919%100003, CASE n%4 WHEN 0 THEN n WHEN 1 THEN n+0.5 WHEN 2 THEN 'm'||n ELSE NULL "
    "END, (n*7919%65537)/7.0, (n%900)/100.0, CASE WHEN n%3 THEN n END, CAST('blob '||n AS BLOB), "
    "n*1234567891234, 'key '||n FROM seq WHERE n<=600;"
    "INSERT INTO w(x,y) SELECT n%1000, 'y'||(n%300) FROM seq;"
    "DELETE FROM w WHERE rowid%1000=7 OR rowid BETWEEN 30000 AND 30100;"
    "INSERT INTO e(e) VALUES('optimize');"
    "INSERT INTO w(w) VALUES('optimize');"
    "UPDATE w SET x=x+100000, y=CASE WHEN rowid%3 THEN 'new' END WHERE rowid%400=11;"
    "UPDATE e SET nar=-5, rea=rea/3, txt=txt||'!', mix='patched', nul=NULL WHERE id%9=0;"
    "UPDATE e SET dic='word 7' WHERE id%9=1;"
    "DELETE FROM w WHERE x BETWEEN 500 AND 503;"
    "DELETE FROM e WHERE id IN (5, 400, 550);"
    "UPDATE e SET dic='changed', rea=-1.5 WHERE id IN (6, 401);"
    "INSERT INTO e(id, txt, key) VALUES(9000, 'late', 'late');"
    "INSERT INTO w(x,y) VALUES(-1,'late'),(-2,NULL);"
    "INSERT INTO d SELECT n%7, 'b'||n FROM seq WHERE n<=50;"
    "INSERT INTO \"odd \"\" na_me\"(x,y,z) SELECT n, 'z'||(n%9), n/2.0 FROM seq WHERE n<=200;"
    "INSERT INTO \"odd \"\" na_me\"(\"odd \"\" na_me\") VALUES('optimize')";

typedef struct world {
  rng r;
  const char *engine;
  char base[300], file[300];
  long n_bad, n_done, n_errors, n_rows, n_found;
} world;

static char what[600] = "making the first file"; /* is being done */

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...) {
  va_list ap;
  size_t n = strlen(what);
  va_start(ap, fmt);
  vsnprintf(what + n, sizeof what - n, fmt, ap);
  va_end(ap);
}

static void died(int sig) {
  char line[800];
  int n = snprintf(line, sizeof line, "not ok hostile: %s - %s\n", what,
                   sig == SIGALRM ? "does not end" : "the process died");
  if (write(1, line, (size_t)n) != n || sig) _exit(3);
}

#if TEST_SANITIZED
void __sanitizer_set_death_callback(void (*callback)(void));
static void died_here(void) {
  died(0);
}
#endif

static void must_do(int rc, sqlite3 *db, const char *doing) {
  if (rc == SQLITE_OK) return;
  tap_bad(doing, "%s", db ? sqlite3_errmsg(db) : "cannot");
  exit(tap_done());
}

/* ---- changes to what the tables hold */

static void hurt_segment(world *w, sqlite3 *db, const char *t) {
  sqlite3_int64 id = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_segment\"", t));
  bytes b = blob_of(db, sqlite3_mprintf("SELECT data FROM \"%w_segment\" WHERE id=%lld", t, id));
  note("; %s: segment %lld of tablet %lld", t, id & 4095, id >> 12);
  spoil_blob(&w->r, &b);
  put(db, sqlite3_mprintf("UPDATE \"%w_segment\" SET data=?1 WHERE id=%lld", t, id), &b);
  tell_directory(&w->r, db, t, id, &b);
  seal_directory(db, t);
  free(b.p);
}

/* A segment of another column, or tablet, which the directory is made to want. */
static void swap_segment(world *w, sqlite3 *db, const char *t) {
  sqlite3_int64 id = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_segment\"", t));
  sqlite3_int64 from = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_segment\"", t));
  bytes b = blob_of(db, sqlite3_mprintf("SELECT data FROM \"%w_segment\" WHERE id=%lld", t, from));
  note("; %s: segment %lld becomes %lld", t, id, from);
  put(db, sqlite3_mprintf("UPDATE \"%w_segment\" SET data=?1 WHERE id=%lld", t, id), &b);
  tell_directory(&w->r, db, t, id, &b);
  seal_directory(db, t);
  free(b.p);
}

static void hurt_dict(world *w, sqlite3 *db, const char *t) {
  sqlite3_int64 id = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_dict\"", t));
  bytes b = blob_of(db, sqlite3_mprintf("SELECT data FROM \"%w_dict\" WHERE id=%lld", t, id));
  note("; %s: dictionary part %lld", t, id);
  spoil_blob(&w->r, &b);
  put(db, sqlite3_mprintf("UPDATE \"%w_dict\" SET data=?1 WHERE id=%lld", t, id), &b);
  if (b.n >= HEADER)
    put(db,
        sqlite3_mprintf("UPDATE \"%w_dict\" SET sum=%lld WHERE id=%lld", t,
                        (sqlite3_int64)get_u64(b.p + AT_SUM), id),
        NULL);
  if (rng_chance(&w->r, 20)) { /* the same texts once more, or a part of another number */
    sqlite3_int64 to = rng_chance(&w->r, 60) ? id + 1 : (sqlite3_int64)odd_number(&w->r);
    note(" also as %lld", to);
    put(db,
        sqlite3_mprintf("INSERT OR REPLACE INTO \"%w_dict\" SELECT %lld, sum, data FROM "
                        "\"%w_dict\" WHERE id=%lld",
                        t, to, t, id),
        NULL);
  }
  free(b.p);
}

static void hurt_directory(world *w, sqlite3 *db, const char *t) {
  static const char *const columns[] = {"id", "lo", "hi", "n_rows", "n_dead"};
  sqlite3_int64 id = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_tablet\"", t));
  sqlite3_int64 v = (sqlite3_int64)odd_number(&w->r);
  int kind = rng_below(&w->r, 100);
  if (kind < 45) {
    const char *column = columns[rng_below(&w->r, 5)];
    note("; %s: tablet %lld: %s = %lld", t, id, column, v);
    put(db,
        sqlite3_mprintf("UPDATE OR REPLACE \"%w_tablet\" SET %s=%lld WHERE id=%lld", t, column, v,
                        id),
        NULL);
  } else if (kind < 80) {
    const char *column = kind < 65 ? "head" : "dead";
    bytes b =
        blob_of(db, sqlite3_mprintf("SELECT %s FROM \"%w_tablet\" WHERE id=%lld", column, t, id));
    note("; %s: tablet %lld: %s", t, id, column);
    if (rng_chance(&w->r, 15)) resize(&b, b.n / 2 + (size_t)rng_below(&w->r, 3));
    spoil(&w->r, b.p, b.n);
    put(db, sqlite3_mprintf("UPDATE \"%w_tablet\" SET %s=?1 WHERE id=%lld", t, column, id), &b);
    if (kind >= 65) { /* with a count that fits */
      int n = 0;
      for (size_t i = 0; i < b.n; i++) n += __builtin_popcount(b.p[i]);
      put(db, sqlite3_mprintf("UPDATE \"%w_tablet\" SET n_dead=%d WHERE id=%lld", t, n, id), NULL);
    }
    free(b.p);
  } else if (kind < 92) {
    note("; %s: tablet %lld also as %lld", t, id, v);
    put(db,
        sqlite3_mprintf("INSERT OR REPLACE INTO \"%w_tablet\" SELECT %lld, %s FROM \"%w_tablet\" "
                        "WHERE id=%lld",
                        t, v,
                        rng_chance(&w->r, 50) ? "lo, hi, n_rows, n_dead, head, dead, sum"
                                              : "hi+1, hi+n_rows, n_rows, n_dead, head, dead, sum",
                        t, id),
        NULL);
  } else {
    note("; %s: tablet %lld is gone", t, id);
    put(db, sqlite3_mprintf("DELETE FROM \"%w_tablet\" WHERE id=%lld", t, id), NULL);
  }
  seal_directory(db, t);
}

static void hurt_patch(world *w, sqlite3 *db, const char *t) {
  sqlite3_int64 id = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_tablet\"", t));
  sqlite3_int64 n_zones =
      pick(&w->r, db, sqlite3_mprintf("SELECT count(*) FROM pragma_table_info('%q_delta')", t));
  bytes b = blob_of(db, sqlite3_mprintf("SELECT head FROM \"%w_tablet\" WHERE id=%lld", t, id));
  note("; %s: tablet %lld: a patch", t, id);
  spoil_patch(&w->r, &b, (size_t)n_zones * ZONE);
  put(db, sqlite3_mprintf("UPDATE \"%w_tablet\" SET head=?1 WHERE id=%lld", t, id), &b);
  seal_directory(db, t);
  free(b.p);
}

/* A value of any type, as SQL. */
static const char *odd_value(rng *r) {
  static char text[60];
  switch (rng_below(r, 6)) {
  case 0: return "NULL";
  case 1: return "x'00ff61'";
  case 2: return "'text'";
  case 3: return "1e308*10";
  case 4: return "zeroblob(100000)";
  default: snprintf(text, sizeof text, "%lld", (long long)odd_number(r)); return text;
  }
}

static void hurt_rows(world *w, sqlite3 *db, const char *t) {
  static const char *const keys[] = {"format", "state", "id", "tablets"};
  sqlite3_int64 v = (sqlite3_int64)odd_number(&w->r), at = 0;
  char *sql;
  int n = 1;
  switch (rng_below(&w->r, 7)) {
  case 0:
    sql = sqlite3_mprintf("UPDATE \"%w_info\" SET v=%s WHERE k=%Q", t, odd_value(&w->r),
                          keys[rng_below(&w->r, 4)]);
    break;
  case 1:
    sql = sqlite3_mprintf("INSERT INTO \"%w_info\" VALUES(%Q, %s)", t, keys[rng_below(&w->r, 4)],
                          odd_value(&w->r));
    break;
  case 2: sql = sqlite3_mprintf("INSERT OR REPLACE INTO \"%w_gone\" VALUES(%lld)", t, v); break;
  case 3: /* of a tablet, alive or not, gone or not */
    sql = sqlite3_mprintf("INSERT OR REPLACE INTO \"%w_gone\" SELECT n FROM seq WHERE n%%%d=0", t,
                          1 + rng_below(&w->r, 900));
    break;
  case 4:
    at = pick(&w->r, db, sqlite3_mprintf("SELECT id FROM \"%w_delta\"", t));
    sql = sqlite3_mprintf("UPDATE OR REPLACE \"%w_delta\" SET id=%lld WHERE id=%lld", t, v, at);
    break;
  case 5:
    n = rng_chance(&w->r, 30) ? 3000 : 3;
    sql = sqlite3_mprintf("INSERT OR REPLACE INTO \"%w_delta\"(id, c0) SELECT %s+n*%d, %s FROM seq "
                          "WHERE n<=%d",
                          t, rng_chance(&w->r, 30) ? "9223372036854775000" : "-500",
                          rng_below(&w->r, 90), odd_value(&w->r), n);
    break;
  default:
    sql = sqlite3_mprintf("UPDATE \"%w_key0\" SET id=%s WHERE id%%%d=0", t, odd_value(&w->r),
                          1 + rng_below(&w->r, 50));
  }
  note("; %.200s", sql);
  put(db, sql, NULL);
}

/* ---- changes to the schema */

/* Something else in the place of a shadow table. $T: the tablet table's name, $S: the shadow
** table's, both quoted; $s: that as a text; $O: another table's. */
static void hurt_schema(world *w, sqlite3 *db, const char *t) {
  static const char *const suffixes[] = {"info", "tablet", "segment", "dict",
                                         "gone", "delta",  "key0"};
  static const char *const ways[] = {
      "DROP TABLE $S",
      "DROP TABLE $S; CREATE VIEW $S AS SELECT rowid AS id, * FROM $T",
      "DROP TABLE $S; CREATE VIEW $S AS SELECT id, 1 AS k, 1 AS v, 1 AS k0 FROM $O",
      "ALTER TABLE $S RENAME TO moved; CREATE VIEW $S AS SELECT * FROM moved",
      "ALTER TABLE $S RENAME TO moved; CREATE VIEW $S AS SELECT moved.* FROM moved, $T",
      "ALTER TABLE $S RENAME TO moved; CREATE VIEW $S AS SELECT moved.* FROM moved WHERE (SELECT "
      "count(*) FROM $T) >= 0",
      "DROP TABLE $S; CREATE VIRTUAL TABLE $S USING fts5(id, k, v, data, k0)",
      "DROP TABLE $S; CREATE TABLE $S(id INTEGER PRIMARY KEY)",
      "DROP TABLE $S; CREATE TABLE $S(id, k, v, lo, hi, data, sum, c0, k0)",
      "CREATE TRIGGER hurt BEFORE INSERT ON $S BEGIN INSERT INTO $S SELECT * FROM $S LIMIT 1; END",
      "CREATE TRIGGER hurt AFTER INSERT ON $S BEGIN DELETE FROM $S; END",
      "CREATE TRIGGER hurt AFTER DELETE ON $S BEGIN SELECT RAISE(IGNORE); END",
      "CREATE INDEX hurt ON $S(abs(rowid))",
      "ALTER TABLE $S ADD COLUMN more AS (abs(rowid) + 1)",
      "ALTER TABLE $S ADD COLUMN more",
      "CREATE INDEX hurt ON $S(1)",
      /* what only writable_schema can do */
      "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql='CREATE VIEW '||name||' AS SELECT "
      "rowid AS id, * FROM $T', rootpage=0 WHERE name=$s",
      "PRAGMA writable_schema=ON; INSERT INTO sqlite_schema VALUES('trigger','h',$s,0,'CREATE "
      "TRIGGER h AFTER INSERT ON $S BEGIN DELETE FROM $T; END')",
      "PRAGMA writable_schema=ON; INSERT INTO sqlite_schema VALUES('trigger','h','other',0,'CREATE "
      "TRIGGER h AFTER INSERT ON $S BEGIN DELETE FROM $T; END'),('trigger','g','other',0,'CREATE "
      "TRIGGER g AFTER UPDATE ON $S BEGIN INSERT INTO $T DEFAULT VALUES; END')",
      "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=(SELECT rootpage FROM "
      "sqlite_schema WHERE name='seq') WHERE name=$s",
      "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET name='n', tbl_name='n', type='table' "
      "WHERE name=$s",
      "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=replace(sql,')',', CHECK (1))') "
      "WHERE name=$s",
  };
  char *shadow = sqlite3_mprintf("%s_%s", t, suffixes[rng_below(&w->r, 7)]);
  char *other = sqlite3_mprintf("\"%w\"", tables[rng_below(&w->r, N_TABLES)].name);
  char *quoted = sqlite3_mprintf("\"%w\"", shadow), *table = sqlite3_mprintf("\"%w\"", t);
  char *literal = sqlite3_mprintf("%Q", shadow);
  sqlite3_str *s = sqlite3_str_new(db);
  for (const char *p = ways[rng_below(&w->r, sizeof ways / sizeof *ways)]; *p; p++) {
    if (*p != '$') {
      sqlite3_str_append(s, p, 1);
      continue;
    }
    p++;
    sqlite3_str_appendall(s, *p == 'S' ? quoted : *p == 'T' ? table : *p == 'O' ? other : literal);
  }
  char *sql = sqlite3_str_finish(s);
  note("; %.250s", sql);
  sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  sqlite3_free(shadow);
  sqlite3_free(other);
  sqlite3_free(quoted);
  sqlite3_free(table);
  sqlite3_free(literal);
}

/* Another declaration of the table over what it holds. */
static void hurt_declaration(world *w, sqlite3 *db, const char *t) {
  static const char *const decls[] = {
      "x INT, y TEXT",
      "a, b TEXT, PRIMARY KEY(a, b)",
      "id INT, con INTEGER PRIMARY KEY, nar INT, pac INT, run INT, dic TEXT, txt TEXT, mix, rea "
      "REAL, dec REAL, nul INT, blo BLOB, big INT, key TEXT UNIQUE",
      "id INT NOT NULL, con TEXT, nar REAL, pac BLOB, run NUMERIC, dic INT COLLATE NOCASE, txt "
      "REAL NOT NULL, mix INT NOT NULL, rea TEXT, dec INT, nul INT NOT NULL, blo TEXT, big REAL, "
      "key INT UNIQUE",
      "x INTEGER PRIMARY KEY, y INT",
      "y TEXT UNIQUE, x INT UNIQUE",
      "x INT CHECK((SELECT count(*) FROM w)), y DEFAULT ((SELECT max(x) FROM w))",
      "x INT NOT NULL DEFAULT (load_extension('x')), y NOT NULL DEFAULT (warplite_set('route', "
      "'never'))",
      "x, x, x",
      "",
      "x INT, y TEXT, z REAL",
  };
  const char *decl = decls[rng_below(&w->r, sizeof decls / sizeof *decls)];
  char *sql = sqlite3_mprintf("UPDATE sqlite_schema SET sql='CREATE VIRTUAL TABLE \"%w\" USING "
                              "tablet(%q)' WHERE name=%Q",
                              t, decl, t);
  note("; %s is declared (%.100s)", t, decl);
  sqlite3_exec(db, "PRAGMA writable_schema=ON", NULL, NULL, NULL);
  put(db, sql, NULL);
}

/* ---- what is done to each file */

/* Steps a statement to its end, within reason. */
static void run_to_end(world *w, sqlite3 *db, const char *sql, bool taken) {
  sqlite3_stmt *q = NULL;
  long n = 0;
  int rc =
      taken ? warplite_prepare(db, sql, -1, &q, NULL) : sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      const unsigned char *p = sqlite3_column_blob(q, i);
      int bytes = sqlite3_column_bytes(q, i);
      volatile unsigned char last = 0; /* every byte is touched */
      for (int k = 0; p && k < bytes; k++) last = p[k];
      (void)last;
    }
    rc = SQLITE_OK;
    if (++n > MOST_ROWS) break;
  }
  sqlite3_finalize(q);
  w->n_rows += n;
  w->n_errors += rc != SQLITE_DONE;
  if (n > MOST_ROWS && w->n_bad++ < 10) tap_bad("hostile: rows without end", "%s: %s", what, sql);
  if ((rc & 0xff) == SQLITE_CORRUPT && strlen(sqlite3_errmsg(db)) < 10 && w->n_bad++ < 10)
    tap_bad("hostile: a message", "%s: %s: %s", what, sql, sqlite3_errmsg(db));
}

static void read_table(world *w, sqlite3 *db, const char *t) {
  static const char *const queries[] = {
      "SELECT count(*) FROM $T",
      "SELECT * FROM $T",
      "SELECT rowid FROM $T ORDER BY rowid DESC",
      "SELECT count(*), min(rowid), max(rowid), sum(rowid) FROM $T",
      "SELECT * FROM $T WHERE rowid BETWEEN 100 AND 120",
      "SELECT * FROM $T WHERE rowid=400",
      "SELECT count(*) FROM $T a JOIN $T b ON a.rowid=b.rowid"};
  static const char *const own[N_TABLES][16] = {
      {"SELECT dic, count(*), sum(nar), max(rea), min(txt) FROM e GROUP BY dic ORDER BY 2",
       "SELECT * FROM e WHERE key='key 77'", "SELECT id, mix FROM e WHERE pac>1000990 ORDER BY mix",
       "SELECT count(*), sum(con), avg(dec), max(blo), min(big), total(nul) FROM e",
       "SELECT id FROM e WHERE dic='WORD 3' OR txt LIKE 'text 1%'",
       "SELECT key FROM e WHERE key>'key 3' AND key<'key 5' ORDER BY key",
       /* what rests on the ranges and types that the directory tells */
       "SELECT pac, count(*) FROM e GROUP BY pac",
       "SELECT run, nul, count(*), sum(big) FROM e GROUP BY run, nul ORDER BY 1 DESC LIMIT 9",
       "SELECT sum(nar*pac+con), sum(big+big), avg(run-nul), max(-pac), sum(rea*dec) FROM e",
       "SELECT a.id, b.con FROM e a JOIN e b ON a.nar=b.run AND a.pac>b.pac",
       "SELECT count(*) FROM e a JOIN e b ON a.dic=b.dic WHERE a.mix<b.mix",
       "SELECT DISTINCT dic, con, mix FROM e ORDER BY mix, dic",
       "SELECT count(DISTINCT txt), group_concat(dic) FROM e WHERE length(txt)+nul>8",
       "SELECT id, nar<<run, pac/con, pac%nar, abs(big), substr(txt, nar, con) FROM e", NULL},
      {"SELECT y, count(*) FROM w GROUP BY y", "SELECT x, count(*) FROM w GROUP BY x",
       "SELECT count(*) FROM w a JOIN e ON a.x=e.nar AND a.y=e.dic",
       "SELECT y FROM w ORDER BY x, y LIMIT 20", "SELECT count(*), sum(x) FROM w WHERE rowid>66000",
       "SELECT DISTINCT x FROM w WHERE y>'y2'", NULL},
      {"SELECT * FROM d WHERE a=3 AND b='b10'", "SELECT b FROM d ORDER BY a, b", NULL},
      {"SELECT y, sum(z), max(x) FROM \"odd \"\" na_me\" GROUP BY y", NULL}};
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
    for (int taken = 0; taken < 2; taken++) {
      char sql[300], *to = sql;
      char *name = sqlite3_mprintf("\"%w\"", t);
      for (const char *p = queries[i]; *p; p++) {
        if (*p == '$') {
          to += sprintf(to, "%s", name);
          p++;
        } else {
          *to++ = *p;
        }
      }
      *to = 0;
      sqlite3_free(name);
      run_to_end(w, db, sql, taken);
    }
  for (int i = 0; i < N_TABLES; i++)
    for (int k = 0; strcmp(tables[i].name, t) == 0 && own[i][k]; k++)
      for (int taken = strstr(own[i][k], "JOIN") != NULL; taken < 2; taken++) /* too slow there */
        run_to_end(w, db, own[i][k], taken);
}

static void check_table(world *w, sqlite3 *db, const char *t) {
  char why[700], *sql = sqlite3_mprintf("SELECT warplite_check(%Q)", t);
  one_text(db, sql, why, sizeof why);
  w->n_found += strcmp(why, "ok") != 0;
  sqlite3_free(sql);
}

static void write_table(world *w, sqlite3 *db, const char *t) {
  static const char *const changes[] = {"INSERT INTO $T DEFAULT VALUES",
                                        "INSERT INTO $T(rowid) VALUES(401)",
                                        "INSERT OR REPLACE INTO $T(rowid) VALUES(10),(70000)",
                                        "INSERT OR IGNORE INTO $T SELECT * FROM $T WHERE rowid<50",
                                        "DELETE FROM $T WHERE rowid=20",
                                        "DELETE FROM $T WHERE rowid BETWEEN 30 AND 90",
                                        "UPDATE $T SET rowid=rowid+100000 WHERE rowid=300",
                                        "INSERT INTO $T($T) VALUES('fold')",
                                        "BEGIN",
                                        "DELETE FROM $T WHERE rowid%3=0",
                                        "SAVEPOINT s",
                                        "INSERT INTO $T($T) VALUES('optimize')",
                                        "SELECT count(*) FROM $T",
                                        "ROLLBACK TO s",
                                        "COMMIT",
                                        "INSERT INTO $T($T) VALUES('optimize')",
                                        "DELETE FROM $T",
                                        "SELECT count(*) FROM $T"};
  static const char *const own[N_TABLES][5] = {
      {"UPDATE e SET dic='new', txt=txt||'.' WHERE id<20", "UPDATE e SET key='key 8' WHERE id=9",
       "INSERT INTO e(id,key) VALUES(77,'key 78') ON CONFLICT DO UPDATE SET con=1",
       "UPDATE e SET nar=nar+1", NULL},
      {"UPDATE w SET x=x+1 WHERE x%2", "UPDATE w SET y='new' WHERE rowid%100=3",
       "INSERT INTO w SELECT n, 'bulk '||n%9 FROM seq WHERE n<3000", NULL},
      {"INSERT INTO d VALUES(3,'b10')", "UPDATE d SET b=b||'.' WHERE a=2", NULL},
      {"UPDATE \"odd \"\" na_me\" SET x=NULL", "UPDATE \"odd \"\" na_me\" SET z=2e9 WHERE x=3",
       NULL}};
  for (int i = 0; i < N_TABLES; i++)
    for (int k = 0; strcmp(tables[i].name, t) == 0 && own[i][k]; k++)
      run_to_end(w, db, own[i][k], rng_chance(&w->r, 60));
  char *name = sqlite3_mprintf("\"%w\"", t);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    char sql[300], *to = sql;
    for (const char *p = changes[i]; *p; p++) {
      if (*p == '$') {
        to += sprintf(to, "%s", name);
        p++;
      } else {
        *to++ = *p;
      }
    }
    *to = 0;
    run_to_end(w, db, sql, rng_chance(&w->r, 50));
  }
  sqlite3_free(name);
  if (!sqlite3_get_autocommit(db)) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- one file */

static void copy_base(world *w) {
  static char buf[1 << 16];
  FILE *in = fopen(w->base, "rb"), *out = fopen(w->file, "wb");
  size_t n;
  if (!in || !out) must_do(SQLITE_CANTOPEN, NULL, "copy");
  while ((n = fread(buf, 1, sizeof buf, in)) > 0)
    if (fwrite(buf, 1, n, out) != n) must_do(SQLITE_FULL, NULL, "copy");
  fclose(in);
  if (fclose(out)) must_do(SQLITE_FULL, NULL, "copy");
  char journal[320];
  snprintf(journal, sizeof journal, "%s-journal", w->file);
  unlink(journal);
}

static void make_base(world *w) {
  sqlite3 *db = NULL;
  must_do(sqlite3_open(w->base, &db), db, "open");
  if (!use_engine(db, "cpu")) must_do(SQLITE_ERROR, db, "enable");
  for (int i = 0; i < N_TABLES; i++)
    must_do(run_text(db, sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING tablet(%s)",
                                         tables[i].name, tables[i].decl)),
            db, "set-up");
  must_do(run_sql(db, setup_sql, true), db, "set-up");
  for (int i = 0; i < N_TABLES; i++) check_table(w, db, tables[i].name);
  if (w->n_found) must_do(SQLITE_ERROR, db, "the first file is whole");
  must_do(sqlite3_close(db), NULL, "close");
}

static void hurt(world *w, sqlite3 *db, const char *t) {
  int kind = rng_below(&w->r, 100);
  if (kind < 32)
    hurt_segment(w, db, t);
  else if (kind < 45)
    hurt_patch(w, db, t);
  else if (kind < 50)
    swap_segment(w, db, t);
  else if (kind < 60)
    hurt_dict(w, db, t);
  else if (kind < 73)
    hurt_directory(w, db, t);
  else if (kind < 83)
    hurt_rows(w, db, t);
  else if (kind < 95)
    hurt_schema(w, db, t);
  else
    hurt_declaration(w, db, t);
}

static void one_file(world *w, uint64_t seed, int k) {
  sqlite3 *db = NULL, *before = NULL;
  w->r.s = seed * 1000003 + (uint64_t)k;
  for (int i = 0; i < 4; i++) rng_next(&w->r);
  snprintf(what, sizeof what, "seed %llu, file %d", (unsigned long long)seed, k);
  alarm(SECONDS);
  copy_base(w);
  const char *t = tables[rng_chance(&w->r, 60) ? 0 : rng_below(&w->r, N_TABLES)].name;
  if (rng_chance(&w->r, 15)) { /* a connection that has the table open, and in memory */
    must_do(sqlite3_open(w->file, &before), before, "open");
    if (!use_engine(before, w->engine)) must_do(SQLITE_ERROR, before, "enable");
    read_table(w, before, t);
    note(" (after reading)");
  }
  must_do(sqlite3_open(w->file, &db), db, "open");
  sqlite3_exec(db, "PRAGMA synchronous=OFF; BEGIN", NULL, NULL, NULL);
  for (int n = rng_chance(&w->r, 70) ? 1 : 1 + rng_below(&w->r, 4); n > 0; n--) hurt(w, db, t);
  sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
  sqlite3_close(db);
  db = before;
  if (!db) must_do(sqlite3_open(w->file, &db), db, "open");
  if (!before && !use_engine(db, w->engine)) must_do(SQLITE_ERROR, db, "enable");
  sqlite3_exec(db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
  if (rng_chance(&w->r, 30)) check_table(w, db, t);
  read_table(w, db, t);
  check_table(w, db, t);
  write_table(w, db, t);
  read_table(w, db, t);
  check_table(w, db, t);
  if (sqlite3_close(db) && w->n_bad++ < 10) {
    sqlite3_stmt *left = sqlite3_next_stmt(db, NULL);
    tap_bad("hostile: a statement is left open", "%s; %s", left ? sqlite3_sql(left) : "none", what);
  }
  w->n_done++;
}

int main(int argc, char **argv) {
  world w = {.engine = "cpu"};
  int n = TEST_SANITIZED ? 60 : 150, only = -1;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], "--n") == 0)
      n = atoi(argv[++i]);
    else if (strcmp(argv[i], "--seed") == 0)
      seed = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--only") == 0)
      only = atoi(argv[++i]);
    else if (strcmp(argv[i], "--engine") == 0)
      w.engine = argv[++i];
  }
  const char *tmp = getenv("TMPDIR");
  char dir[200];
  snprintf(dir, sizeof dir, "%s/hostile-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir)) return 2;
  snprintf(w.base, sizeof w.base, "%s/base", dir);
  snprintf(w.file, sizeof w.file, "%s/db", dir);
  signal(SIGALRM, died);
#if !TEST_SANITIZED
  struct rlimit most = {(rlim_t)4 << 30, (rlim_t)4 << 30};
  setrlimit(RLIMIT_AS, &most);
  static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
  static char room[1 << 16]; /* the stack may be what is full */
  sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
  for (int i = 0; i < 5; i++)
    sigaction(signals[i], &(struct sigaction){.sa_handler = died, .sa_flags = SA_ONSTACK}, NULL);
#else
  __sanitizer_set_death_callback(died_here);
#endif
  make_base(&w);
  w.n_found = 0;
  for (int k = only < 0 ? 0 : only; k < (only < 0 ? n : only + 1); k++) one_file(&w, seed, k);
  if (w.n_bad == 0) tap_ok("hostile: every file is survived");
  if (only < 0) CHECK("hostile: warplite_check finds what is wrong", w.n_found > w.n_done);
  if (only >= 0) printf("-- %s\n", what);
  printf("-- %ld files, %ld errors, %ld rows, %ld times found by warplite_check\n", w.n_done,
         w.n_errors, w.n_rows, w.n_found);
  unlink(w.base);
  unlink(w.file);
  rmdir(dir);
  return tap_done();
}
