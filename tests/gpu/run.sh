#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Builds and runs every test and benchmark of the GPU side on the GPU of this machine: no longer than eight minutes on 16
# cores, some six by estimate; each part has a limit. One line for each part: "passed", "FAILED" or "SKIPPED: reason".
#
# Usage: [OUT=folder] tests/gpu/run.sh [--boost FOLDER] [--arch sm_90] [--programs FOLDER] [--build-only]
#                                    [--limit SECONDS] [PART...]
#   --boost FOLDER   where boost/version.hpp is, if the compiler does not find Boost 1.81 by itself
#   --arch ARCH      what nvcc compiles for; default: what the device is, else sm_90
#   --programs FOLDER   the programs are kept there, and those that are there already are not built again: with
#                    --build-only on a machine without a GPU, the time on one that has it goes into running them
#   --build-only     build, and run nothing
#   --limit SECONDS  for each part, instead of its own
#   PART             no_device fold_on_host fold_oracle staging staging_mpi ipc nccl_alone fusions example training
#                    sanitizer benchmark; all without
# Needs nvcc (CUDA_HOME or PATH), g++ 12 or newer, NCCL 2.28 or newer (NCCL_ROOT, or beside CUDA); for staging_mpi an MPI,
# CUDA-aware or not (MPICXX and MPIRUN, default mpicxx and mpirun). With OUT set, the logs
# and the figures are left there: OUT/gpu_results.txt is everything that was printed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

every=(no_device fold_on_host fold_oracle staging staging_mpi ipc nccl_alone fusions example training sanitizer benchmark)
boost=
arch=
programs=
build_only=
limited=
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --boost) boost=$2; shift 2 ;;
    --arch) arch=$2; shift 2 ;;
    --programs) programs=$2; shift 2 ;;
    --build-only) build_only=1; shift ;;
    --limit) limited=$2; shift 2 ;;
    -*) echo "unknown option $1; see the first lines of $0"; exit 2 ;;
    *) parts+=("$1"); shift ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=("${every[@]}")
for part in "${parts[@]}"; do
  [[ " ${every[*]} " == *" $part "* ]] || { echo "unknown part $part"; exit 2; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=${programs:-$work}
mkdir -p "$programs"
results=$work/gpu_results.txt
[ -n "${OUT:-}" ] && mkdir -p "$OUT" && results=$OUT/gpu_results.txt
: >"$results"
say() { echo "$*" | tee -a "$results"; }
failed=0
began=$SECONDS

find_cuda() {
  local folder
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /none/none)")")")" /usr/local/cuda; do
    [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ] && echo "$folder" && return
  done
  return 1
}
find_nccl() {  # the folder that has include/nccl.h
  local folder
  for folder in "${NCCL_ROOT:-}" "${NCCL_HOME:-}" "$1" /usr/local /usr; do
    [ -n "$folder" ] && [ -e "$folder/include/nccl.h" ] && echo "$folder" && return
  done
  # A Python wheel of NVIDIA's has it as well.
  folder=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null) &&
    [ -e "$folder/include/nccl.h" ] && echo "$folder"
}
skip_all() {
  for part in "${parts[@]}"; do say "gpu/$part: SKIPPED: $1"; done
  exit 0
}

