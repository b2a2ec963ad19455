#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Runs every test: installs what is missing (Debian 12), then configures, builds and tests in lanes:
#   release  everything, the library with -O3, what nobody measures here with -O0 (COHORT_QUICK_BUILD); of the unit tests
#            only those that may differ with it, when the asan lane runs
#   asan     all unit and process tests with AddressSanitizer and UndefinedBehaviorSanitizer
#   style    format, names, every header with clang 14, 16 and 19, and with 16 and 19 what asan and tsan have not built,
#            warnings as errors (style/run.sh)
#   arm64    every header by a cross compiler, and two ranks of an example under an emulator (arm64/run.sh)
#   clang    every mistake that must not compile and every concept, with clang
#   tsan     those unit and process tests with ThreadSanitizer in which threads meet
# asan is built by clang 19 and tsan by clang 16 where these are, otherwise by the other or by g++.
# A lane that this machine cannot run is skipped by name, with the reason. The last line counts the tests of all lanes:
# "N passed, M failed", then ", K skipped" when there are any. The exit code is 0 when M is 0.
#
# Tests of processes wait a good part of their time. What needs no more than the processor goes on meanwhile, with the
# lowest priority: the asan build beside the tests of the release lane, the tsan build beside those of asan, and style,
# arm64 and clang beside those of tsan. What it prints is shown when its turn has come.
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
declare -A aside_pids=()
trap stop_asides EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

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

# start_aside NAME COMMAND...: starts it with the lowest priority, in a process group of its own, so that all of it can be
# ended. Not in a session of its own: the kernel may share the processor out by sessions, whatever the priorities in them.
start_aside() {
  local name=$1
  shift
  set -m
  lowest_priority "$@" >"$scratch/$name.aside" 2>&1 </dev/null &
  aside_pids[$name]=$!
  set +m
}

lowest_priority() {
  set +m
  renice -n 19 -p "$BASHPID" >/dev/null 2>&1 || true
  ionice -c 3 -p "$BASHPID" >/dev/null 2>&1 || true
  "$@"
}

# take_aside NAME: waits for it and shows what it has printed, or does nothing when it was not started. Result: its status.
take_aside() {
  local status=0
  [ -n "${aside_pids[$1]:-}" ] || return 0
  wait "${aside_pids[$1]}" || status=$?
  unset "aside_pids[$1]"
  cat "$scratch/$1.aside"
  return "$status"
}

stop_aside() {
  [ -n "${aside_pids[$1]:-}" ] || return 0
  kill -- "-${aside_pids[$1]}" 2>/dev/null || true
  wait "${aside_pids[$1]}" 2>/dev/null || true
  unset "aside_pids[$1]"
}

stop_asides() {
  local name
  for name in "${!aside_pids[@]}"; do stop_aside "$name"; done
  [ -z "${installer:-}" ] || wait "$installer" || true  # packages are not left half installed
  rm -rf "$scratch"
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

# build_lane PRESET [TARGET...]. Result: 2 when it cannot be configured, 3 when it does not build
build_lane() {
  local preset=$1 targets=()
  shift
  [ $# -eq 0 ] || targets=(--target "$@")
  say "lane $preset: configuring"
  configure "$preset" ${configure_options[@]+"${configure_options[@]}"} || return 2
  say "lane $preset: building, $jobs at a time"
  cmake --build --preset "$preset" --parallel "$jobs" ${targets[@]+"${targets[@]}"} -- -k 0 || return 3
}

# is_built LANE STATUS: whether build_lane has; a failure is counted.
is_built() {
  case $2 in
    0) return 0 ;;
    2) fail_lane "$1" "cmake could not configure it" ;;
    3) fail_lane "$1" "it does not build" ;;
    *) fail_lane "$1" "its build ended with $2" ;;
  esac
  return 1
}

# test_lane PRESET [CTEST ARGUMENT...]
test_lane() {
  local preset=$1 status=0 started=$SECONDS
  shift
  say "lane $preset: testing, after $SECONDS s"
  # One more than compile at a time: half of what the tests of processes take is waiting.
  ${under[@]+"${under[@]}"} ctest --preset "$preset" --parallel $((jobs + 1)) "$@" 2>&1 | tee "$scratch/output" || status=$?
  count "$preset" "$status" "$scratch/output"
  say "lane $preset: tested in $((SECONDS - started)) s"
}

# sanitizer_starts SANITIZERS COMPILER: some kernels, containers and sandboxes do not let one start at all; a program
# that does nothing tells. Result: `under`, what the tests must be run with.
sanitizer_starts() {
  local try compiler=$2
  echo 'int main() {}' >"$scratch/probe.cpp"
  "$compiler" "-fsanitize=$1" "$scratch/probe.cpp" -o "$scratch/probe" >"$scratch/probe.log" 2>&1 || return 1
  for try in "" "setarch $(uname -m) --addr-no-randomize"; do  # ThreadSanitizer of g++ 12 and 32 random bits of mmap
    read -r -a under <<<"$try"
    if ${under[@]+"${under[@]}"} "$scratch/probe" >>"$scratch/probe.log" 2>&1; then return; fi
  done
  under=()
  return 1
}

