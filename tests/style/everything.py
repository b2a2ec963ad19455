#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Whether a compiler accepts every source that CMake knows here (library, tests, examples, tools, benchmarks), with all
warnings as errors. It only looks: nothing is written, so it takes a fraction of a build. Headers alone are not looked at:
tests/headers and tests/style/run.sh do that.

Most of the time goes to the library's headers, so sources of the same options share them: compiled once before, as the tests
have them anyway. Whether a source names what it needs is for the compiler of the release lane to say.

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


COMMON = ("cohort/cohort.hpp", "cohort/asio.hpp")


def begins_with_common(file):
    """Whether it includes the most of them, and defines nothing before; None: neither, as far as this file goes."""
    for line in file.read_text().splitlines():
        if line.startswith("#define"):
            return False
        if re.match(r"#include <cohort/(cohort|communicator|run|connect|asio|backend/cpu)\.hpp>", line):
            return True
        own = re.match(r'#include "(.*)"', line)
        if own and (file.parent / own[1]).is_file():
            found = begins_with_common(file.parent / own[1])
            if found is not None:
                return found
    return None


def takes_common(each):
    return "-include-pch" not in each["command"] and bool(begins_with_common(pathlib.Path(each["file"])))


def common_headers(commands, folder):
    """Of each source that may have them, by its file: what to put into its command."""
    alike = {}
    for each in filter(takes_common, commands):
        words = [w for w in looking(each["command"]) if w != each["file"]]
        alike.setdefault((each["directory"], *words), []).append(each["file"])
    text = pathlib.Path(folder) / "common.hpp"
    text.write_text("".join(f"#include <{h}>\n" for h in COMMON))
    added = {}
    for number, ((directory, *words), files) in enumerate(alike.items()):
        if len(files) < 3:
            continue  # less work without
        before = str(pathlib.Path(folder) / f"common_{number}.pch")
        words = [w for w in words if w != "-fsyntax-only"]
        done = subprocess.run([*words, "-x", "c++-header", str(text), "-o", before], cwd=directory, capture_output=True)
        if done.returncode == 0 and not done.stderr:
            added.update((file, ["-include-pch", before]) for file in files)
    return added


def look(each, added):
    words = list(looking(each["command"]))
    done = subprocess.run([words[0], *added.get(each["file"], ()), *words[1:]], cwd=each["directory"], capture_output=True)
    return each["file"], done.returncode, done.stderr.decode(errors="replace")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("compiler")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="at a time (default: one a core)")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = list(to_look_at(configured(folder, given.compiler)))
        added = common_headers(every, folder)
        bad = 0
        with concurrent.futures.ThreadPoolExecutor(max(1, given.jobs)) as at_once:
            for source, status, said in at_once.map(lambda each: look(each, added), every):
                if status != 0 or said:
                    bad += 1
                    print(f"{source}: {given.compiler} ended with {status}\n{said[:3000]}", flush=True)
    print(f"{given.compiler}: {len(every)} sources, {bad} of them not as they should be")
    return 0 if every and bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
