#!/usr/bin/env python3
"""Tests the preload library with programs that know nothing of warplite.

Each program runs with and without it, and both outputs must be equal byte for byte.

Usage: preload_test.py BUILD [ENGINE...]      ENGINE: cpu, sim, cuda (default: cpu sim)
Environment: WL_PYTHON    a python3 that has CPython's own tests (test.test_sqlite3)
"""
import os
import shutil
import subprocess
import sys
import tempfile

import driver
from driver import BUILD, ENGINES, LIBRARY, RUNTIME, SETTINGS, first_difference, natives, ok, run, \
    skip


def same(name, command, settings, least=0, clean=None, **more):
    """Runs a program both ways. least: native executions that there must be."""
    outcomes = []
    for preload in (False, True):
        if clean:
            shutil.rmtree(clean, ignore_errors=True)
            os.makedirs(clean)
        outcomes.append(run(command, preload, settings if preload else None, preload, **more))
    (rc, out, err), (rc2, out2, err2) = outcomes
    if not ok(name, rc == rc2 and out == out2,
              f"status {rc} and {rc2}; " + first_difference(out, out2) + err2[-500:]):
        return
    if least:
        n = natives(err2)
        ok(name + ": runs natively", n >= least, f"{n} executions of at least {least}")


def test_symbols():
    needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True).stdout
    ok("symbols: SQLite is not needed", "sqlite" not in needed, needed)
    undefined = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY], capture_output=True,
                               text=True).stdout
    ok("symbols: none of SQLite is undefined", "sqlite3_" not in undefined, undefined)


def test_surface(folder):
    program = os.path.join(BUILD, "surface")
    for journal in ("wal", "delete"):
        for mode in ("serialized", "multithread"):
            if RUNTIME and (journal == "wal") != (mode == "serialized"):
                continue  # slow, so half of it
            for e in ENGINES:
                same(f"surface {journal} {mode} [{e}]", [program, folder, journal, mode],
                     SETTINGS[e], 400, folder)
            same(f"surface {journal} {mode} [cost]", [program, folder, journal, mode],
                 "route=cost", 20, folder)


def test_hazards(folder):
    program = os.path.join(BUILD, "hazards")
    other = os.path.join(folder, "libother.so")
    library = None
    for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split("\n"):
        if "libsqlite3" in line:
            library = line.split("=>")[1].split("(")[0].strip()
    least = {"query": 2, "fork": 3, "finalized": 1000}
    for what in ("query", "fork", "signal", "finalized", "another", "deepbind"):
        if what in ("another", "deepbind"):
            if not library or (RUNTIME and what == "deepbind"):
                skip(f"hazards {what}", "not with this build")
                continue
            os.makedirs(folder, exist_ok=True)
            shutil.copy(library, other)
        for settings in ["route=cost"] + [SETTINGS[e] for e in ENGINES]:
            n = least.get(what, 0) if "always" in settings else 0
            same(f"hazards {what} [{settings}]", [program, what, folder, other], settings, n)
    inside = program + "_static"
    if os.path.exists(inside):
        same("hazards, SQLite linked statically", [inside, "query", folder], "route=always")
    # A library that does not find libwarplite.
    alone = os.path.join(folder, "alone", "libwarplite_preload.so")
    os.makedirs(os.path.dirname(alone), exist_ok=True)
    shutil.copy(LIBRARY, alone)
    plain = run([program, "query", folder])
    silent = run([program, "query", folder], True, library=alone)
    ok("missing libwarplite: SQLite answers", silent[:2] == plain[:2], repr(silent))
    ok("missing libwarplite: silent", silent[2] == "", silent[2])
    told = run([program, "query", folder], True, "route=always", library=alone)
    ok("missing libwarplite: said where it was asked for",
       told[:2] == plain[:2] and told[2].count("\n") == 1 and "libwarplite.so" in told[2] and
       "SQLite runs all statements" in told[2], repr(told))
    wrong = run([program, "query", folder], True, "nonsense=1,route=always")
    ok("unknown setting: said, and SQLite answers",
       wrong[:2] == plain[:2] and "nonsense" in wrong[2] and wrong[2].count("\n") == 1, repr(wrong))


