// SPDX-License-Identifier: BSL-1.0
// Long blocks of ranks that share memory go through their window, or by messages or by reading each other's memory, as the ranks
// agree every few calls: both ways are taken, by all ranks alike, and do the same, whatever comes between, however many are under
// way, and whoever comes late.
#include "../support/processes.hpp"
#include "../support/steps.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kib = 1024;
using ints = std::vector<int>;
using world_type = communicator<cpu>;

const harness::variables in_memory{{"COHORT_SHM", "1"}};

std::vector<harness::rank_result> ends_of(int ranks, task<int> (*rank_main)(world_type), harness::variables more = {}) {
  harness::rank_options options;
  options.deadline = 100s;
  options.environment = in_memory;
  options.environment.insert(options.environment.end(), more.begin(), more.end());
  return harness::run_ranks(
      ranks, [rank_main](int) { return cohort::run(rank_main); }, options);
}

void expect_ok(int ranks, task<int> (*rank_main)(world_type), const harness::variables& more = {}) {
  const auto results = ends_of(ranks, rank_main, more);
  for (const harness::rank_result& r : results) CHECK_MESSAGE(r.ok(), harness::describe(results));
}

/// What a block begins with: another number for each call, and each pair of ranks.
int first_of(int from, int to, int call) { return ((from * 8 + to) * 1000 + call) * 100; }

void fill(int* block, std::size_t n, int from, int to, int call) {
  harness::put_steps(block, n, first_of(from, to, call), 1);
}
void check(const int* block, std::size_t n, int from, int to, int call, const char* what) {
  harness::expect(harness::are_steps(block, n, first_of(from, to, call), 1), what);
}

/// How often a call was carried out through the window and otherwise, by what this rank remembers of the last agreement.
struct tally {
  std::array<int, 2> ways{};
  void count(const world_type& world, operation_kind kind, std::size_t block) {
    const collective::passage how = world.calls().state()->passages.of(kind, block * sizeof(int)).agreed();
    if (how == collective::passage::either) return;
    const bool reads = kind == operation_kind::all_to_all || kind == operation_kind::all_gather;
    const collective::passage other = reads ? collective::passage::single_copy : collective::passage::messages;
    harness::expect(how == collective::passage::window || how == other, "one of the two");
    ++ways[how == collective::passage::window ? 0 : 1];
  }
};

/// The same on all ranks, and both taken.
task<> expect_both(const world_type& world, const tally& t, const char* what) {
  std::vector<int> all(2 * static_cast<std::size_t>(world.size()));
  const std::array mine{t.ways[0], t.ways[1]};
  co_await world.all_gather(mine, all);
  std::printf("%s: %d through the window, %d otherwise\n", what, t.ways[0], t.ways[1]);
  harness::expect(t.ways[0] > 0 && t.ways[1] > 0, what);
  for (std::size_t i = 0; i < all.size(); ++i) harness::expect(all[i] == t.ways[i % 2], "alike on all ranks");
}

task<> one_all_to_all(const world_type& world, std::size_t block, int call) {
  const auto p = static_cast<std::size_t>(world.size());
  const int r = world.rank();
  ints in(p * block);
  ints out(p * block, -1);
  for (int k = 0; k < world.size(); ++k) fill(&in[static_cast<std::size_t>(k) * block], block, r, k, call);
  co_await world.all_to_all(in, out);
  for (int k = 0; k < world.size(); ++k)
    check(&out[static_cast<std::size_t>(k) * block], block, k, r, call, "all_to_all");
}

task<> one_all_gather(const world_type& world, std::size_t block, int call, bool in_place) {
  const auto p = static_cast<std::size_t>(world.size());
  const auto r = static_cast<std::size_t>(world.rank());
  ints out(p * block, -1);
  if (in_place) {
    fill(&out[r * block], block, world.rank(), 0, call);
    co_await world.all_gather(std::span(out).subspan(r * block, block), out);
  } else {
    ints in(block);
    fill(in.data(), block, world.rank(), 0, call);
    co_await world.all_gather(in, out);
  }
  for (int k = 0; k < world.size(); ++k)
    check(&out[static_cast<std::size_t>(k) * block], block, k, 0, call, "all_gather");
}

task<> one_scatter(const world_type& world, std::size_t block, int call, int from) {
  const auto p = static_cast<std::size_t>(world.size());
  const int r = world.rank();
  ints in(r == from ? p * block : 0);
  ints out(block, -1);
  if (r == from) {
    for (int k = 0; k < world.size(); ++k) fill(&in[static_cast<std::size_t>(k) * block], block, r, k, call);
  }
  co_await world.scatter(in, out, root{from});
  check(out.data(), block, from, r, call, "scatter");
}

task<> one_broadcast(const world_type& world, std::size_t n, int call, int from) {
  ints data(n, -1);
  if (world.rank() == from) fill(data.data(), n, from, 0, call);
  co_await world.broadcast(data, root{from});
  check(data.data(), n, from, 0, call, "broadcast");
}

