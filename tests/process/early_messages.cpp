// SPDX-License-Identifier: BSL-1.0
// Messages between ranks of one host that need not be announced: sent at once, or offered once their receiver wants that. All arrive,
// in order, whichever way the one before them went, and short ones never wait.
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

struct outcome {
  int at_once = 0;
  int offered = 0;
};

/// There and back. Result: how many sends were over when they had begun, and how many were not
task<outcome> back_and_forth(world_type& world, std::size_t bytes, int messages) {
  const int other = 1 - world.rank();
  std::vector<std::uint32_t> out(words_of(bytes));
  std::vector<std::uint32_t> in(words_of(bytes));
  constexpr std::size_t every = 500;
  outcome all;
  for (int i = 0; i < messages; ++i) {
    if (world.rank() == 0 || i > 0) {
      put_values(out, static_cast<std::uint32_t>(2 * i + world.rank()), every);
      auto sending = world.send(out, to{other});
      ++(sending.ready() ? all.at_once : all.offered);
      co_await sending;
    }
    if (world.rank() == 0 && i + 1 == messages) break;
    co_await world.recv(in, from{other});
    harness::expect(has_values(in, static_cast<std::uint32_t>(world.rank() == 0 ? 2 * i + 3 : 2 * i), every),
                    "its bytes");
  }
  co_return all;
}

/// Whether a message of that length is sent at once says whether those do that go at once anywhere.
task<int> both_ways_are_taken(world_type world, bool may_be_offered) {
  auto first_of_40 = back_and_forth(world, 40 * kibibyte, 10);
  const bool at_once = (co_await first_of_40).offered == 0;
  auto first_of_64 = back_and_forth(world, 64 * kibibyte, 50);
  const outcome young = co_await first_of_64;
  harness::expect(!at_once || young.offered == 0, "at first they are sent at once");
  outcome all;
  for (int i = 0; i < 40; ++i) {
    auto more = back_and_forth(world, 64 * kibibyte, 500);
    const outcome now = co_await more;
    all.at_once += now.at_once;
    all.offered += now.offered;
  }
  if (may_be_offered) {
    harness::expect(all.offered > 0, "offering is tried");
  } else {
    harness::expect(!at_once || all.offered == 0, "what cannot be copied once is not offered");
  }
  auto last_of_40 = back_and_forth(world, 40 * kibibyte, 100);
  harness::expect(!at_once || (co_await last_of_40).offered == 0, "shorter ones never wait");
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
  for (int round = 0; round < 60; ++round) {
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
