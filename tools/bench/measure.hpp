// SPDX-License-Identifier: BSL-1.0
// Times one cell of a measurement on all ranks together and gathers what they found.
#pragma once

#include "workload.hpp"

#include <string>
#include <vector>

namespace cohort::tool {

/// One line of the result; the same on every rank.
struct bench_row {
  std::string label;
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::string algorithm;
  std::string why;  ///< it is that one
  int samples = 0;
  int calls_per_sample = 1;
  double median = 0, min = 0, p99 = 0;  ///< microseconds per call
  double algorithm_bandwidth = 0;       ///< bytes per call over the median, in 10^9 bytes per second
  double bus_bandwidth = 0;             ///< the same for one link: nccl-tests' factors
  long wrong = 0;                       ///< elements on all ranks
};

/// Result: the times of the slowest rank in each sample, and the elements that are wrong after the first and the last
/// Errors: what the operations throw
[[nodiscard]] bench_row measure_cell(world_type& world, const bench_options& options, const workload& work);

}  // namespace cohort::tool