/// Long ones, and those of a length for which the ranks agree more rarely, with short calls in the window between them.
task<int> take_both_ways(world_type world) {
  const bool two = world.size() == 2;
  for (const std::size_t block : {two ? 64 * kib : 48 * kib, 256 * kib}) {
    const int calls = block < 256 * kib ? 100 : 40;  // a first trial of the window is at 64, and at 16
    tally of_all_to_all;
    tally of_all_gather;
    tally of_scatter;
    tally of_broadcast;
    for (int call = 0; call < calls; ++call) {
      if (call % 17 == world.rank()) std::this_thread::sleep_for(1ms);
      co_await one_all_to_all(world, 2 * block, call);
      of_all_to_all.count(world, operation_kind::all_to_all, 2 * block);
      if (call % 3 == 0) co_await world.barrier();
      if (two) {
        co_await one_all_gather(world, block, call, call % 2 == 0);
        of_all_gather.count(world, operation_kind::all_gather, block);
        co_await one_broadcast(world, block, call, call % 2);
        of_broadcast.count(world, operation_kind::broadcast, block);
      }
      if (call % 5 == 0) harness::expect(co_await world.all_reduce(1, sum{}) == world.size(), "all_reduce");
      co_await one_scatter(world, block, call, call % world.size());
      of_scatter.count(world, operation_kind::scatter, block);
    }
    co_await expect_both(world, of_all_to_all, "all_to_all");
    if (two) {
      co_await expect_both(world, of_all_gather, "all_gather");
      co_await expect_both(world, of_broadcast, "broadcast");
    }
    co_await expect_both(world, of_scatter, "scatter");
  }
  co_return 0;
}

/// Several under way at a time, of which each has its turn in the window, and goes on by messages beside the others or not.
task<int> take_both_at_a_time(world_type world) {
  constexpr std::size_t block = 256 * kib;
  const auto p = static_cast<std::size_t>(world.size());
  const int r = world.rank();
  tally t;
  constexpr int together = 5;
  std::vector<ints> in(together, ints(p * block));
  std::vector<ints> out(together, ints(p * block));
  for (int round = 0; round < 12; ++round) {
    std::vector<operation<>> all;
    for (int i = 0; i < together; ++i) {
      const auto at = static_cast<std::size_t>(i);
      for (int k = 0; k < world.size(); ++k)
        fill(&in[at][static_cast<std::size_t>(k) * block], block, r, k, round * together + i);
      all.push_back(world.all_to_all(in[at], out[at]));
    }
    for (operation<>& op : all) {
      co_await op;
      t.count(world, operation_kind::all_to_all, block);
    }
    for (int i = 0; i < together; ++i) {
      for (int k = 0; k < world.size(); ++k) {
        check(&out[static_cast<std::size_t>(i)][static_cast<std::size_t>(k) * block], block, k, r, round * together + i,
              "all_to_all");
      }
    }
  }
  harness::expect(t.ways[0] > 0 && t.ways[1] > 0, "both ways");
  co_return 0;
}

/// What an override has decided is not tried.
task<int> take_one_way(world_type world) {
  constexpr std::size_t block = 256 * kib;
  tally t;
  for (int call = 0; call < 40; ++call) {
    co_await one_all_to_all(world, block, call);
    t.count(world, operation_kind::all_to_all, block);
  }
  harness::expect(t.ways[0] == 0 && t.ways[1] == 0, "nothing was agreed on");
  co_return 0;
}

/// The ranks call something else where they are to agree, and behind it.
template <int Before>
task<int> disagree(world_type world) {
  constexpr std::size_t block = 256 * kib;
  for (int call = 0; call < Before; ++call) co_await one_all_to_all(world, block, call);
  try {
    if (world.rank() == 0) {
      co_await one_all_to_all(world, block, Before);
    } else {
      co_await one_all_gather(world, block, Before, false);
    }
    std::printf("no error\n");
  } catch (const error& e) {
    std::printf("%s\n", e.what());
  }
  co_return 0;
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

template <int Before>
void check_disagreement() {
  for (const harness::rank_result& r : ends_of(2, disagree<Before>, {{"COHORT_PEER_TIMEOUT", "2"}})) {
    CAPTURE(Before);
    CHECK_MESSAGE(says(r.out, "rank 0 called all_to_all("), (r.out + r.err));
    CHECK_MESSAGE(says(r.out, "rank 1 called all_gather("), (r.out + r.err));
  }
}

}  // namespace

TEST_CASE("long blocks go either way, the same on all ranks, and arrive") {
  for (const int ranks : {2, 3, 4}) expect_ok(ranks, take_both_ways);
}

TEST_CASE("several at a time") {
  for (const int ranks : {2, 3}) expect_ok(ranks, take_both_at_a_time);
}

TEST_CASE("an override decides, either way") {
  for (const char* how : {"all_to_all=shared_memory", "all_to_all=pairwise"}) {
    expect_ok(2, take_one_way, {{"COHORT_TUNING", how}});
  }
}

TEST_CASE(
    "ranks that call different things are told, in a call on which they agree first and in one that goes as agreed") {
  check_disagreement<0>();  // they agree
  check_disagreement<2>();  // through the window
  check_disagreement<5>();  // by reading
}
