#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# processes.sh N PROGRAM [ARGUMENT...]: N ranks on this host, which meet at a file. Prints what each has printed. The exit
# code is the first that is not 0; 77 where every rank was skipped.
set -u
n=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
started=()
for ((rank = 0; rank < n; ++rank)); do
  COHORT_RANK=$rank COHORT_WORLD_SIZE=$n COHORT_LOCAL_RANK=$rank COHORT_LOCAL_WORLD_SIZE=$n \
    COHORT_INIT=file://$folder/meeting "$@" >"$folder/$rank" 2>&1 &
  started+=($!)
done
code=0
for ((rank = 0; rank < n; ++rank)); do
  wait "${started[$rank]}"
  ended=$?
  [ "$code" -eq 0 ] && code=$ended
  [ "$n" -eq 1 ] || sed "s/^/[$rank] /" "$folder/$rank"
done
[ "$n" -gt 1 ] || cat "$folder/0"
exit "$code"
