#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# support_table.sh README PROGRAM: the support table of the README is what the program prints, which asks the library.
set -eu
sed -n '/^<!-- support table -->$/,/^<!-- end of support table -->$/p' "$1" | sed '1d;$d' >table_of_readme
[ -s table_of_readme ] || { echo "$1: no table between '<!-- support table -->' and '<!-- end of support table -->'"; exit 1; }
"$2" >table_of_program
diff -u table_of_readme table_of_program || { echo "$1: paste the output of $2 between the two markers"; exit 1; }
