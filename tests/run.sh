#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Runs every test: installs what is missing (Debian 12), then configures, builds and tests in lanes:
#   release  everything, the library with -O3; of the unit tests only those that may differ with it, when the asan lane runs
#   asan     all unit and process tests with AddressSanitizer and UndefinedBehaviorSanitizer
#   style    format, names, and every header with clang 14, 16 and 19, warnings as errors (style/run.sh)
#   arm64    every header by a cross compiler, and two ranks of an example under an emulator (arm64/run.sh)
#   clang    every mistake that must not compile and every concept, with clang
#   tsan     unit and process tests with ThreadSanitizer
# A lane that this machine cannot run is skipped by name, with the reason. The last line counts the tests of all lanes:
# "N passed, M failed", then ", K skipped" when there are any. The exit code is 0 when M is 0.
#
# Usage: tests/run.sh [--quick] [--minutes N] [--no-install] [--jobs N]
#   --quick       the release lane only
#   --minutes N   leave out lanes that would not have ended after so many minutes; they are skipped by name
#   --no-install  never call apt-get
#   --jobs N      compilations at a time, and one test more (default: one a core, as far as memory allows)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=cmake/setup_debian.sh
source cmake/setup_debian.sh

usage() { sed -n '/^# Usage:/,/^[^#]/s/^# \{0,1\}//p' tests/run.sh; }

