#!/usr/bin/env python3
"""Runs SQLite's own Tcl test scripts with and without the preload library.

A test that passes in plain SQLite must pass under preload. Differences of these kinds are counted,
but are not errors: order of rows, counters of SQLite's work, query plans, simulated failures of
malloc, I/O and crashes. docs/limits.md says why.

Usage: tcl_scripts.py BUILD TESTFIXTURE SCRIPTS [NAME...]
                      [--set SETTINGS] [--seconds N] [--results FOLDER] [--all]

BUILD        a build folder with libwarplite_preload.so
TESTFIXTURE  SQLite's test program, linked with a shared libsqlite3 (test/README.md says how)
SCRIPTS      the folder with the scripts, `test` in SQLite's source tree
NAME         patterns of script names without .test (default: all)
--set        settings as in WARPLITE_SET, for example route=always
--seconds    time limit for a script (default 40). Both runs stop there
--results    keeps outcomes and outputs here. A second call goes on where the first was stopped,
             and plain SQLite is not run again
--all        prints the excused differences too
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TIMED_OUT = (124, 137, -9)  # exit status of timeout(1)
# Scripts that run all the others, or take hours, or are no tests.
LEFT_OUT = ["all", "quick", "veryquick", "full", "extraquick", "permutations", "memleak", "rbu",
            "backcompat", "wapp", "soak*", "malloc*", "crash*", "fuzz*", "speed*", "mallocAll"]
# Scripts that make malloc, reads or writes fail at every place. There are other places natively.
FAILURES = re.compile("fault|malloc|oom|ioerr|corrupt|transient|persist|crash")
FAILING_CALLS = re.compile("do_faultsim_test|do_malloc_test|sqlite3_memdebug_fail|do_ioerr_test")

# Accepted differences that no rule below finds.
AHEAD = "rows that the connection changes ahead of its own SELECT"
STEPS = "steps of SQLite's virtual machine"
TEST_CONTROL = "sqlite3_test_control()"
CALLS = "calls of a virtual table or of a VFS that the script counts"
ACCEPTED = {
    "capi3c-12.5.1": AHEAD, "capi3c-12.6": AHEAD, "delete-9.2": AHEAD, "delete-9.3": AHEAD,
    "delete-9.5": AHEAD, "delete2-2.2": AHEAD, "misc2-7.8": AHEAD, "misc2-7.18": AHEAD,
    "bestindex8-1.1.2": CALLS, "bestindex9-*": CALLS, "nolock-*": CALLS, "dbstatus2-*": CALLS,
    "vtab1.10-5": CALLS, "vtab1-18.*": CALLS, "vtabH-1.*": CALLS,
    "wal2-[126].*": CALLS, "wal3-7.*": CALLS, "where-14.*": "order of rows",
    "where8-3.9": "order of rows",
    "pageropt-1.5": CALLS, "func-29.*": CALLS, "notnull2-1.*": STEPS, "interrupt-4.*": STEPS,
    # The file is read without SQLite, which the script has changed from inside.
    "pager1-42.1": TEST_CONTROL, "imposter-2.1": TEST_CONTROL,
    # Statements that run natively refer to no page, so the size of the map can change.
    "mmap3-1.6": "PRAGMA mmap_size while a SELECT runs",
    # Two wrong bytes of UTF-8 are equal for LIKE, but not in an index.
    "like-9.5.1": "texts with wrong UTF-8, where SQLite's answer depends on its plan",
    # The extension takes the first 20 rows of a SELECT without ORDER BY.
    "spellfix2-1.7": "order of rows",
    # A native SELECT from a TEMP table holds a read lock on main.
    "interrupt2-2.1": "read locks on main",
    # Another encoding was written into the file of main. A native run of a SELECT from a TEMP table
    # reads main too, and notices it one statement earlier than SQLite.
    "enc-12.7": "read locks on main",
    # A file that was overwritten under an exclusive lock. warplite's first statement after `PRAGMA
    # locking_mode=normal` gives the lock back and notices it one statement earlier than SQLite.
    "exclusive2-2.7": "locks that are given back earlier",
}


def run_script(args, path, preload, folder):
    """Runs one script. Returns its outcome and its output. One that takes too long under preload
    gets more time, because other work on the machine may have slowed it down."""
    result = run_once(args, path, preload, folder, args.seconds)
    if preload and result[0]["status"] in TIMED_OUT:
        result = run_once(args, path, preload, folder, 4 * args.seconds)
    return result


def run_once(args, path, preload, folder, seconds):
    env = {k: v for k, v in os.environ.items()
           if k not in ("LD_PRELOAD", "WARPLITE_SET", "WARPLITE_RUN")}
    if preload:
        env["LD_PRELOAD"] = os.path.join(args.build, "libwarplite_preload.so")
        env["WARPLITE_SET"] = args.set
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = ["timeout", "-k", "1", str(seconds), args.testfixture, path]
    p = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = p.stdout.decode(errors="replace")
    count = re.search(r"(\d+) errors out of (\d+) tests", output)
    failures = re.search(r"!?Failures on these tests: (.*)", output)
    return {"status": p.returncode, "tests": int(count[2]) if count else None,
            "failures": failures[1].split() if failures else []}, output


class Results:
    """Outcomes by script, kept in a folder between calls."""

    def __init__(self, folder, name):
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder, exist_ok=True)

    def path(self, script, kind):
        return os.path.join(self.folder, f"{script}.{kind}")

    def get(self, script):
        """(outcome, output), or None."""
        if not os.path.exists(self.path(script, "json")):
            return None
        with open(self.path(script, "json")) as f, \
                open(self.path(script, "out"), errors="replace") as g:
            return json.load(f), g.read()

    def put(self, script, outcome, output):
        with open(self.path(script, "out"), "w") as f:
            f.write(output)
        with open(self.path(script, "json"), "w") as f:
            json.dump(outcome, f)


def words(text):
    return sorted(re.sub(r"[{}]", "", text).split())


def excuse(script, text, test, expected, got):
    """The kind of an accepted difference, or None. text: of the script."""
    for pattern, kind in ACCEPTED.items():
        if fnmatch.fnmatch(test, pattern):
            return kind
    if FAILURES.search(script) or FAILURES.search(test):
        return "simulated failures"
    if expected is None:
        return None
    if "out of memory" in expected and FAILING_CALLS.search(text):
        return "simulated failures"
    if re.search(r"\bSCAN\b|\bSEARCH\b|QUERY PLAN", expected):
        return "query plans"
    if words(expected) == words(got):
        return "order of rows"
    # Many scripts append the number of searches, scans or sorts to the rows.
    counters = r"\b(nosort|sort|scan|search|fullscan_count)\b|\b\d+$|(?<=scan )\d+|(?<=sort )\d+"
    if words(re.sub(counters, "", expected)) == words(re.sub(counters, "", got)):
        return "counters"
    # where8 and where9 append two or three counters.
    if script.startswith("where") and words(re.sub(r"( \d+){1,3}$", "", expected)) == \
            words(re.sub(r"( \d+){1,3}$", "", got)):
        return "counters"
    return None


def differences(script, text, plain, native):
    """Yields (test, kind or None, description) of tests that fail under preload only."""
    (before, _), (after, output) = plain, native
    simulated = FAILURES.search(script) or FAILING_CALLS.search(text)
    if after["tests"] is None and before["tests"] is not None:
        yield "", None, f"does not finish, exit status {after['status']}: {output[-300:]!r}"
    elif before["tests"] and after["tests"] and after["tests"] < before["tests"]:
        # Each simulated failure at another place is a test of its own.
        kind = "simulated failures" if simulated else None
        yield "", kind, f"{before['tests']} tests became {after['tests']}"
    for test in after["failures"]:
        if test in before["failures"]:
            continue
        name = re.escape(test)
        shown = re.search(rf"^! {name} expected: \[?(.*?)\]?\n! {name} got: +\[?(.*?)\]?$", output,
                          re.M | re.S)
        expected, got = (shown[1], shown[2]) if shown else (None, "")
        if not shown:
            error = re.search(rf"{name}\.\.\.\n(Error:.*)", output)
            got = error[1] if error else "failed without a message"
        yield test, excuse(script, text, test, expected, got), \
            f"expected {expected!s:.200} | got {got:.200}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("build", "testfixture", "scripts"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("names", nargs="*", default=["*"])
    parser.add_argument("--set", default="")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--results")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    if not os.access(args.testfixture, os.X_OK):
        print(f"skip SQLite's Tcl scripts - no testfixture at {args.testfixture}")
        return 0
    # vtabH leaves tests out if the name of its folder contains "_".
    with tempfile.TemporaryDirectory() as top:
        work = os.path.join(tempfile.gettempdir(), f"tclwork{os.getpid()}")
        try:
            return compare(args, args.results or top, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def compare(args, results, work):
    plain, native = Results(results, "plain"), Results(results, "set " + args.set.replace("/", "_"))
    kinds, n_tests, n_bad, n_scripts = collections.Counter(), 0, 0, 0
    for file in sorted(os.listdir(args.scripts)):
        script, extension = os.path.splitext(file)
        if extension != ".test" or any(fnmatch.fnmatch(script, x) for x in LEFT_OUT) or \
                not any(fnmatch.fnmatch(script, x) for x in args.names or ["*"]):
            continue
        for kept, preload in ((plain, False), (native, True)):
            if not kept.get(script):
                kept.put(script, *run_script(args, os.path.join(args.scripts, file), preload, work))
        outcomes = plain.get(script), native.get(script)
        with open(os.path.join(args.scripts, file), errors="replace") as f:
            text = f.read()
        n_scripts += 1
        n_tests += outcomes[1][0]["tests"] or 0
        for test, kind, what in differences(script, text, *outcomes):
            kinds[kind or "errors"] += 1
            n_bad += kind is None
            if kind is None or args.all:
                print(f"{'not ok' if kind is None else kind}: {script} {test} - {what}", flush=True)
    print(f"{n_scripts} scripts, {n_tests} tests under preload; " +
          (", ".join(f"{k}: {n}" for k, n in sorted(kinds.items())) or "no differences"))
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
