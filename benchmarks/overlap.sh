#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Measures how much of an all_reduce between two hosts a computation hides. The hosts are two network namespaces of its
# own with a link of limited rate between them: over plain loopback the processors are the wire, and nothing can overlap.
#   overlap.sh [RATE]     as tc writes it; default 1gbit
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
bin=${COHORT_BENCHMARK_BIN:-$root/build/peers}
rate=${1:-1gbit}
mkdir -p "$bin"

# shellcheck source=benchmarks/two_hosts.sh
. "$here/two_hosts.sh"
if [ ! -x "$bin/overlap" ] || [ -n "$(find "$root/include" "$here/overlap.cpp" -newer "$bin/overlap" | head -n 1)" ]; then
  # shellcheck disable=SC2086  # flags are a list of words
  ${CXX:-g++} -std=c++20 -O3 -DNDEBUG -I"$root/include" "$here/overlap.cpp" -o "$bin/overlap" -pthread
fi

make_hosts "$rate" overlap.sh

echo "all_reduce of float between two hosts, a link of $rate; milliseconds; load $(cut -d" " -f1 /proc/loadavg) on $(nproc)"
echo "processors: what hides nothing here may only have found no free one where the load is not far below 1"
echo
echo "| moved by | size | communication | computation | both | hidden |"
echo "| --- | ---: | ---: | ---: | ---: | ---: |"
port=29700
for mode in none poll thread; do
  port=$((port + 1))
  common="WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=$host_one_address MASTER_PORT=$port COHORT_SECRET=$host_secret"
  # shellcheck disable=SC2086  # a list of words
  ip netns exec "$host_two" env $common RANK=1 "$bin/overlap" "$mode" &
  other=$!
  # shellcheck disable=SC2086
  ip netns exec "$host_one" env $common RANK=0 "$bin/overlap" "$mode"
  wait "$other"
done
