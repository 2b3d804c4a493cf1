/*
** Declarations of tablet tables against CREATE TABLE: the same text is given to both, by way of a
** virtual table module, so that SQLite cuts the arguments. What is accepted must have SQLite's
** columns, keys, defaults, affinities and messages; what is refused must say why.
*/
#include "../tap.h"
#include "api/enable.h"
#include "base/sqlite.h"
#include "tablet/table/declare.h"
#include <string.h>

/* By its own name, so that the program is linked with SQLite. */
#undef sqlite3_libversion_number
extern int sqlite3_libversion_number(void);

/* ---- a module that only keeps what it was given */

static wl_arena arena;
static wl_decl *decl;
static wl_error error;
static wl_status status;

static int make(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                char **msg) {
  decl = NULL;
  status = wl_declare(&arena, argv + 3, argc - 3, &decl, &error);
  if (!status) status = wl_declare_verify(decl, argv[2], &error);
  int rc = SQLITE_OK;
  if (status) {
    *msg = sqlite3_mprintf("%s", error.text);
    return SQLITE_ERROR;
  }
  rc = sqlite3_declare_vtab(db, wl_decl_vtab_sql(&arena, decl, argv[2]));
  if (rc) *msg = sqlite3_mprintf("declare_vtab: %s", sqlite3_errmsg(db));
  *out = rc ? NULL : sqlite3_malloc64(sizeof **out);
  if (*out) memset(*out, 0, sizeof **out);
  return rc;
}

static int best(sqlite3_vtab *v, sqlite3_index_info *info) {
  return SQLITE_OK;
}

static int drop(sqlite3_vtab *v) {
  sqlite3_free(v);
  return SQLITE_OK;
}

static const sqlite3_module module = {.iVersion = 1,
                                      .xCreate = make,
                                      .xConnect = make,
                                      .xBestIndex = best,
                                      .xDisconnect = drop,
                                      .xDestroy = drop};

static sqlite3 *fresh_db(void) {
  sqlite3 *db = NULL;
  if (sqlite3_open(":memory:", &db) || sqlite3_create_module(db, "tablet", &module, NULL)) exit(2);
  return db;
}

static int exec(sqlite3 *db, char *sql) {
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc;
}

/* All rows of a query as one text, in a buffer of the caller. */
static const char *rows(sqlite3 *db, const char *sql, char *out, size_t n) {
  sqlite3_stmt *q = NULL;
  size_t at = 0;
  out[0] = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL)) return sqlite3_errmsg(db);
  while (sqlite3_step(q) == SQLITE_ROW)
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      const char *s = (const char *)sqlite3_column_text(q, i);
      at += (size_t)snprintf(out + at, at < n ? n - at : 0, "%s|", s ? s : "NULL");
    }
  sqlite3_finalize(q);
  return out;
}

static const char *select_text(sqlite3 *db, char *sql, char *out, size_t n) {
  const char *r = rows(db, sql, out, n);
  sqlite3_free(sql);
  return r;
}

/* ---- what is accepted, with what breaks a CHECK (a row's values), if anything does */

typedef struct good {
  const char *decl;
  const char *bad_row;
} good;

