// SPDX-License-Identifier: BSL-1.0
// The oracle where every rank of the process has a thread of its own: what the ranks share is under contention here,
// and each waits by itself.
#include "../support/oracle_local.hpp"
#include "../support/oracle_mixed.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace oracle;

namespace {

#if COHORT_TEST_SANITIZED
constexpr int sizes[] = {2, 3, 5};
#else
constexpr int sizes[] = {1, 2, 3, 5, 8};
#endif
// Of float, these are longer than what the ranks of a process buffer for each other: their sends wait.
constexpr std::size_t large_prime = 20011;

}  // namespace

TEST_CASE("oracle, a thread per rank: reductions") {
  for (const int n : sizes) {
    const auto check = [](checker<local>& c) -> task<> {
      auto everywhere = all_reduce_matrix<float, cohort::sum>(c, {0, 1, c.ranks() + 1, large_prime});
      co_await everywhere;
      auto rooted = reduce_matrix<matrix2, multiply>(c, {1, 1009}, {c.size() - 1});
      co_await rooted;
      auto scattered = reduce_scatter_matrix<float, cohort::sum>(c, {1, 1009}, ragged_counts(c.size(), 1009));
      co_await scattered;
      auto scanned = scan_matrix<matrix2, multiply>(c, {1, 1009});
      co_await scanned;
    };
    require_all_algorithms(on_threads(n, check), {operation_kind::all_reduce, operation_kind::reduce_scatter});
  }
}

TEST_CASE("oracle, a thread per rank: movements") {
  for (const int n : sizes) {
    const auto check = [](checker<local>& c) -> task<> {
      auto broadcasts = broadcast_matrix<std::int32_t>(c, {0, 1, large_prime}, all_roots(c.size()));
      co_await broadcasts;
      auto scatters = scatter_matrix<rgb>(c, {1, 1009}, {c.size() - 1}, 1009);
      co_await scatters;
      auto gathers = gather_matrix<rgb>(c, {1, 1009}, {c.size() - 1}, 1009);
      co_await gathers;
      auto all_gathers = all_gather_matrix<std::int32_t>(c, {1, large_prime}, 1009);
      co_await all_gathers;
      auto all_to_alls = all_to_all_matrix<rgb>(c, {1, 1009}, large_prime);
      co_await all_to_alls;
    };
    require_all_algorithms(on_threads(n, check),
                           {operation_kind::broadcast, operation_kind::scatter, operation_kind::gather,
                            operation_kind::all_gather, operation_kind::all_to_all});
  }
}

TEST_CASE("oracle, a thread per rank: messages and barriers") {
  for (const int n : sizes) {
    std::atomic<int> arrivals{0};
    const auto check = [&](checker<local>& c) -> task<> {
      auto messages = message_matrix<std::int32_t>(c, {0, 17, large_prime});
      co_await messages;
      auto barriers = barrier_matrix(c, arrivals, 50);
      co_await barriers;
    };
    const tally counts = on_threads(n, check);
    const std::vector<algorithm> ways = algorithms_of(operation_kind::barrier);
    const std::size_t barriers = 50 * static_cast<std::size_t>(n);
    if (n == 1) CHECK(counts.alone() == barriers * ways.size());
    for (const algorithm how : ways) CHECK(counts.of(operation_kind::barrier, how) == (n == 1 ? 0 : barriers));
  }
}

TEST_CASE("oracle, a thread per rank: operations in flight, and 200 random calls") {
  for (const int n : sizes) {
    const auto check = [](checker<local>& c) -> task<> {
      auto in_flight = check_in_flight(c, 24);
      co_await in_flight;
      auto random_calls = check_random_calls(c, 6, 200);
      co_await random_calls;
    };
    CHECK(on_threads(n, check).total() == 224 * static_cast<std::size_t>(n));
  }
}
