#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Compares long messages over 1, 2, 4 and 8 connections between two processes of this host, where the kernel limits what
# each connection sends, as clouds do. Numbers of connections take turns; times are medians over the turns, with quartiles.
#   stripes.sh [MEGABYTES_PER_SECOND [TURNS]]     of each connection, 0 for no limit; default 100 7
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
bin=${COHORT_BENCHMARK_BIN:-$root/build/peers}
limit=${1:-100}
turns=${2:-7}
mkdir -p "$bin"

if [ ! -x "$bin/stripes" ] || [ -n "$(find "$root/include" "$here/stripes.cpp" -newer "$bin/stripes" | head -n 1)" ]; then
  # shellcheck disable=SC2086  # flags are a list of words
  ${CXX:-g++} -std=c++20 -O3 -DNDEBUG -I"$root/include" "$here/stripes.cpp" -o "$bin/stripes" -pthread
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

port=29900
turn=0
while [ "$turn" -lt "$turns" ]; do
  turn=$((turn + 1))
  for stripes in 1 2 4 8; do
    port=$((port + 1))
    common="WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port COHORT_SHM=0 COHORT_TCP_STRIPES=$stripes"
    # shellcheck disable=SC2086  # a list of words
    env $common RANK=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "$bin/stripes" "$limit" >/dev/null &
    other=$!
    # shellcheck disable=SC2086
    env $common RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "$bin/stripes" "$limit" >"$scratch/out"
    wait "$other"
    sed "s/$/,$stripes/" "$scratch/out" >>"$scratch/times"
  done
done

echo "two processes, $limit MB/s a connection (0: no limit), milliseconds, medians of $turns turns (quartiles);"
echo "load $(cut -d" " -f1 /proc/loadavg) on $(nproc) processors"
echo
sort -t, -k1,1 -k2,2n -k4,4n -k3,3n "$scratch/times" | awk -F, '
  function close_group() {
    if (!n) return
    median[cell, number] = t[int((n + 1) / 2)]
    spread[cell, number] = sprintf("%.1f to %.1f", t[int((n + 3) / 4)] / 1000, t[int((3 * n + 3) / 4)] / 1000)
    n = 0
  }
  { k = $1 "," $2 "," $4
    if (k != key) { close_group(); key = k; cell = $1 "," $2; number = $4; if (!(cell in seen)) { seen[cell] = 1; order[++cells] = cell } }
    t[++n] = $3 }
  END {
    close_group()
    print "| | MiB | 1 | 2 | 4 | 8 | 1 / 4 | 1 / 8 |"
    print "| --- | ---: | :--- | :--- | :--- | :--- | ---: | ---: |"
    for (c = 1; c <= cells; ++c) {
      cell = order[c]; split(cell, part, ",")
      row = "| " part[1] " | " part[2]
      for (number = 1; number <= 8; number *= 2) row = row sprintf(" | %.1f (%s)", median[cell, number] / 1000, spread[cell, number])
      printf "%s | %.2f | %.2f |\n", row, median[cell, 1] / median[cell, 4], median[cell, 1] / median[cell, 8]
    }
  }'
