// SPDX-License-Identifier: BSL-1.0
// A 64-bit hash of a sequence of numbers that is the same in every process: what ranks derive equal names from without
// talking. Not for keeping secrets.
#pragma once

#include <cstdint>

namespace cohort::detail {

/// The next state of a hash, from its state and one number (the finaliser of splitmix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t value) noexcept {
  std::uint64_t x = (state ^ value) + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return (x ^ (x >> 31)) + state * 3;
}

}  // namespace cohort::detail
