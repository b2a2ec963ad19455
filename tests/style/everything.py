#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Whether a compiler accepts every source that CMake knows here (library, tests, examples, tools, benchmarks), with all
warnings as errors. It only looks: nothing is written, so it takes a fraction of a build. Headers alone are not looked at:
tests/headers and tests/style/run.sh do that.

Usage: tests/style/everything.py COMPILER [--jobs N]
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def configured(folder, compiler):
    """The compile commands, with the headers that most tests share compiled before."""
    for step in (
        ["cmake", "--preset", "clang", "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_CXX_COMPILER_LAUNCHER=",
         "-DCOHORT_TEST_PRECOMPILE=ON"],
        ["cmake", "--build", folder, "--target", "test_headers"],
    ):
        done = subprocess.run(step, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(map(str, step))}:\n{done.stdout}")
    return json.loads((pathlib.Path(folder) / "compile_commands.json").read_text())


def to_look_at(commands):
    """Each source once: those over MPI are there for each library of it."""
    seen = set()
    for each in commands:
        # By what is written: a command may well name a header that was compiled before.
        alone = re.search(r" -o \S*CMakeFiles/\w*header\w*\.dir/", each["command"])
        if alone or each["file"] in seen:
            continue
        seen.add(each["file"])
        yield each


def looking(command):
    """The command, but for what it would write."""
    words = iter(shlex.split(command))
    for word in words:
        if word == "-o":
            next(words)
        else:
            yield "-fsyntax-only" if word == "-c" else word


def look(each):
    done = subprocess.run(list(looking(each["command"])), cwd=each["directory"], capture_output=True)
    return each["file"], done.returncode, done.stderr.decode(errors="replace")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("compiler")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="at a time (default: one a core)")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = list(to_look_at(configured(folder, given.compiler)))
        bad = 0
        with concurrent.futures.ThreadPoolExecutor(max(1, given.jobs)) as at_once:
            for source, status, said in at_once.map(look, every):
                if status != 0 or said:
                    bad += 1
                    print(f"{source}: {given.compiler} ended with {status}\n{said[:3000]}", flush=True)
    print(f"{given.compiler}: {len(every)} sources, {bad} of them not as they should be")
    return 0 if every and bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