def test_run(folder):
    warplite = os.path.join(BUILD, "warplite")
    program = os.path.join(BUILD, "hazards")
    if RUNTIME:
        return skip("warplite run", "not with a sanitizer")
    rc, out, err = run([warplite, "run", "--explain", "--set", "route=always", program, "query",
                        folder])
    ok("warplite run: status and output", rc == 0 and b"close 0" in out, repr((rc, out, err)))
    ok("warplite run --explain: says what was taken", natives(err) == 2 and "cpu: " in err, err)
    rc, out, err = run([warplite, "run", program, "query", folder])
    ok("warplite run: says nothing else", rc == 0 and err == "", err)
    ok("warplite run: status of the program",
       run([warplite, "run", "sh", "-c", "exit 7"])[0] == 7)
    rc, out, err = run([warplite, "run", "no-such-program"])
    ok("warplite run: no program", rc == 127 and "no-such-program" in err, repr((rc, err)))
    ok("warplite run: no argument", "usage" in run([warplite, "run"])[2])
    ok("warplite run: unknown option", "unknown option" in run([warplite, "run", "-x", "true"])[2])
    # On some systems ldconfig is a script.
    rc, out, err = run([warplite, "run", "/sbin/ldconfig", "-p"])
    if rc == 0 and open("/sbin/ldconfig", "rb").read(4) == b"\x7fELF":
        ok("warplite run: a static program", "linked statically" in err, err)


SCRIPT = b"""
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT);
WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<20000)
INSERT INTO t SELECT i, i%7, i*0.5, 'text '||(i%100) FROM n;
.headers on
SELECT a, count(*), sum(b), min(c) FROM t GROUP BY a;
.mode box
SELECT c, sum(a) AS total FROM t WHERE id > 100 GROUP BY c ORDER BY total DESC, c LIMIT 5;
.mode json
SELECT * FROM t WHERE id < 5;
.mode insert x
SELECT id, b, c, NULL, x'00ff' FROM t WHERE id BETWEEN 10 AND 12;
.mode quote
SELECT count(DISTINCT c), avg(b), total(a) FROM t;
.mode csv
SELECT a.id, b.c FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.id < 4;
.stats off
.eqp on
SELECT nothing FROM t;
.eqp off
SELECT sum(9223372036854775807) FROM t;
.schema
.dump
BEGIN; DELETE FROM t WHERE id > 10; SELECT count(*) FROM t; ROLLBACK;
SELECT count(*) FROM t;
.parameter set @x 5
SELECT count(*) FROM t WHERE a = @x;
EXPLAIN QUERY PLAN SELECT a FROM t;
"""

PERL = r"""
use DBI; my $f = shift; unlink $f;
my $h = DBI->connect("dbi:SQLite:dbname=$f", "", "", {RaiseError => 0, PrintError => 0});
$h->do("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT)");
$h->do("WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<20000)
        INSERT INTO t SELECT i, i%7, i*0.5, 'text '||(i%100) FROM n");
for my $sql ("SELECT a, count(*), sum(b) FROM t GROUP BY a", "SELECT id, b, c FROM t WHERE a = 3",
             "SELECT max(c), NULL FROM t", "SELECT abs(-9223372036854775808 + 0*id) FROM t") {
  my $r = $h->selectall_arrayref($sql);
  print join(",", map { defined $_ ? $_ : "NULL" } @$_), "\n" for @{$r || []};
  print $h->errstr, "\n" if $h->err;
}
my $s = $h->prepare("SELECT count(*), sum(a) FROM t WHERE c = ? AND b > ?");
for my $k (1 .. 5) { $s->execute("text $k", 10.5 * $k); print join(",", $s->fetchrow_array), "\n"; }
$h->sqlite_create_function("twice", 1, sub { 2 * $_[0] });
print join(",", @{$h->selectcol_arrayref("SELECT twice(id) FROM t WHERE id < 5")}), "\n";
"""

