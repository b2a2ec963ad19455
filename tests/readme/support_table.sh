#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# support_table.sh README PROGRAM OVER_MPI OVER_NCCL: the support table of the README is what the program prints, which asks
# the library, and behind it the rows of the mpi backend, which all examples over MPI print when they are asked for this one,
# and those of nccl. "" for what is not here.
set -eu
sed -n '/^<!-- support table -->$/,/^<!-- end of support table -->$/p' "$1" | sed '1d;$d' >table_of_readme
[ -s table_of_readme ] || { echo "$1: no table between '<!-- support table -->' and '<!-- end of support table -->'"; exit 1; }
"$2" >table_of_program

# rows BACKEND HINT PROGRAM...: its rows behind the others, or no rows of it at all
rows() {
  backend=$1
  hint=$2
  shift 2
  if [ -n "$1" ]; then
    "$@" | grep "^| \`$backend\` |" >>table_of_program
  else
    echo "the rows of $backend are not compared: $hint"
    grep -v "^| \`$backend\` |" table_of_readme >table_without
    mv table_without table_of_readme
  fi
}
rows mpi "no MPI library here (Debian 12: apt-get install libopenmpi-dev openmpi-bin)" "$3" 19_support_table
rows nccl "no CUDA or no NCCL here" "$4"
diff -u table_of_readme table_of_program || {
  echo "$1: paste the output of $2 between the two markers, then that of mpi and of nccl"
  exit 1
}
