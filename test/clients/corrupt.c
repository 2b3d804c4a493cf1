/*
** Corruption: bytes of the shadow tables are changed in every way that comes to mind, and then
** every column is read, through SQLite and through warplite_prepare. What comes must be the rows
** as they were, or SQLITE_CORRUPT with a message that says where; never another row, never a crash.
** warplite_check() must see every change.
**
**     corrupt [--n N] [--seed S] [BUILD]
**
** Invariants:
** 1. Each change is made to a fresh copy of the file by a connection that knows nothing of tablet
**    tables; the reader is another one, which has read the table before or has not.
** 2. Rows in t_delta and t_gone are plain rows of SQLite: to change them is to change the table.
*/
#include <unistd.h>

#include "changes.h"

enum { MAX_SHOWN = 10, MAX_COLS = 20, N_TABLES = 3 };

/* A table with what reading each of its columns gives while the file is whole. */
typedef struct table {
  const char *name, *decl;
  int n_cols;
  char cols[MAX_COLS][24]; /* "rowid" last */
  uint64_t digests[MAX_COLS];
  uint64_t found[8]; /* of the queries that pick rows */
} table;

static table tables[N_TABLES] = {
    /* a column for each encoding */
    {.name = "e",
     .decl = "id INTEGER PRIMARY KEY, con INT, nar INT, pac INT, run INT, dic TEXT COLLATE NOCASE, "
             "txt TEXT, mix, rea REAL, dec REAL, nul INT, blo BLOB, big INT, key TEXT UNIQUE"},
    /* two tablets, and rowids with gaps */
    {.name = "w", .decl = "x INT, y TEXT"},
    /* rows in the delta only, and a key of two columns */
    {.name = "d", .decl = "a, b TEXT, PRIMARY KEY(a, b)"},
};

static const char *const setup_sql =
    "CREATE TABLE seq(n INTEGER PRIMARY KEY);"
    "INSERT INTO seq WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<70000) "
    "SELECT n FROM k;"
    "INSERT INTO e SELECT n, 7, n*7919%251, 1000000+n*31%1000, n/300, 'word '||(n%40), "
    "'text '||n*7919%100003, CASE n%4 WHEN 0 THEN n WHEN 1 THEN n+0.5 WHEN 2 THEN 'm'||n ELSE NULL "
    "END, (n*7919%65537)/7.0, (n%900)/100.0, CASE WHEN n%3 THEN n END, CAST('blob '||n AS BLOB), "
    "n*1234567891234, 'key '||n FROM seq WHERE n<=2500;"
    "INSERT INTO w(x,y) SELECT n%1000, 'y'||(n%300) FROM seq;"
    "DELETE FROM w WHERE rowid%1000=7 OR rowid BETWEEN 30000 AND 30100;"
    "INSERT INTO e(e) VALUES('optimize');"
    "INSERT INTO w(w) VALUES('optimize');"
    "UPDATE w SET x=x+100000, y=CASE WHEN rowid%3 THEN 'new' END WHERE rowid%400=11;"
    "UPDATE e SET nar=-5, rea=rea/3, txt=txt||'!', mix='patched', nul=NULL WHERE id%20=0;"
    "UPDATE e SET dic='word 7' WHERE id%25=1;"
    "DELETE FROM w WHERE x BETWEEN 500 AND 503;"
    "DELETE FROM e WHERE id IN (5, 700, 2400);"
    "UPDATE e SET dic='changed', rea=-1.5 WHERE id IN (6, 701);"
    "INSERT INTO e(id, txt, key) VALUES(9000, 'late', 'late');"
    "INSERT INTO w(x,y) VALUES(-1,'late'),(-2,NULL);"
    "INSERT INTO d SELECT n%7, 'b'||n FROM seq WHERE n<=50";