static const good goods[] = {
    {"a", NULL},
    {"id INTEGER PRIMARY KEY, store TEXT COLLATE NOCASE, amount REAL NOT NULL DEFAULT 0, "
     "CHECK(amount >= 0), UNIQUE(store, id)",
     "1,'a',-1"},
    {"id INTEGER PRIMARY KEY DESC, b", NULL},
    {"id INTEGER PRIMARY KEY ASC, b", NULL},
    {"id INTEGER, PRIMARY KEY(id)", NULL},
    {"id integer, PRIMARY KEY(id DESC)", NULL},
    {"id INTEGER, b, PRIMARY KEY((\"ID\") COLLATE NOCASE ASC)", NULL},
    {"id INT PRIMARY KEY", NULL},
    {"id 'integer' PRIMARY KEY", NULL},
    {"id INTEGER(10) PRIMARY KEY", NULL},
    {"id \"INTEGER\" 'x' PRIMARY KEY, b [integer] UNIQUE", NULL},
    {"id INTEGER /* not part of it */ PRIMARY KEY", NULL},
    {"id INTEGER, PRIMARY KEY(id, id)", NULL},
    {"id INTEGER PRIMARY KEY UNIQUE, b, UNIQUE(id COLLATE NOCASE)", NULL},
    {"a UNIQUE, b UNIQUE, UNIQUE(b,a)", NULL},
    {"a, b, UNIQUE(b,a), UNIQUE(a), UNIQUE(b)", NULL},
    {"a UNIQUE, b TEXT PRIMARY KEY, c UNIQUE", NULL},
    {"a UNIQUE, b TEXT, c UNIQUE, PRIMARY KEY(b)", NULL},
    {"a UNIQUE, b, UNIQUE(a), PRIMARY KEY(a)", NULL},
    {"a, b, UNIQUE(a), UNIQUE(a COLLATE nocase), UNIQUE(a DESC), UNIQUE(A ASC), UNIQUE(a,b), "
     "UNIQUE(b,a), UNIQUE(a,b COLLATE binary), UNIQUE(a,a)",
     NULL},
    {"a, UNIQUE(\"a\"), UNIQUE('a'), UNIQUE([a])", NULL},
    {"a COLLATE nocase COLLATE rtrim UNIQUE, b COLLATE \"nocase\", c UNIQUE COLLATE 'nocase', "
     "UNIQUE(b,c)",
     NULL},
    {"a COLLATE RTRIM, UNIQUE(a COLLATE nocase COLLATE binary)", NULL},
    {"a NOT NULL NOT NULL UNIQUE UNIQUE PRIMARY KEY", NULL},
    {"a INT NOT NULL NULL, b NULL NOT NULL, c NULL", NULL},
    {"a CONSTRAINT x CONSTRAINT y NOT NULL CONSTRAINT z CHECK(a>0)", "-1"},
    {"a CONSTRAINT q CHECK(a>0) CHECK(a>-1)", "-1"},
    {"a CONSTRAINT q CHECK(a>-5) CHECK(a>-1)", "-2"},
    {"a CONSTRAINT zz, CHECK(a>0)", "-1"},
    {"a CONSTRAINT zz CHECK(a<0), CHECK(a>-1)", "-3"},
    {"a, CONSTRAINT zz CHECK(a<0), CHECK(a>-1)", "-3"},
    {"a CONSTRAINT zz, b, CHECK(a>0)", "-1,1"},
    {"a, b, CONSTRAINT zz, CHECK(a>0)", "-1,1"},
    {"a, CONSTRAINT q UNIQUE(a) CHECK(a>-1)", "-3"},
    {"a, CONSTRAINT \"q  z\" CHECK(a>-1)", "-3"},
    {"a, CONSTRAINT 'q''z' CHECK(a>-1)", "-3"},
    {"a, CHECK(  a\n >   - 1  /* c */ AND  \"a\"  > 3  )", "-3"},
    {"a, CHECK ( (a   > -1) )", "-3"},
    {"a, CHECK /*z*/ ( /*q*/ a   > 'it''s ), x' /*e*/ )", "-3"},
    {"a, CHECK (a > -1 -- foo, )\n)", "-3"},
    {"a CHECK(\"a\">0)", "-3"},
    {"a CHECK([a]>0)", "-3"},
    {"a CHECK('it''s '||a > 'j')", "-3"},
    {"a CHECK(rowid > 5)", "1"},
    {"a CHECK(t.a > 5 AND main.t.a > 6)", "1"},
    {"a CHECK(a) CHECK(length(a) < 3)", "'12345'"},
    {"a CHECK(CASE WHEN a THEN 0 ELSE 1 END)", "1"},
    {"a DEFAULT abc, b DEFAULT \"ab  'c\", c DEFAULT -5, d DEFAULT +3.0e1, e DEFAULT - 5, "
     "f DEFAULT (1 + 2), g DEFAULT 'x, y', h DEFAULT x'00ff', i DEFAULT NULL, j DEFAULT true, "
     "k DEFAULT False, m DEFAULT [zz], n DEFAULT - 'x', o DEFAULT \"true\", q DEFAULT rowid, "
     "r DEFAULT 0x10, s DEFAULT -0x10, u DEFAULT current, w DEFAULT - NULL, x DEFAULT - x'01', "
     "y DEFAULT -9223372036854775808, z DEFAULT indexed, aa DEFAULT +'5', "
     "bb DEFAULT 9223372036854775808, cc DEFAULT (abs(-7) || ')'), dd DEFAULT 5 DEFAULT 6, "
     "ee DEFAULT (-3), ff DEFAULT ( ( 'a' ) ), gg DEFAULT (1 -- one\n)",
     NULL},
    {"a INT DEFAULT '12', b TEXT DEFAULT 12, c REAL DEFAULT 1, d BLOB DEFAULT 1.0, "
     "e DEFAULT '1', f NUMERIC DEFAULT '1e3', g \"\" DEFAULT '1'",
     NULL},
    {"a DEFAULT current_timestamp, b DEFAULT CURRENT_DATE, c DEFAULT (random()), d DEFAULT 1",
     NULL},
    {"a DEFAULT 5 NOT NULL CHECK(a > 0) UNIQUE COLLATE rtrim", "-1"},
    {"a TEXT INT, b 'x' 'y' [z], c varchar  ( 10 ,  2 ), d varchar(+10,-2), e foo /*c*/ bar, "
     "f \"\", g '' '', h double  precision, i \"INTE\"\"GER\", j int(1.5), k \"txt\" 'x'",
     NULL},
    {"a FLOAT, b CLOB, c BLOBREAL, d CHARINT, e POINT, f DOUBLE, g ANY, h DATE, i BOOLEAN, j nchar",
     NULL},
    {"\"a\"\"b\" INT, [c d] INT, `e``f` INT, 'g''h' INT, \"\" TEXT, \xc3\xa9t\xc3\xa9", NULL},
    {"key INT, desc INT, if TEXT, left REAL, indexed, rowid, oid, generated, always TEXT, hidden",
     NULL},
    {"a key, b generated, c always, d INT DESC ASC, e window over filter", NULL},
    {"rowid TEXT, _rowid_ UNIQUE, oid INTEGER PRIMARY KEY", NULL},
    {"a INT NOT DEFERRABLE INITIALLY IMMEDIATE UNIQUE, b DEFERRABLE", NULL},
    {"a, b, CHECK(1) UNIQUE(a) , PRIMARY KEY(b) CHECK(3) CONSTRAINT q", NULL},
    {"a , , b , ", NULL}, /* SQLite drops what is empty before the module sees it */
};

