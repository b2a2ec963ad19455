# SPDX-License-Identifier: BSL-1.0
# Sourced by tests/run.sh and examples/run.sh (bash): what both need of the machine.
# shellcheck shell=bash

say() { printf '== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

has_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }

has_boost() {  # 1.81 is the first with all that is used; Debian 12's libboost-dev is 1.74
  local file version
  for file in /usr/local/include/boost/version.hpp /usr/include/boost/version.hpp; do
    [ -e "$file" ] || continue
    version=$(sed -n 's/^#define BOOST_VERSION \([0-9]*\).*/\1/p' "$file")
    [ "${version:-0}" -ge 108100 ] && return 0
  done
  return 1
}

# Result: whether what PACKAGE (a Debian name) provides is there, from wherever it came
is_there() {
  case $1 in
    g++) command -v g++ ;;
    cmake) command -v cmake ;;
    ninja-build) command -v ninja ;;
    clang) command -v clang++ ;;
    g++-aarch64-linux-gnu) command -v aarch64-linux-gnu-g++ ;;
    qemu-user) command -v qemu-aarch64 ;;
    libboost1.81-dev) has_boost ;;
    doctest-dev) has_header doctest/doctest.h ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libopenmpi-dev) command -v mpicxx.openmpi ;;
    openmpi-bin) command -v mpirun.openmpi ;;
    libmpich-dev) command -v mpicxx.mpich ;;
    mpich) command -v mpirun.mpich ;;
    slurmctld | slurmd) [ -x "/usr/sbin/$1" ] || command -v "$1" ;;
    slurm-client) command -v srun ;;
    munge) [ -x /usr/sbin/munged ] || command -v munged ;;
    clang-16 | clang-19) command -v "clang++-${1#clang-}" ;;
    clang-format-14 | clang-tidy-14) command -v "$1" || "${1%-14}" --version 2>&1 | grep -q 'version 14\.' ;;
    ccache | pkg-config | doxygen | openssl) command -v "$1" ;;
    python3-venv) python3 -c "import ensurepip, venv" 2>/dev/null ;;
    libssl-dev) has_header openssl/ssl.h ;;
    libcereal-dev) has_header cereal/cereal.hpp ;;
    libclang-rt-14-dev) [ -e "$(clang++ -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ] ;;
    libclang-rt-16-dev | libclang-rt-19-dev)
      [ -e "$("clang++-${1//[!0-9]/}" -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.tsan-$(uname -m).a" ]
      ;;
    *) dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q ' installed$' ;;
  esac >/dev/null
}

# Prints those of PACKAGE... that are not there.
missing_of() {
  local package
  for package in "$@"; do
    is_there "$package" || printf '%s\n' "$package"
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# install_missing PACKAGE...: installs those that are not there.
# Result: 1 when some are still missing; what could be done about it has been said.
install_missing() {
  local missing by_hand
  mapfile -t missing < <(missing_of "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  by_hand="install by hand what provides ${missing[*]} (Debian 12: apt-get install ${missing[*]})"
  if [ "${install:-1}" = 0 ]; then
    say "missing, and --no-install was given: $by_hand"
    return 1
  fi
  if ! command -v apt-get >/dev/null; then
    say "missing, and there is no apt-get here: $by_hand"
    return 1
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    say "missing, and this is neither root nor is there sudo: $by_hand"
    return 1
  fi
  say "installing ${missing[*]}"
  # Once: the lists do not change while a script runs.
  if [ -z "${lists_are_new:-}" ]; then
    as_root apt-get -qq update || say "apt-get update failed; trying with the lists that are here"
    lists_are_new=1
  fi
  # --no-remove: libboost1.81-dev would replace an installed libboost-dev, which is not ours to decide.
  if ! as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -qq -y --no-install-recommends --no-remove install "${missing[@]}"; then
    say "apt-get could not install them: $by_hand; if it refused to remove a package, that one is in the way"
    return 1
  fi
  mapfile -t missing < <(missing_of "$@")
  [ "${#missing[@]}" -eq 0 ] || {
    say "installed, and yet not found: ${missing[*]}"
    return 1
  }
}

# Compilations at a time: one a core, and no more than memory for 1.5 GiB each.
default_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "${memory:-1}" -ge 1 ] || memory=1
  [ "$cores" -lt "$memory" ] && memory=$cores
  echo "$memory"
}

# What was compiled before, in this clone or another, is not compiled again where ccache is there: it compares sources,
# headers and options, not times and places. Result: `launchers`, for configure.
use_compiler_cache() {
  launchers=()
  command -v ccache >/dev/null || return 0
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  export CCACHE_DEPEND=1  # what a file includes is learned from compiling it, not by a preprocessor before that
  launchers=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache -DCOHORT_TEST_PRECOMPILE=ON)
}

# configure PRESET [-DNAME=VALUE...]: afresh, so that neither an older cache nor another place of the tree matters.
configure() {
  local preset=$1 launchers
  shift
  use_compiler_cache
  cmake --fresh --preset "$preset" "${launchers[@]}" "$@"
}
