// SPDX-License-Identifier: BSL-1.0
// Communicators that are made where others have ended in disorder, over MPI, which gives them the same numbers again:
// parts of semantics.cpp.
#pragma once

#include "parts.hpp"

#include <cstddef>
#include <thread>
#include <vector>

namespace mpi_test {

/// MPI itself sums up, which takes what it finds from the other ranks for theirs.
inline task<> sums_of_halves(world_type& world, long turn) {
  auto halves = world.split(cohort::color{world.rank() % 2});
  auto half = co_await halves;
  half.algorithms().override_with("all_reduce=native");
  for (long i = 0; i < 4; ++i) {
    std::vector<long> v(30000, 1000 * turn + i);
    auto op = half.all_reduce(v, cohort::sum{});
    co_await op;
    for (const long each : v) expect(each == (1000 * turn + i) * half.size(), "the sum of a half, in every element");
  }
}

/// Rank 0 has told some that it takes part, before it drops: those begin MPI's own, in which they stay alone.
inline task<> drops_once_some_have_begun(world_type& group) {
  group.algorithms().override_with("all_reduce=native");
  std::vector<long> v(30000, 7);
  auto first = group.all_reduce(v, cohort::sum{});
  co_await first;
  if (group.rank() == 0) {
    [[maybe_unused]] auto op = group.all_reduce(v, cohort::sum{});
    MPI_Barrier(MPI_COMM_WORLD);  // within which the operation does not go on
    // Until the others have begun, which nothing here would tell.
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    co_return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  auto op = group.all_reduce(v, cohort::sum{});
  auto check = fails(op, errc::aborted, {"rank 0 dropped all_reduce #1 before it was complete"});
  co_await check;
}

inline task<> sums_after_a_drop(world_type world) {
  if (world.size() < 2) co_return;
  for (long turn = 0; turn < 2; ++turn) {
    {
      auto duplicates = world.duplicate();
      auto copy = co_await duplicates;
      auto ends = drops_once_some_have_begun(copy);
      co_await ends;
    }
    auto sums = sums_of_halves(world, turn);
    co_await sums;
  }
}

/// The same with a world of its own for each.
inline task<> worlds_after_a_drop(world_type world) {
  if (world.size() < 2) co_return;
  {
    auto dropped = cohort::connect<cohort::mpi>();
    auto ends = drops_once_some_have_begun(dropped);
    co_await ends;
  }
  auto next = cohort::connect<cohort::mpi>();
  auto sums = sums_of_halves(next, 7);
  co_await sums;
}

/// One rank leaves a world when the others, who wait a second, do not wait for it any more, and says so when they may have made
/// the next.
inline task<> worlds_after_one_left_late(world_type world) {
  if (world.size() < 2) co_return;
  {
    const auto left = cohort::connect<cohort::mpi>();
    if (left.rank() == last(left)) std::this_thread::sleep_for(std::chrono::milliseconds{1500});
  }
  auto next = cohort::connect<cohort::mpi>();
  for (int turn = 0; turn < 20; ++turn) {
    auto op = next.all_reduce(1, cohort::sum{});
    expect(co_await op == next.size(), "a sum in the next world");
  }
}

}  // namespace mpi_test
