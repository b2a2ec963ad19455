// SPDX-License-Identifier: BSL-1.0
// The kernels of a reduction whose contributions travel as 8-bit floats, as a plain host compiler sees them: how a vector
// is cut, and what is declared here and defined in quantised_fold.cuh. Used by gpu/quantised_peers.hpp and
// nccl/quantised_all_reduce.hpp.
//
// A program whose calls are in a .cpp names each such set of types once, in a .cu:
//
//   #include <cohort/gpu/quantised_fold.cuh>
//   COHORT_INSTANTIATE_QUANTISED(float, cohort::sum)
//   COHORT_INSTANTIATE_QUANTISED(cohort::bfloat16, cohort::sum, cohort::float8_blocks<cohort::float8_e5m2, 32>)
//
// Where that is forgotten, the linker's message names what to write.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/gpu/block_float8.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/half.hpp>

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

/// The kernels for elements of T, the functor Op and the rule of Blocks. A name that tells the reader of a linker's message
/// what to write.
template <class T, class Op, class Blocks = float8_blocks<>>
struct write_COHORT_INSTANTIATE_QUANTISED {
  /// Elements as codes: all pieces of `cut`, the first at `wire`
  static void in_one_cu_file(device_span<const T> in, const float8_cut<Blocks>& cut, std::uint8_t* wire,
                             cudaStream_t s);
  /// One piece of all ranks, combined in float in their order, as one piece
  static void in_one_cu_file(const fold_sources<std::uint8_t>& from, const float8_cut<Blocks>& cut, std::uint8_t* out,
                             const Op& op, cudaStream_t s);
  /// The pieces of all ranks as elements
  static void in_one_cu_file(const fold_sources<std::uint8_t>& pieces, const float8_cut<Blocks>& cut,
                             device_span<T> out, cudaStream_t s);
};

}  // namespace cohort
