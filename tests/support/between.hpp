// SPDX-License-Identifier: BSL-1.0
// A number by chance, the same ones for one seed: for tests that cut bytes anywhere.
#pragma once

#include <cstdint>
#include <random>

namespace harness {

using generator = std::mt19937_64;

[[nodiscard]] inline std::uint64_t between(generator& random, std::uint64_t least, std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
}

}  // namespace harness
