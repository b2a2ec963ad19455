// SPDX-License-Identifier: BSL-1.0
// What the lanes of a warp do with a block of 8-bit floats: quantise, combine the contributions of all ranks, dequantise.
// The arithmetic of gpu/quantised_fold.cuh, without the kernels.
#pragma once

#include <cohort/gpu/block_float8.hpp>
#include <cohort/gpu/fold_element.cuh>
#include <cohort/gpu/launch_quantised.hpp>

#include <cstddef>
#include <cstdint>

namespace cohort::detail {

inline constexpr int warp_lanes = 32;

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

/// The elements that a lane's codes stand for: two at a time where the device converts pairs.
template <float8 Code, int Count>
COHORT_HOST_DEVICE void decode_lane(const std::uint8_t (&codes)[Count], std::uint8_t scale, float (&out)[Count]) {
#if defined(__CUDA_ARCH__)
  if constexpr (Count % 2 == 0) {
    constexpr auto format = std::same_as<Code, float8_e4m3> ? __NV_E4M3 : __NV_E5M2;
    const float factor = __uint_as_float(static_cast<unsigned>(scale) << 23);
    COHORT_UNROLL
    for (int k = 0; k < Count; k += 2) {
      const auto pair = static_cast<__nv_fp8x2_storage_t>(codes[k] | codes[k + 1] << 8);
      const float2 two = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, format)));
      out[k] = two.x * factor;
      out[k + 1] = two.y * factor;
    }
    return;
  }
#endif
  COHORT_UNROLL
  for (int k = 0; k < Count; ++k) out[k] = decode_float8<Code>(codes[k], scale);
}

/// The codes of a lane's elements; in pairs likewise, unless one of them is no number.
template <float8 Code, int Count>
COHORT_HOST_DEVICE void encode_lane(const float (&v)[Count], std::uint8_t scale, std::uint8_t (&codes)[Count]) {
#if defined(__CUDA_ARCH__)
  if constexpr (Count % 2 == 0) {
    bool numbers = true;
    COHORT_UNROLL
    for (int k = 0; k < Count; ++k) numbers = numbers && is_finite_float(__float_as_uint(v[k]));
    if (numbers) {
      constexpr auto format = std::same_as<Code, float8_e4m3> ? __NV_E4M3 : __NV_E5M2;
      const float factor = __uint_as_float((254u - scale) << 23);
      COHORT_UNROLL
      for (int k = 0; k < Count; k += 2) {
        const unsigned pair = __nv_cvt_float2_to_fp8x2({v[k] * factor, v[k + 1] * factor}, __NV_SATFINITE, format);
        codes[k] = static_cast<std::uint8_t>(pair);
        codes[k + 1] = static_cast<std::uint8_t>(pair >> 8);
      }
      return;
    }
  }
#endif
  COHORT_UNROLL
  for (int k = 0; k < Count; ++k) codes[k] = encode_float8<Code>(v[k], scale);
}

/// Block `block` of all, where every rank has `blocks`: which it is, and of which rank.
struct block_place {
  std::size_t rank;
  std::size_t within;

  COHORT_HOST_DEVICE block_place(std::size_t block, std::size_t blocks) {
    if ((block | blocks) >> 32 == 0) {  // to divide 64 bits takes a device some dozens of instructions
      const auto few = static_cast<std::uint32_t>(block);
      const auto each = static_cast<std::uint32_t>(blocks);
      rank = few / each;
      within = few % each;
    } else {
      rank = block / blocks;
      within = block % blocks;
    }
  }
};

/// Where the codes and the scale of a block are: the blocks of rank r in the piece at wire + r * piece.
template <class Blocks>
struct float8_place {
  std::uint8_t* wire;
  std::size_t blocks;
  std::size_t piece;

  COHORT_HOST_DEVICE void store(std::size_t block, int lane, const float (&v)[lane_elements<Blocks>],
                                std::uint8_t scale) const {
    const block_place at(block, blocks);
    std::uint8_t* const start = wire + at.rank * piece;
    lane_vector<std::uint8_t, Blocks> codes;
    encode_lane<typename Blocks::code_type>(v, scale, codes.lane);
    reinterpret_cast<lane_vector<std::uint8_t, Blocks>*>(start + at.within * Blocks::elements)[lane] = codes;
    if (lane == 0) start[blocks * Blocks::elements + at.within] = scale;
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
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) v[k] = convert_element<float>(all.lane[k]);
    } else {
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) {
        const std::size_t at = first + static_cast<std::size_t>(k);
        v[k] = at < count ? convert_element<float>(in[at]) : 0.0f;
      }
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
    COHORT_UNROLL_BY_4
    for (int r = 0; r < from.ranks; ++r) {
      const std::uint8_t* const piece = from.at(r);
      const auto codes =
          reinterpret_cast<const lane_vector<std::uint8_t, Blocks>*>(piece + block * Blocks::elements)[lane];
      const std::uint8_t scale = piece[blocks * Blocks::elements + block];
      float own[per];
      decode_lane<code>(codes.lane, scale, own);
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) v[k] = r == 0 ? how.first(own[k]) : how.next(v[k], own[k]);
    }
    COHORT_UNROLL
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
    const block_place place(block, blocks);
    const std::uint8_t* const piece = pieces.at(static_cast<int>(place.rank));
    const auto codes =
        reinterpret_cast<const lane_vector<std::uint8_t, Blocks>*>(piece + place.within * Blocks::elements)[lane];
    const std::uint8_t scale = piece[blocks * Blocks::elements + place.within];
    float own[per];
    decode_lane<typename Blocks::code_type>(codes.lane, scale, own);
    lane_vector<T, Blocks> all;
    COHORT_UNROLL
    for (int k = 0; k < per; ++k) all.lane[k] = convert_element<T>(own[k]);
    if (vectors && first + per <= count) {
      *reinterpret_cast<lane_vector<T, Blocks>*>(out + first) = all;
    } else {
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) {
        const std::size_t at = first + static_cast<std::size_t>(k);
        if (at < count) out[at] = all.lane[k];
      }
    }
  }
};

}  // namespace cohort::detail
