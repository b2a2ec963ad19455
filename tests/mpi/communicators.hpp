// SPDX-License-Identifier: BSL-1.0
// The making of MPI's communicators for groups: parts of semantics.cpp.
#pragma once

#include "parts.hpp"
#include "shared_counter.hpp"

#include <chrono>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace mpi_test {

/// Nobody but its members is needed, and rank 0 is none.
inline task<> group_without_rank_0(world_type world) {
  if (world.size() < 3) co_return;
  const oracle::shared_counter ended(world);
  std::vector<int> others(static_cast<std::size_t>(world.size()) - 1);
  std::iota(others.begin(), others.end(), 1);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  if (world.rank() == 0) {
    while (ended.get() + 1 < world.size() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  } else {
    auto forming = world.subgroup(cohort::ranks(others));
    auto group = co_await forming;
    group.algorithms().override_with("broadcast=native");
    std::vector<int> v(100000, world.rank());
    auto op = group.broadcast(v, cohort::root{0}, cohort::timeout{std::chrono::seconds{10}});
    co_await op;
    expect(v.back() == 1, "what the first member has");
    ++ended.get();
  }
  co_await world.barrier();
}

/// Groups of two worlds, which the ranks drive in different orders.
inline task<> groups_of_two_worlds(world_type world) {
  if (world.size() < 2) co_return;
  auto second = cohort::connect<cohort::mpi>();
  std::mt19937 own(static_cast<unsigned>(world.rank()) + 1);
  std::vector<int> backward(static_cast<std::size_t>(world.size()));
  std::iota(backward.rbegin(), backward.rend(), 0);
  for (int turn = 0; turn < 100; ++turn) {
    auto forming = world.duplicate();
    auto of_first = co_await forming;
    auto forming_too = second.subgroup(cohort::ranks(backward));
    auto of_second = co_await forming_too;
    of_first.algorithms().override_with("broadcast=native");
    of_second.algorithms().override_with("broadcast=native");
    std::vector<int> x(1000, world.rank());
    std::vector<int> y(1000, world.rank());
    auto a = of_first.broadcast(x, cohort::root{0});
    auto b = of_second.broadcast(y, cohort::root{0});
    while (!a.ready() || !b.ready()) {
      const bool first = own() % 2 == 0;
      (first ? world : second).poll();
      (first ? second : world).poll();
    }
    co_await a;
    co_await b;
    expect(x.back() == 0 && y.back() == last(world), "the values of both roots");
  }
}

}  // namespace mpi_test
