// SPDX-License-Identifier: BSL-1.0
// Of bytes that are handed back only whole cache lines are written to, and none beside them.
#include <cohort/detail/hand_back.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

using cohort::detail::hand_back;
using cohort::detail::lines_are_handed_back;

TEST_CASE("each whole line is written to, where the processor gains by it, and nothing else is") {
  constexpr std::size_t line = 64;
  constexpr std::byte untouched{0x5a};
  struct alignas(64) lines {
    std::array<std::byte, 8 * line> bytes;
  };
  std::vector<lines> memory(1);
  std::byte* const data = memory[0].bytes.data();
  for (std::size_t from = 0; from <= 2 * line; ++from) {
    for (std::size_t to = from; to <= 6 * line; ++to) {
      memory[0].bytes.fill(untouched);
      hand_back(data + from, to - from);
      bool right = true;
      for (std::size_t at = 0; at < memory[0].bytes.size(); at += line) {
        const bool whole = at >= from && at + line <= to;
        const auto changed = static_cast<std::size_t>(
            std::count_if(data + at, data + at + line, [](std::byte b) { return b != untouched; }));
        right = right && changed == (whole && lines_are_handed_back() ? 1U : 0U);
      }
      CAPTURE(from);
      CAPTURE(to);
      REQUIRE(right);
    }
  }
}
