// SPDX-License-Identifier: BSL-1.0
// The oracle over real processes that talk TCP: what reduces, and operations of all kinds in flight together.
// COHORT_TEST_SEED=n repeats the random calls of one seed.
#include "../support/oracle_mixed.hpp"
#include "../support/oracle_processes.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>

using namespace oracle;

namespace {

task<> reductions(checker<remote>& c) {
  auto everywhere = all_reduce_matrix<float, cohort::average>(c, counts_for(c.size(), prime));
  co_await everywhere;
  auto ordered = all_reduce_matrix<matrix2, multiply>(c, counts_for(c.size(), prime));
  co_await ordered;
  auto rooted = reduce_matrix<cohort::half, cohort::sum>(c, counts_for(c.size(), 1009), all_roots(c.size()));
  co_await rooted;
  auto rooted_in_order = reduce_matrix<word, concatenate>(c, {0, 1, 1009}, all_roots(c.size()));
  co_await rooted_in_order;
  auto scattered =
      reduce_scatter_matrix<float, cohort::sum>(c, counts_for(c.size(), 1009), ragged_counts(c.size(), prime));
  co_await scattered;
  auto scattered_in_order = reduce_scatter_matrix<matrix2, multiply>(c, {0, 1, 1009}, ragged_counts(c.size(), 1009));
  co_await scattered_in_order;
  auto scanned = scan_matrix<word, concatenate>(c, counts_for(c.size(), 1009));
  co_await scanned;
}

task<> long_reductions(checker<remote>& c) {
  auto everywhere = all_reduce_matrix<std::int32_t, cohort::sum>(c, {longest_prime});
  co_await everywhere;
  auto rooted = reduce_matrix<std::int32_t, cohort::sum>(c, {longest_prime}, {c.size() - 1});
  co_await rooted;
  auto scattered = reduce_scatter_matrix<float, cohort::sum>(c, {long_prime}, {});
  co_await scattered;
}

std::uint64_t chosen_seed() {
  const char* const given = std::getenv("COHORT_TEST_SEED");
  return given == nullptr ? 7 : std::strtoull(given, nullptr, 10);
}

task<> in_flight(checker<remote>& c) {
  auto many = check_in_flight(c, 48);
  co_await many;
  auto random_calls = check_random_calls(c, chosen_seed(), 200);
  co_await random_calls;
}

constexpr std::initializer_list<operation_kind> reducing{
    operation_kind::all_reduce,       operation_kind::reduce, operation_kind::reduce_scatter,
    operation_kind::reduce_scatter_v, operation_kind::scan,   operation_kind::exclusive_scan};

}  // namespace

TEST_CASE("oracle, processes: what reduces") {
  for (const int n : process_counts) on_processes(n, reducing, reductions);
}

TEST_CASE("oracle, processes: reductions of vectors of some hundred KiB, and longer than 1 MiB") {
  for (const int n : process_counts_of_long) {
    on_processes(n, {operation_kind::all_reduce, operation_kind::reduce, operation_kind::reduce_scatter},
                 long_reductions);
  }
}

TEST_CASE("oracle, processes: operations in flight, and 200 random calls") {
  MESSAGE("seed " << chosen_seed());
  for (const int n : process_counts) on_processes(n, {}, in_flight);
}

TEST_CASE("oracle, processes: reductions over IPv6") {
  if (!has_ipv6()) return;
  on_processes(3, reducing, reductions, {{"MASTER_ADDR", "::1"}, {"COHORT_BIND_ADDRESS", "::1"}});
}

TEST_CASE("oracle, processes: every rank listens on an address that is not that of rank 0's store") {
  on_processes(4, reducing, reductions, {{"COHORT_BIND_ADDRESS", "127.0.0.2"}});
}

TEST_CASE("oracle, processes: what reduces, on several hosts") {
  on_hosts([](const auto& move_in, int n) {
    on_processes(n, reducing, reductions, {}, move_in);
    on_processes(n, {operation_kind::all_reduce, operation_kind::reduce, operation_kind::reduce_scatter},
                 long_reductions, {}, move_in);
    on_processes(n, {}, in_flight, {}, move_in);
  });
}
