// SPDX-License-Identifier: BSL-1.0
// The oracle over real processes that talk TCP: what moves blocks, and messages; announced before they are sent because
// they are long, or thousands of short ones; over IPv4 and IPv6.
#include "../support/oracle_movements.hpp"
#include "../support/oracle_processes.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

using namespace oracle;

namespace {

/// All are called before one is awaited, so that the receiver falls behind and its buffers fill up.
task<> thousands_of_sends(checker<remote>& c) {
  constexpr std::size_t many = harness::sanitized ? 2000 : 20000;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < many; ++i) {
    const std::size_t some = i % 2000 < 1000 ? long_prime : longest_prime;
    lengths.push_back(i % 1000 == 999 ? some : i % 17);
  }
  auto posted_late = check_order<std::int32_t>(c, lengths, false);
  co_await posted_late;
  auto posted_first = check_order<std::int32_t>(c, lengths, true);
  co_await posted_first;
  auto barrier = c.world().barrier();
  co_await barrier;
  auto from_any = check_from_any<std::int32_t>(c, 3, 90);
  co_await from_any;
}

task<> short_blocks(checker<remote>& c) {
  auto all = movements(c, prime);
  co_await all;
}

task<> long_blocks(checker<remote>& c) {
  auto all = long_movements(c, long_prime, longest_prime);
  co_await all;
}

}  // namespace

TEST_CASE("oracle, processes: what moves blocks") {
  for (const int n : process_counts) on_processes(n, moving, short_blocks);
}

TEST_CASE("oracle, processes: blocks and messages of some hundred KiB, and longer than 1 MiB") {
  for (const int n : process_counts_of_long) on_processes(n, moving, long_blocks);
}

TEST_CASE("oracle, processes: messages and barriers") {
  for (const int n : process_counts) {
    const shared_counter arrivals;
    on_processes(n, {operation_kind::barrier}, [&](checker<remote>& c) -> task<> {
      auto messages = message_matrix<std::int32_t>(c, {0, 1, 17, prime});
      co_await messages;
      auto barriers = barrier_matrix(c, arrivals.get(), 100);
      co_await barriers;
    });
  }
}

TEST_CASE("oracle, processes: thousands of short sends, some long ones among them") {
  for (const int n : process_counts) on_processes(n, {}, thousands_of_sends);
}

TEST_CASE("oracle, processes: over IPv6") {
  if (!has_ipv6()) return;
  on_processes(3, moving, short_blocks, {{"MASTER_ADDR", "::1"}});
  on_processes(2, {}, thousands_of_sends, {{"MASTER_ADDR", "::1"}, {"COHORT_BIND_ADDRESS", "::1"}});
}

TEST_CASE("oracle, processes: what moves blocks, on several hosts") {
  on_hosts([](const auto& move_in, int n) {
    on_processes(n, moving, short_blocks, {}, move_in);
    const shared_counter arrivals;
    const auto barriers = [&](checker<remote>& c) -> task<> {
      auto matrix = barrier_matrix(c, arrivals.get(), 100);
      co_await matrix;
    };
    on_processes(n, {operation_kind::barrier}, barriers, {}, move_in);
  });
}
