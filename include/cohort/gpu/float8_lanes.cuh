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
    COHORT_UNROLL
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
      COHORT_UNROLL
      for (int k = 0; k < per; ++k) {
        const float x = decode_float8<code>(codes.lane[k], scale);
        v[k] = r == 0 ? how.first(x) : how.next(v[k], x);
      }
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
    const std::uint8_t* const piece = pieces.at(static_cast<int>(block / blocks));
    const std::size_t within = block % blocks;
    const auto codes =
        reinterpret_cast<const lane_vector<std::uint8_t, Blocks>*>(piece + within * Blocks::elements)[lane];
    const std::uint8_t scale = piece[blocks * Blocks::elements + within];
    lane_vector<T, Blocks> all;
    COHORT_UNROLL
    for (int k = 0; k < per; ++k) {
      all.lane[k] = convert_element<T>(decode_float8<typename Blocks::code_type>(codes.lane[k], scale));
    }
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
