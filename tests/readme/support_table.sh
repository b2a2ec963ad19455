#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# support_table.sh README PROGRAM [OVER_MPI]: the support table of the README is what the program prints, which asks the
# library, and behind it the rows of the mpi backend, which all examples over MPI print when they are asked for this one.
set -eu
sed -n '/^<!-- support table -->$/,/^<!-- end of support table -->$/p' "$1" | sed '1d;$d' >table_of_readme
[ -s table_of_readme ] || { echo "$1: no table between '<!-- support table -->' and '<!-- end of support table -->'"; exit 1; }
"$2" >table_of_program
if [ -n "${3:-}" ]; then
  "$3" 19_support_table | grep '^| `mpi` |' >>table_of_program
else
  echo "the rows of mpi are not compared: no MPI library here (Debian 12: apt-get install libopenmpi-dev openmpi-bin)"
  grep -v '^| `mpi` |' table_of_readme >table_without_mpi
  mv table_without_mpi table_of_readme
fi
diff -u table_of_readme table_of_program || { echo "$1: paste the output of $2 between the two markers, then that of mpi"; exit 1; }
