// SPDX-License-Identifier: BSL-1.0
// Ranks that take turns on two cores leave what they read of each other modified, each of them, while others still read it and
// before it is written anew: everybody gets what was given all the same, whoever comes first.
#include "../support/sanitizer.hpp"
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>
#include <cohort/detail/core_set.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;

namespace {

/// The first two that there are. With fewer the test is of one core.
void on_two_cores() {
  const cohort::detail::core_set all = cohort::detail::core_set::usable();
  cpu_set_t two;
  CPU_ZERO(&two);
  for (int i = 0; i < std::min(2, all.count()); ++i) CPU_SET(all.at(i), &two);
  if (::sched_setaffinity(0, sizeof two, &two) != 0) throw std::runtime_error("sched_setaffinity failed");
}

/// The i-th byte of what a rank gives in a call: no line is like another.
COHORT_TEST_NOT_SANITIZED unsigned char given(unsigned call, int rank, std::size_t i) {
  const std::uint64_t x = (i / 8 + 1) * 0x9e3779b97f4a7c15U + call * 0xbf58476d1ce4e5b9U + static_cast<unsigned>(rank);
  return static_cast<unsigned char>((x ^ x >> 29) >> (i % 8 * 7));
}
COHORT_TEST_NOT_SANITIZED void give(unsigned char* into, std::size_t bytes, unsigned call, int rank) {
  for (std::size_t i = 0; i < bytes; ++i) into[i] = given(call, rank, i);
}
void give(std::span<unsigned char> into, unsigned call, int rank) { give(into.data(), into.size(), call, rank); }

/// Whether it is the bit_xor of what all ranks from `rank` to before `end` have given.
COHORT_TEST_NOT_SANITIZED bool was_given(const unsigned char* found, std::size_t bytes, unsigned call, int rank,
                                         int end) {
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char expected = 0;
    for (int r = rank; r < end; ++r) expected = static_cast<unsigned char>(expected ^ given(call, r, i));
    if (found[i] != expected) return false;
  }
  return true;
}
bool is_what_was_given(std::span<const unsigned char> found, unsigned call, int rank) {
  return was_given(found.data(), found.size(), call, rank, rank + 1);
}

/// Bytes that begin anywhere in a line.
class bytes_somewhere {
 public:
  bytes_somewhere(std::mt19937& any, std::size_t bytes) : memory_(bytes + 64), at_(any() % 64), bytes_(bytes) {}
  std::span<unsigned char> operator*() { return std::span(memory_).subspan(at_, bytes_); }

 private:
  std::vector<unsigned char> memory_;
  std::size_t at_;
  std::size_t bytes_;
};
/// Between one and `most`, the short as often as the long.
std::size_t any_length(std::mt19937& any, std::size_t most) {
  const std::size_t below = std::size_t{128} << (any() % 14);
  return 1 + any() % std::min(most, below);
}

task<int> calls(communicator<cpu> world) {
  std::mt19937 same(11);  // on all ranks
  std::mt19937 own(static_cast<unsigned>(world.rank()) + 100);
  const int p = world.size();
  const int me = world.rank();
  const auto ranks = static_cast<std::size_t>(p);
  for (unsigned call = 0; call < 500; ++call) {
    const auto kind = same() % 4;
    const int chosen = static_cast<int>(same() % ranks);
    // Late now and then, so that each comes first and last.
    if (own() % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 2000));
    std::string what = "call " + std::to_string(call) + ": ";
    if (kind < 2) {
      const std::size_t bytes = any_length(same, 700'000);
      bytes_somewhere v(own, bytes);
      if (me == chosen) give(*v, call, me);
      co_await world.broadcast(*v, root{chosen});
      what += "broadcast of " + std::to_string(bytes);
      harness::expect(is_what_was_given(*v, call, chosen), what.c_str());
    } else if (kind == 2) {
      const std::size_t bytes = any_length(same, 200'000);
      bytes_somewhere mine(own, bytes);
      bytes_somewhere all(own, bytes * ranks);
      give(*mine, call, me);
      co_await world.all_gather(*mine, *all);
      what += "all_gather of " + std::to_string(bytes);
      for (int r = 0; r < p; ++r) {
        const auto block = (*all).subspan(static_cast<std::size_t>(r) * bytes, bytes);
        harness::expect(is_what_was_given(block, call, r), what.c_str());
      }
    } else {
      const std::size_t bytes = any_length(same, 700'000);
      bytes_somewhere v(own, bytes);
      give(*v, call, me);
      co_await world.all_reduce(*v, bit_xor{});
      what += "all_reduce of " + std::to_string(bytes);
      harness::expect(was_given((*v).data(), bytes, call, 0, p), what.c_str());
    }
  }
  co_return 0;
}

}  // namespace

TEST_CASE("what ranks on two cores hand on is what was given, for all of them") {
  for (const int n : {3, 4, 5, 8}) {
    CAPTURE(n);
    const auto rank_main = [](int) {
      on_two_cores();
      return run(calls);
    };
    for (const auto& r : harness::run_ranks(n, rank_main)) {
      INFO(harness::describe(r));
      CHECK(r.ok());
    }
  }
}
