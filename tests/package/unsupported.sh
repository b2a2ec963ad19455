#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# A compiler that is told to do without something that cohort needs says so first, in words.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in unsupported

# expect_first TEXT FLAG...: the first error of every header named here says TEXT.
expect_first() {
  local text=$1 header
  shift
  for header in cohort.hpp communicator.hpp operation.hpp task.hpp error.hpp element.hpp; do
    echo "#include <cohort/$header>" >unit.cpp
    if "$CXX" "$@" -fsyntax-only -fmax-errors=1 -I "$COHORT_SOURCE/include" unit.cpp >refusal.log 2>&1; then
      fail "$header compiles with $*"
    fi
    expect_text refusal.log "$text"
  done
}

expect_first "cohort reports failures by exceptions" -std=c++20 -fno-exceptions
expect_first "cohort needs C++20" -std=c++17
