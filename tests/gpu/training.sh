#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# training.sh PROGRAM: the training example on GPUs. Without a GPU it ends with 1 and says why; with one, ranks that share
# it learn what one rank learns, and so does a rank of a world of NCCL's.
set -u
program=$1
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# expect CODE TEXT ARGUMENT...
expect() {
  local code=$1 text=$2 found
  shift 2
  "$program" "$@" >"$output" 2>&1
  found=$?
  if [ "$found" -ne "$code" ] || ! grep -q -- "$text" "$output"; then
    echo "gpu_data_parallel_training $*: exit code $found, expected $code and \"$text\" in:"
    cat "$output"
    exit 1
  fi
}
expect 2 'found "17", expected an integer from 1 to 16' --local-ranks 17
expect 2 '--local-ranks: a value is missing' --local-ranks
expect 2 'unknown option --epoch; did you mean --epochs?' --epoch 3
expect 0 '--meeting FILE' --help
if "$program" --local-ranks 1 --epochs 1 --quiet 2>&1 | grep -q 'reaches no GPU'; then
  expect 1 'gpu_data_parallel_training: cudaGetDeviceCount: .*this process reaches no GPU: run it where there is one' --local-ranks 2
  expect 1 'rank 0 cannot: .*this process reaches no GPU' --epochs 1
  echo "no GPU here: it says so, and ends with 1"
  exit 0
fi
losses=
for ranks in 1 2 3 8 nccl; do
  arguments=(--epochs 15 --quiet)
  [ "$ranks" = nccl ] || arguments+=(--local-ranks "$ranks")
  expect 0 'test accuracy [0-9.]* % after 15 epochs' "${arguments[@]}"
  cat "$output"
  awk '{ if ($3 < 90) { print "expected 90 % or more"; exit 1 } }' "$output" || exit 1
  losses+=" $(sed -n 's/.*loss \([0-9.]*\),.*/\1/p' "$output")"
done
# Sums over more or fewer ranks round differently.
echo "$losses" | awk '{ for (i = 2; i <= NF; ++i) if ($i - $1 > 0.01 || $1 - $i > 0.01) { print "losses differ:" $0; exit 1 } }'
