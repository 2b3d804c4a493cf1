/*
** The SQL texts of random programs (programs.h).
*/
#include "programs.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- building a text */

static void add(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *out, const char *format, ...) {
  va_list args;
  size_t n = strlen(out);
  va_start(args, format);
  vsnprintf(out + n, MAX_SQL - 200 - n, format, args);
  va_end(args);
}

/* ---- tables */

static int some_size(void) {
  static const int sizes[] = {0, 1, 3, 40, 300, 1500, 5000};
  return sizes[below(chance(60) ? 5 : 7)];
}

/* Values that follow from the number i of a row. */
static const char *const mixed_values =
    "CASE i%7 WHEN 0 THEN NULL WHEN 1 THEN -i WHEN 2 THEN 9007199254740993+i ELSE i%13 END, "
    "CASE i%9 WHEN 0 THEN NULL WHEN 1 THEN -0.0 WHEN 2 THEN 1e300*i WHEN 3 THEN -1e999 "
    "ELSE i/3.0 END, "
    "CASE i%11 WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN 'Row '||i WHEN 3 THEN 'row '||(i-1) "
    "WHEN 4 THEN char(233,8364,128512)||i WHEN 5 THEN ' 12' WHEN 6 THEN '1e3' "
    "ELSE 'text '||(i%50) END, "
    "CASE i%6 WHEN 0 THEN x'' WHEN 1 THEN x'00ff' WHEN 2 THEN zeroblob(i%40) WHEN 3 THEN NULL "
    "ELSE CAST('blob '||i AS BLOB) END, "
    "CASE i%5 WHEN 0 THEN '7' WHEN 1 THEN 'seven' WHEN 2 THEN 7.0 WHEN 3 THEN i ELSE NULL END, "
    "(i%64)*0.25";

void sql_tables(connection *c, const char *schema, char *out) {
  static const char *const types[] = {"INT", "TEXT", "", "REAL", "TEXT COLLATE NOCASE", "BLOB"};
  const char *rows = "WITH RECURSIVE n(i) AS (SELECT 1 WHERE %d>0 UNION ALL SELECT i+1 FROM n "
                     "WHERE i<%d) ";
  int n[3] = {some_size(), some_size(), some_size()};
  *out = 0;
  add(out, "CREATE TABLE %s.t0(id INTEGER PRIMARY KEY, i INT, r REAL, s TEXT, b BLOB, x, e REAL);",
      schema);
  add(out, "CREATE TABLE %s.t1(k %s, l %s, v, w TEXT COLLATE NOCASE, PRIMARY KEY(k, l))%s;", schema,
      PICK(types), PICK(types), chance(60) ? " WITHOUT ROWID" : "");
  add(out, "CREATE TABLE %s.t2(p, q TEXT, e INT);", schema);
  add(out, "CREATE TABLE %s.t3(id INTEGER PRIMARY KEY, i INT, s TEXT);", schema);
  add(out, "CREATE TABLE %s.log(id INTEGER PRIMARY KEY, what);", schema);
  add(out, rows, n[0], n[0]);
  add(out, "INSERT INTO %s.t0 SELECT i, %s FROM n;", schema, mixed_values);
  add(out, rows, n[1], n[1]);
  add(out, "INSERT INTO %s.t1 SELECT i%%100, 'l'||i, i*7%%31, 'W'||(i%%5) FROM n;", schema);
  add(out, rows, n[2], n[2]);
  add(out,
      "INSERT INTO %s.t2 SELECT CASE i%%4 WHEN 0 THEN 'p'||i WHEN 1 THEN i ELSE i*0.5 END, "
      "'Some longer text that fills the pages of the table '||i, i%%1000 FROM n;",
      schema);
  if (chance(50)) add(out, "CREATE INDEX %s.t0i ON t0(i);", schema);
  if (chance(30)) add(out, "CREATE INDEX %s.t0s ON t0(s COLLATE NOCASE, r);", schema);
  if (chance(30)) add(out, "CREATE INDEX %s.t1v ON t1(v) WHERE v IS NOT NULL;", schema);
  if (chance(60))
    add(out, "CREATE VIEW %s.v0 AS SELECT id, s, i+1 AS j, e FROM t0 WHERE i>0;", schema);
  if (chance(30) && strcmp(schema, "temp") != 0)
    add(out,
        "CREATE TRIGGER %s.tr AFTER UPDATE ON t0 BEGIN INSERT INTO log(what) VALUES(old.id||"
        "'->'||new.id); END;",
        schema);
  if (chance(20)) add(out, "ANALYZE %s;", schema);
  c->n_added = 0;
}

