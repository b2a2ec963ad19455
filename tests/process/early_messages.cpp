// SPDX-License-Identifier: BSL-1.0
// Messages between ranks of one host that need not be announced: sent at once, or offered once their receiver wants that. All arrive,
// in order, whichever way the one before them went, and short ones never wait.
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

using namespace cohort;

namespace {

using world_type = communicator<cpu>;

constexpr std::size_t kibibyte = 1024;
constexpr std::size_t words_of(std::size_t bytes) { return bytes / sizeof(std::uint32_t); }

/// The word at i, of every so many and of the last: whether messages that follow each other closely are offered is what is looked at.
constexpr std::uint32_t value_at(std::size_t i, std::uint32_t of) {
  return of * 0x9e3779b9U + static_cast<std::uint32_t>(i);
}
void put_values(std::vector<std::uint32_t>& all, std::uint32_t of, std::size_t every) {
  for (std::size_t i = 0; i < all.size(); i += every) all[i] = value_at(i, of);
  all.back() = value_at(all.size() - 1, of);
}
bool has_values(const std::vector<std::uint32_t>& all, std::uint32_t of, std::size_t every) {
  for (std::size_t i = 0; i < all.size(); i += every) {
    if (all[i] != value_at(i, of)) return false;
  }
  return all.back() == value_at(all.size() - 1, of);
}

template <class Body>
void on_ranks(int n, const char* way, Body body) {
  harness::rank_options options;
  options.environment = {{"COHORT_SINGLE_COPY", way}};
  const auto results = harness::run_ranks(
      n, [body](int) { return run(body); }, options);
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}

/// One for which nobody waits yet. Result: whether its send was over when it had begun
task<bool> leaves_at_once(world_type& world, std::vector<std::uint32_t>& data, std::uint32_t of) {
  bool at_once = true;
  std::array<std::uint32_t, 1> go{};
  if (world.rank() == 0) {
    put_values(data, of, 1);
    auto sending = world.send(data, to{1});
    at_once = sending.ready();
    co_await world.send(go, to{1}, tag{1});
    co_await sending;
  } else {
    co_await world.recv(go, from{0}, tag{1});
    co_await world.recv(data, from{0});
    harness::expect(has_values(data, of, 1), "its bytes");
  }
  co_return at_once;
}

/// Many that are awaited, and an answer.
task<void> one_after_the_other(world_type& world, std::vector<std::vector<std::uint32_t>>& data, std::uint32_t of) {
  std::vector<operation<>> sends;
  std::vector<operation<received>> receives;
  std::array<std::uint32_t, 1> go{};
  if (world.rank() == 0) {
    co_await world.recv(go, from{1}, tag{1});
    for (auto& each : data) {
      put_values(each, of++, 500);
      sends.push_back(world.send(each, to{1}));
    }
    for (auto& s : sends) co_await s;
  } else {
    for (auto& each : data) receives.push_back(world.recv(each, from{0}));
    co_await world.send(go, to{0}, tag{1});
    for (auto& r : receives) co_await r;
    for (auto& each : data) harness::expect(has_values(each, of++, 500), "one of many");
  }
}

/// Whether a shorter message leaves at once says whether any of these do, where ranks share cores and elsewhere.
task<int> both_ways_are_taken(world_type world, bool may_be_offered) {
  constexpr std::uint32_t rounds = 40;
  std::vector<std::uint32_t> of_40(words_of(40 * kibibyte));
  std::vector<std::uint32_t> of_64(words_of(64 * kibibyte));
  std::vector<std::vector<std::uint32_t>> many(64, of_64);
  auto of_40_at_first = leaves_at_once(world, of_40, 1);
  const bool some_leave = co_await of_40_at_first;
  auto at_first = leaves_at_once(world, of_64, 2);
  harness::expect((co_await at_first) == some_leave, "at first they leave at once");
  bool all_left = true;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    auto awaited = one_after_the_other(world, many, 100 * i);
    co_await awaited;
    auto one = leaves_at_once(world, of_64, 100 * i + 99);
    const bool left = co_await one;
    all_left = all_left && left;
  }
  if (world.rank() == 0)
    harness::expect(all_left == (some_leave && !may_be_offered), "offering is tried where it may help");
  auto of_40_at_last = leaves_at_once(world, of_40, 3);
  harness::expect((co_await of_40_at_last) == some_leave, "shorter ones never wait");
  co_return 0;
}

/// Windows of messages about the length from which they may be offered, in all orders, both ways.
task<int> windows(world_type world) {
  constexpr std::size_t longest = 64 * kibibyte;
  constexpr std::size_t lengths[] = {48 * kibibyte, 48 * kibibyte + 4, 64 * kibibyte, 64 * kibibyte + 4, 60000, 4};
  constexpr int window = 64;
  const int other = 1 - world.rank();
  std::vector<std::vector<std::uint32_t>> out(window);
  std::vector<std::vector<std::uint32_t>> in(window);
  for (int round = 0; round < 24; ++round) {
    std::vector<operation<>> sends;
    std::vector<operation<received>> receives;
    const auto of = [round](int i, int rank) { return static_cast<std::uint32_t>((round * window + i) * 2 + rank); };
    const bool mixed = round % 3 == 2;
    for (int i = 0; i < window; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::size_t n =
          words_of(mixed ? lengths[(at * 7 + static_cast<std::size_t>(round)) % std::size(lengths)] : longest);
      out[at].resize(n);
      in[at].resize(n);
      put_values(out[at], of(i, world.rank()), 1);
      std::fill(in[at].begin(), in[at].end(), 0U);
    }
    // Received before they are sent, and after; every other round in another order.
    const auto receive = [&] {
      for (int k = 0; k < window; ++k) {
        const int i = round % 2 == 0 ? k : k * 37 % window;
        receives.push_back(world.recv(in[static_cast<std::size_t>(i)], from{other}, tag{i}));
      }
    };
    if (round % 4 < 2) receive();
    for (int i = 0; i < window; ++i) sends.push_back(world.send(out[static_cast<std::size_t>(i)], to{other}, tag{i}));
    if (round % 4 >= 2) receive();
    for (auto& r : receives) co_await r;
    for (auto& s : sends) co_await s;
    for (int i = 0; i < window; ++i) {
      harness::expect(has_values(in[static_cast<std::size_t>(i)], of(i, other), 1), "one of a window");
    }
  }
  co_return 0;
}

}  // namespace

TEST_CASE("early messages: the longest are sent at once, and offered where that is tried") {
  for (const char* const way : {"1", "both", "auto"}) {
    CAPTURE(way);
    on_ranks(2, way, [](world_type world) { return both_ways_are_taken(std::move(world), true); });
  }
}

TEST_CASE("early messages: what can only be sent again is not offered") {
  on_ranks(2, "0", [](world_type world) { return both_ways_are_taken(std::move(world), false); });
}

TEST_CASE("early messages: windows of them, and of shorter and longer ones") {
  for (const char* const way : {"0", "1", "both", "auto"}) {
    CAPTURE(way);
    on_ranks(2, way, windows);
  }
}
