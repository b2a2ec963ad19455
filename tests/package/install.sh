#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# The fixture of the tests that use an installed cohort: installs it, and moves what was installed, which must not matter.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in "$(dirname "$COHORT_PREFIX")/installed"
cmake --install "$COHORT_BUILD" --prefix "$PWD/first" >install.log
rm -rf "$COHORT_PREFIX"
mv first "$COHORT_PREFIX"

# Every header of the library and nothing that is not the library's.
(cd "$COHORT_SOURCE/include" && find . -name '*.hpp' -o -name '*.cuh') | sort >expected
(cd "$COHORT_PREFIX/include" && find . -type f) | sort >found
diff expected found || fail "the headers that are installed are not those of include/"
(cd "$COHORT_PREFIX" && find . -type f ! -path './include/*') | sort >others
if grep -vE '^\./(bin/cohort|lib/(pkgconfig/cohort\.pc|cmake/cohort/([Cc]ohort[^/]*|FindNCCL)\.cmake))$' others; then
  fail "these files are installed and should not be"
fi
# Nothing of this machine's folders, in particular not of the build.
if grep -rlF -e "$COHORT_SOURCE" -e "$COHORT_BUILD" "$COHORT_PREFIX/lib" "$COHORT_PREFIX/include"; then
  fail "these installed files name the folders that they were made in"
fi
