#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Builds every fuzzer of this folder (NAME_fuzz.cpp) with clang, AddressSanitizer and UndefinedBehaviorSanitizer, and
# runs each for a while from its corpus (corpus/NAME). Installs what is missing (Debian 12). An input that breaks the
# program is left in build/fuzz, and its name printed; all others that reach new code are kept there, and the next run
# goes on from them. The last line is "N passed, M failed", with ", K skipped" when this machine
# cannot run them; the exit code is 0 when M is 0.
#
# Usage: tests/fuzz/run.sh [SECONDS] [--no-install]
#   SECONDS       how long each runs (default: 60)
#   --no-install  never call apt-get
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=cmake/setup_debian.sh
source cmake/setup_debian.sh

seconds=60
install=1
for argument in "$@"; do
  case $argument in
    --no-install) install=0 ;;
    -h | --help)
      sed -n '/^# Usage:/,/^[^#]/s/^# \{0,1\}//p' tests/fuzz/run.sh
      exit 0
      ;;
    *)
      [[ $argument =~ ^[1-9][0-9]*$ ]] || die "found \"$argument\", expected a number of seconds or --no-install"
      seconds=$argument
      ;;
  esac
done

folder=build/fuzz
mkdir -p "$folder"
names=()
for source in tests/fuzz/*_fuzz.cpp; do names+=("$(basename "$source" _fuzz.cpp)"); done

skip_all() {
  say "fuzzers ${names[*]}: SKIPPED: $1"
  echo "0 passed, 0 failed, ${#names[@]} skipped"
  exit 0
}

install_missing clang libclang-rt-14-dev libboost1.81-dev || skip_all "no clang++ with libFuzzer and Boost 1.81 here"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$folder/probe.cpp"
if ! { clang++ -fsanitize=fuzzer,address,undefined "$folder/probe.cpp" -o "$folder/probe" &&
       "$folder/probe" -runs=1; } >"$folder/probe.log" 2>&1; then
  skip_all "an empty fuzzer does not run here: $(tail -n 1 "$folder/probe.log")"
fi

passed=0
failed=0
for name in "${names[@]}"; do
  say "fuzzer $name: building"
  corpus=tests/fuzz/corpus/$name
  found=$folder/$name.found
  mkdir -p "$found"
  if ! clang++ -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iinclude -Itests \
      "tests/fuzz/${name}_fuzz.cpp" -o "$folder/$name"; then
    say "fuzzer $name: FAILED: it does not build"
    failed=$((failed + 1))
    continue
  fi
  say "fuzzer $name: running for $seconds s"
  if "$folder/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64 -max_len=4096 \
      -print_final_stats=1 -verbosity=0 -artifact_prefix="$folder/$name-" "$found" "$corpus"; then
    passed=$((passed + 1))
    say "fuzzer $name: passed"
  else
    failed=$((failed + 1))
    say "fuzzer $name: FAILED: the input is one of $folder/$name-*"
    continue
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
