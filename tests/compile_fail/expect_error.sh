#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# expect_error.sh SOURCE COMPILER [FLAG...]
# SOURCE must compile, silently, and must not compile with -DCOHORT_FAIL; the compiler must then say something, on one
# line, that matches the extended regular expression after "// expect: " on the first line of SOURCE.
# FLAG... must keep the compiler from quoting source lines: only what it says itself may match.
set -eu
LC_ALL=C  # so that compilers quote with ASCII
export LC_ALL
source=$1
shift

fail() {
  echo "$source: $1"
  echo "--- the compiler said:"
  echo "$output"
  exit 1
}

output=
expected=$(sed -n '1s|^// expect: ||p' "$source")
[ -n "$expected" ] || fail "the first line must be '// expect: ' and an extended regular expression"

output=$("$@" -fsyntax-only "$source" 2>&1) || fail "does not compile without the mistake"
[ -z "$output" ] || fail "compiles without the mistake, but not silently"

if output=$("$@" -DCOHORT_FAIL -fsyntax-only "$source" 2>&1); then
  fail "compiles with the mistake"
fi
printf '%s\n' "$output" | grep -Eq -e "$expected" || fail "fails, but no line matches: $expected"
