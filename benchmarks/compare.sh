#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Measures cohort, Open MPI, MPICH and Gloo in one run on this machine. Installs the peers where it may, builds a driver
# for each, and leaves out by name what is missing. `compare.sh --help` tells the options.
#   compare.sh --quick --ops all_reduce --sizes 8,64K --ranks 2 --transport shm      one cell in seconds
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
bin=${COHORT_BENCHMARK_BIN:-$root/build/peers}
compiler=${CXX:-g++}
flags="-std=c++20 -O3 -DNDEBUG -I$root/include"
mkdir -p "$bin"

install=yes
write=yes
for word in "$@"; do
  case $word in
    --no-install) install=no ;;
    --quick|--help|-h|--output|--output=*|--beside|--beside=*) write=no ;;
  esac
done
[ "${1-}" != "--no-install" ] || shift

# The packages only where they can be had without a question; a machine without them still measures what it has.
missing=
for package in libopenmpi-dev openmpi-bin libmpich-dev mpich libgloo-dev python3-matplotlib; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ] && [ "$install" = yes ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing:$missing"
  # shellcheck disable=SC2086  # a list of words
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$bin/install.log" 2>&1 ||
    echo "could not install all of them, see $bin/install.log"
fi

# build NAME SOURCE COMPILER FLAGS...: again only when something that it is made of is newer.
build() {
  name=$1 source=$2
  shift 2
  if ! command -v "$1" >/dev/null; then
    rm -f "$bin/$name"
    return
  fi
  if [ -x "$bin/$name" ] && [ -z "$(find "$root/include" "$here/measure.hpp" "$here"/peers/bare_*.hpp "$source" -newer "$bin/$name" | head -n 1)" ]; then
    return
  fi
  echo "building $name"
  # shellcheck disable=SC2086  # flags are a list of words
  if ! "$@" $flags "$source" -o "$bin/$name.new" $libraries >"$bin/$name.log" 2>&1; then
    rm -f "$bin/$name"
    if [ "$name" = cohort ] || [ "$name" = floors ]; then
      cat "$bin/$name.log"
      exit 1
    fi
    echo "the driver for $name does not build, see $bin/$name.log"
    return
  fi
  mv "$bin/$name.new" "$bin/$name"
}
libraries=-pthread
build cohort "$here/peers/cohort.cpp" "$compiler"
build floors "$here/floors.cpp" "$compiler"
build bare "$here/peers/bare.cpp" "$compiler"
libraries=
build openmpi "$here/peers/mpi.cpp" mpicxx.openmpi
build mpich "$here/peers/mpi.cpp" mpicxx.mpich
build openmpi_requests "$here/peers/mpi.cpp" mpicxx.openmpi -DMEASURE_REQUESTS
build mpich_requests "$here/peers/mpi.cpp" mpicxx.mpich -DMEASURE_REQUESTS
build bare_openmpi "$here/peers/bare_mpi.cpp" mpicxx.openmpi
build bare_mpich "$here/peers/bare_mpi.cpp" mpicxx.mpich
build cohort_openmpi "$here/peers/cohort.cpp" mpicxx.openmpi -DCOHORT_OVER_MPI
build cohort_mpich "$here/peers/cohort.cpp" mpicxx.mpich -DCOHORT_OVER_MPI
if [ -e /usr/include/gloo/context.h ]; then
  libraries="-lgloo -pthread"
  build gloo "$here/peers/gloo.cpp" "$compiler"
else
  rm -f "$bin/gloo"
fi

[ "$write" = no ] || set -- --output "$here/results" "$@"
# The interpreter that sees matplotlib, where one does.
python=python3
for each in python3 /usr/bin/python3; do
  if "$each" -c "import matplotlib" 2>/dev/null; then
    python=$each
    break
  fi
done
exec "$python" "$here/compare/compare.py" --bin "$bin" "$@"