/* ---- expressions over a table */

typedef struct source {
  const char *name;           /* with its schema */
  const char *const *columns; /* NULL ends them */
  const char *order;          /* a complete order */
  unsigned bit;
} source;

static const char *const columns_mixed[] = {"id", "i", "r", "s", "b", "x", "e", NULL};
static const char *const columns_keyed[] = {"k", "l", "v", "w", NULL};
static const char *const columns_plain[] = {"p", "q", "e", "rowid", NULL};
static const char *const columns_empty[] = {"id", "i", "s", NULL};
static const char *const columns_view[] = {"id", "s", "j", "e", NULL};

static source some_source(const connection *c, char name[40]) {
  int shift = 0, kind = below(100);
  const char *schema = "";
  if (c->main_in_memory && c->attached && chance(50))
    schema = "aux.", shift = ATTACHED;
  else if (c->main_in_memory && c->temporary && chance(30))
    schema = "temp.", shift = TEMPORARY;
  else if (chance(50) || c->temporary || c->attached)
    schema = "main."; /* a name alone may mean a table elsewhere */
  if (kind < 45) {
    sprintf(name, "%st0", schema);
    return (source){name, columns_mixed, "id", (unsigned)T_MIXED << shift};
  }
  if (kind < 65) {
    sprintf(name, "%st1", schema);
    return (source){name, columns_keyed, "k, l", (unsigned)T_KEYED << shift};
  }
  if (kind < 85) {
    sprintf(name, "%st2", schema);
    return (source){name, columns_plain, "rowid", (unsigned)T_PLAIN << shift};
  }
  if (kind < 93) {
    sprintf(name, "%sv0", schema);
    return (source){name, columns_view, "id", (unsigned)T_MIXED << shift};
  }
  sprintf(name, "%st3", schema);
  return (source){name, columns_empty, "id", (unsigned)T_EMPTY << shift};
}

static const char *column_of(const source *f) {
  int n = 0;
  while (f->columns[n]) n++;
  return f->columns[below(n)];
}

static void literal(char *out) {
  static const char *const values[] = {"0",
                                       "1",
                                       "-1",
                                       "7",
                                       "12.5",
                                       "-0.0",
                                       "1e999",
                                       "NULL",
                                       "''",
                                       "'text 3'",
                                       "'ROW 2'",
                                       "x''",
                                       "x'00ff'",
                                       "9223372036854775807",
                                       "-9223372036854775807-1",
                                       "'12abc'",
                                       "'%1%'",
                                       "100",
                                       "?",
                                       "?",
                                       "?",
                                       "?2",
                                       ":name",
                                       "@v",
                                       "?"};
  add(out, "%s", PICK(values));
}

static void expression(char *out, const source *f, int depth);

static void call(char *out, const source *f, int depth) {
  static const char *const one[] = {"abs",   "length", "typeof", "upper",   "lower",  "hex",
                                    "trim",  "quote",  "round",  "unicode", "pure",   "counted",
                                    "fails", "stops",  "nested", "abs",     "length", "likely"};
  static const char *const two[] = {"coalesce", "ifnull", "nullif", "max",
                                    "min",      "instr",  "substr", "trim"};
  if (chance(65)) {
    add(out, "%s(", PICK(one));
    expression(out, f, depth - 1);
  } else {
    add(out, "%s(", w.patterns && chance(15) ? "like" : PICK(two));
    expression(out, f, depth - 1);
    add(out, ", ");
    expression(out, f, depth - 1);
  }
  add(out, ")");
}