PHP = r"""
$f = $argv[1]; @unlink($f); $d = new SQLite3($f);
$d->exec("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT)");
$d->exec("WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<20000)
          INSERT INTO t SELECT i, i%7, i*0.5, 'text '||(i%100) FROM n");
$r = $d->query("SELECT a, count(*), sum(b), max(c) FROM t GROUP BY a");
while ($x = $r->fetchArray(SQLITE3_NUM)) echo json_encode($x), PHP_EOL;
$s = $d->prepare("SELECT count(*) n, sum(a) s FROM t WHERE c = :c AND b > :b");
for ($i = 1; $i < 4; $i++) {
  $s->bindValue(":c", "text $i"); $s->bindValue(":b", 10.5 * $i, SQLITE3_FLOAT);
  echo json_encode($s->execute()->fetchArray(SQLITE3_ASSOC)), PHP_EOL; $s->reset();
}
$d->createFunction("twice", fn($x) => 2 * $x);
echo $d->querySingle("SELECT sum(twice(a)) FROM t"), PHP_EOL;
$p = new PDO("sqlite:$f");
foreach ($p->query("SELECT id, b, c FROM t WHERE a = 3 LIMIT 5") as $row) echo json_encode($row), PHP_EOL;
"""

RUBY = r"""
require 'sqlite3'
f = ARGV[0]; File.delete(f) rescue nil
d = SQLite3::Database.new(f)
d.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT)")
d.execute("WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<20000)
           INSERT INTO t SELECT i, i%7, i*0.5, 'text '||(i%100) FROM n")
p d.execute("SELECT a, count(*), sum(b), max(c) FROM t GROUP BY a")
s = d.prepare("SELECT count(*) n, sum(a) s FROM t WHERE c = ? AND b > ?")
3.times { |i| p s.execute("text #{i}", 10.5 * i).to_a; s.reset! }
p s.columns, s.types
d.create_function("twice", 1) { |f, x| f.result = 2 * x }
p d.execute("SELECT sum(twice(a)) FROM t")
begin; d.execute("SELECT abs(-9223372036854775808 + 0*id) FROM t"); rescue => e; p e.class, e.message; end
"""

QT = r"""
import sys
from PyQt5.QtCore import QCoreApplication
from PyQt5.QtSql import QSqlDatabase, QSqlQuery
app = QCoreApplication([])
d = QSqlDatabase.addDatabase("QSQLITE")
d.setDatabaseName(sys.argv[1])
print(d.open())
q = QSqlQuery(d)
q.exec_("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT)")
q.exec_("WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<20000) "
        "INSERT INTO t SELECT i, i%7, i*0.5, 'text '||(i%100) FROM n")
for sql in ("SELECT a, count(*), sum(b), max(c) FROM t GROUP BY a", "SELECT max(c), NULL FROM t",
            "SELECT id, b, c FROM t WHERE a = 3", "SELECT nothing FROM t",
            "SELECT abs(-9223372036854775808 + 0*id) FROM t"):
    good, n = q.exec_(sql), q.record().count()
    print(good, q.lastError().text(), [q.record().fieldName(i) for i in range(n)])
    while q.next():
        print([q.value(i) for i in range(n)])
q.prepare("SELECT count(*), sum(a) FROM t WHERE c = ? AND b > ?")
for k in range(5):
    q.addBindValue("text %d" % k)
    q.addBindValue(10.5 * k)
    print(q.exec_(), q.next(), q.value(0), q.value(1))
q.finish()
d.close()
"""

POOL = """
import multiprocessing, sqlite3, sys
F = sys.argv[1]
def work(k):
    c = sqlite3.connect(F)
    r = c.execute("SELECT sum(a), count(*) FROM t WHERE a > ?", (k % 5,)).fetchone()
    c.close()
    return r
if __name__ == "__main__":
    c = sqlite3.connect(F)
    c.execute("DROP TABLE IF EXISTS t")
    c.execute("CREATE TABLE t(a, b)")
    c.executemany("INSERT INTO t VALUES(?, ?)", ((i % 9, i) for i in range(50000)))
    c.commit()
    print(c.execute("SELECT sum(a), count(*) FROM t").fetchall())
    cursor = c.execute("SELECT a, b FROM t")
    print(cursor.fetchone())
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(4) as p:
            print(p.map(work, range(20)))
    print(len(cursor.fetchall()), c.execute("SELECT sum(a) FROM t").fetchall())
"""


