#!/usr/bin/env python3
"""Runs random programs of SQLite calls (programs.h) with and without the preload library.

Every line that they print must be the same. A difference is shown with the lines before it.

Usage: programs_test.py BUILD [ENGINE...] [--seed N] [--programs N] [--first K]
    ENGINE      cpu, sim (default: both). The default settings are always tested too
    --programs  how many (default 30), from number --first (default 0) of the seed
"""
import argparse
import os
import shutil
import tempfile

from driver import BUILD, ENGINES, RUNTIME, SETTINGS, natives, ok, run
import driver

AT_ONCE = 20  # programs that run in one process
SHOWN = 8     # lines shown before a difference


def output(args, folder, first, count, settings=None, spoil=False):
    """Runs some programs: exit status, their lines by number, the report on standard error."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = [os.path.join(BUILD, "programs"), folder, str(args.seed), str(first), str(count)]
    rc, out, err = run(command + ["--spoil"] * spoil, settings is not None, settings,
                       settings is not None)
    programs = {}
    for text in out.decode(errors="backslashreplace").split("== program ")[1:]:
        number, _, rest = text.partition("\n")
        programs[int(number)] = rest.split("\n")
    return rc, programs, err


def difference(number, plain, native):
    """Describes the first difference of a program, or returns None."""
    if plain == native:
        return None
    if native is None:
        return f"program {number} did not run"
    at = next((k for k, (a, b) in enumerate(zip(plain, native)) if a != b),
              min(len(plain), len(native)))
    before = "\n    ".join(line[:300] for line in plain[max(0, at - SHOWN):at])
    became = [lines[at][:600] if at < len(lines) else "(no more)" for lines in (plain, native)]
    return f"program {number}, line {at}:\n    {before}\n  - {became[0]}\n  + {became[1]}"


def compare(args, folder, settings, plain):
    """Compares all programs under one setting. Returns what differs, and native executions."""
    found, n_native = [], 0
    for first, (rc, programs, _) in plain.items():
        native_rc, natively, err = output(args, folder, first, len(programs), settings)
        n_native += natives(err)
        found += [d for k in programs if (d := difference(k, programs[k], natively.get(k)))]
        if rc != native_rc:
            found.append(f"exit status {rc} became {native_rc}: {err[-500:]}")
    return found, n_native


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("engines", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--programs", type=int, default=10 if RUNTIME else 30)
    args = parser.parse_args()
    last = args.first + args.programs
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "f")
        plain = {k: output(args, folder, k, min(AT_ONCE, last - k))
                 for k in range(args.first, last, AT_ONCE)}
        ok("programs: SQLite alone runs them", all(rc == 0 for rc, _, _ in plain.values()),
           "".join(err[-500:] for _, _, err in plain.values()))
        spoilt = output(args, folder, args.first, 1, spoil=True)[1][args.first]
        ok("programs: a spoilt line is noticed",
           difference(args.first, plain[args.first][1][args.first], spoilt) is not None)
        for settings in ["route=cost"] + [SETTINGS[e] for e in ENGINES]:
            name = f"{args.programs} programs of seed {args.seed} [{settings}]"
            found, n_native = compare(args, folder, settings, plain)
            ok(name, not found, f"{len(found)} differ; " + "\n".join(found[:3]))
            if "always" in settings:
                ok(name + ": run natively", n_native > 5 * args.programs,
                   f"only {n_native} executions")
    return 1 if driver.n_failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