static void expression(char *out, const source *f, int depth) {
  static const char *const ops[] = {"+",  "-",  "*",      "/",   "%",  "||", "<", "<=", "=",
                                    "<>", "IS", "IS NOT", "AND", "OR", "&",  "|", ">>", ">"};
  static const char *const casts[] = {"INT", "TEXT", "REAL", "BLOB", "NUMERIC"};
  int kind = depth > 0 ? below(100) : below(40);
  if (kind < 28) {
    add(out, "%s", column_of(f));
  } else if (kind < 40) {
    literal(out);
  } else if (kind < 65) {
    add(out, "(");
    expression(out, f, depth - 1);
    add(out, " %s ", PICK(ops));
    expression(out, f, depth - 1);
    add(out, ")");
  } else if (kind < 82) {
    call(out, f, depth);
  } else if (kind < 88) {
    add(out, "CASE WHEN ");
    expression(out, f, depth - 1);
    add(out, " THEN ");
    expression(out, f, depth - 1);
    add(out, " ELSE ");
    expression(out, f, depth - 1);
    add(out, " END");
  } else if (kind < 94) {
    add(out, "CAST(");
    expression(out, f, depth - 1);
    add(out, " AS %s)", PICK(casts));
  } else {
    add(out, "(");
    expression(out, f, depth - 1);
    add(out, ")%s",
        chance(50)   ? " COLLATE NOCASE"
        : chance(50) ? " COLLATE backwards"
                     : " IS NULL");
  }
}

/* Which of several conditions is evaluated first is left open. A wrong ESCAPE must stand alone. */
static void condition(char *out, const source *f, bool alone) {
  const char *a = column_of(f);
  switch (below(9)) {
  case 0: add(out, "%s > ?", a); break;
  case 1: add(out, "%s BETWEEN ?1 AND ?2", a); break;
  case 2: add(out, "%s IN (1, 'text 4', ?, NULL, 7.0)", a); break;
  case 3: add(out, "%s LIKE %s", a, chance(50) || !w.patterns ? "'%1%'" : "?"); break;
  case 4: add(out, "%s IS NOT NULL", a); break;
  case 5: add(out, "%s = %s", a, column_of(f)); break;
  case 6: add(out, "%s LIKE 'r%%' ESCAPE %s", a, alone && chance(20) ? "'ab'" : "'!'"); break;
  case 7: add(out, "%s < :limit OR %s IS ?", a, column_of(f)); break;
  default: expression(out, f, 2);
  }
}

static void where(char *out, const source *f, int percent) {
  bool two = chance(30);
  if (!chance(percent)) return;
  add(out, " WHERE ");
  condition(out, f, !two);
  if (!two) return;
  add(out, " %s ", chance(60) ? "AND" : "OR");
  condition(out, f, false);
}

static void limit(char *out, int percent) {
  static const char *const limits[] = {"1", "5",           "?",          "100", "-1",
                                       "0", "10 OFFSET 3", "? OFFSET ?", "'x'", "3, 4"};
  if (chance(percent)) add(out, " LIMIT %s", PICK(limits));
}

/* ---- SELECT */

static void rows_of(char *out, const source *f) {
  add(out, "SELECT ");
  if (chance(15)) {
    add(out, "*");
  } else {
    for (int n = 1 + below(5); n > 0; n--) {
      expression(out, f, below(3));
      if (chance(15)) add(out, " AS \"name %d\"", n);
      if (n > 1) add(out, ", ");
    }
  }
  add(out, " FROM %s", f->name);
  where(out, f, 60);
  if (f->bit & (unsigned)T_PLAIN * 0x10101u && chance(50)) return; /* t2 has no index */
  add(out, " ORDER BY ");
  if (chance(40)) add(out, "%s%s, ", column_of(f), chance(40) ? " DESC" : "");
  add(out, "%s", f->order);
  limit(out, 40);
}

