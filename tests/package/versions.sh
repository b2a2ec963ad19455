#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# A version that is not compatible is refused by find_package and by pkg-config; one that is, is taken.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in versions
IFS=. read -r major minor patch <<<"$COHORT_VERSION"

ask() {
  cmake --fresh -S "$COHORT_SOURCE/tests/package/refused" -B . -G Ninja -DCMAKE_PREFIX_PATH="$COHORT_PREFIX" -DVERSION="$1"
}

ask "$major.$minor" || fail "its own version was refused"
ask "$COHORT_VERSION" || fail "its own version was refused"
for wanted in "$major.$minor.$((patch + 1))" "$major.$((minor + 1))" "$((major + 1)).0" "$major.$((minor + 1))...<$((major + 1))"; do
  expect_refusal "version: $COHORT_VERSION" ask "$wanted"
done
[ "$minor" -eq 0 ] || expect_refusal "version: $COHORT_VERSION" ask "$major.$((minor - 1))"
