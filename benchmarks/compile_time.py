#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What it costs to include each public header: one source that includes it and nothing else, compiled at -O0.

    benchmarks/compile_time.py [--compiler g++] [--repeat 5] [--write] [HEADER...]

Prints a table: seconds of processor time, and the ratio to <boost/asio/ip/tcp.hpp> compiled in the same round. "once" is
with COHORT_SEPARATE_COMPILATION, where one source of a program includes <cohort/src.hpp>. The rounds are interleaved,
every header once a round, so that a machine that gets slower slows all of them; the median counts, and the spread is
(largest - smallest) / median of the ratio. --write puts the table into benchmarks/compile_time.md.
"""
import argparse
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
YARDSTICK = "boost/asio/ip/tcp.hpp"
HEADERS = [
    "cohort/task.hpp", "cohort/error.hpp", "cohort/element.hpp", "cohort/ops.hpp", "cohort/reduction.hpp",
    "cohort/types.hpp", "cohort/memory.hpp", "cohort/operation.hpp", "cohort/when_all.hpp", "cohort/codec.hpp",
    "cohort/store.hpp", "cohort/communicator.hpp", "cohort/mesh.hpp", "cohort/run_local.hpp", "cohort/connect.hpp",
    "cohort/run.hpp", "cohort/asio.hpp", "cohort/cohort.hpp",
]
# Seconds are of the machine that the targets were set on; the ratio is what travels.
TARGETS = {"cohort/communicator.hpp": 0.25 / 2.0, "cohort/cohort.hpp": 1.3}


def compile_seconds(compiler, header, once, folder):
    source = pathlib.Path(folder, "unit.cpp")
    # A body as small as it can be: what is measured is the header.
    source.write_text(f"#include <{header}>\nint main() {{}}\n")
    command = [compiler, "-std=c++20", "-O0", "-c", "-I", str(ROOT / "include"), str(source), "-o", os.devnull]
    if once:
        command.insert(1, "-DCOHORT_SEPARATE_COMPILATION")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def table_of(times, headers, repeat, compiler):
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    yardstick = times[YARDSTICK, False]
    lines = [f"{version}, -O0, {platform.machine()}, {os.cpu_count()} cores, median of {repeat}; ratio to "
             f"`{YARDSTICK}`, {statistics.median(yardstick):.2f} s here", "",
             "| header | seconds | ratio | spread | once: seconds | ratio | spread | target |", "|---|---|---|---|---|---|---|---|"]
    for header in headers:
        cells = [f"`{header}`"]
        for once in (False, True):
            seconds = times[header, once]
            ratios = [s / y for s, y in zip(seconds, yardstick)]
            ratio = statistics.median(ratios)
            cells += [f"{statistics.median(seconds):.2f}", f"{ratio:.2f}", f"{(max(ratios) - min(ratios)) / ratio:.0%}"]
        cells.append(f"{TARGETS[header]:.2f}" if header in TARGETS else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("headers", nargs="*")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error(f"--repeat: found {options.repeat}, expected at least 1")
    headers = options.headers or HEADERS
    for header in headers:
        if not (ROOT / "include" / header).exists():
            parser.error(f"there is no include/{header}")
    todo = [(YARDSTICK, False)] + [(header, once) for header in headers for once in (False, True)]
    times = {what: [] for what in todo}
    with tempfile.TemporaryDirectory() as folder:
        for done in range(options.repeat):
            for header, once in todo:
                times[header, once].append(compile_seconds(options.compiler, header, once, folder))
            print(f"round {done + 1} of {options.repeat}", file=sys.stderr)
    table = table_of(times, headers, options.repeat, options.compiler)
    print(table, end="")
    if options.write:
        page = ROOT / "benchmarks" / "compile_time.md"
        begin, end = "<!-- table -->\n", "<!-- end of table -->\n"
        text = page.read_text()
        head, rest = text.split(begin)
        page.write_text(head + begin + table + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
