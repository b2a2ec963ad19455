// SPDX-License-Identifier: BSL-1.0
// `cohort bench --explain`: which algorithm carries out the calls of one size, and why it is that one.
#pragma once

#include "options.hpp"
#include "workload.hpp"

#include <string>

namespace cohort::tool {

struct explanation {
  std::string algorithm = "-";  ///< for messages, which have no choice of one
  std::string why{};
};

[[nodiscard]] explanation explain(const world_type& world, const bench_options& options, const workload& work);

/// What is printed before the measurements: by what the choices are made.
[[nodiscard]] std::string grounds_of_choice(const world_type& world);

}  // namespace cohort::tool
