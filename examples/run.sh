#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Trains a model on four processes: installs what is missing (Debian 12), builds the launcher and the example, runs
#   cohort run -n 4 -- data_parallel_training --data digits [ARGUMENT...]
# Usage: examples/run.sh [ARGUMENT...]     --help lists the arguments
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=cmake/setup_debian.sh
source cmake/setup_debian.sh

install_missing g++ cmake ninja-build libboost1.81-dev libcli11-dev || die "cannot build"

say "building the launcher and data_parallel_training in build/release"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
configure release -DCOHORT_BUILD_TESTS=OFF >"$log" 2>&1 || {
  cat "$log"
  die "cmake could not configure build/release"
}
cmake --build --preset release --target cohort_tool data_parallel_training --parallel "$(default_jobs)"
rm -f "$log"
trap - EXIT

set -- build/release/tools/cohort run -n 4 -- build/release/examples/data_parallel_training --data digits "$@"
say "$*"
exec "$@"
