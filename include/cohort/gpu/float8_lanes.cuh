// SPDX-License-Identifier: BSL-1.0
// What the lanes of a warp do with a block of 8-bit floats: quantise, combine the contributions of all ranks, dequantise.
// The arithmetic of gpu/quantised_fold.cuh, without the kernels.
#pragma once

#include <cohort/gpu/block_float8.hpp>
#include <cohort/gpu/fold_element.cuh>
#include <cohort/gpu/launch_quantised.hpp>

#include <vector_types.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cohort::detail {

inline constexpr int warp_lanes = 32;

/// Elements that a lane has of a block: so many that it loads 16 bytes of each rank's codes, 32 bytes of elements, and
/// stores 16 bytes of elements, at which each is fastest (benchmarks/NOTES.md).
inline constexpr int folded_per_lane = 16;
template <class T>
inline constexpr int quantised_per_lane = 2 * fold_width<T>;
// And so many at least that a warp has a whole block at a time.
template <class T, class Blocks>
inline constexpr int dequantised_per_lane = std::max<int>(fold_width<T>, Blocks::elements / warp_lanes);

/// Lanes that share a block.
template <class Blocks, int Count>
inline constexpr int block_lanes = Blocks::elements / Count;

/// A lane's elements, in vectors that the device loads and stores in one instruction each.
template <class T, int Count>
struct lane_vectors {
  static_assert(Count % fold_width<T> == 0);
  fold_vector<T> vector[Count / fold_width<T>];

  [[nodiscard]] COHORT_HOST_DEVICE T& at(int k) { return vector[k / fold_width<T>].lane[k % fold_width<T>]; }
  [[nodiscard]] COHORT_HOST_DEVICE const T& at(int k) const {
    return vector[k / fold_width<T>].lane[k % fold_width<T>];
  }
  COHORT_HOST_DEVICE void load(const T* from) {
    COHORT_UNROLL
    for (int i = 0; i < Count / fold_width<T>; ++i) vector[i] = reinterpret_cast<const fold_vector<T>*>(from)[i];
  }
  COHORT_HOST_DEVICE void store(T* to) const {
    COHORT_UNROLL
    for (int i = 0; i < Count / fold_width<T>; ++i) {
#if defined(__CUDA_ARCH__)
      // By name: where another branch stores the same elements one by one, the compiler takes this store apart.
      __stwb(reinterpret_cast<uint4*>(to) + i, std::bit_cast<uint4>(vector[i]));
#else
      reinterpret_cast<fold_vector<T>*>(to)[i] = vector[i];
#endif
    }
  }
};

/// A lane's codes, in words: as bytes, a device would load and store no more than four at once.
template <int Count>
struct alignas(Count) lane_codes {
  static_assert(Count % 4 == 0 && Count <= 16, "cohort: a lane has 4, 8 or 16 codes");
  std::uint32_t word[Count / 4];

  /// Codes k and k + 1 of an even k, the former in the low byte
  [[nodiscard]] COHORT_HOST_DEVICE std::uint16_t pair(int k) const {
    return static_cast<std::uint16_t>(word[k / 4] >> (k % 4 * 8));
  }
};

/// The elements that a lane's codes stand for: two at a time where the device converts pairs.
template <float8 Code, int Count>
COHORT_HOST_DEVICE void decode_lane(const lane_codes<Count>& codes, std::uint8_t scale, float (&out)[Count]) {
#if defined(__CUDA_ARCH__)
  constexpr auto format = std::same_as<Code, float8_e4m3> ? __NV_E4M3 : __NV_E5M2;
  const float factor = __uint_as_float(static_cast<unsigned>(scale) << 23);
#endif
  COHORT_UNROLL
  for (int k = 0; k < Count; k += 2) {
    const std::uint16_t pair = codes.pair(k);
#if defined(__CUDA_ARCH__)
    const float2 two = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, format)));
    out[k] = two.x * factor;
    out[k + 1] = two.y * factor;
#else
    out[k] = decode_float8<Code>(static_cast<std::uint8_t>(pair), scale);
    out[k + 1] = decode_float8<Code>(static_cast<std::uint8_t>(pair >> 8), scale);
#endif
  }
}