/* Sums only of column i, which gives an integer or an error, and of e, which is exact. */
static void aggregates(char *out, const source *f) {
  static const char *const safe[] = {"count(*)",  "count(DISTINCT %s)", "min(%s)",        "max(%s)",
                                     "count(%s)", "max(length(%s))",    "min(typeof(%s))"};
  bool has_e = f->columns != columns_keyed && f->columns != columns_empty;
  bool has_i = f->columns == columns_mixed || f->columns == columns_empty;
  for (int n = 1 + below(4); n > 0; n--) {
    char one[100];
    if (has_e && chance(30)) {
      add(out, "%s(e)", chance(50) ? "sum" : chance(50) ? "avg" : "total");
    } else if (has_i && chance(20)) {
      add(out, "sum(%s)", chance(70) ? "CAST(i AS INT)" : "i | 4611686018427387904");
    } else {
      const char *a = column_of(f), *form = PICK(safe);
      /* Equal values that look different (1 and 1.0) make min and max depend on the order. */
      snprintf(one, sizeof one, form, strcmp(a, "x") == 0 || strcmp(a, "p") == 0 ? "e" : a);
      add(out, "%s", one);
    }
    if (n > 1) add(out, ", ");
  }
}

static void groups(char *out, const source *f) {
  const char *key = column_of(f);
  add(out, "SELECT %s, ", key);
  aggregates(out, f);
  add(out, " FROM %s", f->name);
  where(out, f, 40);
  add(out, " GROUP BY %s", key);
  if (chance(25)) add(out, " HAVING count(*) > ?");
  add(out, " ORDER BY %s", key);
  limit(out, 30);
}

static unsigned join(char *out, const connection *c) {
  char n1[40], n2[40];
  source a = some_source(c, n1), b = some_source(c, n2);
  bool left = chance(40);
  add(out, "SELECT A.%s, B.%s, A.%s FROM %s A %sJOIN %s B ON A.%s = B.%s", column_of(&a),
      column_of(&b), column_of(&a), a.name, left ? "LEFT " : "", b.name, column_of(&a),
      column_of(&b));
  if (chance(50)) add(out, " WHERE A.%s %s", column_of(&a), chance(50) ? "> ?" : "< 50");
  const char *order[2] = {a.order, b.order};
  add(out, " ORDER BY ");
  for (int k = 0; k < 2; k++) {
    bool pair = strchr(order[k], ',') != NULL;
    if (pair)
      add(out, "%c.k, %c.l", "AB"[k], "AB"[k]);
    else
      add(out, "%c.%s", "AB"[k], order[k]);
    if (k == 0) add(out, ", ");
  }
  add(out, " LIMIT %s", chance(50) ? "40" : "?");
  return a.bit | b.bit;
}

static unsigned nested(char *out, const connection *c) {
  char n1[40], n2[40];
  source a = some_source(c, n1), b = some_source(c, n2);
  switch (below(6)) {
  case 0:
    add(out, "SELECT %s, (SELECT count(*) FROM %s WHERE %s = ?1) FROM %s ORDER BY %s LIMIT 30",
        column_of(&a), b.name, column_of(&b), a.name, a.order);
    break;
  case 1:
    add(out, "SELECT count(*) FROM %s WHERE %s IN (SELECT %s FROM %s)", a.name, column_of(&a),
        column_of(&b), b.name);
    break;
  case 2:
    add(out,
        "SELECT %s FROM %s WHERE EXISTS (SELECT 1 FROM %s z WHERE z.%s = ?) ORDER BY %s LIMIT 9",
        column_of(&a), a.name, b.name, column_of(&b), a.order);
    break;
  case 3:
    add(out, "SELECT typeof(%s) FROM %s UNION SELECT typeof(%s) FROM %s ORDER BY 1", column_of(&a),
        a.name, column_of(&b), b.name);
    break;
  case 4:
    add(out,
        "WITH z AS (SELECT %s AS y, count(*) AS n FROM %s GROUP BY 1) "
        "SELECT max(n), sum(n), (SELECT count(*) FROM %s) FROM z",
        column_of(&a), a.name, b.name);
    break;
  default:
    add(out,
        "SELECT * FROM (SELECT %s FROM %s ORDER BY %s LIMIT 20) CROSS JOIN "
        "(SELECT count(*), ? FROM %s)",
        column_of(&a), a.name, a.order, b.name);
  }
  return a.bit | b.bit;
}