def test_clients(folder):
    if RUNTIME:
        return skip("other programs", "not with a sanitizer")
    for e in ENGINES:
        file = os.path.join(folder, "client.db")
        for program, command, stdin, known in (
                ("sqlite3", ["sqlite3", file], SCRIPT, ["sqlite3", "-version"]),
                ("perl", ["perl", "-e", PERL, file], b"", ["perl", "-MDBD::SQLite", "-e", "1"]),
                ("php", ["php", "-r", PHP, file], b"", ["php", "-r", "new SQLite3(':memory:');"]),
                ("ruby", ["ruby", "-e", RUBY, file], b"", ["ruby", "-e", "require 'sqlite3'"]),
                ("/usr/bin/python3", ["/usr/bin/python3", "-c", QT, file], b"",
                 ["/usr/bin/python3", "-c", "import PyQt5.QtSql"])):
            name = "Qt" if command[2:3] == [QT] else program
            if not shutil.which(program) or run(known)[0]:
                skip(f"{name} [{e}]", "not installed")
                continue
            same(f"{name} [{e}]", command, SETTINGS[e], 4, folder, stdin=stdin)
        pool = os.path.join(folder, "pool.py")
        os.makedirs(folder, exist_ok=True)
        with open(pool, "w") as f:
            f.write(POOL)
        same(f"python's multiprocessing [{e}]",
             [python_path(), pool, os.path.join(folder, "p.db")], SETTINGS[e])


def python_path():
    """A python3 whose sqlite3 module uses the shared library; the program, not a script."""
    for candidate in (os.environ.get("WL_PYTHON"), sys.executable, "/usr/bin/python3"):
        if candidate and os.path.exists(candidate):
            rc, out, _ = run([candidate, "-c", "import _sqlite3; print(_sqlite3.__file__)"])
            if rc == 0 and b"libsqlite3.so" in run(["ldd", out.decode().strip()])[1]:
                return candidate
    return "/usr/bin/python3"


def test_cpython():
    """CPython's own tests of its sqlite3 module."""
    python = python_path()
    if RUNTIME:
        return skip("CPython's tests", "not with a sanitizer")
    if run([python, "-c", "import test.test_sqlite3"])[0]:
        return skip("CPython's tests", f"{python} does not have test.test_sqlite3; see WL_PYTHON")
    for settings in ["route=cost"] + [SETTINGS[e] for e in ENGINES]:
        rc, out, err = run([python, "-m", "test", "test_sqlite3"], True, settings)
        ok(f"CPython's tests [{settings}]", rc == 0, (out.decode() + err)[-3000:])


def test_crowd(folder):
    program = os.path.join(BUILD, "crowd")
    few = ["--threads", "6", "--connections", "3"] if RUNTIME else ["--threads", "64",
                                                                    "--connections", "8"]
    for settings in ["route=cost"] + [SETTINGS[e] for e in ENGINES]:
        for more in ([], ["--shared"]):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            rc, out, err = run([program, folder, "--seconds", "2"] + few + more, True, settings)
            ok(f"crowd {' '.join(more)} [{settings}]", rc == 0 and b"wrong 0" in out,
               out.decode() + err[-2000:])


SLOW = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, y INTEGER)")
db.execute("INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE"
           " i < 500000) SELECT i, i % 100 FROM c")
db.commit()
for i in range(8):
    print(db.execute("SELECT id FROM t WHERE y = 1000 LIMIT 1").fetchall(),
          db.execute("SELECT id FROM t WHERE y = ? LIMIT 1", (1000 + i,)).fetchall(),
          db.execute("SELECT id FROM t WHERE y = ? LIMIT 2", (10 + i,)).fetchall())
"""


def test_slow(folder):
    """A LIMIT that finds nothing is estimated too low. SQLite's own runs must correct that."""
    if RUNTIME:
        return skip("corrected estimates", "not with a sanitizer")
    command = [python_path(), "-c", SLOW, os.path.join(folder, "slow.db")]
    same("corrected estimates", command, None, 6, folder)


def main():
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "f")
        os.makedirs(folder)
        test_symbols()
        test_surface(folder)
        os.makedirs(folder, exist_ok=True)
        test_hazards(folder)
        test_run(folder)
        test_clients(folder)
        os.makedirs(folder, exist_ok=True)
        test_slow(folder)
        test_cpython()
        test_crowd(folder)
    return 1 if driver.n_failed else 0


sys.exit(main())
