// SPDX-License-Identifier: BSL-1.0
// Which blocks of 8-bit floats the kernels of gpu/quantised_fold.cuh come to, by their own arithmetic of threads and blocks:
// every lane of every block must be a thread's, and one thread's alone.
#pragma once

#include <cohort/gpu/quantised_fold.cuh>

#include "support.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gpu_test {

template <class Blocks, class Lanes>
void each_lane_once(std::size_t blocks) {
  using warp = cohort::detail::warp_blocks<Blocks, Lanes>;
  constexpr auto sharers = static_cast<std::size_t>(warp::sharers);
  const unsigned grid = warp::grid(blocks);
  std::vector<unsigned char> reached(blocks * sharers);
  for (unsigned b = 0; b < grid; ++b) {
    for (int thread = 0; thread < cohort::detail::block_threads; ++thread) {
      for (warp mine(b, grid, thread); mine.first < blocks; mine.first += mine.step) {
        if (mine.block() < blocks) ++reached[mine.block() * sharers + static_cast<std::size_t>(mine.lane)];
      }
    }
  }
  EXPECT(std::all_of(reached.begin(), reached.end(), [](unsigned char times) { return times == 1; }));
}

template <class Blocks, class T>
void float8_warps_of(std::size_t blocks) {
  each_lane_once<Blocks, cohort::detail::own_lanes<T, Blocks>>(blocks);
  each_lane_once<Blocks, cohort::detail::decoded_lanes<T, Blocks>>(blocks);
}

/// Every size of blocks with every type of elements.
template <int... Elements>
void float8_warps() {
  // Fewer than a thread block takes, no multiple of that, and more than a grid has room for at a time.
  for (const std::size_t blocks : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{600'011}}) {
    (float8_warps_of<cohort::float8_blocks<cohort::float8_e4m3, Elements>, float>(blocks), ...);
    (float8_warps_of<cohort::float8_blocks<cohort::float8_e4m3, Elements>, cohort::half>(blocks), ...);
    (float8_warps_of<cohort::float8_blocks<cohort::float8_e5m2, Elements>, cohort::bfloat16>(blocks), ...);
    (each_lane_once<cohort::float8_blocks<cohort::float8_e4m3, Elements>,
                    cohort::detail::folded_lanes<cohort::sum, cohort::float8_blocks<cohort::float8_e4m3, Elements>>>(
         blocks),
     ...);
  }
}

}  // namespace gpu_test
