"""warplite as an extension of Python's sqlite3: warplite_sql(), warplite tables, warplite_enable().

Usage: extension_test.py BUILD. Prints `ok NAME` and `not ok NAME - why`.
"""

import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

bad = 0


def check(name, condition, why=""):
    global bad
    if condition:
        print("ok", name)
    else:
        bad += 1
        print("not ok", name, "-", why)


def error_of(con, sql, *args):
    try:
        con.execute(sql, *args).fetchall()
    except sqlite3.Error as e:
        return str(e)
    return None


def fill(con):
    con.executescript("""
        CREATE TABLE t(id INTEGER PRIMARY KEY, x INT, r REAL, s TEXT, b);
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 1000)
          INSERT INTO t SELECT i, i % 7, i / 2.0, 'w' || (i % 5), NULL FROM c;
        CREATE TABLE u(y INT, z TEXT);
        INSERT INTO u VALUES(1,'a'),(2,'b'),(3,'c');
        CREATE VIEW v AS SELECT x, count(*) AS n FROM t GROUP BY x;
    """)


TEXTS = [
    ("SELECT count(*), sum(x), avg(r) FROM t", ()),
    ("SELECT id, s FROM t WHERE x = ? AND id < ? ORDER BY id", (3, 100)),
    ("SELECT id FROM t WHERE x = ?2 AND s = ?1 ORDER BY id", ("w1", 2)),
    ("SELECT s, max(r) AS \"the \"\"best\"\"\" FROM t WHERE id > :least GROUP BY s", {"least": 30}),
    ("SELECT id FROM t WHERE s = $word AND x <> @no ORDER BY id", {"word": "w2", "no": 1}),
    ("SELECT t.id, u.z FROM t JOIN u ON u.y = t.x WHERE t.id < 50 ORDER BY t.id", ()),
    ("SELECT * FROM v ORDER BY x", ()),
    ("SELECT id, 'it''s' AS q, s FROM t WHERE s LIKE 'w1%' ORDER BY id LIMIT 5", ()),
    ("WITH w AS (SELECT x, sum(r) AS z FROM t GROUP BY x) SELECT max(z) FROM w", ()),
    ("SELECT x, x, x AS X FROM t WHERE id < 4", ()),
    ("SELECT row_number() OVER (ORDER BY id) FROM t LIMIT 3", ()),  # SQLite runs it
    ("VALUES(1,2),(3,4)", ()),
]


def native(con):
    return not con.execute("SELECT warplite_reason()").fetchone()[0].startswith("sqlite")


def test_sql(con):
    n_native = 0
    for text, args in TEXTS:
        want = con.execute(text, args)
        names, rows = [d[0] for d in want.description], want.fetchall()
        instead = con.execute("SELECT warplite_sql(?)", (text,)).fetchone()[0]
        for again in range(2):
            got = con.execute(instead, args)
            check("warplite_sql, names: " + text, [d[0] for d in got.description] == names,
                  str(got.description))
            check("warplite_sql, rows: " + text, got.fetchall() == rows, instead)
        if instead != text:
            n_native += 1
            check("warplite_sql, native: " + text, native(con))
    check("warplite_sql: most are native", n_native >= 8, str(n_native))
    for text in ["INSERT INTO u VALUES(9,'z')", "SELECT 1; SELECT 2", "EXPLAIN SELECT 1", "",
                 "PRAGMA user_version", "BEGIN"]:
        got = con.execute("SELECT warplite_sql(?)", (text,)).fetchone()[0]
        if text != "PRAGMA user_version":
            check("warplite_sql leaves as it is: " + text, got == text, got)
    check("warplite_sql(NULL)", con.execute("SELECT warplite_sql(NULL)").fetchone() == (None,))
    check("warplite_sql: an error", error_of(con, "SELECT warplite_sql('SELECT nosuch FROM t')")
          == "no such column: nosuch")
    check("warplite_sql: a syntax error", error_of(con, "SELECT warplite_sql('SELEC 1')")
          == 'near "SELEC": syntax error')
    con.execute("CREATE VIEW hidden AS SELECT warplite_sql('SELECT 1')")
    check("warplite_sql: not in views", error_of(con, "SELECT * FROM hidden") is not None)
    con.execute("DROP VIEW hidden")
    # the table has changed since
    text = "SELECT * FROM u ORDER BY y"
    instead = con.execute("SELECT warplite_sql(?)", (text,)).fetchone()[0]
    con.execute("INSERT INTO u VALUES(0,'zero')")
    check("warplite_sql: after a write", con.execute(instead).fetchall() == con.execute(text).fetchall())
    con.execute("DELETE FROM u WHERE y=0")


