#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# expect_link_error.sh MISSING_OBJECT FOLD_OBJECT PROGRAM COMPILER [LIBRARY...]
# MISSING_OBJECT alone must not link, and the linker must name the lines that are missing; with FOLD_OBJECT it links, and
# the program runs. FOLD_OBJECT may be "-" where there is no nvcc: then only the first half is shown, and it is said.
set -eu
LC_ALL=C
export LC_ALL
missing=$1
fold=$2
program=$3
compiler=$4
shift 4

if output=$("$compiler" "$missing" -o "$program" "$@" 2>&1); then
  echo "it links without the fold"
  exit 1
fi
for wanted in \
  'cohort::write_COHORT_INSTANTIATE_FOLD<float, my::largest_magnitude>::in_one_cu_file' \
  'cohort::write_COHORT_INSTANTIATE_QUANTISED<float, cohort::sum, cohort::float8_blocks<cohort::float8_e4m3, 128> >::in_one_cu_file'
do
  case $output in
    *"$wanted"*) ;;
    *)
      echo "the linker did not name $wanted:"
      echo "$output"
      exit 1
      ;;
  esac
done
[ "$fold" != - ] || {
  echo "SKIPPED: linking with the fold: no nvcc here"
  exit 77
}
"$compiler" "$missing" "$fold" -o "$program" "$@"
"$program"
