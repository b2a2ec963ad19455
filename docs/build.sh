#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Builds the documentation as HTML: the pages of docs/, the guide with the examples in it, and a page for each public header
# by Doxygen. Then every link is followed, and what the tables list is compared with the library.
#
# Usage: docs/build.sh [FOLDER]     build/docs without an argument; the entry is FOLDER/html/index.html
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$source_dir/build/docs}
mkdir -p "$out"
out=$(cd "$out" && pwd)
command -v doxygen >/dev/null || {
  echo "error: doxygen not found (Debian 12: apt-get install doxygen)" >&2
  exit 1
}

cd "$source_dir"
python3 docs/check.py sources
rm -rf "$out/pages" "$out/html" "$out/headers"
mkdir "$out/pages"
python3 docs/make_pages.py "$out/pages"

version=$(sed -n 's/^#define COHORT_VERSION_[A-Z]* *\([0-9][0-9]*\)$/\1/p' include/cohort/version.hpp | paste -sd.)
# Public headers: no folder of bodies or details among them.
headers=$(python3 docs/check.py list-headers)
# All at once: as a filter of Doxygen's, Python would be started for each of them, and more than once.
# shellcheck disable=SC2086  # a list of words
python3 docs/doxygen_filter.py "$out/headers" $headers
{
  cat docs/Doxyfile
  echo "PROJECT_NUMBER = $version"
  echo "OUTPUT_DIRECTORY = \"$out\""
  echo "STRIP_FROM_PATH = \"$out/headers/include\" \"$out/pages\""
  echo "USE_MDFILE_AS_MAINPAGE = \"$out/pages/index.md\""
  echo "INPUT = \"$out/pages\" $(echo "$headers" | sed "s|.*|\"$out/headers/&\"|" | paste -sd' ')"
} | doxygen - 2>"$out/warnings.log"
# Doxygen 1.9 offers a jump to sections that it then leaves out.
sed -i -E 's/<a href="#(nested-classes|concepts)">([^<]*)<\/a>( &#124;)?//' "$out"/html/*.html
python3 docs/check.py html "$out/html"
echo "documentation: $out/html/index.html"
