"""Runs programs with and without the preload library, for the tests in this folder.

The first argument of a test is the build folder. Arguments `cpu`, `sim` and `cuda` name engines.
"""
import os
import re
import subprocess
import sys

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
LIBRARY = os.path.join(BUILD, "libwarplite_preload.so")
SETTINGS = {"cpu": "engine=cpu,route=always", "sim": "engine=gpu,device=sim,route=always",
            "cuda": "engine=gpu,device=cuda,route=always"}
ENGINES = [e for e in sys.argv[2:] if e in SETTINGS] or ["cpu", "sim"]
n_failed = 0


def ok(name, good, why=""):
    global n_failed
    n_failed += not good
    print(f"ok {name}" if good else f"not ok {name} - {why}", flush=True)
    return good


def skip(name, why):
    print(f"skip {name} - {why}", flush=True)


def sanitizer():
    """A sanitizer's runtime must come before every other library."""
    with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
        found = re.search(r"^WL_SANITIZE:\w+=(\w+)", f.read(), re.M)
    if not found:
        return ""
    name = "libtsan.so" if found[1] == "thread" else "libasan.so"
    return subprocess.run(["gcc", "-print-file-name=" + name], capture_output=True,
                          text=True).stdout.strip()


RUNTIME = sanitizer()


def run(command, preload=None, settings=None, explain=False, library=LIBRARY, stdin=b"", env=None,
        timeout=600):
    """Runs a program: (exit status, output, errors)."""
    env = dict(os.environ, **(env or {}))
    for name in ("LD_PRELOAD", "WARPLITE_SET", "WARPLITE_RUN"):
        env.pop(name, None)
    if preload:
        env["LD_PRELOAD"] = " ".join(x for x in (RUNTIME, library) if x)
    if settings:
        env["WARPLITE_SET"] = settings
    if explain:
        env["WARPLITE_RUN"] = "explain"
    if RUNTIME:
        env["ASAN_OPTIONS"] = "detect_leaks=0:" + env.get("ASAN_OPTIONS", "")
    p = subprocess.run(command, input=stdin, capture_output=True, env=env, timeout=timeout)
    return p.returncode, p.stdout, p.stderr.decode(errors="replace")


def first_difference(a, b):
    a, b = a.split(b"\n"), b.split(b"\n")
    for n, (x, y) in enumerate(zip(a, b)):
        if x != y:
            title = next((t for t in reversed(a[:n]) if t.startswith(b"== ")), b"")
            return f"line {n + 1} {title!r}: {x[:300]!r} became {y[:300]!r}"
    return f"{len(a)} lines became {len(b)}"


def natives(errors):
    """How many executions the report says ran natively."""
    return sum(int(m[1]) for m in re.finditer(r"^ *(\d+) +[\d.]+ +\d+ +[\d.]+  ", errors, re.M))
