// SPDX-License-Identifier: BSL-1.0
// What the kernels of gpu/quantised_fold.cuh do, by the host on its own memory: the functions that a warp's lanes call, lane
// after lane.
#pragma once

#include <cohort/gpu/float8_lanes.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpu_test {

/// What the lanes of a block do with it: everything is loaded before anything is stored.
template <class Blocks, class Lanes>
void encode_on_host(const Lanes& lanes, const cohort::detail::float8_place<Blocks>& to, std::size_t blocks) {
  constexpr int sharers = cohort::detail::block_lanes<Blocks, Lanes::per>;
  for (std::size_t b = 0; b < blocks; ++b) {
    float v[sharers][Lanes::per];
    std::uint32_t largest = 0;
    for (int lane = 0; lane < sharers; ++lane) {
      lanes.load(b, lane, v[lane]);
      for (const float x : v[lane]) largest = std::max(largest, cohort::detail::finite_magnitude(x));
    }
    const std::uint8_t scale = cohort::detail::float8_scale<typename Blocks::code_type>(largest);
    for (int lane = 0; lane < sharers; ++lane) to.store(b, lane, v[lane], scale);
  }
}

template <class T, class Blocks>
void quantise_on_host(cohort::device_span<const T> in, const cohort::float8_cut<Blocks>& cut, std::uint8_t* wire) {
  using lanes = cohort::detail::own_lanes<T, Blocks>;
  const lanes own{in.data(), in.size(), cohort::detail::is_vector_aligned(in.data())};
  encode_on_host<Blocks>(own, {wire, cut.blocks, cut.piece}, cut.blocks * static_cast<std::size_t>(cut.ranks));
}
template <class Op, class Blocks>
void fold_quantised_on_host(const cohort::fold_sources<std::uint8_t>& from, const cohort::float8_cut<Blocks>& cut,
                            std::uint8_t* out, const Op& op) {
  const cohort::detail::fold_arithmetic<float, Op> how{cohort::detail::make_applied<float>(op), cut.ranks};
  const cohort::detail::folded_lanes<Op, Blocks> lanes{how, from, cut.blocks};
  encode_on_host<Blocks>(lanes, {out, cut.blocks, cut.piece}, cut.blocks);
}
template <class T, class Blocks>
void dequantise_on_host(const cohort::fold_sources<std::uint8_t>& pieces, const cohort::float8_cut<Blocks>& cut,
                        cohort::device_span<T> out) {
  using lanes = cohort::detail::decoded_lanes<T, Blocks>;
  const bool aligned = cohort::detail::is_vector_aligned(out.data());
  const lanes of_all{pieces, cut.blocks, out.data(), out.size(), aligned};
  for (std::size_t b = 0; b < (out.size() + Blocks::elements - 1) / Blocks::elements; ++b) {
    for (int lane = 0; lane < cohort::detail::block_lanes<Blocks, lanes::per>; ++lane) of_all.store(b, lane);
  }
}

}  // namespace gpu_test