# start_sanitizer_build PRESET
start_sanitizer_build() {
  configure_options=()
  [ "${compiler_of[$1]}" = g++ ] || configure_options=(-DCMAKE_CXX_COMPILER="${compiler_of[$1]}" "${by_clang[@]}")
  start_aside "$1" build_lane "$1" suites
  configure_options=()
}

# test_sanitizer_lane PRESET STATUS: STATUS is that of its build.
test_sanitizer_lane() {
  is_built "$1" "$2" || return 0
  sanitizer_starts "${sanitizers_of[$1]}" "${compiler_of[$1]}" || true  # it has started before; for `under`
  test_lane "$1" --label-regex '^(unit|process)$'
  under=()
}

# count_script LANE: each check is a line of its own, "LANE/NAME: passed", "FAILED" or "SKIPPED: reason".
count_script() {
  local lane=$1 output=$scratch/$1.output good bad left_out
  cat "$output"
  good=$(grep -c "^$lane/.*: passed$" "$output") || true
  bad=$(grep -c "^$lane/.*: FAILED$" "$output") || true
  left_out=$(grep -c "^$lane/.*: SKIPPED: " "$output") || true
  passed=$((passed + good))
  failed=$((failed + bad))
  skipped=$((skipped + left_out))
  [ $((good + bad + left_out)) -gt 0 ] || fail_lane "$lane" "its script has said nothing"
  note "lane $lane: $good passed, $bad failed, $left_out skipped"
}

# run_checks LANE...: those that only compile and compare, one after the other. What each prints is in $scratch/LANE.output,
# and its status in $scratch/LANE.status.
run_checks() {
  local lane status
  for lane in "$@"; do
    status=0
    case $lane in
      style) tests/style/run.sh || status=$? ;;
      arm64) tests/arm64/run.sh build/release/tools/cohort || status=$? ;;
      clang)
        say "lane clang: configuring"
        if configure clang; then
          ctest --preset clang --parallel $((jobs + 1)) --label-regex '^(compile_fail|concepts)$' || status=$?
        else
          echo "cmake could not configure it"
          status=2
        fi
        ;;
    esac >"$scratch/$lane.output" 2>&1
    echo "$status" >"$scratch/$lane.status"
  done
}

count_checks() {
  local lane
  for lane in "$@"; do
    say "lane $lane"
    if [ "$lane" = clang ]; then
      cat "$scratch/clang.output"
      count clang "$(cat "$scratch/clang.status")" "$scratch/clang.output"
    else
      count_script "$lane"
    fi
  done
}

# in_time MINUTES: whether what takes so long, as far as is known, will have ended in time
in_time() { [ "$((SECONDS + $1 * 60))" -le $((minutes * 60)) ]; }

too_late() {
  skip_lane "$1" "$((SECONDS / 60)) minutes have passed, it would end about $2 later, and --minutes $minutes was given"
}

say "cohort: all tests; lanes: release$([ "$quick" = 1 ] || echo ' asan style arm64 clang tsan'), $jobs at a time"
needed=(g++ cmake ninja-build libboost1.81-dev doctest-dev libcli11-dev)
wished=(ccache libcereal-dev libssl-dev openssl libopenmpi-dev openmpi-bin libmpich-dev mpich)
later=(locales pkg-config python3-venv doxygen slurmctld slurmd slurm-client munge)  # no compilation asks for these
[ "$quick" = 1 ] || later+=(clang clang-16 clang-19 clang-format-14 clang-tidy-14 libclang-rt-16-dev libclang-rt-19-dev g++-aarch64-linux-gnu qemu-user)
# All together takes half of the time; where one of them cannot be had, each is tried for itself. What is needed later
# comes beside the first build where nobody has to be asked for a password.
[ "$(id -u)" -eq 0 ] || wished+=("${later[@]}")
install_missing "${needed[@]}" "${wished[@]}" || say "not all of these: now one after the other"
install_missing "${needed[@]}" || die "cannot build"
install_missing ccache || say "everything is compiled, also what was before: no ccache here"
install_missing libcereal-dev || say "unit/codec_cereal will be skipped: no cereal here"
install_missing libssl-dev openssl || say "unit/tls_*, process/tls* and package/components/tls will be skipped: no OpenSSL here"
install_missing libopenmpi-dev openmpi-bin || say "the tests of mpi/openmpi are left out: no Open MPI here"
install_missing libmpich-dev mpich || say "the tests of mpi/mpich are left out: no MPICH here"

installer=
if [ -n "$(missing_of "${later[@]}")" ]; then
  install_missing "${later[@]}" >"$scratch/installer" 2>&1 </dev/null &
  installer=$!
fi

