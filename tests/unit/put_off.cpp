// SPDX-License-Identifier: BSL-1.0
// Copies that are put off: whoever asks finds the bytes that a copy at once would have left, whatever was written, made or
// copied in between, and those that last are there in the end.
#include <cohort/collective/put_off.hpp>
#include <cohort/collective/round_plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using cohort::collective::detail::put_off_copies;

namespace {

constexpr std::size_t size = 48;
using bytes = std::array<std::byte, size>;

/// A buffer some of whose bytes are still elsewhere, beside one in which each copy was made at once.
struct model {
  bytes input{};
  bytes late{};
  bytes at_once{};
  put_off_copies copies{};

  model() {
    for (std::size_t i = 0; i < size; ++i) input[i] = static_cast<std::byte>(i + 1);
  }
  void copy(std::size_t to, std::size_t from, std::size_t n) {
    copies.forget(late.data() + to, n);
    copies.add(late.data() + to, input.data() + from, n, true);
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(from), n,
                at_once.begin() + static_cast<std::ptrdiff_t>(to));
  }
  void write(std::size_t to, std::size_t n, std::byte value) {
    copies.forget(late.data() + to, n);
    std::fill_n(late.begin() + static_cast<std::ptrdiff_t>(to), n, value);
    std::fill_n(at_once.begin() + static_cast<std::ptrdiff_t>(to), n, value);
  }
  [[nodiscard]] bytes as_read() {
    bytes found{};
    std::size_t at = 0;
    copies.each_source(late.data(), size, [&](const std::byte* where, std::size_t n) {
      REQUIRE(n > 0);
      REQUIRE(at + n <= size);
      std::copy_n(where, n, found.begin() + static_cast<std::ptrdiff_t>(at));
      at += n;
    });
    REQUIRE(at == size);
    return found;
  }
};

}  // namespace

TEST_CASE("put off: any sequence of copies, writes and reads is as if each copy had been made at once") {
  std::mt19937 random(20261125);
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (int round = 0; round < 3000; ++round) {
    model m;
    for (std::size_t steps = 1 + below(12); steps > 0; --steps) {
      const std::size_t to = below(size);
      const std::size_t n = 1 + below(size - to);
      switch (below(3)) {
        case 0: m.copy(to, below(size - n + 1), n); break;
        case 1: m.write(to, n, static_cast<std::byte>(100 + below(100))); break;
        default:
          m.copies.make(m.late.data() + to, n);
          CHECK(std::equal(m.late.begin() + static_cast<std::ptrdiff_t>(to),
                           m.late.begin() + static_cast<std::ptrdiff_t>(to + n),
                           m.at_once.begin() + static_cast<std::ptrdiff_t>(to)));
      }
      REQUIRE(m.as_read() == m.at_once);
    }
    m.copies.make_lasting();
    REQUIRE(m.late == m.at_once);
  }
}

TEST_CASE("put off: what was never needed, and does not last, is never copied") {
  model m;
  m.copies.add(m.late.data(), m.input.data(), 16, false);
  m.copies.add(m.late.data() + 16, m.input.data(), 16, true);
  m.copies.make_lasting();
  CHECK(m.late[3] == std::byte{0});
  CHECK(m.late[19] == m.input[3]);
}

TEST_CASE("put off: copies of a round take place in their order where the input is a part of the output") {
  namespace c = cohort::collective;
  constexpr std::size_t block = 2 * c::detail::shortest_put_off;
  std::vector<std::byte> both(2 * block, std::byte{1});
  std::vector<std::byte> work(2 * block, std::byte{2});
  c::layouts where;
  where.in = c::layout::uniform(both.data() + block, block, 1);  // block 1 of the output
  where.out = c::layout::uniform(both.data(), block, 2);
  where.work = c::layout::uniform(work.data(), block, 2);
  c::detail::round_plan plan(where, nullptr);
  plan.copy({c::buffer::in, 0, 1}, {c::buffer::work, 0, 1});
  plan.copy({c::buffer::work, 1, 1}, {c::buffer::out, 1, 1});
  plan.make_copies();
  CHECK(work[0] == std::byte{1});
  CHECK(both[block] == std::byte{2});
}
