# SPDX-License-Identifier: BSL-1.0
# Sourced by the package tests (bash). CTest gives them
#   COHORT_SOURCE   this project            COHORT_PREFIX   where the fixture package/install has put it
#   COHORT_BUILD    its build tree          COHORT_VERSION  its version
#   CXX             the compiler              COHORT_BODIES   the object of cohort/src.hpp without TLS
#   COHORT_BODIES_WITH_TLS   a library of it with TLS, where the build has that
# shellcheck shell=bash
set -euo pipefail

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
skip() {
  printf 'SKIPPED: %s\n' "$*"
  exit 77
}

# expect_text FILE TEXT: FILE says TEXT. CMake breaks the lines of its messages, so spaces do not count.
expect_text() {
  tr -s ' \n' '  ' <"$1" | grep -F -- "$2" >/dev/null || {
    cat "$1" >&2
    fail "it does not say: $2"
  }
}

# expect_refusal TEXT COMMAND...: COMMAND fails and says TEXT.
expect_refusal() {
  local text=$1
  shift
  if "$@" >refusal.log 2>&1; then
    cat refusal.log >&2
    fail "it should have been refused: $*"
  fi
  expect_text refusal.log "$text"
}

# expect_answer PROGRAM...: the consumer runs, and its two ranks agree.
expect_answer() {
  "$@" | tee answer.log
  expect_text answer.log "cohort $COHORT_VERSION: 2 ranks agree"
}

# Runs a command without a network, where this machine lets it: nothing may be downloaded while configuring.
offline() {
  if unshare --map-root-user --net true 2>/dev/null; then
    unshare --map-root-user --net "$@"
  else
    "$@"
  fi
}

# How a consumer is compiled and linked that is about how it finds the library: not header-only, which `bare` is, but with
# the bodies that the build has compiled. It takes a third of the time.
# shellcheck disable=SC2034
compiled_once=(-DCOHORT_SEPARATE_COMPILATION "$COHORT_BODIES")

# A folder of this test's own, empty.
work_in() {
  rm -rf "$1"
  mkdir -p "$1"
  cd "$1"
}