/* Queries that skip tablets by their zone maps and find rows by their keys. */
static const char *const picks[N_TABLES][8] = {
    {"SELECT id, mix FROM e WHERE pac > 1000990", "SELECT * FROM e WHERE key='key 77'",
     "SELECT count(*), sum(nar), min(txt), max(rea) FROM e", "SELECT * FROM e WHERE id=1234",
     "SELECT id FROM e WHERE dic='WORD 3' ORDER BY id", "SELECT count(*) FROM e", NULL},
    {"SELECT count(*), sum(x) FROM w WHERE rowid > 69000", "SELECT y FROM w WHERE x=-1",
     "SELECT rowid FROM w WHERE x<0 ORDER BY rowid", "SELECT count(*) FROM w", NULL},
    {"SELECT * FROM d WHERE a=3 AND b='b10'", "SELECT count(*) FROM d", NULL},
};

typedef struct world {
  rng r;
  char base[300], file[300];
  long n_bad, n_done, n_corrupt, n_whole, n_skipped;
} world;

static void bad(world *w, const char *what, const char *why) {
  if (w->n_bad++ < MAX_SHOWN) tap_bad(what, "%s", why);
}

static void must_do(int rc, sqlite3 *db, const char *what) {
  if (rc == SQLITE_OK) return;
  tap_bad(what, "%s", db ? sqlite3_errmsg(db) : "cannot");
  exit(tap_done());
}

static sqlite3 *open_plain(const char *file) {
  sqlite3 *db = NULL;
  must_do(sqlite3_open(file, &db), db, "open");
  run_sql(db, "PRAGMA synchronous=OFF", false);
  return db;
}

static sqlite3 *open_reader(const char *file) {
  sqlite3 *db = open_plain(file);
  if (!use_engine(db, "cpu")) must_do(SQLITE_ERROR, db, "enable");
  return db;
}

/* ---- the file as it should be */

static uint64_t read_column(sqlite3 *db, const table *t, int col, bool taken, int *rc) {
  char sql[200];
  snprintf(sql, sizeof sql, "SELECT rowid, %s FROM %s ORDER BY rowid", t->cols[col], t->name);
  return digest_query(db, sql, taken, 1, rc);
}

