// SPDX-License-Identifier: BSL-1.0
// The kernels of a reduction whose contributions travel as 8-bit floats in blocks: quantise, one fold that dequantises the
// contributions of all ranks, combines them in float and quantises the result, and dequantise. A warp has a block at a
// time. Used by gpu/quantised_peers.cuh and nccl/quantised_all_reduce.cuh.
#pragma once

#include <cohort/gpu/block_float8.hpp>
#include <cohort/gpu/check.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/fold_element.cuh>
#include <cohort/gpu/launch_fold.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace cohort {

/// How a vector is cut for its ranks: as many blocks for each, the last ones filled up with zeros. A rank's piece on the
/// wire is the codes of its blocks, behind them the scales.
template <class Blocks>
struct float8_cut {
  std::size_t blocks = 0;  ///< of one rank
  std::size_t piece = 0;   ///< bytes of one rank, a multiple of 16
  int ranks = 1;

  float8_cut(std::size_t count, int of_ranks) : ranks(of_ranks) {
    const std::size_t all = (count + Blocks::elements - 1) / Blocks::elements;
    blocks = (all + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
    piece = (blocks * (Blocks::elements + 1) + 15) / 16 * 16;
  }
  /// Bytes of the whole vector.
  [[nodiscard]] std::size_t wire() const noexcept { return piece * static_cast<std::size_t>(ranks); }
};

/// What the elements of a vector are, around their codes.
template <class T>
concept float8_source = std::same_as<T, float> || std::same_as<T, half> || std::same_as<T, bfloat16>;

namespace detail {

inline constexpr int warp_lanes = 32;
inline constexpr int block_threads = 256;

/// Elements of a block that one lane has.
template <class Blocks>
inline constexpr int lane_elements = Blocks::elements / warp_lanes;

/// What a lane loads and stores in as few instructions as there can be.
template <class T, class Blocks>
struct alignas(sizeof(T) * lane_elements<Blocks> > 16 ? 16 : sizeof(T) * lane_elements<Blocks>) lane_vector {
  T lane[lane_elements<Blocks>];
};

template <class T, class Blocks>
[[nodiscard]] bool is_lane_aligned(const T* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(lane_vector<T, Blocks>) == 0;
}

/// Where the codes and the scale of a block are: the blocks of rank r in the piece at wire + r * piece.
template <class Blocks>
struct float8_place {
  std::uint8_t* wire;
  std::size_t blocks;
  std::size_t piece;

  COHORT_HOST_DEVICE void store(std::size_t block, int lane, const float (&v)[lane_elements<Blocks>],
                                std::uint8_t scale) const {
    std::uint8_t* const start = wire + block / blocks * piece;
    const std::size_t within = block % blocks;
    lane_vector<std::uint8_t, Blocks> codes;
#pragma unroll
    for (int k = 0; k < lane_elements<Blocks>; ++k) {
      codes.lane[k] = encode_float8<typename Blocks::code_type>(v[k], scale);
    }
    reinterpret_cast<lane_vector<std::uint8_t, Blocks>*>(start + within * Blocks::elements)[lane] = codes;
    if (lane == 0) start[blocks * Blocks::elements + within] = scale;
  }
};

/// The caller's elements as floats; zeros behind the last.
template <class T, class Blocks>
struct own_lanes {
  const T* in;
  std::size_t count;
  bool vectors;

  COHORT_HOST_DEVICE void load(std::size_t block, int lane, float (&v)[lane_elements<Blocks>]) const {
    constexpr int per = lane_elements<Blocks>;
    const std::size_t first = block * Blocks::elements + static_cast<std::size_t>(lane) * per;
    if (vectors && first + per <= count) {
      const auto all = *reinterpret_cast<const lane_vector<T, Blocks>*>(in + first);
#pragma unroll
      for (int k = 0; k < per; ++k) v[k] = convert_element<float>(all.lane[k]);
    } else {
#pragma unroll
      for (int k = 0; k < per; ++k) v[k] = first + k < count ? convert_element<float>(in[first + k]) : 0.0f;
    }
  }
};

/// The contributions of all ranks to one piece, combined in float in the order of the ranks. The product of a code and its
/// scale is exact, so that it does not matter whether it is fused with an addition.
template <class Op, class Blocks>
struct folded_lanes {
  fold_arithmetic<float, Op> how;
  fold_sources<std::uint8_t> from;
  std::size_t blocks;

  COHORT_HOST_DEVICE void load(std::size_t block, int lane, float (&v)[lane_elements<Blocks>]) const {
    using code = typename Blocks::code_type;
    constexpr int per = lane_elements<Blocks>;
    for (int r = 0; r < from.ranks; ++r) {
      const std::uint8_t* const piece = from.at(r);
      const auto codes =
          reinterpret_cast<const lane_vector<std::uint8_t, Blocks>*>(piece + block * Blocks::elements)[lane];
      const std::uint8_t scale = piece[blocks * Blocks::elements + block];
#pragma unroll
      for (int k = 0; k < per; ++k) {
        const float x = decode_float8<code>(codes.lane[k], scale);
        v[k] = r == 0 ? how.first(x) : how.next(v[k], x);
      }
    }
#pragma unroll
    for (int k = 0; k < per; ++k) v[k] = how.last(v[k]);
  }
};

/// The pieces of all ranks, back to the caller's elements.
template <class T, class Blocks>
struct decoded_lanes {
  fold_sources<std::uint8_t> pieces;
  std::size_t blocks;
  T* out;
  std::size_t count;
  bool vectors;

  COHORT_HOST_DEVICE void store(std::size_t block, int lane) const {
    constexpr int per = lane_elements<Blocks>;
    const std::size_t first = block * Blocks::elements + static_cast<std::size_t>(lane) * per;
    if (first >= count) return;
    const std::uint8_t* const piece = pieces.at(static_cast<int>(block / blocks));
    const std::size_t within = block % blocks;
    const auto codes =
        reinterpret_cast<const lane_vector<std::uint8_t, Blocks>*>(piece + within * Blocks::elements)[lane];
    const std::uint8_t scale = piece[blocks * Blocks::elements + within];
    lane_vector<T, Blocks> all;
#pragma unroll
    for (int k = 0; k < per; ++k) {
      all.lane[k] = convert_element<T>(decode_float8<typename Blocks::code_type>(codes.lane[k], scale));
    }
    if (vectors && first + per <= count) {
      *reinterpret_cast<lane_vector<T, Blocks>*>(out + first) = all;
    } else {
#pragma unroll
      for (int k = 0; k < per; ++k) {
        if (first + k < count) out[first + k] = all.lane[k];
      }
    }
  }
};

template <class Blocks, class Lanes>
__global__ void __launch_bounds__(block_threads)
    encode_blocks_kernel(Lanes lanes, float8_place<Blocks> to, std::size_t blocks) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::size_t warps = block_threads / warp_lanes;
  for (std::size_t b = blockIdx.x * warps + threadIdx.x / warp_lanes; b < blocks; b += gridDim.x * warps) {
    float v[lane_elements<Blocks>];
    lanes.load(b, lane, v);
    std::uint32_t largest = 0;
#pragma unroll
    for (int k = 0; k < lane_elements<Blocks>; ++k) {
      const std::uint32_t mine = finite_magnitude(v[k]);
      largest = mine > largest ? mine : largest;
    }
    // What every lane has loaded is in here, so that a result may be stored over its own operands.
#pragma unroll
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
      const std::uint32_t other = __shfl_xor_sync(0xffffffffu, largest, distance);
      largest = other > largest ? other : largest;
    }
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

}  // namespace cohort
