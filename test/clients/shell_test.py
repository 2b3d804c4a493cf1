#!/usr/bin/env python3
"""The shell against sqlite3: same arguments and input, same bytes out and exit status.

Usage: shell_test.py BUILD_DIR [WORD]      (only the cases whose name contains WORD)

Each case runs twice, with the sqlite3 on PATH and with BUILD_DIR/warplite, each in a
fresh directory with the files of make_files(). stdout, stderr and the exit status must be
equal. WARPLITE_SET is passed on, so that the same cases can be run under every engine; only
the EXPLAIN cases, where warplite rightly says something else, are left to SQLite. What is ours alone (-set, -stats, -version, .stats, the terminal) has cases with
expected text at the end.
"""
import os
import pty
import random
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
word = sys.argv[2] if len(sys.argv) > 2 else ""
OURS = os.path.join(build, "warplite")
ORACLE = shutil.which("sqlite3")
MEM = ":memory:"

SCHEMA = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
INSERT INTO t VALUES(1,'one',1.5),(2,'two',-0.0),(3,NULL,1e100);
CREATE TABLE "we ird"(x int, y text default 'a;b');
CREATE INDEX ib ON t(b);
CREATE UNIQUE INDEX iw ON "we ird"(x);
CREATE VIEW v AS SELECT a, b AS "b b" FROM t;
CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT 1; END;
CREATE TABLE longer_table_name(id INTEGER PRIMARY KEY AUTOINCREMENT, -- first
  name VARCHAR(20) NOT NULL DEFAULT 'x,y(', price REAL CHECK(price > 0), FOREIGN KEY(id) REFERENCES t(a));
