// SPDX-License-Identifier: BSL-1.0
// The skips of the circulant graph: the distances over which ranks talk in the algorithms that are optimal for any
// number of ranks (Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms" and "Optimal Broadcast
// Schedules in Logarithmic Time"). Used by all_gather.hpp, fold.hpp, reduce_scatter.hpp and pipeline.hpp.
#pragma once

#include <cohort/collective/schedule.hpp>

namespace cohort::collective {

/// The k-th skip among `size` ranks: `size` halved ceil(log2 size) - k times, rounded up each time; so
/// circulant_skip(size, 0) == 1, circulant_skip(size, ceil_log2(size)) == size, and each is at most twice the last.
[[nodiscard]] constexpr int circulant_skip(int size, int k) noexcept {
  const int halvings = ceil_log2(size) - k;
  return static_cast<int>((static_cast<long long>(size) + (1LL << halvings) - 1) >> halvings);
}

}  // namespace cohort::collective
