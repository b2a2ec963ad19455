#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# same_binary.sh LAUNCHER EXAMPLE TOOL: one binary, 04_all_reduce over the cpu backend, started as a user of LAUNCHER does,
# and cohort doctor, which finds no problem there.
set -euo pipefail
launcher=$1
example=$2
tool=$3

skip() {
  echo "SKIPPED: $*"
  exit 77
}
need() { command -v "$1" >/dev/null || skip "no $1 here; Debian 12: apt-get install $2"; }

# by_hand VARIABLES... -- PROGRAM...: what a launcher sets for each of three processes, from the shell; waits for all.
by_hand() {
  local rank code=0 pids=() variables=()
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  shift
  for rank in 0 1 2; do
    env "${variables[@]}" RANK_OF_THIS="$rank" sh -c "$per_rank exec \"\$0\" \"\$@\"" "$@" &
    pids+=($!)
  done
  for rank in "${pids[@]}"; do wait "$rank" || code=$?; done
  return $code
}

unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT COHORT_RANK COHORT_WORLD_SIZE
port=$((25000 + $$ % 6000))
# start PROGRAM...
start() {
  case $launcher in
    cohort_run) "$tool" run -n 3 --tag none -- "$@" ;;
    openmpi)
      need mpirun.openmpi openmpi-bin
      mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 "$@"
      ;;
    mpich)
      need mpirun.mpich mpich
      mpirun.mpich -n 3 "$@"
      ;;
    torchrun)  # its variables, as python -m torch.distributed.run sets them
      per_rank='export RANK=$RANK_OF_THIS LOCAL_RANK=$RANK_OF_THIS;'
      by_hand WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 GROUP_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        TORCHELASTIC_RUN_ID=none -- "$@"
      ;;
    kubernetes)  # its variables; the name of pod 0 is what only a cluster can resolve
      per_rank='export JOB_COMPLETION_INDEX=$RANK_OF_THIS HOSTNAME=train-$RANK_OF_THIS;'
      by_hand COHORT_WORLD_SIZE=3 COHORT_MASTER_ADDR=127.0.0.1 COHORT_MASTER_PORT=$port -- "$@"
      ;;
    *)
      echo "unknown launcher $launcher"
      exit 2
      ;;
  esac
}

code=0
out=$(start "$example") || code=$?
[ "$code" != 77 ] || {
  echo "$out"
  exit 77
}
[ "$code" = 0 ] || {
  echo "FAILED with $code: $out"
  exit 1
}
for rank in 0 1 2; do
  grep -q "rank $rank: average rank 1, largest square 4" <<<"$out" || {
    echo "FAILED: rank $rank is missing in: $out"
    exit 1
  }
done
code=0
out=$(start "$tool" doctor) || code=$?
if [ "$launcher" = kubernetes ]; then
  # A pod is a host of its own, so the doctor does not like the address that stands in for the name of pod 0 here.
  grep -q "127.0.0.1: each host is that to itself" <<<"$out" && [ "$code" = 1 ] && code=0
fi
[ "$code" = 0 ] || {
  echo "FAILED: the doctor found: $out"
  exit 1
}
grep -q "3 ranks, launcher: " <<<"$out" && grep -q "every rank is connected to every other" <<<"$out" || {
  echo "FAILED: the doctor said: $out"
  exit 1
}
echo "$launcher: three ranks of one world, and $(grep -o 'launcher: [^,]*' <<<"$out")"
