#!/usr/bin/env python3
"""Whether clang accepts every C file of a build folder without a warning: test/clang.py BUILD

Reads BUILD/compile_commands.json and lets clang check each file, with the same options, without
making code. Prints a line a folder."""
import collections
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def check(entry):
    """The file and what clang says of it."""
    args = shlex.split(entry["command"])
    while not args[0].endswith(("cc", "gcc", "clang")):  # a launcher such as ccache
        args.pop(0)
    command = ["clang", "-fsyntax-only", "-Wno-unknown-warning-option"]
    skip = False
    for arg in args[1:]:
        if skip or arg in ("-o", "-MT", "-MF"):
            skip = not skip
        elif arg not in ("-c", "-MD") and not arg.startswith(("-fsanitize", "-fno-sanitize")):
            command.append(arg)
    run = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], run.stdout + run.stderr if run.returncode else ""


def main():
    with open(os.path.join(sys.argv[1], "compile_commands.json")) as f:
        entries = [e for e in json.load(f) if e["file"].endswith(".c")]
    folders = collections.defaultdict(list)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, said in pool.map(check, entries):
            folders[os.path.basename(os.path.dirname(file))].append((file, said))
    for folder, files in sorted(folders.items()):
        bad = [(file, said) for file, said in files if said]
        if bad:
            print(f"not ok clang: {folder} - {len(bad)} of {len(files)} files")
            for _, said in bad:
                print(said)
        else:
            print(f"ok clang: {folder}")


main()
