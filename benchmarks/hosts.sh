#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Compares the hierarchical algorithms with the flat ones, for several ranks on each of two hosts: network namespaces of
# its own with a link of limited rate between them. Runs of all algorithms take turns; times are medians over the turns.
#   hosts.sh COHORT [RATE [RANKS_PER_HOST [TURNS]]]     the cohort program; default 1gbit 2 5
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
[ $# -ge 1 ] || { sed -n 's/^#   //p' "$0"; exit 2; }
tool=$(realpath "$1")
rate=${2:-1gbit}
each=${3:-2}
turns=${4:-5}
# shellcheck source=benchmarks/two_hosts.sh
. "$here/two_hosts.sh"
make_hosts "$rate" hosts.sh
scratch=$(mktemp -d)
trap 'remove_hosts; rm -rf "$scratch"' EXIT

port=29800
# bench ALGORITHM OPERATION SIZES...
bench() {
  how=$1
  operation=$2
  shift 2
  port=$((port + 1))
  for host in 1 0; do
    if [ "$host" = 0 ]; then name=$host_one; else name=$host_two; fi
    ip netns exec "$name" env COHORT_SECRET="$host_secret" COHORT_ALGORITHMS="$operation=$how" "$tool" run -n "$each" \
      --nnodes 2 --node-rank "$host" --master-addr "$host_one_address" --master-port "$port" -- \
      "$tool" bench "$operation" "$@" --csv >"$scratch/out.$host" 2>"$scratch/err.$host" &
    [ "$host" = 0 ] || second=$!
  done
  if ! wait $! || ! wait "$second"; then
    cat "$scratch/err.0" "$scratch/err.1" >&2
    exit 1
  fi
  # With the prefix of the launcher, if it writes one.
  sed 's/^\[0\] //' "$scratch/out.0" | awk -F, -v how="$how" '$3 ~ /^[0-9]+$/ { print $1, $3, how, $7 }' >>"$scratch/times"
}

echo "$((2 * each)) ranks on two hosts, a link of $rate, microseconds, medians of $turns turns; load $(cut -d" " -f1 /proc/loadavg)"
turn=0
while [ "$turn" -lt "$turns" ]; do
  turn=$((turn + 1))
  for how in hierarchical recursive_doubling circulant ring; do bench "$how" all_reduce -b 8 -e 8M -f 32; done
  for how in hierarchical binomial circulant scatter_all_gather; do bench "$how" broadcast -b 8 -e 8M -f 32; done
  for how in hierarchical circulant ring linear; do bench "$how" all_gather -b 1K -e 8M -f 32; done
  for how in hierarchical circulant ring pairwise; do bench "$how" reduce_scatter -b 1K -e 8M -f 32; done
done
sort -k1,1 -k2,2n -k3,3 -k4,4n "$scratch/times" | awk '
  function close_group() { if (n) median[key] = t[int((n + 1) / 2)]; n = 0 }
  { k = $1 " " $2 " " $3; if (k != key) { close_group(); key = k; cell = $1 " " $2; if (!(cell in seen)) { seen[cell] = 1; order[++cells] = cell } }
    t[++n] = $4; if ($3 != "hierarchical") flat[cell] = flat[cell] (index(flat[cell], $3) ? "" : " " $3) }
  END {
    close_group()
    print "| operation | bytes | hierarchical | fastest flat one | ratio |"
    print "| --- | ---: | ---: | --- | ---: |"
    for (c = 1; c <= cells; ++c) {
      cell = order[c]; m = split(flat[cell], names, " "); best = ""
      for (i = 1; i <= m; ++i) if (best == "" || median[cell " " names[i]] < median[cell " " best]) best = names[i]
      split(cell, part, " "); h = median[cell " hierarchical"]; f = median[cell " " best]
      printf "| %s | %s | %.1f | %s %.1f | %.2f |\n", part[1], part[2], h, best, f, f / h
    }
  }'