"""


def make_files(d):
    db = sqlite3.connect(os.path.join(d, "t.db"))
    db.executescript(SCHEMA)
    db.commit()
    db.close()
    files = {
        "notadb": "not a database, and long enough for a header: " + "x" * 200,
        "empty.db": "",
        "a.sql": "select 'from a.sql';\nselect nosuch;\nselect 'after';\n",
        "b.sql": ".read a.sql\n.print 'b goes on'\n",
        "quit.sql": "select 1;\n.quit\nselect 2;\n",
        "self.sql": ".read self.sql\n",
        "init.sql": ".mode csv\n.headers on\n",
        "bad.sql": "bad;\n",
        "unfinished.sql": "select 'unfinished'",
    }
    for name, text in files.items():
        with open(os.path.join(d, name), "w") as f:
            f.write(text)
    os.mkdir(os.path.join(d, "dir"))


def run(program, args, stdin, cwd, settings=None):
    env = {"HOME": cwd, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    for name in os.environ:
        if name.endswith("SAN_OPTIONS") or name == "WARPLITE_SET":
            env[name] = os.environ[name]
    if settings:
        env["WARPLITE_SET"] = settings
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    p = subprocess.run(["shell"] + args, executable=program, input=data, cwd=cwd, env=env,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, p.stdout, p.stderr


VALUES = ("select 1 a, -9223372036854775808 b, 1.5 c, 1e100 d, 0.1 e, -0.0 f, 1e999 g, -1e999 h, "
          "null i, '' j, 'x y' k, x'' l, x'414200ff' m, 'a'||char(0)||'b' n, 'q\"q' o, 'it''s' p, "
          "'a,b' q, 'a|b' r, 'é漢😀' s, 'l1'||char(10)||'l2'||char(13,10)||'l3' t, char(9)||'tab' u, "
          "char(1,7,8,12,27,31,127) v, 123456789012345678 w, 1e15 x, 1e16 y, 3.0 z, '\\n\\r' \"A a\"")
LONG = "'" + "word " * 30 + "'"
MODES = "ascii box column csv html insert json line list markdown qbox quote table tabs tcl count off".split()

# name, arguments, standard input
CASES = [
    # input
    ("empty input", [], ""),
    ("empty input, file", ["new.db"], ""),
    ("only newlines", [], "\n\n  \n"),
    ("only comments", [], "-- one\n/* two\nthree */\n"),
    ("open comment", [], "/* two\nthree"),
    ("comment then statement", [], "/* a */ select 1; -- b\n-- c\nselect 2;\n"),
    ("only semicolons", [], ";;\n ; ;\n"),
    ("many on a line", [], "select 1; select 2;select 3\n;"),
    ("over lines", [], "select 1,\n\n  2\n  , 3;\n"),
    ("no final semicolon", [], "select 1"),
    ("no final newline", [], "select 1;select 2"),
    ("unterminated string", [], "select 'abc"),
    ("unterminated string, lines", [], "select 'abc;\nselect 2;\n"),
    ("unterminated name", [], 'select "abc;\n.print x\n'),
    ("semicolon in string", [], "select 'a;b', \"c;d\", [e;f], `g;h`;\nselect 2;\n"),
    ("bracket name", [], "select 1 as [a'b;];\nselect 3;\n"),
    ("backtick", [], "select 1 as `a``;b`;\nselect 'it''s;\n';\n"),
    ("trigger body", [], "create table t(a);create trigger x after insert on t begin\nselect 1;\nselect 2;\nend;\ninsert into t values(1);\nselect * from t;\n"),
    ("go and slash", [], "select 1\ngo\nselect 2\n/\nselect 3\nGO -- x\n/\ngo\nselect 4 go\n;"),
    ("hash comment", [], "#x\nselect 1;\n # y\nselect 2;\n"),
    ("indented dot", [], "  .print x\nselect 1;\n"),
    ("dot inside statement", [], "select 1\n.print x\n;\nselect 2;\n"),
    ("dot alone", [], ".\n. \nselect 1;\n"),
    ("CRLF", [], "select 1;\r\n.print a\r\nselect 'x\r\ny';\r\n"),
    ("NUL in input", [], b"select 1;\0 select 2;\nselect 3;\n"),
    ("invalid UTF-8", [], b"select '\xff\xc3(', hex('\xff');\n"),
    ("invalid UTF-8 in box", ["-box"], b"select '\xff\xc3(ab\x80\x80' x;\n"),
    ("very long line", [], "select length('" + "x" * 1000000 + "');\n"),
    ("long value", [], "select '" + "y" * 300000 + "';\n"),
    ("many lines", [], "select 1\n" + "+1\n" * 5000 + ";\n"),
    ("many statements", [], "select 1;" * 3000 + "\n"),
    ("form feed", [], "\fselect 1;\v\n"),
    ("BOM", [], b"\xef\xbb\xbfselect 1;\n"),
    # errors
    ("errors go on", [], "select 1;\nselect nosuch;\nselect 2;\n"),
    ("errors bail", ["-bail"], "select 1;\nselect nosuch;\nselect 2;\n"),
    ("error inside line", [], "select 1; select nosuch; select 3;\nselect 4;\n"),
    ("error line number", [], "\n\nselect 1;\n\nselect\n  1 frm\n x;\n"),
    ("error far right", [], "select 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, nosuch;\n"),
    ("error very far right", [], "select " + "1, " * 60 + "nosuch, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13;\n"),
    ("error in unicode", [], "select 'ééééééééééééééééééééééééééééééééééééééééé漢漢漢', nosuch, 'éééééééééééééééééééééééé';\n"),
    ("error at 24", [], "select 1111111111111111, nosuch;\nselect 11111111111111111, nosuch;\n"),
    ("runtime error", [], "select abs(-9223372036854775808);\nselect 1;\n"),
    ("runtime after rows", ["t.db"], "select abs(a - 9223372036854775807 - iif(a=3,4,0)) from t;\n"),
    ("sum overflow", [], "select sum(x) from (select 9223372036854775807 x union all select 1);\n"),
    ("constraint", ["t.db"], "insert into t values(1,2,3);\ninsert into \"we ird\" values(1,1),(1,1);\n"),
    ("no such table", [], "select * from nosuch;\n"),
    ("syntax", [], "slect 1;\nselect 1 1;\nselect (;\n;\n"),
    ("incomplete", [], "select 1 +\n"),
    ("unknown function", [], "select nosuch(1);\nselect abs();\n"),
    ("unrecognized token", [], "select 1 @ 2;\nselect #;\n"),
    ("too many columns", [], "select " + ",".join(["1"] * 2001) + ";\n"),
    ("raise", [], "create table t(a); create trigger r before insert on t begin select raise(abort,'no way'); end;\ninsert into t values(1);\n"),
    ("commit without begin", [], "commit;\nbegin;begin;\nrollback;\n"),
    # SQL as arguments
    ("arg", [MEM, "select 1, 2"], ""),
    ("arg empty", [MEM, ""], "select 1;"),
    ("arg comment", [MEM, "-- x"], ""),
    ("arg several", [MEM, "select 1", "select 2;select 3"], "select 4;"),
    ("arg error prepare", [MEM, "select 1; select nosuch; select 2"], ""),
    ("arg error step", [MEM, "select 1; select abs(-9223372036854775808); select 2"], ""),
    ("arg error stops", [MEM, "select 1", "bad", "select 2"], ""),
    ("arg constraint code", ["t.db", "insert into t values(1,2,3)"], ""),
    ("arg dot", [MEM, ".print a 'b c'", "select 1"], ""),
    ("arg dot unknown", [MEM, ".foo", "select 1"], ""),
    ("arg dot mode", [MEM, ".mode csv", "select 1,'a b'"], ""),
    ("arg exit code", [MEM, ".exit 7", "select 1"], ""),
    ("arg quit", [MEM, ".quit", "select 1"], ""),
    ("arg echo", ["-echo", MEM, "select 1; select 2", ".print x"], ""),
    ("arg read", [MEM, ".read a.sql", "select 1"], ""),
    ("arg read quit", [MEM, ".read quit.sql", "select 3"], ""),
    ("arg unterminated", [MEM, "select 'x"], ""),
    ("arg space", [MEM, "   select 1;   "], ""),
    ("arg newline before dot", [MEM, "\n.print x"], ""),
    ("arg timer", ["-cmd", ".timer off", MEM, "select 1"], ""),
    # options
    ("unknown option", ["-foo"], ""),
    ("unknown option after others", ["-csv", "--foo", MEM, "select 1"], ""),
    ("missing -cmd", ["-cmd"], ""),
    ("missing -separator", ["-list", "-separator"], ""),
    ("missing -init", ["-init"], ""),
    ("single dash", ["-", "select 1"], ""),
    ("double dash options", ["--csv", "--header", MEM, "select 1 a,2 b"], ""),
    ("options after database", [MEM, "-csv", "select 1,2", "-header"], ""),
    ("separator", ["-separator", ";", MEM, "select 1,2"], ""),
    ("separator long", ["-separator", "0123456789012345678901234", MEM, "select 1,2"], ""),
    ("separator then csv", ["-separator", ";", "-csv", MEM, "select 1,'a;b','a,b'"], ""),
    ("csv then separator", ["-csv", "-separator", ";", MEM, "select 1,'a;b','a,b'"], ""),
    ("newline", ["-newline", "<>", MEM, "select 1,2 union all select 3,4"], ""),
    ("nullvalue", ["-nullvalue", "NIL", MEM, "select null, 1, ''"], ""),
    ("nullvalue csv", ["-csv", "-nullvalue", "N L", MEM, "select null, 1, ''"], ""),
    ("nullvalue box", ["-box", "-nullvalue", "N L", MEM, "select null, 1, ''"], ""),
    ("nullvalue json", ["-json", "-nullvalue", "N L", MEM, "select null, 1, ''"], ""),
    ("header", ["-header", MEM, "select 1 a, 2 \"b c\""], ""),
    ("header, no rows", ["-header", MEM, "select 1 a where 0"], ""),
    ("header noheader", ["-header", "-noheader", MEM, "select 1 a"], ""),
    ("header off", ["-header"], "select 1 a;\n.headers off\nselect 2 b;\n"),
    ("cmd order", ["-cmd", "select 1", "-csv", "-cmd", "select 2,'a b'", "-header", MEM, "select 3 a"], ""),
    ("cmd stdin", ["-cmd", ".mode csv", "-cmd", "create table t(a)"], "insert into t values('x y');select * from t;"),
    ("cmd error", ["-cmd", "bad", MEM, "select 1"], ""),
    ("cmd error step", ["-cmd", "select abs(-9223372036854775808)", MEM, "select 1"], ""),
    ("cmd error bail", ["-bail", "-cmd", "bad", MEM, "select 1"], ""),
    ("cmd dot error", ["-cmd", ".foo", MEM, "select 1"], ""),
    ("cmd dot error bail", ["-bail", "-cmd", ".foo", MEM, "select 1"], ""),
    ("cmd quit", ["-cmd", ".quit", MEM, "select 1"], ""),
    ("cmd quit bail", ["-bail", "-cmd", ".quit", MEM, "select 1"], ""),
    ("init", ["-init", "init.sql", MEM, "select 1 a,'x y' b"], ""),
    ("init missing", ["-init", "nofile", MEM, "select 1"], ""),
    ("init missing bail", ["-bail", "-init", "nofile", MEM, "select 1"], ""),
    ("init error", ["-init", "bad.sql", MEM, "select 1"], ""),
    ("init error bail", ["-bail", "-init", "bad.sql", MEM, "select 1"], ""),
    ("init then option", ["-list", "-init", "init.sql", MEM, "select 1,2"], ""),
    ("batch", ["-batch"], "select 1;\nbad;\n"),
    ("echo", ["-echo"], "select 1;\n-- c\n\n.print x\nselect 2,\n 3;\n/\nselect 4"),
    ("echo off", ["-echo"], "select 1;\n.echo off\nselect 2;\n.echo on\nselect 3;\n"),
    ("echo error", ["-echo"], "select 1;\nbad;\n"),
    ("readonly write", ["-readonly", "t.db", "insert into t values(9,9,9)"], ""),
    ("readonly read", ["-readonly", "t.db", "select count(*) from t"], ""),
    ("readonly missing", ["-readonly", "nofile.db", "select 1"], ""),
    # databases
    ("directory", ["dir", "select 1"], ""),
    ("directory, input", ["dir"], "select 1;\n"),
    ("no such directory", ["no/such.db", "select 1"], ""),
    ("not a database", ["notadb", "select * from sqlite_master"], ""),
    ("not a database, constant", ["notadb", "select 1"], ""),
    ("not a database, input", ["notadb"], "select * from t;\nselect 1;\n"),
    ("not a database, tables", ["notadb", ".tables"], ""),
    ("not a database, schema", ["notadb", ".schema"], ""),
    ("empty file", ["empty.db", "select * from sqlite_master"], ""),
    ("new database", ["new.db"], "create table n(a);\n.tables\n"),
    ("locked", ["t.db"], "attach 't.db' as u; begin immediate; insert into u.t values(7,7,7);\n"),
    ("empty name", ["", "create table e(a); select * from sqlite_master"], ""),
    # values in all modes
    *[(f"values {m}", [], f".mode {m}\n{VALUES};\n") for m in MODES],
    *[(f"headers {m}", [], f".headers on\n.mode {m}\n{VALUES} union all {VALUES};\n") for m in MODES],
    *[(f"no rows {m}", [], f".headers on\n.mode {m}\nselect 1 where 0;\ncreate table x(a);\nselect 2;\n") for m in MODES],
    *[(f"null value {m}", [], f".nullvalue NIL\n.mode {m}\nselect null, 1 union all select 2, null;\n") for m in MODES],
    *[(f"option -{m}", ["-" + m, MEM, VALUES], "") for m in
      "ascii box column csv html json line list markdown quote table tabs".split()],
    *[(f"option -{m} -header", ["-header", "-" + m, MEM, "select 1 a, 'x y' b; select 2"], "") for m in
      "ascii box column csv html json line list markdown quote table tabs".split()],
    ("mode shown", [], "".join(f".mode {m}\n.mode\n" for m in MODES)),
    ("mode abbreviated", [], "".join(f".mode {m}\n.mode\n" for m in ["l", "li", "lis", "c", "cs", "t", "ta", "tab", "tabl", "b", "m", "j", "q", "a", "h", "i", "co", "cou", "o"])),
    ("mode unknown", [], ".mode foo\n.mode LIST\nselect 1,2;\n"),
    ("mode extra", [], ".mode csv a b\n.mode csv a -b\n.mode box --foo\n.mode\n.mode --foo\n.mode -foo -bar -baz\n"),
    ("mode insert table", [], ".mode insert t\nselect 1;\n.mode insert \"a b\"\nselect 'x'||char(10)||'\\n';\n.mode insert select\nselect 1;\n"),
    *[(f"separators, then -{m}", ["-newline", "<>", "-separator", "@", "-" + m, MEM, "select 1,2 union all select 3,4"], "")
      for m in "ascii box column csv html json line list markdown quote table tabs".split()],
    ("option -column, no header", ["-column"], "select 1 a;\n.mode column\nselect 2 a;\n"),
    ("box wide", ["-box", MEM, f"select {LONG} x, 1 y union all select 2, 3"], ""),
    ("box wrap", [], f".mode box\nselect {LONG} x, 1 y union all select 2, 3;\n"),
    ("box wordwrap", [], f".mode box --wordwrap on\nselect {LONG} x, 1 y;\n.mode box --ww --wrap 7\nselect {LONG} x;\nselect 'aaaaaaaaaaaaaaaaaaaa bb', 'a-b-c-d-e-f-g-h-i';\n"),
    ("box wrap small", [], ".mode box --wrap 3\nselect 'abcdef', 'é漢😀é漢😀x', 'a'||char(9)||'b' long_name;\n.mode\n"),
    ("box unicode", ["-box", MEM, "select 'é' 名前, '漢字' b, '😀' c union all select 'abcdef', 'x', null"], ""),
    ("box multi-line", ["-box", MEM, "select 'a'||char(10)||'b' x, 1 y union all select 'c', 2 union all select 'd'||char(10), 3 union all select char(10)||'e', 4"], ""),
    ("table multi-line", ["-table", MEM, "select 'a'||char(10)||'b' x, 1 y union all select 'c', 2"], ""),
    ("markdown multi-line", ["-markdown", MEM, "select 'a'||char(10)||'b' x, 1 y union all select 'c', 2"], ""),
    ("column multi-line", ["-column", "-header", MEM, "select 'a'||char(10)||'b' x, 1 y union all select 'c', 2"], ""),
    ("column headers", [], ".mode column\nselect 1 a, 'longer' b union all select 'longest', 2;\n.headers off\nselect 1 a;\n"),
    ("box name with newline", ["-box", MEM, "select 1 as \"a\nb\", 2 as \"\""], ""),
    ("box error", ["-box"], "select abs(a) from (select 1 a union all select -9223372036854775808);\n"),
    ("json error", ["-json"], "select abs(a) from (select 1 a union all select -9223372036854775808);\n"),
    ("json reals", ["-json", MEM, "select 0.1, 1e22, 1.0, 1e-300, -0.0, 100.0, 1e15, 123456789.123456789"], ""),
    ("list reals", [MEM, "select 0.1, 1e22, 1.0, 1e-300, -0.0, 100.0, 1e15, 123456789.123456789, 1/3.0, 2e19"], ""),
    ("csv quoting", ["-csv", MEM, "select 'a', 'a b', 'a\"b', 'a''b', 'a'||char(10), 'a'||char(9), '', 'é', '~!@#$%^&*()', x'41', char(127)"], ""),
    ("csv CRLF", [], ".mode csv\nselect 1,2;\n.separator ;\nselect 1,2;\n"),
    ("integers", [MEM, "select 0, -1, 9223372036854775807, -9223372036854775808, 1000000"], ""),
    ("duplicate names", ["-json", "-header", MEM, "select 1 a, 2 a"], ""),
    ("many rows", ["-header"], "with recursive r(i) as (select 1 union all select i+1 from r where i<20000) select i, i*1.5, 'x'||i from r;\n"),
    ("parameters", [], "select ?, :a, @b, $c, ?5;\nselect typeof($inf), typeof(:nan), @INF;\n"),
    ("pragma", ["t.db", "pragma table_info(t); pragma user_version; pragma user_version=5; pragma user_version"], ""),
    ("DML", [], "create table t(a);insert into t values(1),(2) returning a, a*2;\nupdate t set a=a+1;\ndelete from t where a=2;\nselect changes(), total_changes();\nselect * from t;\n"),
    ("explain query plan", ["t.db"], "explain query plan select * from t where b='x' union select 1, 2, a from v order by 1;\nEXPLAIN QUERY PLAN select 1;\n.mode box\nexplain query plan select * from t, v;\n"),
    ("explain", ["t.db"], "explain select * from t where b > 'a' order by c;\nexplain insert into t select a+10,b,c from t;\nexplain with recursive r(i) as (select 1 union all select i+1 from r where i<9) select * from r;\n"),
    ("explain trigger", ["t.db"], "explain query plan insert into t values(9,9,9);\nexplain insert into t values(9,9,9);\n"),
    # dot commands
    ("tables", ["t.db"], ".tables\n.tables t\n.tables T%\n.tables nosuch\n.tables a b c\n.tab\n.ta\n"),
    ("tables attached", ["t.db"], "attach ':memory:' as x; create table x.y(a); create temp table z(a); create table sqlitex1(a); create view x.vv as select 1;\n.tables\n.tables z\n.indexes\n"),
    ("tables many", [], "".join(f"create table table_number_{i}(a);" for i in range(40)) + "\n.tables\n.tables %1\n"),
    ("tables long name", [], "create table " + "n" * 90 + "(a); create table b(a); create table é漢(a);\n.tables\n"),
    ("indexes", ["t.db"], ".indexes\n.indexes t\n.indices we%\n.indexes nosuch\n.indexes a b\n.ind\n"),
    ("schema", ["t.db"], ".schema\n"),
    ("schema pattern", ["t.db"], ".schema t\n.schema T\n.schema %o_e%\n.schema nosuch\n.schema 'we ird'\n.schema t*\n.schema main.t\n.schema v\n.sch v\n"),
    ("schema options", ["t.db"], ".schema --indent\n.schema --nosys\n.schema -nosys long%\n.schema -foo\n.schema a b\n"),
    ("schema attached", ["t.db"], "attach ':memory:' as x; attach ':memory:' as 'odd name'; create table x.y(a); create view x.vv as select a, 2 as 'select' from y; create temp table z(a); create temp trigger tz after insert on z begin select 1; end; create table 'odd name'.q(a); create index 'odd name'.iq on q(a);\n.schema\n.schema x.y\n.schema x.*\n.schema temp.%\n"),
    ("schema tables", ["t.db"], ".schema sqlite_master\n.schema sqlite_schema\n.schema SQLITE_TEMP_MASTER\n.schema sqlite_temp_schema\n.schema sqlite_s_h%\n.schema sqlite_seq%\n"),
    ("schema of modules", ["t.db"], "create temp table json_each(a);\n.schema json_each\n.schema main.json_tree\n.schema --indent json_%\n.schema fts5\n"),
    ("schema odd", [], "create table 'q'(a /* c */, b -- d\n); create table \"w\"(a); create table [x y](a); create table `z`(a); create view bad as select * from nosuch; create virtual table ft using fts5(a,b); create view vc as select 1 -- end\n;create view vd as select 1 /* end\n;\n.schema\n.schema --indent\n"),
    ("databases", ["t.db"], ".databases\nattach ':memory:' as m;\nbegin; select count(*) from t;\n.databases\nupdate t set b=1;\n.databases\n"),
    ("databases readonly", ["-readonly", "t.db"], ".databases\n"),
    ("headers", [], ".headers on\nselect 1 a;\n.headers\n.headers maybe\nselect 1 a;\n.h 1\nselect 1 a;\n.headers 0\nselect 1 a;\n.headers yes\n.headers no x\nselect 1 a;\n.headers ON\nselect 1 a;\n"),
    ("timer", [], ".timer on\nselect 1;\ncreate table t(a);\nselect nosuch;\n-- c\n.timer off\nselect 2;\n.timer\n.timer foo\n"),
    ("read", [], ".read a.sql\nselect 9;\n.read b.sql\nbad;\n"),
    ("read bail", ["-bail"], ".read a.sql\nselect 9;\n"),
    ("read missing", [], ".read nofile\n.read\n.read a b\n.read dir\nselect 1;\n"),
    ("read missing bail", ["-bail"], ".read nofile\nselect 1;\n"),
    ("read quit", [], ".read quit.sql\nselect 3;\n"),
    ("read itself", [], ".read self.sql\nselect 1;\n"),
    ("read unfinished", [], ".read unfinished.sql\nselect 2;\n"),
    ("read pipe", [], ".read '|echo select 5;'\n.read |true\n"),
    ("read empty name", [], ".read ''\n"),
    ("load", [], ".load\n.load nofile\n.load ./nofile entry\n.load ''\nselect 1;\n"),
    ("open", ["t.db"], ".open empty.db\n.tables\n.open t.db\n.tables\n.open\n.tables\nselect 1;\n"),
    ("open missing", [], ".open no/such.db\nselect 1;\n.databases\n.open dir\n.tables\n"),
    ("open options", [], ".open -foo\n.open a b\n.open --readonly t.db\ninsert into t values(8,8,8);\n.databases\n.open --new t.db\n.tables\n"),
    ("open not a database", [], ".open notadb\n.tables\nselect * from x;\n"),
    ("open keeps modes", ["-csv"], ".open t.db\nselect * from t;\n"),
    ("open drops transaction", ["t.db"], "begin; delete from t;\n.open t.db\nselect count(*) from t;\n"),
    ("quit", [], "select 1;\n.quit\nselect 2;\n"),
    ("quit after error", [], "bad;\n.quit\n"),
    ("quit short", [], ".q 5\nselect 2;\n"),
    ("exit", [], "select 1;\n.exit\nselect 2;\n"),
    ("exit code", [], ".exit 3\n"),
    ("exit code after error", [], "bad;\n.exit 0\n"),
    ("exit code odd", [], ".exit 0x11\n"),
    ("exit code words", [], ".exit foo\n"),
    ("unknown command", [], ".foo\n.Tables\n.tablesx\n.foo bar\nselect 1;\n"),
    ("unknown command bail", ["-bail"], ".foo\nselect 1;\n"),
    ("help nothing", [], ".help zzzz\n"),
    ("nullvalue command", [], ".nullvalue\n.nullvalue X\nselect null;\n.nullvalue ''\nselect null;\n.nullvalue a b\n.n 'a b'\nselect null;\n"),
    ("separator command", [], ".separator\n.separator a b c\n.separator \"\\t\"\nselect 1,2;\n.separator '\\t' \"\\n\\n\"\nselect 1,2;\n.sep \\101 \\012\nselect 1,2;\n.separator \\x\\\"\\q\nselect 1,2;\n"),
    ("bail command", [], ".bail\n.bail on\nselect 1;\nbad;\nselect 2;\n"),
    ("bail command off", ["-bail"], ".bail off\nbad;\nselect 2;\n"),
    ("print", [], ".print\n.print a   b\n.print \"a\\tb\\101\" 'c\\td' \\n e\"f g'h\n.print 'open\n.print \"x\"y 'z'w\n.print a;\n"),
    ("show", [], ".show\n.show x\n.mode csv\n.headers on\n.nullvalue \"a\\\"b\\t\"\n.echo on\n.show\n.echo off\n.mode box\n.show\n"),
    ("show file", ["t.db"], ".show\n.open empty.db\n.show\n"),
    ("echo command", [], ".echo\n.echo on\nselect 1;\n.echo off\n"),
    ("many arguments", [], ".print " + " ".join(str(i) for i in range(80)) + "\n"),
    ("tabs between arguments", [], ".print\ta\tb\n.mode\tcsv\nselect 1,2;\n"),
]

# Short forms: each that sqlite3 takes for the same command.
for full, least in [("tables", 2), ("schema", 3), ("mode", 1), ("headers", 1), ("timer", 5), ("read", 3), ("load", 1),
                    ("quit", 1), ("nullvalue", 1), ("separator", 2), ("echo", 1), ("bail", 3), ("databases", 2),
                    ("print", 3), ("show", 3), ("indexes", 2), ("open", 2), ("exit", 2)]:
    CASES.append((f"short .{full}", ["t.db"], "".join(f".{full[:n]}\n" for n in range(least, len(full) + 1))))


def normal(out, cwd):
    """What may differ between two runs of one program: times, the directory."""
    out = re.sub(rb"Run Time: real \d+\.\d{3} user \d+\.\d{6} sys \d+\.\d{6}\n", b"Run Time\n", out)
    return out.replace(cwd.encode(), b"DIR")


passed = failed = 0


def report(name, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
        print(f"ok - {name}")
    else:
        failed += 1
        print(f"not ok - {name}\n{detail}")
    sys.stdout.flush()


def outcome(program, args, stdin, settings=None):
    with tempfile.TemporaryDirectory() as d:
        make_files(d)
        rc, out, err = run(program, args, stdin, d, settings)
        return rc, normal(out, d), normal(err, d)


def compare(name, args, stdin):
    settings = "engine=sqlite" if name.startswith("explain") else None
    theirs, ours = outcome(ORACLE, args, stdin), outcome(OURS, args, stdin, settings)
    detail = ""
    for what, a, b in zip(("exit status", "stdout", "stderr"), theirs, ours):
        if a != b:
            detail += f"  {what}\n    sqlite3:  {a!r:.1500}\n    warplite: {b!r:.1500}\n"
    report(name, theirs == ours, detail)


def expect(name, args, stdin, rc=0, out=None, err=None):
    """A case of ours alone: out and err are patterns for the whole text."""
    got = outcome(OURS, args, stdin)
    text = [x.decode() for x in got[1:]]
    ok = got[0] == rc and all(p is None or re.fullmatch(p, t, re.S) for p, t in zip((out, err), text))
    report(name, ok, f"  {got!r:.1500}\n")


class Terminal:
    """The shell on a pseudo-terminal."""

    def __init__(self, home, args=(), **more):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            env = {"HOME": home, "TERM": "dumb", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
            os.execve(OURS, [OURS, *args], {**env, **more})
        self.text = ""

    def send(self, keys):
        time.sleep(0.05)  # libedit shows its prompt before it takes keys, and drops earlier ones
        os.write(self.fd, keys.encode())

    def wait_for(self, what, seconds=20):
        """Reads until the text read since the last call holds `what`."""
        end = time.time() + seconds
        while what not in self.text:
            left = end - time.time()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return False
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return what in self.text
            self.text += data.decode(errors="replace")
        self.before, self.text = self.text.split(what, 1)
        return True

    def close(self):
        end = time.time() + 20
        while time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        return None


def test_terminal():
    with tempfile.TemporaryDirectory() as home:
        make_files(home)
        t = Terminal(home)
        report("terminal: banner", t.wait_for("warplite ") and t.wait_for("warplite> "))
        t.send("select 40+2;\r")
        report("terminal: query", t.wait_for("\r\n42\r\n") and t.wait_for("warplite> "))
        t.send("select 'unfin\x03")
        report("terminal: Ctrl-C abandons the line", t.wait_for("^C") and t.wait_for("warplite> "))
        t.send("select 'é漢';\r")
        report("terminal: goes on, UTF-8", t.wait_for("\r\né漢\r\n") and t.wait_for("warplite> "))
        t.send("select\r")
        report("terminal: second prompt", t.wait_for("   ...> "))
        t.send("1 +\x03")
        report("terminal: Ctrl-C abandons the statement", t.wait_for("^C") and t.wait_for("\nwarplite> "))
        t.send("bad;\r")
        report("terminal: error without line number", t.wait_for("Parse error: near") and t.wait_for("warplite> "))
        t.send("with recursive r(i) as (select 1 union all select i+1 from r) select count(*) from r;\r")
        time.sleep(1)
        t.send("\x03")
        report("terminal: Ctrl-C stops a query", t.wait_for("Runtime error: interrupted (9)") and t.wait_for("warplite> "))
        t.send("select 'alive';\r")
        report("terminal: alive after it", t.wait_for("\r\nalive\r\n") and t.wait_for("warplite> "))
        t.send(".open t.db\rselect count(*) from t;\r")
        report("terminal: .open", t.wait_for("\r\n3\r\n") and t.wait_for("warplite> "))
        t.send("\x04")
        code = t.close()
        report("terminal: Ctrl-D leaves", code == 1, f"  exit status {code}\n")  # 1: there was an error
        path = os.path.join(home, ".warplite_history")
        text = open(path).read() if os.path.exists(path) else ""
        report("terminal: history is kept", "alive" in text and ".open" in text, text)
        t = Terminal(home)
        t.wait_for("warplite> ")
        t.send("\x10\r")
        report("terminal: history is read", t.wait_for("no such table: t") and t.wait_for("warplite> "))
        t.send("\x04")
        report("terminal: leaves", t.close() is not None)


def test_progress():
    """The bar while a table is loaded: on a terminal, wiped out at the end; never in a pipe."""
    with tempfile.TemporaryDirectory() as home:
        sql = ("create table big(a, b); with recursive n(i) as (select 1 union all select i+1 from n "
               "where i<200000) insert into big select i, i||'x' from n;")
        subprocess.run([ORACLE, "big.db", sql], cwd=home, check=True)
        ask = "select sum(a), max(b) from big"
        always = ("-set", "route=always")
        for name, args in (("pages", ["big.db"]), ("steps", [MEM, sql])):
            t = Terminal(home, [*always, *args, ask], WARPLITE_PROGRESS="0")
            shown = t.wait_for("loading big [") and t.wait_for(" %") and t.wait_for("\r\x1b[K")
            report(f"progress: shown and wiped out, {name}", shown and t.wait_for("20000100000|9x"))
            t.close()
        t = Terminal(home, [*always, "big.db", ask], WARPLITE_PROGRESS="60")
        report("progress: a short load shows nothing",
               t.wait_for("20000100000|9x") and "loading" not in t.before)
        t.close()
        p = subprocess.run([OURS, *always, "big.db", ask], cwd=home, capture_output=True,
                           env={**os.environ, "WARPLITE_PROGRESS": "0"})
        report("progress: nothing in a pipe", p.stdout == b"20000100000|9x\n" and p.stderr == b"",
               f"  {p}\n")


def test_interrupt():
    """SIGINT while input is not a terminal: the query fails, the rest is not run."""
    results = []
    for program in (ORACLE, OURS):
        p = subprocess.Popen(["shell"], executable=program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdin.write(b"select 'started';\nwith recursive r(i) as (select 1 union all select i+1 from r) "
                      b"select count(*) from r;\nselect 'next';\n")
        p.stdin.flush()
        p.stdout.readline()
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        results.append((p.returncode, out, err))
    report("SIGINT in a script", results[0] == results[1], f"  {results}\n")


IMPORTS = r"""
.mode csv
.import -v d.csv d
.import e.csv e
.import bom.csv bom
select * from d; select * from e;
select * from bom;
.import nofile q
.import --skip 1 --csv -v -v d.csv d
.import --skip 9 --csv d.csv d
.import --schema temp d.csv q
.import --schema nosuch d.csv q
.import --csv e.csv t
.separator ab
.import d.csv d
.separator ""
.import d.csv d
.separator | ""
.import d.csv d
create table u(a unique, b);
.mode list
.import --csv e.csv u
.import --csv -v e.csv u
.import --csv -v empty.db z
.import --csv "|echo 1,2; echo 7,8" u
.import --csv e.csv v
.import --ascii a.txt asc
.mode ascii
.import a.txt asc2
.import a.txt asc2
.mode quote
select * from asc; select * from asc2;
create table n(a integer, b real, c numeric, d blob not null, e check(e <> 'x'), f default 5);
.import --csv n.csv n
select *, typeof(a), typeof(b), typeof(c), typeof(d) from n;
begin;
.import --csv n.csv n
rollback;
select count(*) from n;
.schema
"""


def import_files(d):
    files = {
        "d.csv": b"a,b,A,,\n1,2,3,4,5\n",
        "e.csv": b'x,y\r\n1,2\r\n3\n4,5,6\n"a""b","c\nd"\r\n"un"esc,2\n\n,\nnul\x00cut,"q\x00q"\nq"q,""\nlast,"unterm',
        "bom.csv": b"\xef\xbb\xbfp,q\n1,",
        "a.txt": b"p\x1fq\x1e1\x1f2\x1e\x1fx\x1e\"3\x1f4\x1fmore\x1e",
        "n.csv": b'1,2,3,4,5\n 1 ,"2.50",1e3,,x\nx,y,z,0x1,\n9223372036854775808,1,007,1,1,1\n',
    }
    for name, data in files.items():
        with open(os.path.join(d, name), "wb") as f:
            f.write(data)


def run_import(program, d, text, **more):
    p = subprocess.run(["shell"], executable=program, input=text.encode(), cwd=d, capture_output=True, timeout=120,
                       env={"HOME": d, "PATH": os.environ["PATH"], **more})
    return p.returncode, p.stdout, p.stderr


def test_import_tablets(rng):
    """Into a tablet table goes what goes into an ordinary one, in bulk or row by row."""
    def decimal():
        n = rng.randrange(1, 19)
        digits = "".join(rng.choices("0123456789", k=n))
        at = rng.randrange(0, n + 1)
        return rng.choice(["", "-"]) + digits[:at] + rng.choice([".", ".", ""]) + digits[at:]

    odd = ["", "-0.0", "1e5", " 7 ", "0x10", "x", ".5", "5.", "-", "9223372036854775807", "1e400", "0.1", "é", "-0", "+3"]
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "n.csv"), "w") as f:
            for i in range(150000):
                values = [decimal() if rng.random() < 0.97 else rng.choice(odd) for _ in range(5)]
                f.write(",".join([str(i * 2 + 5)] + values[:rng.choice([5, 5, 5, 5, 4])]) + "\n")
        with open(os.path.join(d, "more.csv"), "w") as f:
            f.write("900001,1,2,3,4,5\n5,1,2,3,4,5\nx,1,2,3,4,5\n900003,,a,b,c,d\n")
        for columns in ("id integer primary key, a integer, b real, c numeric, d text, e",
                        "id, a integer, b real, c numeric, d text, e",
                        "id unique, a integer not null, b real check(b is not 7), c numeric, d text, e"):
            text = (f"create table o({columns});\ncreate virtual table t using tablet({columns});\n"
                    ".import --csv n.csv o\n.import --csv more.csv o\n.print --\n.import --csv n.csv t\n.import --csv more.csv t\n"
                    "select count(*), sum(rowid) from o; select count(*), sum(rowid) from t;\n"
                    "select o.rowid, o.*, t.* from o left join t on t.rowid = o.rowid where o.id is not t.id or o.a is not t.a or "
                    "o.b is not t.b or o.c is not t.c or o.d is not t.d or o.e is not t.e or typeof(o.a) <> typeof(t.a) or "
                    "typeof(o.b) <> typeof(t.b) or typeof(o.c) <> typeof(t.c) or typeof(o.d) <> typeof(t.d) limit 5;\n")
            rc, out, err = run_import(OURS, d, text)
            lines = out.decode().split("\n")
            errors = err.decode().replace("t.id", "o.id").split("\n")[:-1]
            same = lines[0] == "--" and lines[1] == lines[2] and len(lines) == 4
            half = len(errors) // 2
            report(f"import: a tablet table ({columns[:10]}…)", same and len(errors) % 2 == 0 and errors[:half] == errors[half:],
                   f"  {lines[:8]}\n  {errors[:5]} {errors[half:half + 5]}\n")


def test_import():
    """.import: what sqlite3 says and stores, whatever the number of threads and size of windows."""
    with tempfile.TemporaryDirectory() as d:
        make_files(d)
        import_files(d)
        want = run_import(ORACLE, d, IMPORTS)
        for cut in ("1,1000000", "4,64", "3,7", "64,1"):
            got = run_import(OURS, d, IMPORTS, WARPLITE_IMPORT=cut)
            report(f"import: as sqlite3, cut {cut}", got == want, f"  {want!r}\n  {got!r}\n")
        expect("ours: .import without arguments", [], ".import\n", rc=1, err="",
               out=r"ERROR: missing FILE argument. Usage:\n\.import .*--skip N.*")
    rng = random.Random(7)
    pieces = ['"', '""', ",", "\n", "\r\n", "a", "bc", "\r", "1.5", '"x"', '"y,\nz"', "\n", ",", "é"]
    for weights in ([6, 1, 6, 5, 1, 4, 4, 1, 2, 2, 1, 3, 3, 1], [0, 0, 6, 5, 1, 4, 4, 0, 2, 5, 4, 3, 3, 1]):
        with tempfile.TemporaryDirectory() as d:
            text = ".mode quote\n"
            for i in range(60):
                data = "".join(rng.choices(pieces, weights, k=rng.randrange(1, 120)))
                with open(os.path.join(d, f"{i}.csv"), "wb") as f:
                    f.write(data.encode())
                text += f"create table t{i}(a,b,c);\n.import --csv -v {i}.csv t{i}\nselect * from t{i};\n"
                text += f".import --csv --skip 1 {i}.csv made{i}\n.schema made{i}\n"
            want = run_import(ORACLE, d, text)
            for cut in ("1,1000000", "5,16", "16,50", "3,200"):
                got = run_import(OURS, d, text, WARPLITE_IMPORT=cut)
                report(f"import: 60 random files, cut {cut}", got == want, f"  {want!r:.3000}\n  {got!r:.3000}\n")
    test_import_tablets(rng)
    with tempfile.TemporaryDirectory() as d:  # larger than a window, and a field larger than that
        with open(os.path.join(d, "big.csv"), "w") as f:
            f.write("id,name,text\n")
            for i in range(300000):
                f.write(f'{i},name {i % 97},"said ""{i}"" on\nline {i}"\n')
            f.write('-1,long,"' + "x" * 3000000 + '"\n')
        text = ".import --csv -v big.csv t\nselect count(*), sum(id), sum(length(text)), max(text) > 'said', min(name) from t;\n"
        want = run_import(ORACLE, d, text)
        got = [run_import(OURS, d, text, **more) for more in ({}, {"WARPLITE_IMPORT": "3,1000000"})]
        report("import: a large file", got == [want, want], f"  {want!r:.500}\n  {got!r:.1000}\n")

        t = Terminal(d, ["i.db"], WARPLITE_PROGRESS="0", WARPLITE_IMPORT="2,100000")
        t.wait_for("warplite> ")
        t.send(".import --csv big.csv t\r")
        shown = t.wait_for("loading t [") and t.wait_for(" %")
        t.send("\x03")
        report("import: Ctrl-C", shown and t.wait_for("Error: interrupted") and t.wait_for("warplite> "))
        t.send("select count(*) from sqlite_schema;\r")
        report("import: Ctrl-C undoes it all", t.wait_for("\r\n0\r\n"))
        t.send("\x04")
        t.close()
        t = Terminal(d, ["i.db", ".import --csv big.csv t", "select count(*) from t"], WARPLITE_PROGRESS="0",
                     WARPLITE_IMPORT="2,1000000")
        report("import: the bar is shown and wiped out",
               t.wait_for("loading t [") and t.wait_for("\r\x1b[K") and t.wait_for("300001"))
        t.close()


def test_manual():
    """Every option of -help and every command of .help is in the manual page."""
    manual = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/warplite.1")
    lines = open(manual).read().splitlines()
    text = "\n".join(lines).replace("\\-", "-")
    plain = "\n".join(re.sub(r'[ \[\]"]', "", line) for line in lines)
    options = re.findall(r"^   -(\S+)", outcome(OURS, ["-help"], "")[2].decode(), re.M)
    options = [o for name in options for o in ([name] if "[" not in name else ["header", "noheader"])]
    missing = ["-" + o for o in options if not re.search(rf"(?<![\w-])-{o}(?!\w)", text)]
    commands = re.findall(r"^\.(\w+)", outcome(OURS, [], ".help\n")[1].decode(), re.M)
    missing += ["." + c for c in commands if "." + c not in plain]
    report("manual page is complete", len(options) > 25 and len(commands) > 18 and not missing, f"  {missing}\n")
    # The message about an unknown setting lists them all; the manual and docs/settings.md explain each.
    message = outcome(OURS, ["-set", "nosuch=1", MEM], "")[2].decode()
    settings = re.findall(r"\w+", message.partition("there are ")[2])
    table = open(os.path.join(os.path.dirname(manual), "settings.md")).read()
    missing = [s for s in settings if not re.search(rf"^\.BR {s} = ", text, re.M) or f"| `{s}` |" not in table]
    report("settings are documented", len(settings) > 11 and not missing, f"  {missing} {message}\n")


def test_locked():
    results = []
    for program in (ORACLE, OURS):
        with tempfile.TemporaryDirectory() as d:
            make_files(d)
            db = sqlite3.connect(os.path.join(d, "t.db"), isolation_level=None)
            db.execute("BEGIN EXCLUSIVE")
            results.append([run(program, ["t.db", "select * from t"], "", d),
                            run(program, ["t.db"], "select * from t;\nselect 1;\n.tables\n", d)])
            db.close()
    report("database locked by another", results[0] == results[1], f"  {results}\n")


def main():
    if not ORACLE:
        print("not ok - the sqlite3 shell is not on PATH\n0 passed, 1 failed")
        return 1
    for name, args, stdin in CASES:
        if word in name:
            compare(name, args, stdin)
    if not word or word == "ours":
        expect("ours: -version", ["-version"], "", out=r"warplite \d+\.\d+\.\d+, SQLite 3\.\S+ .*\n", err="")
        expect("ours: -help", ["-help"], "", rc=1, out="", err=r"Usage: shell \[OPTIONS\].*-set NAME=VALUE.*-stats.*")
        expect("ours: .help", [], ".help\n", out=r"\.bail on\|off .*\.timer on\|off .*\n", err="")
        expect("ours: .help mode", [], ".help mode\n", out=r"\.mode .*markdown.*--wrap N.*\n", err="")
        expect("ours: .help topic", [], ".help extension\n", out=r"\.load [^\n]*\n", err="")
        expect("ours: -stats", ["-stats", MEM, "select 1; select 2"], "", out="1\n2\n",
               err=r"(sqlite|cpu|gpu): [^\n]* \(\d+\.\d{6} s\)\n(sqlite|cpu|gpu): [^\n]* \(\d+\.\d{6} s\)\n")
        expect("ours: .stats on", [], "select 0;\n.stats on\nselect 1;\n.stats off\nselect 2;\n.stats\n",
               out=r"0\n1\n2\n(sqlite|cpu|gpu)[^\n]*\n", err=r"(sqlite|cpu|gpu): [^\n]* \(\d+\.\d{6} s\)\n")
        expect("ours: -stats of an explained statement", ["-set", "route=always", "-stats", MEM, "create table s(x); explain query plan select x from s"], "",
               out=r"QUERY PLAN\n`--cpu: .*", err=r"[^\n]*\ncpu: [^\n]*\n")
        expect("ours: -set", ["-set", "engine=sqlite", MEM, "select 1"], "", out="1\n", err="")
        plan = ("create table a(x, y); insert into a values(1,2),(2,3),(3,4); create table b(x, z); insert into b values(1,'p'),(2,'q'); "
                "%s select z, count(*) from a join b on b.x = a.x where a.y > 1 group by z;")
        expect("ours: the plan of a join", ["-set", "route=always", MEM, plan % "explain query plan"], "", err="",
               out=r"QUERY PLAN\n`--cpu: [^\n]*\n +`--PIPELINE 3 on the cpu leaves results: RESULT 2 columns [^\n]*\n +`--SCAN groups\n"
                   r" +`--PIPELINE 2 on the cpu leaves groups: GROUP BY 1 key, AGGREGATE 1 function [^\n]*\n +\|--SCAN [ab] columns [^\n]*\n +\|  `--LOAD 2 columns [^\n]*\n"
                   r" +`--INNER JOIN [ab] ON b\.x = a\.x[^|]*\n +`--PIPELINE 1 on the cpu leaves a lookup: LOOKUP by 1 key over [ab] [^|]*\n +`--SCAN [ab] [^|]*\n")
        expect("ours: explain analyze", ["-set", "route=always", "-box", MEM, plan % "Explain Analyze"], "", err="",
               out=r"QUERY PLAN\n`--cpu: [^\n]* \| 2 rows, [0-9.]+ ms\n[^\n]*PIPELINE 3 [^\n]*\n[^\n]*SCAN groups \| 2 rows from 2 [^\n]*\n"
                   r"[^\n]*GROUP BY 1 key, AGGREGATE 1 function \| 2 rows from 2 \(estimated \d+\), [0-9.]+ ms, [^\n]* GB/s, holds \d+ bytes, cpu\n.*SCAN .* rows from \d.*INNER JOIN .* \| 2 rows from \d.*")
        expect("ours: explain analyze in SQLite", ["-set", "engine=sqlite", MEM, plan % "explain analyze"], "", err="",
               out=r"QUERY PLAN\n`--sqlite: [^\n]* \| 2 rows, [0-9.]+ ms\n.*SCAN .*")
        expect("ours: explain analyze of what SQLite has", [MEM, "create table a(x); explain analyze select y from a"], "", rc=1, out="",
               err=r"Error: in prepare, no such column: y[^\n]*\n[^\n]*\n {25}\^--- error here\n")
        expect("ours: -set, not known", ["-set", "bogus=1", MEM, "select 1"], "", rc=1, out="", err=r"Error: [^\n]*bogus[^\n]*\n")
        expect("ours: -set, no value", ["-set", "engine", MEM, "select 1"], "", rc=1, out="", err=r'Error: [^\n]*"engine"\n')
        expect("ours: -set, missing", ["-set"], "", rc=1, out="", err=r"shell: Error: missing argument to -set\n")
        expect("ours: -set and .open", ["-set", "engine=sqlite"], ".open t.db\nselect count(*) from t;\n", out="3\n", err="")
        expect("ours: -interactive", ["-interactive"], "select 1;\nbad;\n", rc=1,
               out=r"warplite [^\n]*\n[^\n]*\nwarplite> 1\nwarplite> warplite> \n", err=r"Parse error: near .*")
        test_manual()
    if not word or word == "terminal":
        test_terminal()
    if not word or word == "import":
        test_import()
    if not word or word == "progress":
        test_progress()
    if not word or word == "signal":
        test_interrupt()
        test_locked()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