def test_tables(con):
    con.execute("CREATE VIRTUAL TABLE temp.q USING "
                "warplite('SELECT s, sum(x) AS total, s, ''it''''s'' AS z FROM t GROUP BY s')")
    columns = [(r[1], r[2]) for r in con.execute("PRAGMA table_xinfo(q)")]
    check("table: columns", columns == [("s", "TEXT"), ("total", ""), ("s:1", "TEXT"), ("z", "")],
          str(columns))
    want = con.execute("SELECT s, sum(x), s, 'it''s' FROM t GROUP BY s").fetchall()
    check("table: rows", con.execute("SELECT * FROM q").fetchall() == want)
    check("table: native", native(con))
    check("table: WHERE and ORDER BY",
          con.execute("SELECT total FROM q WHERE s > 'w1' ORDER BY total DESC").fetchall()
          == sorted([(r[1],) for r in want if r[0] > "w1"], reverse=True))
    con.execute("CREATE VIRTUAL TABLE temp.q2 USING warplite(SELECT s, total FROM q WHERE total > 1)")
    check("table over a table", con.execute("SELECT count(*) FROM q2, q WHERE q.s = q2.s").fetchone()
          == (len(want),))
    con.execute("UPDATE t SET x = x + 1")
    again = con.execute("SELECT s, sum(x), s, 'it''s' FROM t GROUP BY s").fetchall()
    check("table: after a write", con.execute("SELECT * FROM q").fetchall() == again and again != want)
    con.commit()
    con.execute("BEGIN")
    con.execute("UPDATE t SET x = 0")
    check("table: inside a transaction", con.execute("SELECT sum(total) FROM q").fetchone() == (0,))
    con.execute("ROLLBACK")
    for statement, why in [
            ("DELETE FROM t", "a warplite table needs a SELECT"),
            ("EXPLAIN SELECT 1", "a warplite table needs a SELECT"),
            ("SELECT ?1", "a warplite table needs a statement without parameters"),
            ("SELECT 1; SELECT 2", "a warplite table needs one statement"),
            ("SELEC", 'near "SELEC": syntax error'),
            ("SELECT nosuch FROM t", "no such column: nosuch"),
            ("", "warplite needs a SELECT: USING warplite('SELECT ...')")]:
        got = error_of(con, "CREATE VIRTUAL TABLE temp.e USING warplite('%s')" % statement)
        check("table, refused: " + statement, got == why, str(got))
    check("table, refused: no argument", "needs a SELECT" in
          error_of(con, "CREATE VIRTUAL TABLE temp.e USING warplite"))
    check("table, refused: not temporary", "must be temporary" in
          error_of(con, "CREATE VIRTUAL TABLE e USING warplite('SELECT 1')"))
    check("table, refused: writes", error_of(con, "DELETE FROM q") == "table q may not be modified")
    # changes of the schema
    con.execute("CREATE VIRTUAL TABLE temp.w USING warplite('SELECT * FROM u')")
    con.execute("ALTER TABLE u ADD COLUMN more")
    got = error_of(con, "SELECT * FROM w")
    check("table: another column", got is None or "have changed" in got, str(got))
    con.execute("DROP TABLE u")
    check("table: a table is gone", error_of(con, "SELECT * FROM w") == "no such table: main.u"
          or error_of(con, "SELECT * FROM w") == "no such table: u", str(error_of(con, "SELECT * FROM w")))
    con.execute("DROP TABLE w")
    check("table: dropped", "no such table" in error_of(con, "SELECT * FROM w"))
    # tables that read each other
    con.execute("DROP TABLE q")
    con.execute("CREATE VIRTUAL TABLE temp.q USING warplite('SELECT * FROM q2')")
    got = error_of(con, "SELECT * FROM q")
    check("table: a circle is an error", got is not None)
    con.execute("DROP TABLE q2")
    con.execute("DROP TABLE q")


ENABLE = """
import ctypes, sqlite3, sys
con = sqlite3.connect(':memory:')
lib = ctypes.CDLL(sys.argv[1])
# a connection object begins with its header, then the sqlite3*
db = ctypes.c_void_p.from_address(id(con) + object.__basicsize__).value
rc = lib.warplite_enable(ctypes.c_void_p(db))
print(rc, con.execute('SELECT warplite_version()').fetchone()[0])
"""


def test_enable(python, library):
    out = subprocess.run([python, "-c", ENABLE, library], capture_output=True, text=True)
    check("warplite_enable finds a local libsqlite3", out.stdout.startswith("0 "),
          out.stdout + out.stderr)


def main():
    build = os.path.abspath(sys.argv[1])
    library = os.path.join(build, "libwarplite.so")
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        other = "/usr/bin/python3"
        if os.path.realpath(sys.executable) != os.path.realpath(other) and os.path.exists(other):
            os.execv(other, [other] + sys.argv)
        print("skip extension - this Python cannot load extensions")
        return 0
    for engine in ["engine=cpu,route=always", "engine=gpu,device=sim,route=always"]:
        os.environ["WARPLITE_SET"] = engine
        folder = tempfile.mkdtemp()
        con = sqlite3.connect(os.path.join(folder, "x.db"), isolation_level=None)
        con.enable_load_extension(True)
        con.load_extension(library)
        fill(con)
        test_sql(con)
        test_tables(con)
        con.close()
        shutil.rmtree(folder)
    test_enable(sys.executable, library)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
