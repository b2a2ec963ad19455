// SPDX-License-Identifier: BSL-1.0
// The kernels of a reduction whose contributions travel as 8-bit floats in blocks: quantise, one fold that dequantises the
// contributions of all ranks, combines them in float and quantises the result, and dequantise. The lanes of a warp share a
// block, or some. The definitions of what launch_quantised.hpp declares.
#pragma once

#include <cohort/gpu/block_float8.hpp>
#include <cohort/gpu/check.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/float8_lanes.cuh>
#include <cohort/gpu/launch_quantised.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cohort {
namespace detail {

inline constexpr int block_threads = 256;

/// The largest of as many lanes beside each other; all of the warp call it.
template <int Lanes>
[[nodiscard]] __device__ std::uint32_t largest_of_lanes(std::uint32_t mine) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (Lanes == warp_lanes) {
    return __reduce_max_sync(0xffffffffu, mine);
  } else
#endif
  {
    COHORT_UNROLL
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
      const std::uint32_t other = __shfl_xor_sync(0xffffffffu, mine, distance);
      mine = other > mine ? other : mine;
    }
    return mine;
  }
}

/// The blocks of a warp, one after the other; some at a time where fewer lanes than it has share a block.
template <class Blocks, class Lanes>
struct warp_blocks {
  static constexpr int sharers = block_lanes<Blocks, Lanes::per>;
  static_assert(sharers <= warp_lanes, "cohort: a warp has all lanes of a block");
  static constexpr int at_once = warp_lanes / sharers;
  static constexpr int of_thread_block = block_threads / sharers;

  std::size_t first;  ///< the same in all lanes of a warp
  std::size_t step;
  int within;
  int lane;

  __device__ warp_blocks() : warp_blocks(blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x)) {}
  /// Those of a thread, by the number of its thread block, and of how many, and its own number there.
  COHORT_HOST_DEVICE warp_blocks(std::size_t thread_block, std::size_t thread_blocks, int thread)
      : first(thread_block * of_thread_block + static_cast<std::size_t>(thread / warp_lanes * at_once)),
        step(thread_blocks * of_thread_block),
        within(thread % warp_lanes / sharers),
        lane(thread % sharers) {}
  [[nodiscard]] COHORT_HOST_DEVICE std::size_t block() const { return first + static_cast<std::size_t>(within); }

  /// Thread blocks for so many blocks of elements. Nothing is summed across them: their number decides no bits.
  [[nodiscard]] static unsigned grid(std::size_t blocks) noexcept {
    return static_cast<unsigned>(std::min<std::size_t>((blocks + of_thread_block - 1) / of_thread_block, 1u << 16));
  }
};

template <class Blocks, class Lanes>
__global__ void __launch_bounds__(block_threads)
    encode_blocks_kernel(const __grid_constant__ Lanes lanes, float8_place<Blocks> to, std::size_t blocks) {
  using warp = warp_blocks<Blocks, Lanes>;
  for (warp mine; mine.first < blocks; mine.first += mine.step) {
    const bool is_block = mine.block() < blocks;
    float v[Lanes::per];
    std::uint32_t largest = 0;
    if (is_block) {
      lanes.load(mine.block(), mine.lane, v);
      COHORT_UNROLL
      for (int k = 0; k < Lanes::per; ++k) {
        const std::uint32_t magnitude = finite_magnitude(v[k]);
        largest = magnitude > largest ? magnitude : largest;
      }
    }
    // What every lane has loaded is in here, so that a result may be stored over its own operands.
    largest = largest_of_lanes<warp::sharers>(largest);
    if (is_block) to.store(mine.block(), mine.lane, v, float8_scale<typename Blocks::code_type>(largest));
  }
}

template <class T, class Blocks>
__global__ void __launch_bounds__(block_threads)
    decode_blocks_kernel(const __grid_constant__ decoded_lanes<T, Blocks> lanes, std::size_t blocks) {
  for (warp_blocks<Blocks, decoded_lanes<T, Blocks>> mine; mine.first < blocks; mine.first += mine.step) {
    if (mine.block() < blocks) lanes.store(mine.block(), mine.lane);
  }
}