cuda=$(find_cuda) || skip_all "no nvcc here: set CUDA_HOME to the folder that has bin/nvcc"
nccl=$(find_nccl "$cuda") || skip_all "no nccl.h here: set NCCL_ROOT to the folder that has include/nccl.h"
nccl_library=$(ls "$nccl"/lib/libnccl.so* "$nccl"/lib64/libnccl.so* "$nccl"/lib/*/libnccl.so* 2>/dev/null | head -n 1)
[ -n "$nccl_library" ] || skip_all "no libnccl.so beside $nccl/include/nccl.h"
command -v g++ >/dev/null || skip_all "no g++ here"

if [ -z "$arch" ]; then
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
  arch=sm_${capability:-90}
fi
cudart=$(ls -d "$cuda"/lib64 "$cuda"/targets/*/lib 2>/dev/null | head -n 1)
# Programs built elsewhere have that machine's paths in them.
export LD_LIBRARY_PATH="$cudart:$(dirname "$nccl_library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# By way of the linker: nvcc takes no file whose name goes on behind .so, and a wheel has no other.
linked=(-Xlinker "$nccl_library" -Xlinker "-rpath,$cudart" -Xlinker "-rpath,$(dirname "$nccl_library")")
flags=(-std=c++20 -O2 -I include -I tests/gpu -isystem "$nccl/include")
nvcc=("$cuda/bin/nvcc" "${flags[@]}" "-arch=$arch" --extended-lambda --expt-relaxed-constexpr -Xcompiler -Wno-subobject-linkage
      -cudart shared)
[ -n "$boost" ] && flags+=(-isystem "$boost")

say "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no nvidia-smi'); $("$cuda/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p'); $arch; $(g++ --version | head -n 1)"