static void make_base(world *w) {
  sqlite3 *db = open_reader(w->base);
  int rc;
  for (int i = 0; i < N_TABLES; i++)
    must_do(run_text(db, sqlite3_mprintf("CREATE VIRTUAL TABLE %s USING tablet(%s)", tables[i].name,
                                         tables[i].decl)),
            db, "set-up");
  must_do(run_sql(db, setup_sql, true), db, "set-up");
  for (int i = 0; i < N_TABLES; i++) {
    table *t = &tables[i];
    sqlite3_stmt *q = NULL;
    char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", t->name);
    must_do(sqlite3_prepare_v2(db, sql, -1, &q, NULL), db, "set-up");
    sqlite3_free(sql);
    while (sqlite3_step(q) == SQLITE_ROW)
      snprintf(t->cols[t->n_cols++], sizeof t->cols[0], "%s", sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    snprintf(t->cols[t->n_cols++], sizeof t->cols[0], "rowid");
    for (int c = 0; c < t->n_cols; c++) {
      t->digests[c] = read_column(db, t, c, false, &rc);
      must_do(rc, db, "reading the whole file");
      if (read_column(db, t, c, true, &rc) != t->digests[c] || rc)
        bad(w, "both ways read the same", t->cols[c]);
    }
    for (int k = 0; picks[i][k]; k++) {
      t->found[k] = digest_query(db, picks[i][k], false, 1, &rc);
      must_do(rc, db, picks[i][k]);
      if (digest_query(db, picks[i][k], true, 1, &rc) != t->found[k] || rc)
        bad(w, "both ways find the same", picks[i][k]);
    }
    char why[500];
    sql = sqlite3_mprintf("SELECT warplite_check(%Q)", t->name);
    if (strcmp(one_text(db, sql, why, sizeof why), "ok") != 0) bad(w, "a whole table", why);
    sqlite3_free(sql);
  }
  must_do(sqlite3_close(db), NULL, "close");
}

static void copy_base(world *w) {
  static char buf[1 << 16];
  FILE *in = fopen(w->base, "rb"), *out = fopen(w->file, "wb");
  size_t n;
  if (!in || !out) must_do(SQLITE_CANTOPEN, NULL, "copy");
  while ((n = fread(buf, 1, sizeof buf, in)) > 0)
    if (fwrite(buf, 1, n, out) != n) must_do(SQLITE_FULL, NULL, "copy");
  fclose(in);
  if (fclose(out)) must_do(SQLITE_FULL, NULL, "copy");
}

/* ---- changes */

typedef struct harm {
  int table;
  int col;       /* what it is about; -1: the whole table, or not known */
  bool segment;  /* the message must name column and tablet */
  bool harmless; /* nothing was changed after all */
  bool error;    /* an error of another kind than corruption may come */
  bool key;      /* as with an index of SQLite's, a look-up goes wrong and only the check sees it */
  bool at_open;  /* a connection that has the table open does not look again */
  char what[300];
} harm;

/* A random one of the integers that a query gives; 0 when there is none. */
static sqlite3_int64 some(world *w, sqlite3 *db, char *sql) {
  sqlite3_stmt *q = NULL;
  sqlite3_int64 out = 0;
  int n = 0;
  must_do(sqlite3_prepare_v2(db, sql, -1, &q, NULL), db, sql);
  while (sqlite3_step(q) == SQLITE_ROW)
    if (rng_below(&w->r, ++n) == 0) out = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return out;
}

static int do_sql(sqlite3 *db, char *sql) {
  int rc = run_sql(db, sql, false);
  if (rc) tap_bad("a change", "%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_free(sql);
  return sqlite3_changes(db);
}

/* Changes a blob: a bit, a byte, its end, all of it. Gives a name of what was done. */
static const char *hurt_blob(world *w, sqlite3 *db, const char *shadow, const char *column,
                             sqlite3_int64 id, harm *h) {
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("SELECT %s FROM %s WHERE id=%lld", column, shadow, id);
  must_do(sqlite3_prepare_v2(db, sql, -1, &q, NULL), db, sql);
  sqlite3_free(sql);
  int n = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_bytes(q, 0) : 0;
  unsigned char *p = malloc((size_t)n + 64);
  if (n) memcpy(p, sqlite3_column_blob(q, 0), (size_t)n);
  sqlite3_finalize(q);
  static const char *const names[] = {"a bit",  "a byte",      "its head", "cut short",
                                      "longer", "empty",       "NULL",     "a number",
                                      "a text", "a few bytes", "zeros",    "the same"};
  int kind = rng_below(&w->r, 12), at = n ? rng_below(&w->r, n) : 0, was = n;
  bool blob = true;
  switch (kind) {
  case 0: p[at] ^= (unsigned char)(1 << rng_below(&w->r, 8)); break;
  case 1: p[at] ^= (unsigned char)(1 + rng_below(&w->r, 255)); break;
  case 2: p[n ? at % (n < 96 ? n : 96) : 0] ^= (unsigned char)(1 + rng_below(&w->r, 255)); break;
  case 3: n = at; break;
  case 4: memset(p + n, rng_below(&w->r, 256), 64), n += 1 + rng_below(&w->r, 63); break;
  case 5: n = 0; break;
  case 9:
    for (int i = 0; i < 4 && at + i < n; i++) p[at + i] ^= (unsigned char)(1 + rng_below(&w->r, 9));
    break;
  case 10: memset(p, 0, (size_t)n); break;
  case 11: h->harmless = true; break;
  default: blob = false; break;
  }
  if (was == 0 && kind != 4 && kind != 7 && kind != 8) h->harmless = true; /* there is nothing */
  sql = kind == 6   ? sqlite3_mprintf("UPDATE %s SET %s=NULL WHERE id=%lld", shadow, column, id)
        : kind == 7 ? sqlite3_mprintf("UPDATE %s SET %s=5 WHERE id=%lld", shadow, column, id)
        : kind == 8 ? sqlite3_mprintf("UPDATE %s SET %s='WlSg' WHERE id=%lld", shadow, column, id)
                    : sqlite3_mprintf("UPDATE %s SET %s=?1 WHERE id=%lld", shadow, column, id);
  must_do(sqlite3_prepare_v2(db, sql, -1, &q, NULL), db, sql);
  if (blob) sqlite3_bind_blob(q, 1, n ? (void *)p : "", n, SQLITE_TRANSIENT);
  sqlite3_step(q);
  must_do(sqlite3_finalize(q), db, sql);
  sqlite3_free(sql);
  free(p);
  return names[kind];
}

static void name_segment(harm *h, sqlite3_int64 id, const char *what, const char *how) {
  const table *t = &tables[h->table];
  int col = (int)(id & 4095);
  h->segment = true;
  h->col = col < t->n_cols ? col : t->n_cols - 1;
  snprintf(h->what, sizeof h->what, "%s.%s, tablet %lld: %s %s", t->name, t->cols[h->col],
           (long long)(id >> 12), what, how);
}

static void hurt_segment(world *w, sqlite3 *db, harm *h) {
  const char *t = tables[h->table].name;
  char shadow[40];
  snprintf(shadow, sizeof shadow, "%s_segment", t);
  sqlite3_int64 id = some(w, db, sqlite3_mprintf("SELECT id FROM %s", shadow));
  int kind = rng_below(&w->r, 10);
  if (kind < 7) {
    name_segment(h, id, "the segment", hurt_blob(w, db, shadow, "data", id, h));
  } else if (kind < 9) { /* two of them change places, or one is there twice */
    sqlite3_int64 other =
        some(w, db, sqlite3_mprintf("SELECT id FROM %s WHERE id<>%lld", shadow, id));
    if (kind == 8)
      other = some(w, db,
                   sqlite3_mprintf("SELECT id FROM %s WHERE id<>%lld AND id%%4096=%lld", shadow, id,
                                   id % 4096));
    if (!other) {
      h->harmless = true;
      return;
    }
    h->harmless = some(w, db,
                       sqlite3_mprintf("SELECT a.data=b.data FROM %s a, %s b WHERE a.id=%lld AND "
                                       "b.id=%lld",
                                       shadow, shadow, id, other)) == 1;
    do_sql(db, sqlite3_mprintf("UPDATE %s SET data=(SELECT data FROM %s b WHERE b.id=%lld) WHERE "
                               "id=%lld",
                               shadow, shadow, other, id));
    name_segment(h, id, "has the data of", "another");
  } else {
    do_sql(db, sqlite3_mprintf("DELETE FROM %s WHERE id=%lld", shadow, id));
    name_segment(h, id, "the segment", "is missing");
  }
}

static void hurt_directory(world *w, sqlite3 *db, harm *h) {
  static const char *const sets[] = {
      "n_rows=n_rows+1", "n_rows=n_rows-1", "n_dead=n_dead+1", "n_dead=0",   "lo=lo-1",
      "hi=hi+1",         "hi=hi-1",         "sum=sum+1",       "n_rows='x'", "lo=NULL",
      "n_rows=-5",       "n_rows=100000",   "id=id+50",        "dead=x'ff'", "head=zeroblob(72)"};
  const char *t = tables[h->table].name;
  sqlite3_int64 id = some(w, db, sqlite3_mprintf("SELECT id FROM %s_tablet", t));
  char shadow[40];
  snprintf(shadow, sizeof shadow, "%s_tablet", t);
  int kind = rng_below(&w->r, 20);
  if (!id) {
    h->harmless = true;
  } else if (kind < 5) {
    const char *column = kind < 3 ? "head" : "dead";
    snprintf(h->what, sizeof h->what, "%s, tablet %lld: %s: %s", t, (long long)id, column,
             hurt_blob(w, db, shadow, column, id, h));
  } else if (kind == 5) {
    do_sql(db, sqlite3_mprintf("DELETE FROM %s WHERE id=%lld", shadow, id));
    snprintf(h->what, sizeof h->what, "%s: tablet %lld is missing", t, (long long)id);
  } else if (kind == 6) {
    do_sql(db, sqlite3_mprintf("INSERT INTO %s SELECT id+70, lo, hi, n_rows, n_dead, head, dead, "
                               "sum FROM %s WHERE id=%lld",
                               shadow, shadow, id));
    snprintf(h->what, sizeof h->what, "%s: tablet %lld is there twice", t, (long long)id);
  } else {
    const char *set = sets[rng_below(&w->r, sizeof sets / sizeof *sets)];
    h->harmless =
        some(w, db, sqlite3_mprintf("SELECT n_dead=0 FROM %s WHERE id=%lld", shadow, id)) &&
        strcmp(set, "n_dead=0") == 0;
    do_sql(db, sqlite3_mprintf("UPDATE %s SET %s WHERE id=%lld", shadow, set, id));
    snprintf(h->what, sizeof h->what, "%s, tablet %lld: %s", t, (long long)id, set);
  }
}

static void hurt_dictionary(world *w, sqlite3 *db, harm *h) {
  const char *t = tables[h->table].name;
  sqlite3_int64 id = some(w, db, sqlite3_mprintf("SELECT id FROM %s_dict", t));
  char shadow[40];
  snprintf(shadow, sizeof shadow, "%s_dict", t);
  int kind = rng_below(&w->r, 10);
  if (!some(w, db, sqlite3_mprintf("SELECT count(*) FROM %s", shadow))) {
    h->harmless = true;
    return;
  }
  h->col = (int)(id >> 20);
  if (kind < 7) {
    snprintf(h->what, sizeof h->what, "%s: dictionary part %lld: %s", t, (long long)id,
             hurt_blob(w, db, shadow, "data", id, h));
  } else {
    static const char *const changes[] = {"DELETE FROM %s WHERE id=%lld",
                                          "UPDATE %s SET sum=sum+1 WHERE id=%lld",
                                          "UPDATE %s SET id=id+1000 WHERE id=%lld"};
    do_sql(db, sqlite3_mprintf(changes[kind - 7], shadow, id));
    snprintf(h->what, sizeof h->what, changes[kind - 7], shadow, (long long)id);
  }
}

/* Whatever else there is. */
static void hurt_others(world *w, sqlite3 *db, harm *h) {
  static const struct other {
    const char *sql;
    int table;
    bool error, key;
  } others[] = {
      {"UPDATE e_info SET v=3 WHERE k='format'", 0, true, false},
      {"UPDATE e_info SET v='x' WHERE k='format'", 0, true, false},
      {"DELETE FROM e_info WHERE k='format'", 0, true, false},
      {"DELETE FROM e_info", 0, true, false},
      {"DROP TABLE e_info", 0, true, false},
      {"INSERT INTO e_gone VALUES(999999)", 0, false, false},
      {"INSERT INTO e_gone VALUES(9000)", 0, false, false},
      {"INSERT INTO w_gone VALUES(-4)", 1, false, false},
      {"DELETE FROM e_key0 WHERE k0='key 77'", 0, false, true},
      {"UPDATE e_key0 SET id=78 WHERE k0='key 77'", 0, false, true},
      {"INSERT INTO e_key0 VALUES('no such key', 12)", 0, false, true},
      {"DELETE FROM d_key0", 2, false, true},
      {"INSERT INTO e_segment VALUES((500<<12)|3, x'00')", 0, false, false},
      {"DROP TABLE e_segment", 0, true, false},
      {"DROP TABLE w_tablet", 1, true, false},
      {"DROP TABLE d_delta", 2, true, false},
      {"DROP TABLE e_key0", 0, true, false},
      {"ALTER TABLE e_delta DROP COLUMN c3", 0, true, false},
      {"DROP TABLE e_segment; CREATE TABLE e_segment(id, data)", 0, true, false},
      {"ALTER TABLE w_gone RENAME COLUMN id TO x", 1, true, false},
  };
  const struct other *o = &others[rng_below(&w->r, sizeof others / sizeof *others)];
  h->table = o->table;
  h->error = o->error;
  h->key = o->key;
  h->at_open = strstr(o->sql, "e_info") != NULL;
  do_sql(db, sqlite3_mprintf("%s", o->sql));
  snprintf(h->what, sizeof h->what, "%s", o->sql);
}

/* ---- reading */

/* An error is right if it is SQLITE_CORRUPT and says where. */
static bool is_right_error(const harm *h, int rc, const char *message, bool this_column) {
  const table *t = &tables[h->table];
  char where[60];
  if (h->harmless) return false;
  if (h->error) return *message != 0;
  if ((rc & 0xff) != SQLITE_CORRUPT) return false;
  snprintf(where, sizeof where, "table %s", t->name);
  if (!strstr(message, where)) return false;
  if (!h->segment || !this_column) return true;
  snprintf(where, sizeof where, "column %s", t->cols[h->col]);
  if (strcmp(t->cols[h->col], "rowid") == 0 || h->col == 0) return strstr(message, "column ");
  return strstr(message, where) && strstr(message, "tablet ");
}

static void read_all(world *w, sqlite3 *db, const harm *h) {
  table *t = &tables[h->table];
  char why[900];
  int rc;
  for (int taken = 0; taken < 2; taken++)
    for (int c = 0; c < t->n_cols; c++) {
      uint64_t got = read_column(db, t, c, taken, &rc);
      if (rc == SQLITE_OK && got == t->digests[c]) {
        w->n_whole++;
      } else if (rc == SQLITE_OK || !is_right_error(h, rc, sqlite3_errmsg(db), c == h->col)) {
        snprintf(why, sizeof why, "reading %s%s: %s (%d)", t->cols[c], taken ? ", taken" : "",
                 rc ? sqlite3_errmsg(db) : "other rows", rc);
        bad(w, h->what, why);
        return;
      } else {
        w->n_corrupt++;
      }
    }
  for (int taken = 0; taken < 2 && !h->key; taken++)
    for (int k = 0; picks[h->table][k]; k++) {
      uint64_t got = digest_query(db, picks[h->table][k], taken, 1, &rc);
      if (rc == SQLITE_OK && got == t->found[k]) continue;
      if (rc == SQLITE_OK || !is_right_error(h, rc, sqlite3_errmsg(db), false)) {
        snprintf(why, sizeof why, "%s%s: %s (%d)", picks[h->table][k], taken ? ", taken" : "",
                 rc ? sqlite3_errmsg(db) : "other rows", rc);
        bad(w, h->what, why);
        return;
      }
    }
}

static void check_all(world *w, sqlite3 *db, const harm *h) {
  char why[600], problem[700];
  char *sql = sqlite3_mprintf("SELECT warplite_check(%Q)", tables[h->table].name);
  one_text(db, sql, why, sizeof why);
  sqlite3_free(sql);
  bool ok = strcmp(why, "ok") == 0;
  snprintf(problem, sizeof problem, "warplite_check: %s", why);
  if (ok != h->harmless) bad(w, h->what, problem);
  if (!ok && !h->error && !strstr(why, tables[h->table].name)) bad(w, h->what, problem);
}

/* Whatever is wrong with it, it can be dropped, with all tables behind it. */
static void drop_it(world *w, const char *what, const char *name) {
  char why[700], problem[900];
  sqlite3 *db = open_reader(w->file);
  char *sql = sqlite3_mprintf("DROP TABLE %s", name);
  int rc = run_sql(db, sql, false);
  snprintf(problem, sizeof problem, "%s: %s", sql, rc ? sqlite3_errmsg(db) : "");
  sqlite3_free(sql);
  sql = sqlite3_mprintf("SELECT group_concat(name) FROM sqlite_schema WHERE type='table' AND "
                        "(name=%Q OR name GLOB '%q_*')",
                        name, name);
  if (!rc) snprintf(problem, sizeof problem, "left: %s", one_text(db, sql, why, sizeof why));
  sqlite3_free(sql);
  if (rc || strcmp(why, "(null)") != 0) bad(w, what, problem);
  must_do(sqlite3_close(db), NULL, "close");
}

/* Things of other kinds in the place of its tables. */
static void drop_impostors(world *w) {
  static const char *const ways[] = {
      "DROP TABLE e_info; CREATE VIEW e_info AS SELECT 'format' AS k, 1 AS v",
      "DROP TABLE e_gone; CREATE VIEW e_gone AS SELECT rowid AS id FROM e",
      "DROP TABLE e_info; DROP TABLE e_delta; DROP TABLE e_key0",
      "DROP TABLE e_info; CREATE TABLE e_info(x)"};
  long n_bad = w->n_bad;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    copy_base(w);
    sqlite3 *db = open_plain(w->file);
    do_sql(db, sqlite3_mprintf("%s", ways[i]));
    must_do(sqlite3_close(db), NULL, "close");
    drop_it(w, ways[i], "e");
  }
  if (w->n_bad == n_bad) tap_ok("corrupt: tables with others in their place can be dropped");
}

static void hurt_once(world *w) {
  harm h = {.table = rng_below(&w->r, 10) < 7 ? 0 : 1, .col = -1};
  copy_base(w);
  sqlite3 *before = rng_chance(&w->r, 25) ? open_reader(w->file) : NULL;
  if (before) /* it has the table in memory */
    for (int c = 0; c < tables[h.table].n_cols; c++) {
      int rc;
      read_column(before, &tables[h.table], c, true, &rc);
    }
  sqlite3 *db = open_plain(w->file);
  int kind = rng_below(&w->r, 100);
  if (kind < 55)
    hurt_segment(w, db, &h);
  else if (kind < 75)
    hurt_directory(w, db, &h);
  else if (kind < 87)
    hurt_dictionary(w, db, &h);
  else
    hurt_others(w, db, &h);
  must_do(sqlite3_close(db), NULL, "close");
  sqlite3 *reader = before ? before : open_reader(w->file);
  if (before) strcat(h.what, " (after reading)");
  if (before) h.error = true; /* what another did to the schema may show as any error */
  read_all(w, reader, &h);
  if (!before || !h.at_open) check_all(w, reader, &h);
  /* writing where something is wrong may fail; it must not end the process */
  char *sql = sqlite3_mprintf("INSERT INTO %s(%s) VALUES('optimize')", tables[h.table].name,
                              tables[h.table].name);
  run_sql(reader, sql, false);
  sqlite3_free(sql);
  must_do(sqlite3_close(reader), NULL, "close");
  if (!strstr(h.what, "SET v=3")) drop_it(w, h.what, tables[h.table].name); /* a newer format */
  w->n_done++;
}

int main(int argc, char **argv) {
  world w = {.r = {1}};
  int n = TEST_SANITIZED ? 40 : 150;
  for (int i = 1; i < argc; i++) {
    if (i + 1 < argc && strcmp(argv[i], "--n") == 0) n = atoi(argv[++i]);
    if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) w.r.s = strtoull(argv[++i], NULL, 10);
  }
  const char *tmp = getenv("TMPDIR");
  char dir[200];
  snprintf(dir, sizeof dir, "%s/corrupt-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir)) return 2;
  snprintf(w.base, sizeof w.base, "%s/base", dir);
  snprintf(w.file, sizeof w.file, "%s/db", dir);
  make_base(&w);
  drop_impostors(&w);
  for (int i = 0; i < n; i++) hurt_once(&w);
  if (w.n_bad == 0)
    tap_ok("corrupt: what is changed is found");
  else
    tap_bad("corrupt: what is changed is found", "%ld of %ld not so", w.n_bad, w.n_done);
  CHECK("corrupt: there was something to find", w.n_corrupt > n / 2);
  printf("-- %ld changes, %ld columns refused, %ld read as they were\n", w.n_done, w.n_corrupt,
         w.n_whole);
  unlink(w.base);
  unlink(w.file);
  rmdir(dir);
  return tap_done();
}