template <class Blocks, class Lanes>
[[nodiscard]] cudaError_t encode_blocks(const Lanes& lanes, const float8_place<Blocks>& to, std::size_t blocks,
                                        cudaStream_t s) {
  encode_blocks_kernel<Blocks><<<warp_blocks<Blocks, Lanes>::grid(blocks), block_threads, 0, s>>>(lanes, to, blocks);
  return cudaGetLastError();
}

}  // namespace detail

/// Elements as codes: all pieces of `cut`, the first at `wire`.
///
/// Needs:    wire: cut.wire() bytes of the device, on 16 bytes
/// Lifetime: as everything on a stream
/// Cost:     one pass: sizeof(T) bytes read and about one written for each element
template <class Blocks, float8_source T>
void launch_quantise(device_span<const T> in, const float8_cut<Blocks>& cut, std::uint8_t* wire, cudaStream_t s) {
  const std::size_t blocks = cut.blocks * static_cast<std::size_t>(cut.ranks);
  if (blocks == 0) return;
  using lanes = detail::own_lanes<T, Blocks>;
  const lanes own{in.data(), in.size(), detail::is_vector_aligned(in.data())};
  const detail::float8_place<Blocks> to{wire, cut.blocks, cut.piece};
  detail::check_cuda(detail::encode_blocks(own, to, blocks, s), "the kernel that quantises");
}

/// One piece of all ranks, combined in float in their order, as one piece.
///
/// Needs:    from: rank r's piece at at(r), on 16 bytes, as `out`, which may be one of them
/// Cost:     one pass: about as many bytes read as ranks and one written for each element
template <class Blocks, class Op>
void launch_quantised_fold(const fold_sources<std::uint8_t>& from, const float8_cut<Blocks>& cut, std::uint8_t* out,
                           const Op& op, cudaStream_t s) {
  if (cut.blocks == 0) return;
  const detail::fold_arithmetic<float, Op> how{detail::make_applied<float>(op), cut.ranks};
  const detail::folded_lanes<Op, Blocks> lanes{how, from, cut.blocks};
  const detail::float8_place<Blocks> to{out, cut.blocks, cut.piece};
  detail::check_cuda(detail::encode_blocks(lanes, to, cut.blocks, s), "the kernel that folds 8-bit floats");
}

/// The pieces of all ranks as elements.
///
/// Cost: one pass: about one byte read and sizeof(T) written for each element
template <class Blocks, float8_source T>
void launch_dequantise(const fold_sources<std::uint8_t>& pieces, const float8_cut<Blocks>& cut, device_span<T> out,
                       cudaStream_t s) {
  if (out.empty()) return;
  const std::size_t blocks = (out.size() + Blocks::elements - 1) / Blocks::elements;
  using lanes = detail::decoded_lanes<T, Blocks>;
  const lanes of_all{pieces, cut.blocks, out.data(), out.size(), detail::is_vector_aligned(out.data())};
  const unsigned grid = detail::warp_blocks<Blocks, lanes>::grid(blocks);
  detail::decode_blocks_kernel<<<grid, detail::block_threads, 0, s>>>(of_all, blocks);
  detail::check_cuda(cudaGetLastError(), "the kernel that dequantises");
}

template <class T, class Op, class Blocks>
void write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(device_span<const T> in,
                                                                       const float8_cut<Blocks>& cut,
                                                                       std::uint8_t* wire, cudaStream_t s) {
  launch_quantise<Blocks, T>(in, cut, wire, s);
}
template <class T, class Op, class Blocks>
void write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(const fold_sources<std::uint8_t>& from,
                                                                       const float8_cut<Blocks>& cut, std::uint8_t* out,
                                                                       const Op& op, cudaStream_t s) {
  launch_quantised_fold<Blocks, Op>(from, cut, out, op, s);
}
template <class T, class Op, class Blocks>
void write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(const fold_sources<std::uint8_t>& pieces,
                                                                       const float8_cut<Blocks>& cut,
                                                                       device_span<T> out, cudaStream_t s) {
  launch_dequantise<Blocks, T>(pieces, cut, out, s);
}

}  // namespace cohort

/// Makes the kernels for a type of elements, a functor and, where it is not float8_blocks<>, a rule, for calls in files
/// that nvcc does not compile. Outside of any namespace.
#define COHORT_INSTANTIATE_QUANTISED(ELEMENT, ...) \
  template struct cohort::write_COHORT_INSTANTIATE_QUANTISED<ELEMENT, __VA_ARGS__>;
