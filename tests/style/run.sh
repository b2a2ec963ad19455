#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# What a reader notices before the tests do: format, names, lengths of files, and warnings of the compilers that users have.
#   style/format          clang-format 14 would change nothing (.clang-format), but for the files in unformatted.txt
#   style/lengths         no file has more than 500 lines
#   style/names           clang-tidy 14 finds no identifier against the rules (.clang-tidy)
#   style/clang-14, -16, -19   every header, in order and in reverse, with all warnings as errors
#   style/everything-16, -19   tests, examples, tools and benchmarks too (everything.py); after a build of clang 16's the
#                              other backends only, with all examples
# One line for each, "passed", "FAILED" or "SKIPPED: reason". The exit code is 1 when one has failed.
#
# COHORT_BUILT_BY_CLANG_16 and _19 may name builds of theirs that are up to date: what these have shown is not looked at again.
#
# Usage: tests/style/run.sh [CHECK...]     all of them without arguments
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/every_header.sh
source tests/every_header.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
with_tls=()  # the bodies that need OpenSSL are looked at where it is
[ ! -e /usr/include/openssl/ssl.h ] || with_tls=(-DCOHORT_WITH_TLS)
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion)
failed=0

# report NAME STATUS: what the check printed is in $scratch/NAME.log
report() {
  if [ "$2" -eq 0 ]; then
    echo "style/$1: passed"
  elif [ "$2" -eq 77 ]; then
    echo "style/$1: SKIPPED: $(cat "$scratch/$1.log")"
  else
    head -n 60 "$scratch/$1.log"
    echo "style/$1: FAILED"
    failed=1
  fi
}

sources() { find include tests tools examples benchmarks test_package -name '*.hpp' -o -name '*.cpp' -o -name '*.cuh' | sort; }

# Debian names them with the version; elsewhere the plain name may be that version.
program() {
  if command -v "$1-$2"; then return; fi
  "$1" --version 2>/dev/null | grep -q "version $2\." && command -v "$1"
}

check_format() {
  local tool
  tool=$(program clang-format 14) || { echo "no clang-format 14 here (Debian 12: apt-get install clang-format-14)"; return 77; }
  # The first line of a mistake that must not compile is the text that is expected of the compiler.
  sources | grep -v '^tests/compile_fail/' | xargs "$tool" --dry-run -Werror 2>&1 |
    sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u >"$scratch/found"
  # Files from before this check, and what version 14 lays out badly (concepts, co_return a && b). The list only shrinks.
  grep -v '^#' tests/style/unformatted.txt | sort -u >"$scratch/known"
  comm -23 "$scratch/found" "$scratch/known" | sed 's/^/not formatted: clang-format-14 -i /' | tee "$scratch/new"
  comm -13 "$scratch/found" "$scratch/known" | sed 's/^/formatted now, take it out of tests\/style\/unformatted.txt: /' |
    tee "$scratch/gone"
  [ ! -s "$scratch/new" ] && [ ! -s "$scratch/gone" ]
}

check_lengths() {
  local long
  long=$({ sources; find . -path ./build -prune -o \( -name '*.sh' -o -name '*.py' -o -name '*.cmake' -o -name 'CMakeLists.txt' \) -print; } |
    xargs wc -l | awk '$2 != "total" && $1 > 500')
  [ -z "$long" ] || { echo "more than 500 lines:"; echo "$long"; return 1; }
}

check_names() {
  local tool
  tool=$(program clang-tidy 14) || { echo "no clang-tidy 14 here (Debian 12: apt-get install clang-tidy-14)"; return 77; }
  every_header sort >"$scratch/names.cpp"
  "$tool" --quiet --checks='-*,readability-identifier-naming' --warnings-as-errors='*' --config-file=.clang-tidy \
    --header-filter='.*/include/cohort/.*' "$scratch/names.cpp" -- -std=c++20 -I include ${with_tls[@]+"${with_tls[@]}"}
}

check_clang() {
  local compiler=clang++-$1
  command -v "$compiler" >/dev/null || { echo "no $compiler here (Debian 12: apt-get install clang-$1)"; return 77; }
  local mine="$scratch/$1"
  mkdir "$mine"
  local look=("$compiler" -std=c++20 "${warnings[@]}" -Werror -fsyntax-only -I include)
  every_header sort -r >"$mine/in_reverse.cpp"
  "${look[@]}" "$mine/in_reverse.cpp" || return 1
  local by=COHORT_BUILT_BY_CLANG_$1
  [ -z "${!by:-}" ] || return 0  # which has the others
  every_header sort >"$mine/in_order.cpp"
  echo '#include <cohort/src.hpp>' >"$mine/once.cpp"
  "${look[@]}" "$mine/in_order.cpp" &&
    "${look[@]}" -DCOHORT_SEPARATE_COMPILATION ${with_tls[@]+"${with_tls[@]}"} "$mine/once.cpp"
}

check_everything() {
  command -v "clang++-$1" >/dev/null || { echo "no clang++-$1 here (Debian 12: apt-get install clang-$1)"; return 77; }
  local by=COHORT_BUILT_BY_CLANG_$1 built=()
  [ -z "${!by:-}" ] || built=(--built "${!by}")
  # For the time it takes: what is left out is like what the build has, and clang 19 looks at it.
  [ -z "${!by:-}" ] || [ "$1" != 16 ] || built+=(--under tests/mpi --under cohort_mpi_bodies.cpp --under tests/gpu)
  tests/style/everything.py "clang++-$1" --jobs 1 ${built[@]+"${built[@]}"}  # beside the other checks
}

[ $# -gt 0 ] || set -- everything-16 everything-19 format lengths names clang-14 clang-16 clang-19
run() {
  case $1 in
    format | lengths | names) "check_$1" ;;
    clang-*) check_clang "${1#clang-}" ;;
    everything-*) check_everything "${1#everything-}" ;;
    *) echo "unknown check $1" && false ;;
  esac >"$scratch/$1.log" 2>&1
  echo $? >"$scratch/$1.status"
}

for check in "$@"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  run "$check" &
done
wait
for check in "$@"; do report "$check" "$(cat "$scratch/$check.status")"; done
exit "$failed"
