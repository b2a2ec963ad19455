// SPDX-License-Identifier: BSL-1.0
// What must hold over MPI as over every other transport: mismatches, drops, deadlines, departures and requests to stop
// reach every rank with the right words; many requests are in flight without a thread; communicators of some ranks.
// Run by mpirun with the names of parts; each rank checks what it sees and says what is wrong.
#include "again.hpp"
#include "communicators.hpp"
#include "mistakes.hpp"
#include "of_two.hpp"
#include "parts.hpp"
#include "selection.hpp"

#include <cohort/mpi/selection.hpp>

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace mpi_test;

namespace {

// --- ends

template <std::size_t Bytes>
task<> dropped(world_type world, bool mpi_has_it) {
  if (world.size() < 2) co_return;
  std::vector<float> v(Bytes / sizeof(float), 1.0F);
  if (world.rank() == 0) {
    { [[maybe_unused]] auto op = world.all_reduce(v, cohort::sum{}); }
    // The buffer is the caller's again: whoever wrote to it would be seen by AddressSanitizer, or here.
    std::fill(v.begin(), v.end(), 7.0F);
    for (int i = 0; i < 2000; ++i) world.poll();
    for (const float each : v) expect(each == 7.0F, "nobody to write to the buffer of a dropped operation");
    co_return;
  }
  // Who has all it needs completes: short messages of rank 0 may have been on their way. The next call fails then.
  auto op = world.all_reduce(v, cohort::sum{});
  bool had_all = true;
  try {
    co_await op;
  } catch (const cohort::error& e) {
    expect(e.condition() == errc::aborted, "aborted");
    had_all = false;
  }
  expect(!had_all || Bytes < 4096 || mpi_has_it, "a long operation not to be complete");
  auto next = world.barrier();
  auto check = fails(next, errc::aborted, {"rank 0 dropped all_reduce #0 before it was complete"});
  co_await check;
}

task<> dropped_short(world_type world) { return dropped<1000>(std::move(world), false); }

task<> dropped_long(world_type world) { return dropped<std::size_t{4} << 20>(std::move(world), false); }

task<> dropped_native(world_type world) {
  world.algorithms().override_with("all_reduce=native");
  // Unchecked, MPI begins at the call, and what it has begun it ends, whoever lets go of it.
  const char* const check = std::getenv("COHORT_MPI_CHECK");
  return dropped<std::size_t{4} << 20>(std::move(world), check != nullptr && std::string_view(check) == "never");
}

task<> late(world_type world) {
  if (world.size() < 2) co_return;
  if (world.rank() == last(world)) {
    stand_by(world);
    co_return;
  }
  auto op = world.barrier(cohort::timeout{300ms});
  auto check = fails(op, errc::timed_out, {"barrier #0", "not arrived: rank " + std::to_string(last(world))});
  co_await check;
}

task<> late_by_native(world_type world) {
  world.algorithms().override_with("barrier=native");
  return late(std::move(world));
}

/// A rank that computes cannot answer: that is what the others say.
task<> silent(world_type world) {
  if (world.size() < 2) co_return;
  if (world.rank() == last(world)) {
    const auto until = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < until) continue;
    stand_by(world);
    co_return;
  }
  auto op = world.barrier(cohort::timeout{200ms});
  auto check = fails(op, errc::timed_out, {"barrier #0"});
  co_await check;
}

task<> stopped(world_type world) {
  if (world.size() < 2) co_return;
  if (world.rank() == 0) {
    std::stop_source stop;
    auto op = world.barrier(cohort::stop{stop.get_token()});
    stop.request_stop();
    auto check = fails(op, errc::cancelled, {"rank 0 cancelled barrier #0"});
    co_await check;
    co_return;
  }
  stand_by(world);
  auto op = world.barrier();
  auto check = fails(op, errc::cancelled, {"rank 0 cancelled barrier #0"});
  co_await check;
}

task<> leaves_early(world_type world) {
  if (world.size() < 2 || world.rank() == last(world)) co_return;
  auto op = world.barrier();
  auto check = fails(op, errc::peer_lost, {"rank " + std::to_string(last(world)), "exited early"});
  co_await check;
}

task<> waits_for_one_who_left(world_type world) {
  if (world.size() < 2 || world.rank() == last(world)) co_return;
  std::vector<int> v(10);
  if (world.rank() == 0) {
    auto op = world.recv(v, cohort::from{last(world)});
    auto check = fails(op, errc::peer_lost, {"rank " + std::to_string(last(world)), "has left the world"});
    co_await check;
  } else {
    stand_by(world);
  }
}

