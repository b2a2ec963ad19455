#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# consume.sh bare|pkg_config|find_package|build_tree|add_subdirectory|fetch_content: the consumer is built that way, and run.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
consumer=$COHORT_SOURCE/tests/package/consumer
way=$1
work_in "consume_$way"

# with_cmake ARGUMENT...
with_cmake() {
  offline cmake -S "$consumer" -B . -G Ninja -DCMAKE_CXX_FLAGS="-O0 ${compiled_once[0]}" \
    -DCMAKE_EXE_LINKER_FLAGS="${compiled_once[1]}" "$@"
  cmake --build .
}

case $way in
  bare)
    "$CXX" -std=c++20 -I "$COHORT_SOURCE/include" "$consumer/main.cpp" -o consumer
    ;;
  pkg_config)
    command -v pkg-config >/dev/null || skip "no pkg-config here (Debian 12: apt-get install pkg-config)"
    export PKG_CONFIG_PATH=$COHORT_PREFIX/lib/pkgconfig
    [ "$(pkg-config --modversion cohort)" = "$COHORT_VERSION" ] || fail "cohort.pc has another version than $COHORT_VERSION"
    pkg-config --exists 'cohort >= 0.1' || fail "cohort.pc: not >= 0.1"
    read -ra flags <<<"$(pkg-config --cflags --libs cohort)"
    "$CXX" -std=c++20 "$consumer/main.cpp" "${compiled_once[@]}" "${flags[@]}" -o consumer
    ;;
  find_package)  # package/install has seen that its headers are the same
    with_cmake -DCONSUME_BY=find_package -DCMAKE_PREFIX_PATH="$COHORT_PREFIX"
    ;;
  build_tree)  # configured alone: its headers are those that the others compile
    offline cmake -S "$consumer" -B . -G Ninja -DCONSUME_BY=find_package -Dcohort_DIR="$COHORT_BUILD"
    exit 0
    ;;
  add_subdirectory | fetch_content)
    with_cmake -DCONSUME_BY="$way" -DCOHORT_SOURCE="$COHORT_SOURCE"
    ;;
  *) fail "unknown way $way" ;;
esac
expect_answer ./consumer
