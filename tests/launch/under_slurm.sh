#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# under_slurm.sh EXAMPLE TOOL [MPI_OPENMPI [MPI_MPICH]]: what docs/launch.md promises of Slurm, on a Slurm that slurm.sh
# has started. The example is 04_all_reduce; the last two have it for MPI, each of its library.
set -euo pipefail
example=$1
tool=$2

fail() {
  echo "FAILED: $*"
  exit 1
}
expect() {  # expect COUNT TEXT OUTPUT
  [ "$(grep -c "$2" <<<"$3")" = "$1" ] || fail "expected $1 lines with '$2' in: $3"
}

out=$(srun -n 2 --overcommit "$example")
expect 1 "rank 0: average rank 0.5" "$out"
expect 1 "rank 1: average rank 0.5" "$out"
echo "a step of two tasks: right"

expect 1 '^\* Slurm step  .*SLURM_STEP_NUM_TASKS=1' "$(srun -n 1 "$tool" env)"

out=$(srun -n 2 --overcommit "$tool" doctor) || fail "the doctor in a step: $out"
expect 1 "2 ranks, launcher: Slurm step" "$out"
echo "the doctor in a step: no problem"

script=$(mktemp)
trap 'rm -f "$script" "$script.out"' EXIT
cat >"$script" <<BATCH
#!/bin/sh
"$example"
echo "alone: \$?"
"$tool" run -n 2 "$example"
echo "cohort run: \$?"
srun -n 2 --overcommit "$example"
echo "srun: \$?"
BATCH
sbatch --wait -n 2 -O -o "$script.out" "$script" >/dev/null || fail "the batch script: $(cat "$script.out")"
out=$(cat "$script.out")
expect 1 "not in a step, so that nobody starts its 2 tasks: start it with srun or .cohort run." "$out"
expect 1 "alone: 2" "$out"
expect 1 "cohort run: 0" "$out"
expect 1 "srun: 0" "$out"
expect 0 "variables of torchrun are taken" "$out"
echo "a batch script: right"

if [ -x "${3:-}" ]; then
  expect 2 "average rank 0.5" "$(srun -n 2 --overcommit --mpi=pmix "$3" 04_all_reduce)"
  echo "Open MPI by pmix: right"
fi
if [ -x "${4:-}" ]; then
  expect 2 "average rank 0.5" "$(srun -n 2 --overcommit --mpi=pmi2 "$4" 04_all_reduce)"
  echo "MPICH by pmi2: right"
fi
