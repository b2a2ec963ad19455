#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Every preset is there, and configures, or says what this machine lacks for it.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in presets
cmake -S "$COHORT_SOURCE" --list-presets >listed
configured=0
for preset in dev release asan tsan clang nccl mpi-openmpi mpi-mpich ci; do
  grep -q "\"$preset\"" listed || fail "there is no preset $preset"
  missing=
  case $preset in
    clang) command -v clang++ >/dev/null || missing="clang++" ;;
    mpi-*) command -v "mpicxx.${preset#mpi-}" >/dev/null || missing="mpicxx.${preset#mpi-}" ;;
    nccl)
      if [ ! -e "$COHORT_SOURCE/include/cohort/backend/nccl.hpp" ]; then
        expect_refusal "this version of cohort has no NCCL backend" cmake -S "$COHORT_SOURCE" --preset nccl -B nccl
        echo "preset nccl: refused, as there is no NCCL backend yet"
        continue
      fi
      command -v nvcc >/dev/null || missing="the CUDA toolkit"
      ;;
  esac
  if [ -n "$missing" ]; then
    echo "preset $preset: not tried, there is no $missing here"
    continue
  fi
  # Only the cache matters here: the programs are configured by those who build them.
  cmake -S "$COHORT_SOURCE" --preset "$preset" -B "$preset" -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF \
    -DCOHORT_BUILD_TOOLS=OFF -DCOHORT_BUILD_BENCHMARKS=OFF >log 2>&1 || {
    cat log
    fail "preset $preset does not configure"
  }
  echo "preset $preset: configures"
  configured=$((configured + 1))
done
[ "$configured" -ge 4 ] || fail "only $configured presets could be configured"
