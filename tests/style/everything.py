#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Whether a compiler accepts every source that CMake knows here (library, tests, examples, tools, benchmarks), with all
warnings as errors. It only looks: nothing is written, so it takes a fraction of a build. Headers alone are not looked at:
tests/headers and tests/style/run.sh do that.

Most of the time goes to the library's headers, so sources of the same options share them: compiled once before, as the tests
have them anyway. Whether a source names what it needs is for the compiler of the release lane to say.

A build of the same compiler, with a sanitizer and all warnings as errors, has looked at its sources, but for what it was not
shown because of the sanitizer. A source with a condition on that is looked at here all the same, and each header that has
one with one source at least.

Usage: tests/style/everything.py COMPILER [--jobs N] [--built FOLDER] [--under PATH]...
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


def included_sources(file):
    """The sources of the project that another one includes by their whole path, as tests/mpi does with the examples."""
    return {path for path in re.findall(r'^#include "(/.*\.cpp)"', pathlib.Path(file).read_text(), re.MULTILINE)}


def to_look_at(commands):
    """Each source once: those over MPI are there for each library of it, and some are looked at as a part of another."""
    seen = set().union(*(included_sources(each["file"]) for each in commands))
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


# What tells that a sanitizer is there; the preprocessor asks for it, or `if constexpr`.
ASKS = re.compile(r"^[ \t]*#[ \t]*(?:el)?if.*(?:SANITIZ|has_feature)|\bconstexpr\b.*\bsanitized\b", re.MULTILINE)


def asks_for_sanitizer(file, known={}):
    if file not in known:
        known[file] = bool(ASKS.search(pathlib.Path(file).read_text()))
    return known[file]


def project_files(folder):
    """Of each object that a build has made, by its path: the files of the project that it was made from."""
    said = subprocess.run(["ninja", "-C", folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    made = {}
    for block in said.split("\n\n"):
        first, *rest = block.splitlines() or [""]
        if first.endswith("(VALID)"):
            files = {os.path.normpath(os.path.join(folder, line.strip())) for line in rest}
            made[first.split(": #deps")[0]] = files
    return made


def program_of(each):
    """A source and what is defined for it: the same program whatever it is called, and wherever the library's bodies are
    compiled, which tests/style/run.sh looks at in both ways."""
    defined = {word for word in shlex.split(each["command"]) if word.startswith(("-D", "-U"))}
    return pathlib.Path(each["file"]).read_text(), frozenset(defined - {"-DCOHORT_SEPARATE_COMPILATION"})


def looked_at(folder, compiler):
    """The sources that this build has made objects of, and nothing in them was left out of that."""
    deps = project_files(folder)
    every = {}
    programs = {}
    for each in json.loads((pathlib.Path(folder) / "compile_commands.json").read_text()):
        words = shlex.split(each["command"])
        made = words[words.index("-o") + 1]
        if pathlib.Path(words[0]).name != compiler or "-Werror" not in words or made not in deps:
            continue
        if not (pathlib.Path(folder) / made).is_file():
            continue
        own = {f for f in deps[made] if pathlib.Path(f).is_relative_to(ROOT)}
        every[each["file"]] = {f for f in own if not f.endswith(".pch")}
        programs[each["file"]] = program_of(each)
    asking = {file: {f for f in own if asks_for_sanitizer(f)} for file, own in every.items()}
    left_out = {file for file, headers in asking.items() if not any(f.endswith(".cpp") for f in headers)}
    headers = set().union(*asking.values()) if asking else set()
    for header in sorted(f for f in headers if not f.endswith(".cpp")):
        by = sorted(file for file, asked in asking.items() if header in asked)
        if all(file in left_out for file in by):
            left_out.discard(min(by, key=lambda file: len(every[file])))
    return {programs[file] for file in left_out}


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
    arguments.add_argument("--built", metavar="FOLDER", help="leave out what this build, which is up to date, has compiled")
    arguments.add_argument("--under", action="append", metavar="PATH", help="only what is there, or is made for it")
    given = arguments.parse_args()
    done = looked_at(str(pathlib.Path(given.built).resolve()), given.compiler) if given.built else set()
    with tempfile.TemporaryDirectory() as folder:
        commands = list(to_look_at(configured(folder, given.compiler)))
        if given.under:
            inside = re.compile(rf"^({re.escape(folder)}|{re.escape(str(ROOT))})/({'|'.join(map(re.escape, given.under))})(/|$)")
            commands = [each for each in commands if inside.match(each["file"])]
        every = [each for each in commands if not done or program_of(each) not in done]
        added = common_headers(every, folder)
        bad = 0
        with concurrent.futures.ThreadPoolExecutor(max(1, given.jobs)) as at_once:
            for source, status, said in at_once.map(lambda each: look(each, added), every):
                if status != 0 or said:
                    bad += 1
                    print(f"{source}: {given.compiler} ended with {status}\n{said[:3000]}", flush=True)
    print(f"{given.compiler}: {len(commands)} sources, of which a build has compiled {len(commands) - len(every)}; "
          f"{bad} not as they should be")
    return 0 if every and bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
