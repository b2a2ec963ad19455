// SPDX-License-Identifier: BSL-1.0
// Runs a check of the oracle on worlds inside this process: all ranks on one thread, or a thread for each.
#pragma once

#include "oracle.hpp"

#include <cohort/run_local.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace oracle {

using local = cohort::inproc;
#if COHORT_TEST_SANITIZED
inline constexpr std::array<int, 5> world_sizes{1, 2, 3, 4, 7};
#else
inline constexpr std::array<int, 7> world_sizes{1, 2, 3, 4, 5, 7, 8};
#endif
inline constexpr auto ranks_of_all_worlds = std::accumulate(world_sizes.begin(), world_sizes.end(), std::size_t{0});

/// Calls `check(checker<local>&)`, a coroutine, as every rank of a world of each of the sizes.
///
/// Result: what was checked, on all ranks together
template <class Check>
[[nodiscard]] tally on_local_worlds(Check check, std::span<const int> sizes = world_sizes) {
  tally counts;
  for (const int n : sizes) {
    CAPTURE(n);
    auto rank_main = [&](communicator<local> world) -> task<> {
      checker<local> c(world, counts);
      auto work = check(c);
      co_await work;
    };
    cohort::run_local(n, rank_main);
  }
  return counts;
}

/// The same on one world with a thread for each rank.
template <class Check>
[[nodiscard]] tally on_threads(int n, Check check) {
  using hub_type = cohort::transport::inproc_hub;
  const auto hub = std::make_shared<hub_type>(n, hub_type::threading::thread_per_rank);
  std::vector<communicator<local>> worlds;
  for (int r = 0; r < n; ++r) worlds.push_back(cohort::make_local_world(hub, r));
  std::vector<tally> counts(worlds.size());
  std::vector<std::exception_ptr> failures(worlds.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < worlds.size(); ++r) {
    threads.emplace_back([&check, &world = worlds[r], &mine = counts[r], &failure = failures[r]] {
      auto rank_main = [&](communicator<local> own) -> task<> {
        checker<local> c(own, mine);
        auto work = check(c);
        co_await work;
      };
      try {
        auto all = cohort::detail::run_rank(rank_main, std::move(world));
        cohort::sync_wait(all);
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  // What a rank found wrong, rather than that another one was aborted for it.
  std::exception_ptr first;
  for (const std::exception_ptr& each : failures) {
    if (!each) continue;
    if (!first) first = each;
    try {
      std::rethrow_exception(each);
    } catch (const wrong&) {
      first = each;
    } catch (...) {
      continue;
    }
  }
  if (first) std::rethrow_exception(first);
  tally total;
  for (const tally& each : counts) total.merge(each);
  return total;
}

/// Every algorithm of these operations has been checked, and how often any was.
inline void require_all_algorithms(const tally& counts, std::initializer_list<operation_kind> kinds) {
  if (counts.only_worlds_of_one()) return;
  for (const operation_kind kind : kinds) {
    for (const algorithm how : algorithms_of(kind)) {
      CAPTURE(std::string(name(kind)));
      CAPTURE(std::string(to_string(how)));
      CHECK(counts.of(kind, how) > 0);
    }
  }
  MESSAGE(counts.total() << " results checked");
}

}  // namespace oracle