static bool key_is(sqlite3 *db, const wl_decl *d, const wl_decl_key *k, const char *message) {
  char text[1000];
  int at = snprintf(text, sizeof text, "UNIQUE constraint failed: ");
  for (int i = 0; i < k->n; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, i ? ", t.%s" : "t.%s",
                   d->cols[k->cols[i]].name);
  return strcmp(text, message) == 0;
}

/* Two equal rows break every key; SQLite's message is about the one it checks first. */
static void check_order(const char *name, const wl_decl *d) {
  sqlite3 *db = fresh_db();
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendf(s, "CREATE TABLE t(%s);", wl_decl_ordinary_sql(&arena, d));
  for (int k = 0; k < 2; k++) {
    sqlite3_str_appendall(s, "INSERT INTO t VALUES(");
    for (int i = 0; i < d->n_cols; i++)
      sqlite3_str_appendf(s, i ? ",%s" : "%s", i == d->rowid_col ? "NULL" : "7");
    sqlite3_str_appendall(s, ");");
  }
  int rc = exec(db, sqlite3_str_finish(s));
  bool has_rowid = false; /* a key with the rowid in it is not broken */
  for (int i = 0; i < d->n_keys && d->n_keys; i++)
    for (int j = 0; j < d->keys[i].n; j++) has_rowid |= d->keys[i].cols[j] == d->rowid_col;
  if (!has_rowid && d->n_checks == 0 && (rc || d->n_keys)) {
    if (d->n_keys && key_is(db, d, &d->keys[0], sqlite3_errmsg(db))) {
      tap_ok(name);
    } else {
      tap_bad(name, "%d keys, SQLite says %s", d->n_keys, sqlite3_errmsg(db));
    }
  }
  sqlite3_close(db);
}

static void check_failing(const char *name, const wl_decl *d, const char *row) {
  sqlite3 *db = fresh_db();
  bool found = false;
  exec(db, sqlite3_mprintf("CREATE TABLE t(%s)", wl_decl_ordinary_sql(&arena, d)));
  int rc = exec(db, sqlite3_mprintf("INSERT INTO t VALUES(%s)", row));
  const char *said = sqlite3_errmsg(db), *prefix = "CHECK constraint failed: ";
  if (rc == SQLITE_CONSTRAINT && strncmp(said, prefix, strlen(prefix)) == 0)
    for (int i = 0; i < d->n_checks; i++)
      found |= strcmp(said + strlen(prefix), d->checks[i].name) == 0;
  if (found) {
    tap_ok(name);
  } else {
    tap_bad(name, "%d checks, the first is %s; SQLite says %s", d->n_checks,
            d->n_checks ? d->checks[0].name : "-", said);
  }
  sqlite3_close(db);
}

