// SPDX-License-Identifier: BSL-1.0
// A fold with more in the same pass: a function on every operand before it is combined, one on every result, and the sum
// of the squares of the results. What a training step would else do in passes of its own over memory.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/fold_element.cuh>
#include <cohort/gpu/launch_fold.hpp>

#include <cub/block/block_reduce.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cohort {

/// Leaves what it is given as it is.
struct unchanged {
  template <class A>
  [[nodiscard]] COHORT_HOST_DEVICE A operator()(const A& x, std::size_t /*place*/) const {
    return x;
  }
};

/// Multiplies by a number that the host knows: 1/n after a sum is an average, 1/loss_scale undoes a scaling.
struct times {
  float factor;
  template <class A>
  [[nodiscard]] COHORT_HOST_DEVICE A operator()(const A& x, std::size_t /*place*/) const {
    return static_cast<A>(x * static_cast<A>(factor));
  }
};

/// Multiplies by a number that a kernel has computed before: no host waits for it.
struct times_device {
  const float* factor;
  template <class A>
  [[nodiscard]] COHORT_HOST_DEVICE A operator()(const A& x, std::size_t /*place*/) const {
    return static_cast<A>(x * static_cast<A>(*factor));
  }
};

/// How many floats launch_fused_fold needs for the parts of a squared norm.
inline constexpr std::size_t squared_norm_parts = 1024;

namespace detail {

inline constexpr int fused_threads = 256;

template <class In, class Acc, class Out, class Op, class Prologue, class Epilogue>
struct fused_fold {
  fold_sources<In> from;
  Out* out;
  std::size_t count;
  Op op;
  Prologue before;
  Epilogue after;
};

/// Of as many elements as are read or written together; one element is where any of its type may be.
template <class T, int Width>
inline constexpr std::size_t vector_alignment = Width == 1               ? alignof(T)
                                                : Width * sizeof(T) > 16 ? 16
                                                                         : Width * sizeof(T);

/// Adds what the threads of a block have, in an order that does not change; thread 0 gets the sum.
[[nodiscard]] __device__ inline float block_sum(float mine) {
  using reduce = cub::BlockReduce<float, fused_threads>;
  __shared__ typename reduce::TempStorage shared;
  return reduce(shared).Sum(mine);
}

template <int Width, class In, class Acc, class Out, class Op, class Prologue, class Epilogue>
__global__ void __launch_bounds__(fused_threads)
    fused_fold_kernel(fused_fold<In, Acc, Out, Op, Prologue, Epilogue> f, float* parts) {
  struct alignas(vector_alignment<In, Width>) in_vector {
    In lane[Width];
  };
  struct alignas(vector_alignment<Out, Width>) out_vector {
    Out lane[Width];
  };
  float squares = 0;
  const std::size_t vectors = f.count / Width;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * fused_threads;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * fused_threads + threadIdx.x;
  for (std::size_t v = first; v < vectors; v += step) {
    const in_vector own = reinterpret_cast<const in_vector*>(f.from.at(0))[v];
    Acc total[Width];
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      total[k] = static_cast<Acc>(f.before(convert_element<Acc>(own.lane[k]), v * Width + k));
    }
    for (int r = 1; r < f.from.ranks; ++r) {
      const in_vector next = reinterpret_cast<const in_vector*>(f.from.at(r))[v];
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        total[k] = static_cast<Acc>(
            f.op(total[k], static_cast<Acc>(f.before(convert_element<Acc>(next.lane[k]), v * Width + k))));
      }
    }
    out_vector result;
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      total[k] = static_cast<Acc>(f.after(total[k], v * Width + k));
      squares += static_cast<float>(total[k]) * static_cast<float>(total[k]);
      result.lane[k] = convert_element<Out>(total[k]);
    }
    reinterpret_cast<out_vector*>(f.out)[v] = result;
  }
  // What no vector holds: fewer than Width elements, by the first block.
  const std::size_t rest = vectors * Width + first;
  if (rest < f.count) {
    Acc total = static_cast<Acc>(f.before(convert_element<Acc>(f.from.at(0)[rest]), rest));
    for (int r = 1; r < f.from.ranks; ++r) {
      total = static_cast<Acc>(f.op(total, static_cast<Acc>(f.before(convert_element<Acc>(f.from.at(r)[rest]), rest))));
    }
    total = static_cast<Acc>(f.after(total, rest));
    squares += static_cast<float>(total) * static_cast<float>(total);
    f.out[rest] = convert_element<Out>(total);
  }
  if (parts == nullptr) return;
  const float sum = block_sum(squares);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/// The parts of all blocks together.
static __global__ void __launch_bounds__(fused_threads) add_parts_kernel(const float* parts, int count, float* sum) {
  float mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += fused_threads) mine += parts[i];
  const float all = block_sum(mine);
  if (threadIdx.x == 0) *sum = all;
}

/// Blocks for so many pieces of work: the same number for the same work, so that sums have one order.
[[nodiscard]] inline unsigned fused_blocks(std::size_t pieces) noexcept {
  const std::size_t needed = (pieces + fused_threads - 1) / fused_threads;
  return static_cast<unsigned>(std::clamp<std::size_t>(needed, 1, squared_norm_parts));
}

}  // namespace detail

/// Where the squared norm of the results goes: one float on the device, and room for the parts of it.
struct squared_norm {
  float* sum = nullptr;
  float* parts = nullptr;  ///< squared_norm_parts floats
};

/// The fold of all ranks in their order, in Acc, with `before` applied to every operand and `after` to every result.
///
/// Result:   out[i] = after(before(x0[i], i) op before(x1[i], i) op ..., i), rounded once to Out; *norm.sum = the sum of the
///           squares of the results before they are rounded, the same bits from run to run
/// Needs:    functions that run on the device
/// Lifetime: everything is borrowed until the stream has come that far; `out` may be one of the operands if Out is In
/// Cost:     each operand is read once and `out` written once; a second launch of one block for the norm
template <class Acc, class In, class Out, class Op, class Prologue, class Epilogue>
void launch_fused_fold(const fold_sources<In>& from, Out* out, std::size_t count, const Op& op, const Prologue& before,
                       const Epilogue& after, const squared_norm& norm, cudaStream_t s) {
  const detail::fused_fold<In, Acc, Out, Op, Prologue, Epilogue> f{from, out, count, op, before, after};
  constexpr int width = std::is_default_constructible_v<In> && 16 % sizeof(In) == 0 && 16 % sizeof(Out) == 0
                            ? static_cast<int>(16 / sizeof(In))
                            : 1;
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  bool vectors = width > 1 && aligned(out);
  for (int r = 0; vectors && r < from.ranks; ++r) vectors = aligned(from.at(r));
  const unsigned blocks = detail::fused_blocks(vectors ? count / width : count);
  if (vectors) detail::fused_fold_kernel<width><<<blocks, detail::fused_threads, 0, s>>>(f, norm.parts);
  else detail::fused_fold_kernel<1><<<blocks, detail::fused_threads, 0, s>>>(f, norm.parts);
  detail::check_cuda(cudaGetLastError(), "the fused fold's kernel");
  if (norm.sum == nullptr || norm.parts == nullptr) return;
  detail::add_parts_kernel<<<1, detail::fused_threads, 0, s>>>(norm.parts, static_cast<int>(blocks), norm.sum);
  detail::check_cuda(cudaGetLastError(), "the squared norm's kernel");
}

}  // namespace cohort