/// The others are told what was thrown.
task<> throws(world_type world) {
  if (world.size() < 2) co_return;
  if (world.rank() == last(world)) throw std::runtime_error("the disk is full");
  auto op = world.barrier();
  auto check = fails(op, errc::aborted, {"ended with an exception: the disk is full"});
  co_await check;
}

// --- many at once

int threads_here() {
  int count = 0;
  if (DIR* const tasks = ::opendir("/proc/self/task"); tasks != nullptr) {
    while (const dirent* each = ::readdir(tasks)) count += each->d_name[0] != '.' ? 1 : 0;
    ::closedir(tasks);
  }
  return count;
}

task<> many_at_once(world_type world) {
  const int before = threads_here();
  constexpr int each = 300;
  const std::size_t lengths[] = {0, 3, 900, 5000, 30000};
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  std::vector<std::vector<int>> out;
  std::vector<std::vector<int>> in;
  for (int i = 0; i < each; ++i) {
    out.emplace_back(lengths[i % 5], world.rank() * 1000 + i);
    in.emplace_back(lengths[i % 5], -1);
  }
  std::vector<cohort::operation<cohort::received>> receives;
  std::vector<cohort::operation<>> sends;
  std::vector<std::vector<long>> sums(32, std::vector<long>(20000, world.rank() + 1));
  std::vector<cohort::operation<>> reductions;
  for (int i = each - 1; i >= 0; --i) {
    receives.push_back(world.recv(in[static_cast<std::size_t>(i)], cohort::from{previous}, cohort::tag{i}));
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    world.algorithms().override_with(i % 2 == 0 ? "all_reduce=native" : "all_reduce=halving_doubling");
    reductions.push_back(world.all_reduce(sums[i], cohort::sum{}));
  }
  for (int i = 0; i < each; ++i) {
    sends.push_back(world.send(out[static_cast<std::size_t>(i)], cohort::to{next}, cohort::tag{i}));
  }
  // In another order than that of the calls.
  for (std::size_t i = reductions.size(); i-- > 0;) co_await reductions[i];
  for (auto& op : receives) co_await op;
  for (auto& op : sends) co_await op;
  for (int i = 0; i < each; ++i) {
    for (const int found : in[static_cast<std::size_t>(i)])
      expect(found == previous * 1000 + i, "message " + std::to_string(i));
  }
  const long total = static_cast<long>(world.size()) * (world.size() + 1) / 2;
  for (const auto& s : sums) {
    for (const long found : s)
      expect(found == total, "the sum " + std::to_string(total) + ", found " + std::to_string(found));
  }
  expect(threads_here() == before, "no thread to have come");
}

// --- MPI's own, as they are called

/// One collective of a plan that all ranks draw alike; what comes of it is checked.
task<> one_collective(world_type& group, std::size_t kind, std::size_t count, int from) {
  const int p = group.size();
  const auto all = static_cast<std::size_t>(p);
  const int mine = group.rank() + 1;
  const int total = p * (p + 1) / 2;
  const auto holds = [&](const std::vector<int>& v, std::size_t at, int value) {
    for (std::size_t i = at; i < at + count; ++i) {
      expect(v[i] == value,
             std::to_string(value) + " from collective " + std::to_string(kind) + ", found " + std::to_string(v[i]));
    }
  };
  std::vector<int> one(count, mine);
  std::vector<int> many(count * all, mine);
  std::vector<int> out(count * all, -1);
  switch (kind) {
    case 0: {
      auto op = group.broadcast(one, cohort::root{from});
      co_await op;
      holds(one, 0, from + 1);
      break;
    }
    case 1: {
      out.resize(count);
      auto op = group.reduce(one, out, cohort::sum{}, cohort::root{from});
      co_await op;
      holds(out, 0, group.rank() == from ? total : -1);
      holds(one, 0, mine);
      break;
    }
    case 2: {
      auto op = group.gather(one, out, cohort::root{from});
      co_await op;
      for (int r = 0; r < p; ++r) holds(out, static_cast<std::size_t>(r) * count, group.rank() == from ? r + 1 : -1);
      break;
    }
    case 3: {
      for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int>(i / count) + 100 * mine;
      auto op = group.scatter(many, one, cohort::root{from});
      co_await op;
      holds(one, 0, group.rank() + 100 * (from + 1));
      break;
    }
    case 4: {
      auto op = group.all_gather(one, out);
      co_await op;
      for (int r = 0; r < p; ++r) holds(out, static_cast<std::size_t>(r) * count, r + 1);
      break;
    }
    case 5: {
      for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int>(i / count) + 100 * mine;
      auto op = group.all_to_all(many, out);
      co_await op;
      for (int r = 0; r < p; ++r) holds(out, static_cast<std::size_t>(r) * count, group.rank() + 100 * (r + 1));
      break;
    }
    case 6: {
      auto op = group.reduce_scatter(many, one, cohort::sum{});
      co_await op;
      holds(one, 0, total);
      break;
    }
    case 7: {
      std::vector<double> v(count, mine);
      auto op = group.reduce(v, cohort::average{}, cohort::root{from});
      co_await op;
      for (const double each : v) expect(each == (group.rank() == from ? (p + 1) / 2.0 : mine), "the average");
      break;
    }
    default: {
      auto op = group.barrier();
      co_await op;
    }
  }
}