finish_installing() {
  if [ -n "$installer" ]; then
    wait "$installer" || say "not all of these: now one after the other"
    installer=
    cat "$scratch/installer"
  fi
  install_missing locales || say "process/decimal_comma will be skipped, and unit/tuning checks less: no sources of locales here"
  install_missing pkg-config || say "package/consume/pkg_config will be skipped: no pkg-config here"
  install_missing python3-venv || say "package/conan and launch/manifests will be skipped: no python3-venv here"
  install_missing doxygen || say "docs/html will be skipped: no doxygen here"
  install_missing slurmctld slurmd slurm-client munge || say "launch/slurm will be skipped: no Slurm here"
}

# What clang makes takes two thirds of g++'s time to compile and to run, and other compilers see other mistakes: what they
# have built, style need not look at. They have their precompiled headers without a cache: ccache would bring those of
# another clone.
by_clang=(-DCMAKE_CXX_COMPILER_LAUNCHER= -DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
declare -A sanitizers_of=([asan]="address,undefined" [tsan]=thread)
declare -A compiler_of=([asan]=g++ [tsan]=g++)
# What can start: an empty list is none of them.
sanitized=()
starts() { [[ " ${sanitized[*]} " == *" $1 "* ]]; }
# find_sanitizers ASAN TSAN: by the first compiler of each list that can
find_sanitizers() {
  local preset compiler
  local -A compilers=([asan]=$1 [tsan]=$2)
  sanitized=()
  for preset in asan tsan; do
    for compiler in ${compilers[$preset]}; do
      sanitizer_starts "${sanitizers_of[$preset]}" "$compiler" || continue
      compiler_of[$preset]=$compiler
      sanitized+=("$preset")
      break
    done
    starts "$preset" || no_start[$preset]=$(tail -n 1 "$scratch/probe.log")
  done
  under=()
}
declare -A no_start=()
[ "$quick" = 1 ] || find_sanitizers g++ g++

status=0
configure_options=(-DCOHORT_QUICK_BUILD=ON -DCOHORT_UNIT_TESTS=all)
! starts asan || configure_options=(-DCOHORT_QUICK_BUILD=ON -DCOHORT_UNIT_TESTS=optimised)
build_lane release || status=$?
came=$installer
finish_installing
if [ -n "$came" ]; then  # some tests depend on what is there when they are configured; what has been built stays
  status=0
  build_lane release || status=$?
fi
configure_options=()
if [ "$quick" = 0 ]; then
  for version in 16 19; do
    install_missing "clang-$version" "libclang-rt-$version-dev" || say "no lane is built by clang $version: it is not here"
  done
  find_sanitizers "clang++-19 clang++-16 g++" "clang++-16 clang++-19 g++"
  for preset in asan tsan; do
    starts "$preset" ||
      skip_lane "$preset" "an empty program built with -fsanitize=${sanitizers_of[$preset]} does not run here: ${no_start[$preset]}"
  done
fi
! starts asan || start_sanitizer_build asan
if is_built release "$status"; then test_lane release; fi

status=0
take_aside asan || status=$?
if starts asan && [ "$status" = 0 ] && [ "${compiler_of[asan]}" = clang++-19 ]; then
  export COHORT_BUILT_BY_CLANG_19=$PWD/build/asan  # for style
fi
# Those of style, arm64 and clang come first when there is not the time for all: tsan takes as long as all of them.
checks_minutes=18
tsan_minutes=28
if starts tsan && in_time $((checks_minutes + tsan_minutes)); then
  start_sanitizer_build tsan
fi
! starts asan || test_sanitizer_lane asan "$status"  # whatever the time: it has the other unit tests

if [ "$quick" = 0 ]; then
  checks=()
  for check in style:10 arm64:14 clang:18; do  # the minutes until it has ended
    if ! in_time "${check#*:}"; then
      too_late "${check%:*}" "${check#*:}"
      continue
    fi
    case $check in
      style:*)
        install_missing clang-format-14 clang-tidy-14 || true
        install_missing clang clang-16 clang-19 || true
        ;;
      arm64:*) install_missing g++-aarch64-linux-gnu qemu-user || true ;;
      clang:*)
        install_missing clang || {
          skip_lane clang "no clang++ here"
          continue
        }
        ;;
    esac
    checks+=("${check%:*}")
  done

  with_tsan=0
  if starts tsan; then
    if in_time $((checks_minutes + tsan_minutes)); then
      with_tsan=1
      status=0
      take_aside tsan || status=$?
      if [ "$status" = 0 ] && [ "${compiler_of[tsan]}" = clang++-16 ]; then
        export COHORT_BUILT_BY_CLANG_16=$PWD/build/tsan
      fi
    else
      stop_aside tsan
      too_late tsan $((checks_minutes + tsan_minutes))
    fi
  fi
  start_aside checks run_checks ${checks[@]+"${checks[@]}"}
  [ "$with_tsan" = 0 ] || test_sanitizer_lane tsan "$status"
  take_aside checks || true
  count_checks ${checks[@]+"${checks[@]}"}
fi

say "summary, after $SECONDS s"
printf '%s\n' "${summaries[@]}"
if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
