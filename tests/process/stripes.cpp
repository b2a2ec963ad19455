// SPDX-License-Identifier: BSL-1.0
// Long messages over several connections, between processes: the oracle, messages both ways at once, ranks that want
// different numbers, one that leaves behind its message. stripes_faults.cpp has what goes wrong.
#include "../support/oracle_movements.hpp"
#include "../support/oracle_processes.hpp"
#include "../support/oracle_reduce.hpp"
#include "stripes_support.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <utility>
#include <vector>

using namespace cohort;
using namespace oracle;
using namespace stripes;

namespace {

constexpr std::size_t block = 280001;  // of int32: more than a MiB

/// How many stripes, and how many ranks.
using combination = std::pair<const char*, int>;
#if COHORT_TEST_SANITIZED
constexpr std::array<combination, 1> combinations{{{"3", 2}}};
constexpr std::array<const char*, 1> numbers{"8"};
#else
constexpr std::array<combination, 4> combinations{{{"2", 2}, {"3", 2}, {"8", 2}, {"3", 3}}};
constexpr std::array<const char*, 3> numbers{"2", "3", "8"};
#endif

task<> movements_of_blocks(checker<remote>& c) {
  auto messages = message_matrix<std::int32_t>(c, {block});
  co_await messages;
  auto broadcasts = broadcast_matrix<std::int32_t>(c, {block * static_cast<std::size_t>(c.size())}, {c.size() - 1});
  co_await broadcasts;
  auto scatters = scatter_matrix<std::int32_t>(c, {block}, {0}, block);
  co_await scatters;
  auto gathers = gather_matrix<std::int32_t>(c, {block}, {c.size() - 1}, block);
  co_await gathers;
  auto all_gathers = all_gather_matrix<std::int32_t>(c, {block}, block);
  co_await all_gathers;
  auto all_to_alls = all_to_all_matrix<std::int32_t>(c, {block}, block);
  co_await all_to_alls;
}

task<> reductions_of_blocks(checker<remote>& c) {
  const std::size_t all = block * static_cast<std::size_t>(c.size());
  auto everywhere = all_reduce_matrix<std::int32_t, cohort::sum>(c, {all});
  co_await everywhere;
  // 16 bytes an element, and an order that matters.
  auto ordered = all_reduce_matrix<matrix2, multiply>(c, {all / 4});
  co_await ordered;
  auto scattered = reduce_scatter_matrix<float, cohort::sum>(c, {block}, {});
  co_await scattered;
}

/// Several at once in both directions, of lengths on either side of what is striped, under one tag: they arrive in order.
task<> many_at_once(world_type& world) {
  const std::size_t lengths[] = {300000, 7, 262144, 1000003, 0, 262143, 70000, 500009};
  const int other = 1 - world.rank();
  for (std::uint32_t round = 0; round < (harness::sanitized ? 2 : 3); ++round) {
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::vector<std::uint32_t>> in;
    for (const std::size_t n : lengths) {
      const auto number = static_cast<std::uint32_t>(out.size());
      out.push_back(values(n, 1000 * round + 10 * number + static_cast<std::uint32_t>(world.rank())));
      in.emplace_back(n);
    }
    std::vector<operation<received>> receives;
    std::vector<operation<>> sends;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (round % 2 == 0) receives.push_back(world.recv(in[i], from{other}, tag{5}));
      sends.push_back(world.send(out[i], to{other}, tag{5}));
    }
    for (std::size_t i = receives.size(); i < in.size(); ++i)
      receives.push_back(world.recv(in[i], from{other}, tag{5}));
    for (auto& r : receives) co_await r;
    for (auto& s : sends) co_await s;
    for (std::uint32_t i = 0; i < in.size(); ++i) {
      harness::expect(in[i] == values(lengths[i], 1000 * round + 10 * i + static_cast<std::uint32_t>(other)),
                      "what was sent");
    }
  }
}

}  // namespace

TEST_CASE("stripes: the oracle, what moves blocks") {
  for (const combination& each : combinations) {
    const char* const number = each.first;
    const int n = each.second;
    CAPTURE(number);
    const auto check = [&](checker<remote>& c) -> task<> {
      auto all = movements_of_blocks(c);
      co_await all;
      expect_carried(static_cast<std::size_t>(std::atoi(number)), n - 1);
    };
    on_processes(n, {operation_kind::broadcast, operation_kind::all_gather, operation_kind::all_to_all}, check,
                 over_stripes(number));
  }
}

TEST_CASE("stripes: the oracle, what is combined while it arrives") {
  for (const combination& each : combinations) {
    const char* const number = each.first;
    const int n = each.second;
    CAPTURE(number);
    const auto check = [&](checker<remote>& c) -> task<> {
      auto all = reductions_of_blocks(c);
      co_await all;
      expect_carried(static_cast<std::size_t>(std::atoi(number)), n - 1);
    };
    on_processes(n, {operation_kind::all_reduce, operation_kind::reduce_scatter}, check, over_stripes(number));
  }
}

TEST_CASE("stripes: several messages at once, both ways, the short ones between them in order") {
  for (const char* const number : numbers) {
    expect_all_well(harness::run_ranks(
        2,
        [number](int) {
          const auto rank_main = [number](world_type world) -> task<> {
            auto all = many_at_once(world);
            co_await all;
            expect_carried(static_cast<std::size_t>(std::atoi(number)), 1);
          };
          return cohort::run(rank_main);
        },
        options_for(number)));
  }
}

TEST_CASE("stripes: ranks that were given different numbers use the larger one") {
  expect_all_well(harness::run_ranks(
      2,
      [](int rank) {
        if (rank == 1) ::setenv("COHORT_TCP_STRIPES", "1", 1);
        const auto rank_main = [](world_type world) -> task<> {
          auto both = exchange_long(world, 4);
          co_await both;
          auto again = exchange_long(world, 5);
          co_await again;
          expect_carried(3, 1);
        };
        return cohort::run(rank_main);
      },
      options_for("3")));
}

TEST_CASE("stripes: on one host there are none unless they are asked for") {
  for (const char* const number : {"auto", "1"}) {
    expect_all_well(harness::run_ranks(
        2,
        [](int) {
          const auto rank_main = [](world_type world) -> task<> {
            auto both = exchange_long(world, 1);
            co_await both;
            harness::expect(carriers().empty(), "one connection");
          };
          return cohort::run(rank_main);
        },
        options_for(number)));
  }
}

TEST_CASE("stripes: a rank that leaves behind its message") {
  for (int round = 0; round < (harness::sanitized ? 2 : 5); ++round) {
    expect_all_well(harness::run_ranks(
        2,
        [](int) {
          const auto rank_main = [](world_type world) -> task<> {
            auto v = values(world.rank() == 0 ? 3000017 : 0, 9);
            if (world.rank() == 0) {
              co_await world.send(v, to{1});
              co_return;
            }
            co_await world.recv(growing(v), from{0});
            harness::expect(v == values(3000017, 9), "what the one who left had sent");
          };
          return cohort::run(rank_main);
        },
        options_for("3")));
  }
}