unsigned sql_select(connection *c, char *out) {
  static const char *const others[] = {
      "SELECT 1, 'two', 3.5, NULL, x'04'",
      "SELECT ?, ?2, :three, @four, $five",
      "VALUES (1, 'a'), (2, ?)",
      "SELECT changes(), total_changes(), last_insert_rowid()",
      "SELECT abs(-9223372036854775807 - 1)",
      "SELECT nothing FROM nowhere",
      "SELECT count(*), FROM t0",
      "SELEC 1",
      "SELECT 1 FROM t0 WHERE",
      "",
      "-- only a comment",
      "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<50) SELECT i FROM n",
      "PRAGMA user_version"};
  char name[40];
  source f = some_source(c, name);
  *out = 0;
  int kind = below(100);
  if (kind < 42) {
    rows_of(out, &f);
  } else if (kind < 58) {
    add(out, "SELECT ");
    aggregates(out, &f);
    add(out, " FROM %s", f.name);
    where(out, &f, 60);
  } else if (kind < 68) {
    groups(out, &f);
  } else if (kind < 72) {
    const char *a = column_of(&f);
    add(out, "SELECT DISTINCT %s FROM %s ORDER BY %s", a, f.name, a);
  } else if (kind < 81) {
    return join(out, c);
  } else if (kind < 90) {
    return nested(out, c);
  } else if (kind < 93) {
    add(out, "SELECT type, name, sql FROM sqlite_schema ORDER BY name");
    return T_SCHEMA;
  } else if (kind < 95) {
    add(out, "SELECT %s, row_number() OVER (ORDER BY %s) FROM %s ORDER BY %s LIMIT 20",
        column_of(&f), f.order, f.name, f.order);
  } else {
    add(out, "%s", PICK(others));
    return T_MIXED;
  }
  return f.bit;
}

/* ---- writes */

static const char *some_schema(const connection *c, int *shift) {
  *shift = 0;
  if (c->attached && chance(25)) return *shift = ATTACHED, "aux.";
  if (c->temporary && chance(25)) return *shift = TEMPORARY, "temp.";
  return "main.";
}

unsigned sql_write(connection *c, char *out) {
  int shift;
  const char *schema = some_schema(c, &shift);
  unsigned bit = T_MIXED | T_LOG;
  *out = 0;
  switch (below(13)) {
  case 0: add(out, "INSERT INTO %st0(i, r, s, b, x) VALUES(?, ?, ?, ?, ?)", schema); break;
  case 1: add(out, "INSERT OR REPLACE INTO %st0(id, s) VALUES(%d, ?)", schema, below(50)); break;
  case 2: add(out, "UPDATE %st0 SET s = ?, i = i + 1 WHERE id = %d", schema, below(50)); break;
  case 3: add(out, "UPDATE %st0 SET x = ?1 WHERE id BETWEEN %d AND ?2", schema, below(300)); break;
  case 4: add(out, "DELETE FROM %st0 WHERE id %% 5 = %d", schema, below(5)); break;
  case 5:
    add(out, "INSERT INTO %st1 VALUES(?, ?, ?, 'w')", schema);
    bit = T_KEYED;
    break;
  case 6:
    add(out, "UPDATE OR IGNORE %st1 SET l = 'l'||(v+1) WHERE v > ?", schema);
    bit = T_KEYED;
    break;
  case 7:
    add(out, "INSERT INTO %st2 SELECT ?, 'more', e FROM %st2 LIMIT 500", schema, schema);
    bit = T_PLAIN;
    break;
  case 8:
    add(out, "DELETE FROM %st2%s", schema, chance(30) ? "" : " WHERE e < ? RETURNING p, q");
    bit = T_PLAIN;
    break;
  case 9:
    add(out, "INSERT INTO %st3(i, s) VALUES(%d, ?) RETURNING id, s", schema, below(100));
    bit = T_EMPTY;
    break;
  case 10:
    add(out, "INSERT INTO %st3 SELECT id, i, s FROM %st0 WHERE id < %d", schema, schema, below(90));
    bit = T_EMPTY;
    break;
  case 11: add(out, "INSERT INTO %st0(id) VALUES('not a number')", schema); break;
  default:
    add(out, "INSERT INTO %st1 VALUES(1,'l1',1,1) ON CONFLICT DO UPDATE SET v=v+1", schema);
    bit = T_KEYED;
  }
  return bit << shift;
}

