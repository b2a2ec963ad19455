#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# self_test.sh COMPILER [FLAG...]
# expect_error.sh must accept a right test and refuse each kind of wrong one.
set -eu
check=$(dirname "$0")/expect_error.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# source_file FIRST_LINE MISTAKE CODE
source_file() {
  printf '%s\n#ifdef COHORT_FAIL\n%s\n#endif\n%s\n' "$1" "$2" "$3" >"$folder/source.cpp"
}

must_refuse() {
  if output=$("$check" "$folder/source.cpp" "$@" 2>&1); then
    echo "expect_error.sh accepts a test that $why"
    exit 1
  fi
  case $output in
    *"$says"*) ;;
    *)
      echo "expect_error.sh refuses a test that $why, but does not say \"$says\":"
      echo "$output"
      exit 1
      ;;
  esac
}

mistake='static_assert(sizeof(int) == 1, "int is wide");'

source_file '// expect: int is (wide|narrow)' "$mistake" 'int main() {}'
"$check" "$folder/source.cpp" "$@"

why='compiles with the mistake' says='compiles with the mistake'
source_file '// expect: int is wide' '' 'int main() {}'
must_refuse "$@"

why='fails for another reason' says='no line matches'
source_file '// expect: int is narrow' "$mistake" 'int main() {}'
must_refuse "$@"

why='matches its own source line alone' says='no line matches'
source_file '// expect: nobody says this' 'int x = nowhere;  // nobody says this' 'int main() {}'
must_refuse "$@"

why='does not compile without the mistake' says='does not compile without the mistake'
source_file '// expect: int is wide' "$mistake" 'int main() { return nowhere; }'
must_refuse "$@"

why='warns without the mistake' says='not silently'
source_file '// expect: int is wide' "$mistake" 'int main() { int unused; }'
must_refuse "$@"

why='expects nothing' says='the first line must be'
source_file '// a mistake' "$mistake" 'int main() {}'
must_refuse "$@"
