// SPDX-License-Identifier: BSL-1.0
// Ranks that do not call the same over MPI: parts of semantics.cpp.
#pragma once

#include "parts.hpp"

#include <chrono>
#include <vector>

namespace mpi_test {

using namespace std::chrono_literals;

inline task<> different_operations(world_type world) {
  if (world.size() < 2) co_return;
  std::vector<float> v(1000, 1.0F);
  auto op = world.rank() == 0 ? world.all_reduce(v, cohort::sum{}) : world.broadcast(v, cohort::root{0});
  auto check = fails(op, errc::mismatch, {"all_reduce(1000 x float32, sum)", "broadcast(1000 x float32, root 0)"});
  co_await check;
}

/// Nobody has anything to say to anybody: the first waits for parts of a sum, the others for a vector.
inline task<> everybody_waits(world_type world) {
  if (world.size() < 2) co_return;
  world.set_timeout(30s);
  std::vector<float> v(1000, 1.0F);
  auto before = world.barrier();
  co_await before;
  const auto began = std::chrono::steady_clock::now();
  auto op = world.rank() == 0 ? world.reduce(v, cohort::sum{}, cohort::root{0}) : world.broadcast(v, cohort::root{0});
  auto check = fails(op, errc::mismatch, {"reduce(1000 x float32, sum, root 0)", "broadcast(1000 x float32, root 0)"});
  co_await check;
  expect(std::chrono::steady_clock::now() - began < 10s, "to be told long before the deadline");
}

/// The same where the deadline comes first.
inline task<> everybody_waits_briefly(world_type world) {
  if (world.size() < 2) co_return;
  auto before = world.barrier();
  co_await before;
  world.set_timeout(300ms);
  std::vector<float> v(1000, 1.0F);
  auto op = world.rank() == 0 ? world.reduce(v, cohort::sum{}, cohort::root{0}) : world.broadcast(v, cohort::root{0});
  auto check = fails(op, errc::mismatch, {"reduce(1000 x float32, sum, root 0)", "broadcast(1000 x float32, root 0)"});
  co_await check;
}

/// MPI itself would give wrong data or hang.
inline task<> different_counts_by_native(world_type world) {
  if (world.size() < 2) co_return;
  world.algorithms().override_with("all_reduce=native");
  std::vector<float> v(world.rank() == last(world) ? 50001 : 50000, 1.0F);
  auto op = world.all_reduce(v, cohort::sum{});
  auto check = fails(op, errc::mismatch, {"all_reduce(50001 x float32, sum)", "all_reduce(50000 x float32, sum)"});
  co_await check;
  for (const float each : v) expect(each == 1.0F, "the buffer to be as it was: nothing has been started");
}

inline task<> different_functors_by_native(world_type world) {
  if (world.size() < 2) co_return;
  world.algorithms().override_with("all_reduce=native");
  std::vector<double> v(30000, 1.0);
  auto op = world.rank() == 0 ? world.all_reduce(v, cohort::sum{}) : world.all_reduce(v, cohort::max{});
  auto check = fails(op, errc::mismatch, {"sum", "max"});
  co_await check;
}

inline task<> longer_than_its_receive(world_type world) {
  if (world.size() < 2) co_return;
  std::vector<int> v(world.rank() == 0 ? 40000 : 100);
  if (world.rank() == 0) {
    auto op = world.send(v, cohort::to{1});
    auto check = fails(op, errc::truncated, {"sent 40000 elements", "has room for 100"});
    co_await check;
  } else if (world.rank() == 1) {
    auto op = world.recv(v, cohort::from{0});
    auto check = fails(op, errc::truncated, {"sent 40000 elements", "has room for 100"});
    co_await check;
  } else {
    stand_by(world);
  }
}

}  // namespace mpi_test