/* Whether no statement runs. PRAGMA case_sensitive_like changes other connections otherwise. */
static bool is_idle(const connection *c) {
  sqlite3_stmt *s = NULL;
  while ((s = sqlite3_next_stmt(c->db, s)) != NULL)
    if (sqlite3_stmt_busy(s)) return false;
  return true;
}

unsigned sql_schema(connection *c, char *out) {
  int shift;
  const char *schema = some_schema(c, &shift);
  *out = 0;
  switch (below(19)) {
  case 0:
    add(out, "CREATE INDEX IF NOT EXISTS %sn%d ON t0(%s)", schema, below(3),
        chance(50) ? "r" : "s");
    break;
  case 1: add(out, "DROP INDEX IF EXISTS %sn%d", schema, below(3)); break;
  case 2: add(out, "ALTER TABLE %st0 ADD COLUMN c%d DEFAULT 5", schema, c->n_added++); break;
  case 3:
    add(out, "CREATE VIEW IF NOT EXISTS %sv0 AS SELECT id, s, i AS j, e FROM t0", schema);
    break;
  case 4: add(out, "DROP VIEW IF EXISTS %sv0", schema); break;
  case 5: add(out, "CREATE TABLE IF NOT EXISTS %sextra%d(a, b)", schema, below(3)); break;
  case 6: add(out, "DROP TABLE IF EXISTS %sextra%d", schema, below(3)); break;
  case 7: add(out, "DROP TABLE %st3", schema); return (unsigned)(T_EMPTY << shift) | T_SCHEMA;
  case 8:
    add(out, "CREATE TABLE IF NOT EXISTS %st3(id INTEGER PRIMARY KEY, i INT, s TEXT)", schema);
    break;
  case 9: add(out, "ALTER TABLE %st3 RENAME COLUMN s TO %s", schema, chance(50) ? "u" : "s"); break;
  case 10: add(out, "ANALYZE"); break;
  case 11: add(out, "VACUUM"); return 0xffffff | T_SCHEMA; /* with a reader it is an error */
  case 12: add(out, "PRAGMA user_version=%d", below(100)); return 0;
  case 13:
    if (!is_idle(c)) return 0;
    add(out, "PRAGMA case_sensitive_like=%d", below(2));
    return 0;
  case 14: add(out, "PRAGMA reverse_unordered_selects=%d", chance(20)); return 0xffffff;
  case 15: add(out, "PRAGMA query_only=%d", chance(20)); return 0;
  case 16: add(out, "REINDEX"); break;
  case 17:
    add(out, "PRAGMA %s=%d", chance(50) ? "full_column_names" : "empty_result_callbacks", below(2));
    return 0;
  default:
    add(out, "CREATE TEMP TRIGGER IF NOT EXISTS tt AFTER DELETE ON main.t2 BEGIN SELECT 1; END");
  }
  return T_SCHEMA;
}

void sql_transaction(char *out) {
  static const char *const texts[] = {
      "BEGIN",    "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT",        "COMMIT",    "ROLLBACK",
      "ROLLBACK", "SAVEPOINT a",     "SAVEPOINT b",     "ROLLBACK TO a", "RELEASE a", "RELEASE b"};
  strcpy(out, PICK(texts));
}
