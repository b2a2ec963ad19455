// SPDX-License-Identifier: BSL-1.0
// The kernels of a reduction whose contributions travel as 8-bit floats in blocks: quantise, one fold that dequantises the
// contributions of all ranks, combines them in float and quantises the result, and dequantise. A warp has a block at a
// time. The definitions of what launch_quantised.hpp declares.
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

[[nodiscard]] __device__ inline std::uint32_t largest_of_warp(std::uint32_t mine) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, mine);
#else
  COHORT_UNROLL
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
    const std::uint32_t other = __shfl_xor_sync(0xffffffffu, mine, distance);
    mine = other > mine ? other : mine;
  }
  return mine;
#endif
}

template <class Blocks, class Lanes>
__global__ void __launch_bounds__(block_threads)
    encode_blocks_kernel(Lanes lanes, float8_place<Blocks> to, std::size_t blocks) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::size_t warps = block_threads / warp_lanes;
  for (std::size_t b = blockIdx.x * warps + threadIdx.x / warp_lanes; b < blocks; b += gridDim.x * warps) {
    float v[lane_elements<Blocks>];
    lanes.load(b, lane, v);
    std::uint32_t largest = 0;
    COHORT_UNROLL
    for (int k = 0; k < lane_elements<Blocks>; ++k) {
      const std::uint32_t mine = finite_magnitude(v[k]);
      largest = mine > largest ? mine : largest;
    }
    // What every lane has loaded is in here, so that a result may be stored over its own operands.
    largest = largest_of_warp(largest);
    to.store(b, lane, v, float8_scale<typename Blocks::code_type>(largest));
  }
}

template <class T, class Blocks>
__global__ void __launch_bounds__(block_threads)
    decode_blocks_kernel(decoded_lanes<T, Blocks> lanes, std::size_t blocks) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::size_t warps = block_threads / warp_lanes;
  for (std::size_t b = blockIdx.x * warps + threadIdx.x / warp_lanes; b < blocks; b += gridDim.x * warps) {
    lanes.store(b, lane);
  }
}

/// Thread blocks for so many blocks of elements. Nothing is summed across them: their number decides no bits.
[[nodiscard]] inline unsigned float8_grid(std::size_t blocks) noexcept {
  constexpr std::size_t warps = block_threads / warp_lanes;
  return static_cast<unsigned>(std::min<std::size_t>((blocks + warps - 1) / warps, 1u << 16));
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
  const detail::own_lanes<T, Blocks> lanes{in.data(), in.size(), detail::is_lane_aligned<T, Blocks>(in.data())};
  const detail::float8_place<Blocks> to{wire, cut.blocks, cut.piece};
  detail::encode_blocks_kernel<Blocks><<<detail::float8_grid(blocks), detail::block_threads, 0, s>>>(lanes, to, blocks);
  detail::check_cuda(cudaGetLastError(), "the kernel that quantises");
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
  detail::encode_blocks_kernel<Blocks>
      <<<detail::float8_grid(cut.blocks), detail::block_threads, 0, s>>>(lanes, to, cut.blocks);
  detail::check_cuda(cudaGetLastError(), "the kernel that folds 8-bit floats");
}

/// The pieces of all ranks as elements.
///
/// Cost: one pass: about one byte read and sizeof(T) written for each element
template <class Blocks, float8_source T>
void launch_dequantise(const fold_sources<std::uint8_t>& pieces, const float8_cut<Blocks>& cut, device_span<T> out,
                       cudaStream_t s) {
  if (out.empty()) return;
  const std::size_t blocks = (out.size() + Blocks::elements - 1) / Blocks::elements;
  const detail::decoded_lanes<T, Blocks> lanes{pieces, cut.blocks, out.data(), out.size(),
                                               detail::is_lane_aligned<T, Blocks>(out.data())};
  detail::decode_blocks_kernel<<<detail::float8_grid(blocks), detail::block_threads, 0, s>>>(lanes, blocks);
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