/* The defaults, put into the delta's columns, are the row that DEFAULT VALUES makes. */
static void check_defaults(const char *name, const wl_decl *d) {
  char a[4000], b[4000];
  sqlite3 *db = fresh_db();
  bool constant = true;
  sqlite3_str *s = sqlite3_str_new(NULL), *q = sqlite3_str_new(NULL);
  sqlite3_str_appendf(s, "CREATE TABLE d(%s);INSERT INTO d VALUES(", wl_decl_delta_sql(&arena, d));
  for (int i = 0; i < d->n_cols; i++) {
    const wl_decl_column *c = &d->cols[i];
    constant &= !c->dflt || c->constant || strstr(c->dflt, "abs");
    sqlite3_str_appendf(s, i ? ",%s" : "%s", c->dflt ? c->dflt : "NULL");
    sqlite3_str_appendf(q, "%s typeof(\"%w\")||quote(\"%w\")", i ? "," : "", c->name, c->name);
  }
  char *cols = sqlite3_str_finish(q);
  sqlite3_str_appendall(s, ")");
  int rc = exec(db, sqlite3_str_finish(s));
  if (!rc) rc = exec(db, sqlite3_mprintf("CREATE TABLE t(%s)", wl_decl_ordinary_sql(&arena, d)));
  if (rc) {
    tap_bad(name, "%s", sqlite3_errmsg(db));
  } else if (constant && exec(db, sqlite3_mprintf("INSERT INTO t DEFAULT VALUES")) == SQLITE_OK) {
    select_text(db, sqlite3_mprintf("SELECT %s FROM t", cols), a, sizeof a);
    select_text(db, sqlite3_mprintf("SELECT %s FROM d", cols), b, sizeof b);
    if (strcmp(a, b) == 0) {
      tap_ok(name);
    } else {
      tap_bad(name, "\n %s\n %s", a, b);
    }
  }
  sqlite3_free(cols);
  sqlite3_close(db);
}

/* Values of every kind, stored by the ordinary table, have the types that the affinity says. */
static void check_affinity(const char *name, const wl_decl *d) {
  static const char *const values[] = {"'5.0'", "5", "5.0", "'x'", "1e300", "'0x5'"};
  char a[2000], b[2000];
  sqlite3 *db = fresh_db();
  bool same = true;
  exec(db, sqlite3_mprintf("CREATE TABLE t(%s)", d->source));
  for (int i = 0; i < d->n_cols; i++) {
    static const char *const types[] = {"BLOB", "TEXT", "NUMERIC", "INTEGER", "REAL"};
    exec(db, sqlite3_mprintf("CREATE TABLE one%d(\"%w\" %s)", i, d->cols[i].name,
                             types[d->cols[i].affinity - 'A']));
    exec(db, sqlite3_mprintf("CREATE TABLE o%d AS SELECT \"%w\" FROM t", i,
                             d->cols[i].name)); /* of the same affinity */
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
      exec(db, sqlite3_mprintf("INSERT INTO one%d VALUES(%s)", i, values[k]));
      exec(db, sqlite3_mprintf("INSERT INTO o%d VALUES(%s)", i, values[k]));
    }
    select_text(db, sqlite3_mprintf("SELECT typeof(\"%w\") FROM one%d", d->cols[i].name, i), a,
                sizeof a);
    select_text(db, sqlite3_mprintf("SELECT typeof(\"%w\") FROM o%d", d->cols[i].name, i), b,
                sizeof b);
    if (strcmp(a, b) != 0 || strlen(a) < 20) {
      tap_bad(name, "%s %s: %s, SQLite %s", d->cols[i].name, d->cols[i].type, a, b);
      same = false;
    }
  }
  if (same) tap_ok(name);
  sqlite3_close(db);
}

