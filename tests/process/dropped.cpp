// SPDX-License-Identifier: BSL-1.0
// Operations of processes that are dropped in flight: nothing goes on with what they leave behind, and other
// communicators of the same ranks go on as if nothing had been.
#include "../support/all_end_well.hpp"
#include "../support/drop_at_random.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <span>
#include <vector>

using namespace cohort;

namespace {

using world_type = communicator<cpu>;

task<> go_on(world_type& other) {
  for (int i = 0; i < 10; ++i) {
    const int total = co_await other.all_reduce(1, sum{});
    harness::expect(total == other.size(), "the sum of all ranks");
  }
  std::vector<int> token(1, other.rank());
  std::vector<int> came(1, -1);
  const int next = (other.rank() + 1) % other.size();
  const int before = (other.rank() + other.size() - 1) % other.size();
  co_await other.exchange(token, to{next}, came, from{before});
  harness::expect(came.front() == before, "what the neighbour has sent");
}

/// The first that goes fails the communicator, and with it the second one's wait.
template <class Start>
task<int> drops_two(world_type world, Start start) {
  auto other = co_await world.duplicate();
  co_await other.barrier();  // all have it, before the first fails
  std::vector<int> values(40000, 1);
  const std::span<int> all(values);
  if (world.rank() == 0) {
    using flying = decltype(start(world, all));
    std::vector<flying> both;
    both.push_back(start(world, all.first(20000)));
    both.push_back(start(world, all.last(20000)));
    for (const flying& each : both) harness::expect(!each.ready(), "both in flight");
  }
  auto rest = go_on(other);
  co_await rest;
  co_return 0;
}

task<int> drops_receives(world_type world) {
  const auto start = [](world_type& w, std::span<int> part) { return w.recv(part, from{1}); };
  auto all = drops_two(std::move(world), start);
  co_return co_await all;
}
task<int> drops_sums(world_type world) {
  const auto start = [](world_type& w, std::span<int> part) { return w.all_reduce(part, sum{}); };
  auto all = drops_two(std::move(world), start);
  co_return co_await all;
}
task<int> drops_broadcasts(world_type world) {
  const auto start = [](world_type& w, std::span<int> part) { return w.broadcast(part, root{1}); };
  auto all = drops_two(std::move(world), start);
  co_return co_await all;
}

task<int> drops_what_has_come(world_type world) {
  auto other = co_await world.duplicate();
  co_await other.barrier();  // all have it, before the first fails
  int came = 0;
  int sent = 5;
  if (world.rank() == 0) {
    auto receiving = world.recv(std::span(&came, 1), from{world.rank()}, tag{1});
    co_await world.send(std::span(&sent, 1), to{world.rank()}, tag{1});
  }
  auto rest = go_on(other);
  co_await rest;
  co_return 0;
}

task<int> drops_at_random(world_type world) {
  harness::drop_plan plan;
  plan.seed = static_cast<unsigned>(world.size());
  plan.turns = 50;
  auto all = harness::drop_at_random(std::move(world), plan);
  co_await all;
  co_return 0;
}

}  // namespace

TEST_CASE("dropped: two receives at once") { harness::expect_all_end_well(2, drops_receives); }

TEST_CASE("dropped: two collectives at once") {
  harness::expect_all_end_well(2, drops_sums);
  harness::expect_all_end_well(3, drops_broadcasts);
}

TEST_CASE("dropped: a receive whose message has come") { harness::expect_all_end_well(2, drops_what_has_come); }

TEST_CASE("dropped: messages and collectives at random moments") {
  harness::rank_options over_sockets;
  over_sockets.environment = {{"COHORT_SHM", "0"}};
  for (const int ranks : {2, 3, 4}) {
    harness::expect_all_end_well(ranks, drops_at_random);
    harness::expect_all_end_well(ranks, drops_at_random, over_sockets);
  }
}