build() {  # PART
  case $1 in
    no_device | staging)
      local source=tests/gpu/$1.cpp
      [ -e "$source" ] || source=tests/gpu/device/$1.cpp
      g++ "${flags[@]}" -isystem "$cuda/include" "$source" -o "$programs/$1" -pthread -L "$cudart" -lcudart \
        "$nccl_library" -Wl,-rpath,"$cudart" -Wl,-rpath,"$(dirname "$nccl_library")" ;;
    staging_mpi)
      "$mpicxx" "${flags[@]}" -isystem "$cuda/include" tests/gpu/device/staging_mpi.cpp -o "$programs/$1" -pthread -L "$cudart" \
        -lcudart -Wl,-rpath,"$cudart" ;;
    ipc)
      "${nvcc[@]}" -c tests/gpu/link_fail/with_fold.cu -o "$programs/with_fold.o" &&
        g++ "${flags[@]}" -isystem "$cuda/include" -O0 tests/gpu/device/ipc.cpp "$programs/with_fold.o" -o "$programs/$1" -pthread \
          -L "$cudart" -lcudart -Wl,-rpath,"$cudart" ;;
    example) "${nvcc[@]}" examples/30_gpu_custom_functor.cu -o "$programs/$1" "${linked[@]}" ;;
    training) "${nvcc[@]}" examples/gpu_data_parallel_training.cu examples/training/*.cpp -o "$programs/$1" "${linked[@]}" ;;
    fold_on_host) "${nvcc[@]}" tests/gpu/fold_on_host.cu -o "$programs/$1" "${linked[@]}" ;;
    benchmark) "${nvcc[@]}" benchmarks/gpu/gpu.cu benchmarks/gpu/allocations.cpp -o "$programs/$1" "${linked[@]}" ;;
    *) "${nvcc[@]}" "tests/gpu/device/$1.cu" -o "$programs/$1" "${linked[@]}" ;;
  esac
}
mpicxx=${MPICXX:-mpicxx} mpirun=${MPIRUN:-mpirun}
needs_boost() { [[ " no_device staging staging_mpi ipc " == *" $1 "* ]]; }
is_built() { [ -x "$programs/$1" ]; }
has_mpi() { command -v "$mpirun" >/dev/null && { is_built staging_mpi || command -v "$mpicxx" >/dev/null; }; }
has_boost() { echo '#include <boost/version.hpp>' | g++ -fsyntax-only -x c++ ${boost:+-isystem "$boost"} - 2>/dev/null; }

# Everything that is wanted, as many at a time as there are cores.
for part in "${parts[@]}"; do
  [ "$part" = sanitizer ] && part=fold_oracle
  is_built "$part" && continue
  needs_boost "$part" && ! has_boost && continue
  [ "$part" = staging_mpi ] && ! has_mpi && continue
  [ -e "$work/$part.log" ] && continue
  : >"$work/$part.log"
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
  build "$part" >"$work/$part.log" 2>&1 &
done
wait
say "built in $((SECONDS - began)) s"
if [ -n "$build_only" ]; then
  for part in "${parts[@]}"; do
    [ "$part" = sanitizer ] || is_built "$part" || { say "gpu/$part: not built"; head -n 40 "$work/$part.log"; failed=1; }
  done
  exit "$failed"
fi

# run PART LIMIT COMMAND...: its outcome in one line, its output above it if it has failed or measures
run() {
  local part=$1 limit=${limited:-$2} code
  shift 2
  CUDA_MODULE_LOADING=EAGER timeout "$limit" "$@" >"$work/$part.out" 2>&1
  code=$?
  [ -n "${OUT:-}" ] && cp "$work/$part.out" "$OUT/$part.txt"
  case $code in
    0) tail -n 3 "$work/$part.out" | sed 's/^/  /' >>"$results"; say "gpu/$part: passed" ;;
    77) say "gpu/$part: $(grep -m 1 SKIPPED "$work/$part.out")" ;;
    124) tail -n 40 "$work/$part.out" | tee -a "$results"; say "gpu/$part: FAILED: more than $limit s"; failed=1 ;;
    *) tail -n 40 "$work/$part.out" | tee -a "$results"; say "gpu/$part: FAILED (exit code $code)"; failed=1 ;;
  esac
}

for part in "${parts[@]}"; do
  if needs_boost "$part" && ! is_built "$part" && ! has_boost; then
    say "gpu/$part: SKIPPED: no Boost 1.81 headers here: --boost FOLDER says where they are"
    continue
  fi
  if [ "$part" = staging_mpi ] && ! has_mpi; then
    say "gpu/$part: SKIPPED: no $mpicxx or no $mpirun here: MPICXX and MPIRUN say where they are"
    continue
  fi
  program=$programs/$part
  [ "$part" = sanitizer ] && program=$programs/fold_oracle
  if [ ! -x "$program" ]; then
    head -n 40 "$work/$(basename "$program").log" | tee -a "$results"
    say "gpu/$part: FAILED: it does not build"
    failed=1
    continue
  fi
  case $part in
    sanitizer)
      if [ ! -x "$cuda/bin/compute-sanitizer" ]; then
        say "gpu/sanitizer: SKIPPED: no compute-sanitizer in $cuda/bin"
      elif ! nvidia-smi >/dev/null 2>&1; then
        say "gpu/sanitizer: SKIPPED: no GPU here"
      elif ! timeout 60 "$cuda/bin/compute-sanitizer" --version >/dev/null 2>&1; then
        say "gpu/sanitizer: SKIPPED: compute-sanitizer does not run here"
      else
        run sanitizer 120 "$cuda/bin/compute-sanitizer" --error-exitcode 9 "$program" short
      fi
      ;;
    benchmark)
      run benchmark 150 "$program"
      cat "$work/benchmark.out" >>"$results"
      grep -E 'share of the copy|times$|adds to|last write|eager|FAILED' "$work/benchmark.out" || true
      ;;
    ipc)
      for ranks in 2 3 4 8; do run "ipc_$ranks" 60 tests/gpu/processes.sh "$ranks" "$program"; done
      run ipc_lose 60 tests/gpu/processes.sh 4 "$program" lose
      ;;
    example)
      if nvidia-smi >/dev/null 2>&1; then run "$part" 60 "$program"
      else say "gpu/example: SKIPPED: no GPU here"; fi
      ;;
    training)
      run "$part" 120 tests/gpu/training.sh "$program"
      grep 'test accuracy' "$work/$part.out" | tee -a "$results" || true
      ;;
    staging_mpi)
      # Open MPI's words for a machine of one's own; MPICH asks for none.
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
      run "$part" 60 "$mpirun" -n 2 "$program"
      grep -m 1 'this MPI library is' "$work/$part.out" | tee -a "$results" || true
      ;;
    *) run "$part" 60 "$program" ;;
  esac
done
say "$((SECONDS - began)) s in all"
exit "$failed"