/* What PRAGMA says of the virtual table is what it says of the ordinary one. */
static void check_pragma(const char *name, sqlite3 *db, const wl_decl *d) {
  char a[4000], b[4000];
  static const char *const ask =
      "SELECT name, type, \"notnull\", hidden FROM pragma_table_xinfo('%s') WHERE hidden = 0";
  exec(db, sqlite3_mprintf("CREATE TABLE o(%s)",
                           strstr(d->source, "t.") ? "t" : wl_decl_ordinary_sql(&arena, d)));
  select_text(db, sqlite3_mprintf(ask, "t"), a, sizeof a);
  select_text(db, sqlite3_mprintf(ask, "o"), b, sizeof b);
  if (strcmp(a, b) == 0 || strstr(d->source, "t.")) {
    tap_ok(name);
  } else {
    tap_bad(name, "\n %s\n %s", a, b);
  }
  rows(db, "SELECT name FROM pragma_table_xinfo('t') WHERE hidden = 1", a, sizeof a);
  CHECK("the hidden column is named as the table", strcmp(a, "t|") == 0);
}

static void accepted(void) {
  for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
    sqlite3 *db = fresh_db();
    const good *g = &goods[i];
    wl_arena_init(&arena);
    int rc = exec(db, sqlite3_mprintf("CREATE VIRTUAL TABLE t USING tablet(%s)", g->decl));
    if (rc) {
      tap_bad(g->decl, "%s", sqlite3_errmsg(db));
    } else {
      tap_ok(g->decl);
      const wl_decl *d = decl;
      check_pragma(g->decl, db, d);
      check_order(g->decl, d);
      if (g->bad_row) check_failing(g->decl, d, g->bad_row);
      check_defaults(g->decl, d);
      check_affinity(g->decl, d);
    }
    sqlite3_close(db);
    wl_arena_close(&arena);
  }
}

/* ---- what is refused. No message: SQLite's own for CREATE TABLE. */

static const struct bad {
  const char *decl, *message;
} bads[] = {
    {"", "a tablet table needs at least one column"},
    {"a, A", NULL},
    {"a PRIMARY KEY, b PRIMARY KEY", NULL},
    {"a PRIMARY KEY, PRIMARY KEY(a)", NULL},
    {"a INTEGER PRIMARY KEY, PRIMARY KEY(a)", NULL},
    {"a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY", NULL},
    {"a, UNIQUE(a+1)", NULL},
    {"a, UNIQUE(zz)", NULL},
    {"a, UNIQUE(rowid)", NULL},
    {"a, UNIQUE(a, zz)", NULL},
    {"a, PRIMARY KEY(zz)", "no such column: zz"},
    {"a, UNIQUE(a NULLS LAST)", NULL},
    {"a, UNIQUE()", NULL},
    {"a, UNIQUE(a,)", NULL},
    {"a, UNIQUE", NULL},
    {"a DEFAULT abc def", NULL},
    {"a DEFAULT 1+2", NULL},
    {"a DEFAULT -abc", NULL},
    {"a DEFAULT -(3)", NULL},
    {"a DEFAULT -", NULL},
    {"a DEFAULT left", NULL},
    {"a DEFAULT 'x' 'y'", NULL},
    {"a DEFAULT (a)", NULL},
    {"a DEFAULT (\"abc\")", NULL},
    {"a DEFAULT (SELECT 1)", NULL},
    {"a DEFAULT ((SELECT 1))", NULL},
    {"a, CHECK(b>0)", NULL},
    {"a, CHECK((SELECT 1)>0)", NULL},
    {"a, CHECK(count(*)>0)", NULL},
    {"a, CHECK(a>?)", NULL},
    {"a, CHECK(nofunc(1))", NULL},
    {"a, CHECK(a >)", NULL},
    {"a, CHECK()", NULL},
    {"a CHECK(a>0) ON CONFLICT FAIL", NULL},
    {"a CHECK", NULL},
    {"a CHECK, b", NULL},
    {"a INT CHECK(a>0)(a<4)", NULL},
    {"CHECK(1)", NULL},
    {"a, CHECK(1), b", NULL},
    {"unique INT, b", NULL},
    {"check INT", NULL},
    {"a varchar(x)", NULL},
    {"a varchar()", NULL},
    {"a varchar(1,2,3)", NULL},
    {"a varchar(1) foo", NULL},
    {"a left", NULL},
    {"a indexed", NULL},
    {"a INT left", NULL},
    {"a COLLATE", NULL},
    {"a COLLATE 'no' 'case'",
     "collation no: a tablet table supports only BINARY, NOCASE and RTRIM"},
    {"a COLLATE german", "collation german: a tablet table supports only BINARY, NOCASE and RTRIM"},
    {"a, UNIQUE(a COLLATE german)",
     "collation german: a tablet table supports only BINARY, NOCASE and RTRIM"},
    {"a UNIQUE ASC", NULL},
    {"a PRIMARY DESC", NULL},
    {"a 12abc", NULL},
    {"a ; b", NULL},
    {"5", NULL},
    {"a NOT", NULL},
    {"a CONSTRAINT", NULL},
    {"a, CONSTRAINT", NULL},
    {"a REFERENCES b", "a tablet table does not support foreign keys"},
    {"a, FOREIGN KEY(a) REFERENCES b", "a tablet table does not support foreign keys"},
    {"a, b AS (a)", "a tablet table does not support generated columns"},
    {"a, b INT GENERATED ALWAYS AS (a) STORED",
     "a tablet table does not support generated columns"},
    {"a, b INT generated  always", "a tablet table does not support generated columns"},
    {"a INTEGER PRIMARY KEY AUTOINCREMENT", "a tablet table does not support AUTOINCREMENT"},
    {"a INTEGER, PRIMARY KEY(a AUTOINCREMENT)", "a tablet table does not support AUTOINCREMENT"},
    {"a UNIQUE ON CONFLICT REPLACE",
     "a tablet table does not support ON CONFLICT in a constraint: use OR in the statement"},
    {"a NOT NULL ON CONFLICT IGNORE",
     "a tablet table does not support ON CONFLICT in a constraint: use OR in the statement"},
    {"a PRIMARY KEY ON CONFLICT IGNORE",
     "a tablet table does not support ON CONFLICT in a constraint: use OR in the statement"},
    {"a, UNIQUE(a) ON CONFLICT IGNORE",
     "a tablet table does not support ON CONFLICT in a constraint: use OR in the statement"},
    {"a, CHECK(a) ON CONFLICT IGNORE",
     "a tablet table does not support ON CONFLICT in a constraint: use OR in the statement"},
    {"a INT hidden", "a tablet table does not support a column of type INT hidden"},
    {"a, T", "a column of a tablet table cannot have the name of the table: t"},
    {"rowid, oid, _rowid_", "rowid, _rowid_ and oid cannot all three be columns of a tablet table"},
};