quick=0
install=1
minutes=100000
jobs=$(default_jobs)
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 ;;
    --no-install) install=0 ;;
    --minutes)
      [ $# -ge 2 ] || die "--minutes: a number is missing"
      minutes=$2
      shift
      ;;
    --minutes=*) minutes=${1#--minutes=} ;;
    --jobs)
      [ $# -ge 2 ] || die "--jobs: a number is missing"
      jobs=$2
      shift
      ;;
    --jobs=*) jobs=${1#--jobs=} ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      die "unknown argument $1"
      ;;
  esac
  shift
done
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "--minutes: found \"$minutes\", expected a positive number"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || die "--jobs: found \"$jobs\", expected a positive number"

passed=0
failed=0
skipped=0
summaries=()
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

note() {
  say "$*"
  summaries+=("$*")
}

skip_lane() {
  skipped=$((skipped + 1))
  note "lane $1: SKIPPED: $2"
}

fail_lane() {
  failed=$((failed + 1))
  note "lane $1: FAILED: $2"
}

# The numbers of a ctest run, from its own summary.
count() {
  local preset=$1 status=$2 output=$3 line lane_failed lane_total lane_skipped
  line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$output" | tail -n 1) || true
  if ! [[ $line =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    fail_lane "$preset" "ctest ended with $status and no summary"
    return
  fi
  lane_failed=${BASH_REMATCH[1]}
  lane_total=${BASH_REMATCH[2]}
  lane_skipped=$(grep -cE '^[[:space:]]+[0-9]+ - .* \(Skipped\)' "$output") || true
  if [ "$status" -ne 0 ] && [ "$lane_failed" -eq 0 ]; then
    fail_lane "$preset" "ctest ended with $status"
  fi
  passed=$((passed + lane_total - lane_failed - lane_skipped))
  failed=$((failed + lane_failed))
  skipped=$((skipped + lane_skipped))
  note "lane $preset: $line"
}

configure_options=()

# run_lane PRESET [--target TARGET... --] [CTEST ARGUMENT...]; with `--target none --` nothing is built
run_lane() {
  local preset=$1 status=0 started=$SECONDS targets=()
  shift
  if [ "${1:-}" = --target ]; then
    while [ "$1" != -- ]; do
      targets+=("$1")
      shift
    done
    shift
  fi
  say "lane $preset: configuring"
  if ! configure "$preset" ${configure_options[@]+"${configure_options[@]}"}; then
    fail_lane "$preset" "cmake could not configure it"
    return
  fi
  say "lane $preset: building, $jobs at a time"
  if [ "${targets[*]}" != "--target none" ] && ! cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}" -- -k 0; then
    fail_lane "$preset" "it does not build"
    return
  fi
  say "lane $preset: testing, built after $((SECONDS - started)) s"
  # One more than compile at a time: half of what the tests of processes take is waiting.
  ${under[@]+"${under[@]}"} ctest --preset "$preset" --parallel $((jobs + 1)) "$@" 2>&1 | tee "$scratch/output" || status=$?
  count "$preset" "$status" "$scratch/output"
  say "lane $preset: $((SECONDS - started)) s"
}

# sanitizer_starts SANITIZERS: some kernels, containers and sandboxes do not let one start at all; a program that does
# nothing tells. Result: `under`, what the tests must be run with.
sanitizer_starts() {
  local try
  echo 'int main() {}' >"$scratch/probe.cpp"
  g++ "-fsanitize=$1" "$scratch/probe.cpp" -o "$scratch/probe" >"$scratch/probe.log" 2>&1 || return 1
  for try in "" "setarch $(uname -m) --addr-no-randomize"; do  # ThreadSanitizer of g++ 12 and 32 random bits of mmap
    read -r -a under <<<"$try"
    if ${under[@]+"${under[@]}"} "$scratch/probe" >>"$scratch/probe.log" 2>&1; then return; fi
  done
  under=()
  return 1
}

run_sanitizer_lane() {
  local preset=$1 sanitizers=$2
  if ! sanitizer_starts "$sanitizers"; then
    skip_lane "$preset" "an empty program built with -fsanitize=$sanitizers does not run here: $(tail -n 1 "$scratch/probe.log")"
    return
  fi
  run_lane "$preset" --target suites -- --label-regex '^(unit|process)$'
  under=()
}

run_clang_lane() {
  if ! install_missing clang; then
    skip_lane clang "no clang++ here"
    return
  fi
  run_lane clang --target none -- --label-regex '^(compile_fail|concepts)$'
}

# run_script LANE COMMAND...: each check is a line of its own, "LANE/NAME: passed", "FAILED" or "SKIPPED: reason".
run_script() {
  local lane=$1 good bad left_out
  shift
  say "lane $lane"
  "$@" 2>&1 | tee "$scratch/output" || true
  good=$(grep -c "^$lane/.*: passed$" "$scratch/output") || true
  bad=$(grep -c "^$lane/.*: FAILED$" "$scratch/output") || true
  left_out=$(grep -c "^$lane/.*: SKIPPED: " "$scratch/output") || true
  passed=$((passed + good))
  failed=$((failed + bad))
  skipped=$((skipped + left_out))
  [ $((good + bad + left_out)) -gt 0 ] || fail_lane "$lane" "$1 has said nothing"
  note "lane $lane: $good passed, $bad failed, $left_out skipped"
}

run_style_lane() {
  install_missing clang-format-14 clang-tidy-14 || true
  install_missing clang clang-16 clang-19 || true
  run_script style tests/style/run.sh
}

run_arm64_lane() {
  install_missing g++-aarch64-linux-gnu qemu-user || true
  run_script arm64 tests/arm64/run.sh build/release/tools/cohort
}

# in_time MINUTES FUNCTION LANE...: if a lane that takes so long, as far as is known, will have ended in time
in_time() {
  if [ "$((SECONDS + $1 * 60))" -le $((minutes * 60)) ]; then
    "${@:2}"
  else
    skip_lane "$3" "$((SECONDS / 60)) minutes have passed, it takes about $1, and --minutes $minutes was given"
  fi
}

say "cohort: all tests; lanes: release$([ "$quick" = 1 ] || echo ' asan style arm64 clang tsan'), $jobs at a time"
needed=(g++ cmake ninja-build libboost1.81-dev doctest-dev libcli11-dev)
wished=(ccache libcereal-dev libssl-dev openssl libopenmpi-dev openmpi-bin libmpich-dev mpich pkg-config python3-venv doxygen
  slurmctld slurmd slurm-client munge)
[ "$quick" = 1 ] || wished+=(clang clang-16 clang-19 clang-format-14 clang-tidy-14 g++-aarch64-linux-gnu qemu-user)
# All together takes half of the time; where one of them cannot be had, each is tried for itself.
install_missing "${needed[@]}" "${wished[@]}" || say "not all of these: now one after the other"
install_missing "${needed[@]}" || die "cannot build"
install_missing ccache || say "everything is compiled, also what was before: no ccache here"
install_missing libcereal-dev || say "unit/codec_cereal will be skipped: no cereal here"
install_missing libssl-dev openssl || say "unit/tls_*, process/tls* and package/components/tls will be skipped: no OpenSSL here"
install_missing libopenmpi-dev openmpi-bin || say "the tests of mpi/openmpi are left out: no Open MPI here"
install_missing libmpich-dev mpich || say "the tests of mpi/mpich are left out: no MPICH here"
install_missing pkg-config || say "package/consume/pkg_config will be skipped: no pkg-config here"
install_missing python3-venv || say "package/conan and launch/manifests will be skipped: no python3-venv here"
install_missing doxygen || say "docs/html will be skipped: no doxygen here"
install_missing slurmctld slurmd slurm-client munge || say "launch/slurm will be skipped: no Slurm here"

unit_tests=all
if [ "$quick" = 0 ] && sanitizer_starts address,undefined; then unit_tests=optimised; fi
under=()
configure_options=("-DCOHORT_UNIT_TESTS=$unit_tests")
run_lane release
configure_options=()
if [ "$quick" = 0 ]; then
  run_sanitizer_lane asan address,undefined  # whatever the time: it has the other unit tests
  in_time 6 run_style_lane style
  in_time 4 run_arm64_lane arm64
  in_time 4 run_clang_lane clang
  in_time 34 run_sanitizer_lane tsan thread
fi

say "summary, after $SECONDS s"
printf '%s\n' "${summaries[@]}"
if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
