#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Runs the soak for ten minutes over 8 processes: random groups, tags, sizes and calls, checked for lost messages, left
# file descriptors and memory that grows. A run of a few seconds is one of the tests.
#
# Usage: tests/soak/run.sh [SECONDS [SEED]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=../../cmake/setup_debian.sh
source cmake/setup_debian.sh
install_missing g++ cmake ninja-build libboost1.81-dev doctest-dev libcli11-dev || die "cannot build"
configure release >/dev/null
cmake --build --preset release --target soak cohort_tool
exec build/release/tools/cohort run -n 8 -- build/release/tests/soak "${1:-600}" "${2:-$RANDOM}"
