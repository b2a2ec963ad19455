// SPDX-License-Identifier: BSL-1.0
// The command line of data_parallel_training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace training {

struct options {
  std::string data = "digits";
  std::string data_directory{};  ///< empty: where the data usually is
  int epochs = 30;
  std::size_t batch = 32;
  std::vector<std::size_t> hidden{64, 32};
  float learning_rate = 0.02f;
  float momentum = 0.9f;
  std::uint64_t seed = 1;
  std::string plot{};
  std::string loss_csv{};
  bool quiet = false;
  bool help = false;
};

/// The command line is wrong; the text names the option and what was expected.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Errors: usage_error
[[nodiscard]] options parse_options(std::span<const std::string> arguments);

[[nodiscard]] const char* usage() noexcept;

}  // namespace training