/// Ranks come in any order, some so late that whoever called first goes on in a frame; messages are in between.
task<> begun_at_once(world_type world) {
  if (world.size() < 2) co_return;
  std::mt19937 plan(7);
  std::mt19937 own(static_cast<unsigned>(world.rank()));
  auto half_op = world.split(cohort::color{world.rank() % 2});
  auto half = co_await half_op;
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  for (int i = 0; i < 300; ++i) {
    const std::size_t kind = plan() % 9;
    const std::size_t count = std::size_t{1} << plan() % 14;
    const bool in_half = plan() % 3 == 0;
    const auto from = static_cast<int>(plan() % static_cast<unsigned>(in_half ? world.size() / 2 : world.size()));
    const bool with_message = plan() % 16 == 0;
    const auto late = own() % 64 == 0 ? 300us : own() % 4 == 0 ? std::chrono::microseconds{own() % 30} : 0us;
    const auto until = std::chrono::steady_clock::now() + late;
    while (std::chrono::steady_clock::now() < until) continue;
    world_type& group = in_half ? half : world;
    if (!with_message) {
      auto one = one_collective(group, kind, count, from);
      co_await one;
      continue;
    }
    const std::vector<int> out(count, i);
    std::vector<int> in(count, -1);
    auto receive = world.recv(in, cohort::from{previous});
    auto send = world.send(out, cohort::to{next});
    auto one = one_collective(group, kind, count, from);
    co_await one;
    co_await receive;
    co_await send;
    expect(in == out, "the message of round " + std::to_string(i));
  }
}

// --- groups

task<long> sum_of(world_type& group, long mine) {
  std::vector<long> v(30000, mine);
  auto op = group.all_reduce(v, cohort::sum{});
  co_await op;
  for (const long each : v) expect(each == v.front(), "the same sum everywhere");
  co_return v.front();
}

task<> groups(world_type world) {
  world.algorithms().override_with("all_reduce=native");
  const int p = world.size();
  auto halves_op = world.split(cohort::color{world.rank() % 2});
  auto half = co_await halves_op;
  auto copy_op = world.duplicate();
  auto copy = co_await copy_op;
  // Two overlapping groups whose first collectives are in flight together, awaited in opposite orders.
  std::vector<int> forward(static_cast<std::size_t>(p));
  std::iota(forward.begin(), forward.end(), 0);
  const std::vector<int> backward(forward.rbegin(), forward.rend());
  auto backward_op = world.subgroup(cohort::ranks(backward));
  auto reversed = co_await backward_op;
  auto forward_op = world.subgroup(cohort::ranks(forward), cohort::named{"again"});
  auto again = co_await forward_op;
  expect(reversed.rank() == p - 1 - world.rank(), "the ranks of the list");
  std::vector<long> a(40000, world.rank());
  std::vector<long> b(40000, world.rank() + 100);
  std::vector<long> c(40000, reversed.rank());
  const bool odd = world.rank() % 2 == 1;
  std::vector<cohort::operation<>> all;
  if (odd) {
    all.push_back(copy.all_reduce(a, cohort::sum{}));
    all.push_back(again.all_reduce(b, cohort::sum{}));
    all.push_back(reversed.all_reduce(c, cohort::sum{}));
  } else {
    all.push_back(reversed.all_reduce(c, cohort::sum{}));
    all.push_back(again.all_reduce(b, cohort::sum{}));
    all.push_back(copy.all_reduce(a, cohort::sum{}));
  }
  for (auto& op : all) co_await op;
  const long ranks = static_cast<long>(p) * (p - 1) / 2;
  expect(a.back() == ranks && b.back() == ranks + 100L * p && c.back() == ranks, "three sums");
  auto mine = sum_of(half, 1);
  expect(co_await mine == (odd ? p / 2 : (p + 1) / 2), "the size of this half");
  std::vector<int> roots{world.rank() == 0 ? 5 : 0};
  world.algorithms().override_with("broadcast=native");
  auto op = world.broadcast(roots, cohort::root{0});
  co_await op;
  expect(roots.front() == 5, "the root's value");
}

