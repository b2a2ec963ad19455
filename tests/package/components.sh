#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# components.sh refused|tools|mpi|nccl|tls: the components of the installed package.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
here=$COHORT_SOURCE/tests/package
work_in "components_$1"

case $1 in
  refused)
    ask() {
      cmake --fresh -S "$here/refused" -B . -G Ninja -DCMAKE_PREFIX_PATH="$COHORT_PREFIX" -DVERSION=0.1 "$@"
    }
    expect_refusal "component gpus needs another package: this one has the components \"mpi" ask -DCOMPONENTS=gpus
    # An MPI that is not there: said so, and no trouble for who does not ask for it.
    expect_refusal "component mpi needs an MPI library: install one" ask -DCOMPONENTS=mpi -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
    ask -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON || fail "cohort::cohort needs MPI"
    ;;
  tools)
    [ -x "$COHORT_PREFIX/bin/cohort" ] || skip "the cohort program was not built (COHORT_BUILD_TOOLS=OFF)"
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.24)
project(tools LANGUAGES CXX)
find_package(cohort 0.1 CONFIG REQUIRED COMPONENTS tools)
get_target_property(program cohort::tool IMPORTED_LOCATION_RELEASE)
if(NOT program)
  get_target_property(program cohort::tool LOCATION)
endif()
execute_process(COMMAND ${program} run -n 2 -- "${CMAKE_COMMAND}" -E true COMMAND_ERROR_IS_FATAL ANY)
END
    cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$COHORT_PREFIX"
    ;;
  mpi)
    for flavour in openmpi mpich; do
      command -v "mpicxx.$flavour" >/dev/null && command -v "mpirun.$flavour" >/dev/null && break
      flavour=
    done
    [ -n "$flavour" ] || skip "neither Open MPI nor MPICH is here (Debian 12: apt-get install libopenmpi-dev openmpi-bin)"
    mpirun=("mpirun.$flavour")
    [ "$flavour" = mpich ] || mpirun+=(--allow-run-as-root --oversubscribe)
    cmake -S "$here/over_mpi" -B . -G Ninja -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_PREFIX_PATH="$COHORT_PREFIX" \
      -DMPI_CXX_COMPILER="mpicxx.$flavour"
    cmake --build .
    "${mpirun[@]}" -n 2 ./over_mpi
    ;;
  nccl)
    # What is not there is said, where there is no NCCL and where it is hidden.
    expect_refusal "component nccl needs the CUDA toolkit and NCCL 2.28 or newer" cmake --fresh -S "$here/refused" -B refused \
      -G Ninja -DCMAKE_PREFIX_PATH="$COHORT_PREFIX" -DVERSION=0.1 -DCOMPONENTS=nccl -DCMAKE_DISABLE_FIND_PACKAGE_NCCL=ON
    found=
    for folder in "${NCCL_ROOT:-}" "${NCCL_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr/local /usr; do
      [ -n "$folder" ] && [ -e "$folder/include/nccl.h" ] && found=$folder
    done
    [ -n "$found" ] || skip "no nccl.h here: set NCCL_ROOT to the folder that has include/nccl.h"
    cmake -S "$here/over_nccl" -B . -G Ninja -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_PREFIX_PATH="$COHORT_PREFIX"
    cmake --build .
    ./over_nccl
    ;;
  tls)
    expect_refusal "component tls needs OpenSSL 3.0 or newer with its headers: install it (Debian: libssl-dev)" \
      cmake --fresh -S "$here/refused" -B refused -G Ninja -DCMAKE_PREFIX_PATH="$COHORT_PREFIX" -DVERSION=0.1 -DCOMPONENTS=tls \
      -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON
    [ -e /usr/include/openssl/ssl.h ] || skip "no OpenSSL here (Debian 12: apt-get install libssl-dev)"
    command -v openssl >/dev/null || skip "no program openssl here, which makes the certificates (Debian 12: apt-get install openssl)"
    cmake -S "$here/over_tls" -B . -G Ninja -DCMAKE_CXX_FLAGS="-O0 ${compiled_once[0]}" -DCMAKE_PREFIX_PATH="$COHORT_PREFIX" \
      -DCMAKE_EXE_LINKER_FLAGS=-Wl,--no-as-needed -DCMAKE_CXX_STANDARD_LIBRARIES="$COHORT_BODIES_WITH_TLS"
    cmake --build .
    # As docs/tls.md tells to.
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=authority of a job" \
      -keyout authority.key -out authority.pem 2>/dev/null
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=a rank" -keyout rank.key -out rank.csr 2>/dev/null
    openssl x509 -req -in rank.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -out rank.pem 2>/dev/null
    expect_answer ./over_tls "$PWD"
    ;;
  *) fail "unknown test $1" ;;
esac
