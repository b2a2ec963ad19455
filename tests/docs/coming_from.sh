#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# coming_from.sh CHECK COMPILER INCLUDE: every "now write" of the tables "coming from" compiles.
set -eu
"$1" snippets coming_from.cpp
"$2" -std=c++20 -Wall -Wextra -Wno-unused-variable -Wno-unused-but-set-variable -Werror -fsyntax-only \
  -DCOHORT_SEPARATE_COMPILATION -I "$3" coming_from.cpp
