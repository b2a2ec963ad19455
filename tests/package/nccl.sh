#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# FindNCCL.cmake finds the NCCL of this machine, knows its version, and refuses one that is too old.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in nccl
found=
for folder in "${NCCL_ROOT:-}" "${NCCL_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr/local /usr; do
  [ -n "$folder" ] && [ -e "$folder/include/nccl.h" ] && found=$folder
done
[ -n "$found" ] || skip "no nccl.h here: set NCCL_ROOT to the folder that has include/nccl.h"
cmake -S "$COHORT_SOURCE/tests/package/nccl" -B . -DCOHORT_SOURCE="$COHORT_SOURCE"
cmake --build .
./nccl_version
