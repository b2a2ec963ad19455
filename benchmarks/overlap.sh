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
one=cohort_overlap_$$_a
two=cohort_overlap_$$_b
mkdir -p "$bin"

if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
  echo "skipped: overlap.sh needs root, ip and tc, to make network namespaces"
  exit 77
fi
if [ ! -x "$bin/overlap" ] || [ -n "$(find "$root/include" "$here/overlap.cpp" -newer "$bin/overlap" | head -n 1)" ]; then
  # shellcheck disable=SC2086  # flags are a list of words
  ${CXX:-g++} -std=c++20 -O3 -DNDEBUG -I"$root/include" "$here/overlap.cpp" -o "$bin/overlap" -pthread
fi

clean_up() {
  ip netns del "$one" 2>/dev/null || true
  ip netns del "$two" 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 130' INT TERM
if ! ip netns add "$one" 2>/dev/null || ! ip netns add "$two" 2>/dev/null; then
  echo "skipped: this system does not let overlap.sh make network namespaces"
  exit 77
fi
ip -n "$one" link add wire type veth peer name wire netns "$two"
for side in "$one 1" "$two 2"; do
  # shellcheck disable=SC2086  # two words
  set -- $side
  ip -n "$1" addr add "10.77.0.$2/24" dev wire
  ip -n "$1" link set lo up
  ip -n "$1" link set wire up
  tc -n "$1" qdisc add dev wire root tbf rate "$rate" burst 32kb latency 50ms
done

secret=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
echo "all_reduce of float between two hosts, a link of $rate; milliseconds; load $(cut -d" " -f1 /proc/loadavg) on $(nproc)"
echo "processors: what hides nothing here may only have found no free one where the load is not far below 1"
echo
echo "| moved by | size | communication | computation | both | hidden |"
echo "| --- | ---: | ---: | ---: | ---: | ---: |"
port=29700
for mode in none poll thread; do
  port=$((port + 1))
  common="WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 MASTER_PORT=$port COHORT_SECRET=$secret"
  # shellcheck disable=SC2086  # a list of words
  ip netns exec "$two" env $common RANK=1 "$bin/overlap" "$mode" &
  other=$!
  # shellcheck disable=SC2086
  ip netns exec "$one" env $common RANK=0 "$bin/overlap" "$mode"
  wait "$other"
done