/// The codes of a lane's elements; in pairs likewise, unless one of them is no number.
template <float8 Code, int Count>
[[nodiscard]] COHORT_HOST_DEVICE lane_codes<Count> encode_lane(const float (&v)[Count], std::uint8_t scale) {
  lane_codes<Count> codes{};
#if defined(__CUDA_ARCH__)
  bool numbers = true;
  COHORT_UNROLL
  for (int k = 0; k < Count; ++k) numbers = numbers && is_finite_float(__float_as_uint(v[k]));
  if (numbers) {
    constexpr auto format = std::same_as<Code, float8_e4m3> ? __NV_E4M3 : __NV_E5M2;
    const float factor = __uint_as_float((254u - scale) << 23);
    COHORT_UNROLL
    for (int k = 0; k < Count; k += 2) {
      const unsigned pair = __nv_cvt_float2_to_fp8x2({v[k] * factor, v[k + 1] * factor}, __NV_SATFINITE, format);
      codes.word[k / 4] |= pair << (k % 4 * 8);
    }
    return codes;
  }
#endif
  COHORT_UNROLL
  for (int k = 0; k < Count; ++k) {
    codes.word[k / 4] |= static_cast<std::uint32_t>(encode_float8<Code>(v[k], scale)) << (k % 4 * 8);
  }
  return codes;
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

  template <int Count>
  COHORT_HOST_DEVICE void store(std::size_t block, int lane, const float (&v)[Count], std::uint8_t scale) const {
    const block_place at(block, blocks);
    std::uint8_t* const start = wire + at.rank * piece;
    reinterpret_cast<lane_codes<Count>*>(start + at.within * Blocks::elements)[lane] =
        encode_lane<typename Blocks::code_type>(v, scale);
    if (lane == 0) start[blocks * Blocks::elements + at.within] = scale;
  }
};

/// The caller's elements as floats; zeros behind the last.
template <class T, class Blocks>
struct own_lanes {
  static constexpr int per = quantised_per_lane<T>;

  const T* in;
  std::size_t count;
  bool vectors;

  COHORT_HOST_DEVICE void load(std::size_t block, int lane, float (&v)[per]) const {
    const std::size_t first = block * Blocks::elements + static_cast<std::size_t>(lane) * per;
    if (vectors && first + per <= count) {
      lane_vectors<T, per> all;
      all.load(in + first);
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) v[k] = convert_element<float>(all.at(k));
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
  static constexpr int per = folded_per_lane;

  fold_arithmetic<float, Op> how;
  fold_sources<std::uint8_t> from;
  std::size_t blocks;

  COHORT_HOST_DEVICE void load(std::size_t block, int lane, float (&v)[per]) const {
    combine<1, true>(0, block, lane, v);
    int r = 1;
    for (; r + at_once <= from.ranks; r += at_once) combine<at_once, false>(r, block, lane, v);
    for (; r < from.ranks; ++r) combine<1, false>(r, block, lane, v);
    COHORT_UNROLL
    for (int k = 0; k < per; ++k) v[k] = how.last(v[k]);
  }

 private:
  static constexpr int at_once = 2;

  /// Those of ranks r to r + Ranks - 1: everything is asked of the memory before anything is waited for.
  template <int Ranks, bool AreFirst>
  COHORT_HOST_DEVICE void combine(int r, std::size_t block, int lane, float (&v)[per]) const {
    lane_codes<per> codes[Ranks];
    std::uint8_t scales[Ranks];
    COHORT_UNROLL
    for (int i = 0; i < Ranks; ++i) {
      const std::uint8_t* const piece = from.at(r + i);
      codes[i] = reinterpret_cast<const lane_codes<per>*>(piece + block * Blocks::elements)[lane];
      scales[i] = piece[blocks * Blocks::elements + block];
    }
    COHORT_UNROLL
    for (int i = 0; i < Ranks; ++i) {
      float own[per];
      decode_lane<typename Blocks::code_type>(codes[i], scales[i], own);
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) v[k] = AreFirst && i == 0 ? how.first(own[k]) : how.next(v[k], own[k]);
    }
  }
};

/// The pieces of all ranks, back to the caller's elements.
template <class T, class Blocks>
struct decoded_lanes {
  static constexpr int per = dequantised_per_lane<T, Blocks>;

  fold_sources<std::uint8_t> pieces;
  std::size_t blocks;
  T* out;
  std::size_t count;
  bool vectors;

  COHORT_HOST_DEVICE void store(std::size_t block, int lane) const {
    const std::size_t first = block * Blocks::elements + static_cast<std::size_t>(lane) * per;
    if (first >= count) return;
    const block_place place(block, blocks);
    const std::uint8_t* const piece = pieces.at(static_cast<int>(place.rank));
    const auto codes = reinterpret_cast<const lane_codes<per>*>(piece + place.within * Blocks::elements)[lane];
    const std::uint8_t scale = piece[blocks * Blocks::elements + place.within];
    float own[per];
    decode_lane<typename Blocks::code_type>(codes, scale, own);
    lane_vectors<T, per> all;
    COHORT_UNROLL
    for (int k = 0; k < per; ++k) all.at(k) = convert_element<T>(own[k]);
    if (vectors && first + per <= count) {
      all.store(out + first);
    } else {
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) {
        const std::size_t at = first + static_cast<std::size_t>(k);
        if (at < count) out[at] = all.at(k);
      }
    }
  }
};

}  // namespace cohort::detail