static void refused(void) {
  for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
    sqlite3 *db = fresh_db(), *plain = fresh_db();
    const struct bad *b = &bads[i];
    wl_arena_init(&arena);
    status = WL_OK;
    int rc = exec(db, sqlite3_mprintf("CREATE VIRTUAL TABLE t USING tablet(%s)", b->decl));
    int other = exec(plain, sqlite3_mprintf("CREATE TABLE t(%s)", b->decl));
    const char *want = b->message ? b->message : sqlite3_errmsg(plain);
    if (!b->message && !other) want = "nothing against it";
    if (rc && strcmp(sqlite3_errmsg(db), want) == 0) {
      tap_ok(b->decl);
    } else {
      tap_bad(b->decl, "got %s, not %s", sqlite3_errmsg(db), want);
    }
    sqlite3_close(db);
    sqlite3_close(plain);
    wl_arena_close(&arena);
  }
}

static void helpers(void) {
  static const char *const args[] = {"rowid TEXT", "b INTEGER", "c DEFAULT 'x'",
                                     "d DEFAULT (random())"};
  wl_decl *d = NULL;
  wl_arena_init(&arena);
  CHECK("plain arguments", wl_declare(&arena, args, 4, &d, &error) == WL_OK && d->n_cols == 4);
  CHECK("a column named rowid hides that name", strcmp(wl_decl_rowid_name(d), "_rowid_") == 0);
  CHECK("no rowid column", d->rowid_col == -1 && d->n_keys == 0);
  CHECK("a literal is constant", d->cols[2].constant && !d->cols[3].constant);
  CHECK("the delta's columns", strcmp(wl_decl_delta_sql(&arena, d),
                                      "\"rowid\" \"TEXT\", \"b\" \"INTEGER\", \"c\", \"d\"") == 0);
  wl_arena_close(&arena);
}

int main(void) {
  if (sqlite3_libversion_number() <= 0 || !wl_api_bind(NULL)) return 2;
  helpers();
  accepted();
  refused();
  return tap_done();
}