/// One group fails; the world and another group go on.
task<> one_group_fails(world_type world) {
  if (world.size() < 2) co_return;
  auto copy_op = world.duplicate();
  auto copy = co_await copy_op;
  {
    std::vector<int> v(100);
    auto op = world.rank() == 0 ? copy.all_reduce(v, cohort::sum{}) : copy.all_reduce(v, cohort::max{});
    auto check = fails(op, errc::mismatch, {"sum", "max"});
    co_await check;
  }
  auto op = world.all_reduce(1, cohort::sum{});
  expect(co_await op == world.size(), "the world to go on");
}

// --- memory

/// Collectives where memory is shared, registered or not, between messages over MPI; some ranks sleep until others come.
task<> in_memory(world_type world) {
  const char* const told = std::getenv("COHORT_SHM");
  const bool shares = world.size() > 1 && (told == nullptr || std::string_view(told) != "0");
  const auto ranks = static_cast<float>(world.size());
  std::vector<float> v(600000);
  const cohort::registration registered = world.register_memory(v);
  expect(registered.active() == shares, "a buffer to be registered where memory is shared");
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  for (int turn = 0; turn < 4; ++turn) {
    std::fill(v.begin(), v.end(), static_cast<float>(world.rank() + turn));
    auto sum = world.all_reduce(v, cohort::sum{});
    std::vector<int> out(5000, world.rank());
    std::vector<int> in(5000, -1);
    co_await world.exchange(out, cohort::to{next}, in, cohort::from{previous}, cohort::tag{turn});
    co_await sum;
    expect(in == std::vector<int>(5000, previous), "a message beside an operation in memory");
    const float expected = ranks * (ranks - 1) / 2 + ranks * static_cast<float>(turn);
    expect(v == std::vector<float>(v.size(), expected), "the sum of registered buffers");
    if (world.rank() == turn % world.size()) std::this_thread::sleep_for(30ms);
    co_await world.barrier();
  }
  auto half = co_await world.split(cohort::color{world.rank() % 2});
  std::vector<int> small(3, 1);
  co_await half.all_reduce(small, cohort::sum{});
  expect(small == std::vector<int>(3, half.size()), "the sum of a group");
}

// --- sizes

/// Vectors of no elements, which have no memory either.
task<> no_elements(world_type world) {
  world.algorithms().override_with(
      "all_reduce=native,reduce=native,reduce_scatter=native,scan=native,exclusive_scan=native,"
      "gather=native,all_gather=native,broadcast=native");
  std::vector<float> in;
  std::vector<float> out;
  co_await world.reduce(in, out, cohort::sum{}, cohort::root{0});
  co_await world.reduce(in, cohort::sum{}, cohort::root{last(world)});
  co_await world.all_reduce(in, out, cohort::sum{});
  co_await world.all_reduce(in, cohort::sum{});
  co_await world.scan(in, out, cohort::sum{});
  co_await world.exclusive_scan(in, out, cohort::sum{});
  co_await world.reduce_scatter(in, out, cohort::sum{});
  co_await world.gather(in, out, cohort::root{0});
  co_await world.all_gather(in, out);
  co_await world.broadcast(in, cohort::root{0});
  expect(out.empty(), "nothing of nothing");
}

const part parts[] = {
    {"selection", selection},
    {"different_operations", different_operations},
    {"everybody_waits", everybody_waits},
    {"everybody_waits_briefly", everybody_waits_briefly},
    {"different_counts_by_native", different_counts_by_native},
    {"different_functors_by_native", different_functors_by_native},
    {"longer_than_its_receive", longer_than_its_receive},
    {"dropped", dropped_short},
    {"dropped_long", dropped_long},
    {"dropped_native", dropped_native},
    {"late", late},
    {"late_by_native", late_by_native},
    {"silent", silent},
    {"stopped", stopped},
    {"leaves_early", leaves_early},
    {"waits_for_one_who_left", waits_for_one_who_left},
    {"throws", throws, 0, 1},
    {"many_at_once", many_at_once},
    {"many_of_two", many_of_two},
    {"begun_at_once", begun_at_once},
    {"groups", groups},
    {"one_group_fails", one_group_fails},
    {"group_without_rank_0", group_without_rank_0},
    {"groups_of_two_worlds", groups_of_two_worlds},
    {"sums_after_a_drop", sums_after_a_drop},
    {"worlds_after_a_drop", worlds_after_a_drop},
    {"worlds_after_one_left_late", worlds_after_one_left_late},
    {"no_elements", no_elements},
    {"in_memory", in_memory},
};

}  // namespace

int main(int argc, char** argv) { return mpi_test::run_parts(argc, argv, parts); }
