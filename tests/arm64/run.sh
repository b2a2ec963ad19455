#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# The other processor that must build: every header by a cross compiler, and two ranks of an example under an emulator.
#   arm64/headers   every header that needs neither MPI nor CUDA
#   arm64/program   an example
#   arm64/memory    two ranks of it that share memory
#   arm64/sockets   two ranks of it over TCP
# One line for each, "passed", "FAILED" or "SKIPPED: reason". The exit code is 1 when one has failed.
#
# Usage: tests/arm64/run.sh TOOL     the cohort program, which starts the ranks
set -uo pipefail
[ $# -eq 1 ] || { echo "usage: tests/arm64/run.sh TOOL" >&2; exit 2; }
tool=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/every_header.sh
source tests/every_header.sh
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$program" >/dev/null && continue
  echo "arm64/all: SKIPPED: no $program here (Debian 12: apt-get install g++-aarch64-linux-gnu qemu-user)"
  exit 0
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Of this machine's headers the cross compiler may see Boost, which is the same for every processor, and no other.
mkdir "$scratch/include"
for place in /usr/include /usr/local/include; do
  [ ! -e "$place/boost" ] || ln -sfn "$place/boost" "$scratch/include/boost"
done
compile=(aarch64-linux-gnu-g++ -std=c++20 -Wall -Wextra -Werror -I include -I examples -isystem "$scratch/include")
emulated=(qemu-aarch64 -L /usr/aarch64-linux-gnu "$scratch/example")

check() {
  local name=$1
  shift
  if "$@" >"$scratch/log" 2>&1; then
    echo "arm64/$name: passed"
  else
    head -n 60 "$scratch/log"
    echo "arm64/$name: FAILED"
    failed=1
  fi
}

every_header sort >"$scratch/all.cpp"
echo '#include <cohort/src.hpp>' >"$scratch/bodies.cpp"
bodies() { "${compile[@]}" -DCOHORT_SEPARATE_COMPILATION -c "$scratch/bodies.cpp" -o "$scratch/bodies.o"; }
bodies >"$scratch/bodies.log" 2>&1 &
check headers "${compile[@]}" -fsyntax-only "$scratch/all.cpp"
wait
cat "$scratch/bodies.log"
check program "${compile[@]}" -DCOHORT_SEPARATE_COMPILATION examples/04_all_reduce.cpp "$scratch/bodies.o" \
  -o "$scratch/example"
check memory "$tool" run -n 2 --timeout 120 -- "${emulated[@]}"
COHORT_SHM=0 check sockets "$tool" run -n 2 --timeout 120 -- "${emulated[@]}"
exit "$failed"
