// SPDX-License-Identifier: BSL-1.0
// Ranks that die, one or two, in the middle of everything: every survivor gets one error that names the dead rank, its
// own operation and its number, long before any timeout, and its next call is refused with the same cause.
#include "fault_support.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

using namespace cohort;
using namespace faults;
using harness::run_ranks;

namespace {

// Far below the peer timeout of 10 s, by which a lost connection must not have to be found; far above what a busy
// machine needs.
constexpr std::int64_t death_bound_ms = 5000;

using world_type = communicator<cpu>;

/// What a survivor does: calls until something goes wrong, and then once more.
task<> call_until_failure(world_type& world, std::size_t count) {
  std::vector<float> v(count, 1.0F);
  for (bool fine = true; fine;) {
    auto op = world.all_reduce(v, max{});
    fine = co_await tell(op);
  }
  auto later = world.barrier();
  co_await tell(later);
}

/// Dies when it has called, with its part of the operation under way.
void die_in_all_reduce(world_type& world, std::size_t count) {
  std::vector<float> v(count, 1.0F);
  const auto op = world.all_reduce(v, max{});
  for (int i = 0; i < 3; ++i) world.poll();
  say("dying");
  std::raise(SIGKILL);
}

}  // namespace

TEST_CASE("a rank is killed inside an all_reduce") {
  for (const std::size_t count : {std::size_t{1000}, std::size_t{1} << 20}) {
    for (int victim = 0; victim < 4; ++victim) {
      CAPTURE(count);
      CAPTURE(victim);
      const meeting_point all_here(4);
      const auto ranks = run_ranks(4, [&](int) {
        const auto rank_main = [&](world_type world) -> task<> {
          co_await world.barrier();
          all_here.arrive_and_wait();
          if (world.rank() == victim) die_in_all_reduce(world, count);
          co_await call_until_failure(world, count);
        };
        return cohort::run(rank_main);
      });
      CHECK(ranks[static_cast<std::size_t>(victim)].signal == SIGKILL);
      check_survivors(ranks, {victim}, {errc::peer_lost, {victim}, "all_reduce", {"died"}});
      CHECK(slowest_ms(ranks, victim, "dying") < death_bound_ms);
    }
  }
}

TEST_CASE("a rank is killed in the middle of a stream of operations, at a time of nobody's choosing") {
  for (int victim = 0; victim < 3; ++victim) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    harness::rank_options options;
    options.signals = {harness::kill_when(victim, "under way")};
    const auto ranks = run_ranks(
        3,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            for (int i = 0; i < 100; ++i) co_await world.barrier();
            all_here.arrive_and_wait();
            if (rank == victim) std::puts("under way");
            co_await call_until_failure(world, 5000);
          };
          return cohort::run(rank_main);
        },
        options);
    check_survivors(ranks, {victim}, {errc::peer_lost, {victim}, "all_reduce", {"died"}});
  }
}

TEST_CASE("a rank is killed while the others wait in receives, from it and from each other") {
  for (int victim = 0; victim < 3; ++victim) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    const auto ranks = run_ranks(3, [&](int) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        int value = 0;
        // One survivor waits for the victim, the other for somebody who lives.
        auto op = world.recv(std::span(&value, 1), from{(world.rank() + 1) % 3});
        if (world.rank() == victim) {
          say("dying");
          std::raise(SIGKILL);
        }
        co_await tell(op);
        auto later = world.barrier();
        co_await tell(later);
      };
      return cohort::run(rank_main);
    });
    check_survivors(ranks, {victim}, {errc::peer_lost, {victim}, "receive", {"died"}});
    CHECK(slowest_ms(ranks, victim, "dying") < death_bound_ms);
  }
}

TEST_CASE("a rank is killed while all are idle: a rank that polls learns of it, and the next call is refused") {
  for (int victim = 0; victim < 3; ++victim) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    const auto ranks = run_ranks(3, [&](int) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        if (world.rank() == victim) std::raise(SIGKILL);
        while (!world.failed()) world.poll();
        auto first = world.barrier();
        co_await tell(first);
        int value = 0;
        auto second = world.recv(std::span(&value, 1), from{0});
        co_await tell(second);
      };
      return cohort::run(rank_main);
    });
    for (const auto& r : ranks) {
      if (r.rank == victim) continue;
      INFO(harness::describe(r));
      const auto errors = errors_of(r);
      REQUIRE(errors.size() == 2);
      for (const told_error& e : errors) {
        CHECK(e.code == errc::peer_lost);
        CHECK(contains(e.text, "refused"));
        CHECK(contains(e.text, "rank " + std::to_string(victim)));
        CHECK(contains(e.text, "died"));
      }
    }
  }
}

TEST_CASE("two ranks are killed together") {
  const std::vector<std::vector<int>> pairs{{1, 2}, {0, 3}, {2, 3}};
  for (const std::vector<int>& victims : pairs) {
    CAPTURE(victims[0]);
    CAPTURE(victims[1]);
    const meeting_point all_here(5);
    const auto ranks = run_ranks(5, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        if (rank == victims[0] || rank == victims[1]) die_in_all_reduce(world, 20000);
        co_await call_until_failure(world, 20000);
      };
      return cohort::run(rank_main);
    });
    check_survivors(ranks, victims, {errc::peer_lost, victims, "all_reduce", {"died"}});
    CHECK(slowest_ms(ranks, victims[0], "dying") < death_bound_ms);
  }
}

TEST_CASE("a rank ends its process without leaving the world") {
  for (const int victim : {0, 2}) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    const auto ranks = run_ranks(3, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        if (rank == victim) ::_exit(0);
        co_await call_until_failure(world, 1000);
      };
      return cohort::run(rank_main);
    });
    CHECK(ranks[static_cast<std::size_t>(victim)].exit_code == 0);
    check_survivors(ranks, {victim}, {errc::peer_lost, {victim}, "all_reduce", {"died"}});
  }
}

TEST_CASE("a program that a rank has started does not hide its death") {
  const meeting_point all_here(3);
  const auto ranks = run_ranks(3, [&](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      co_await world.barrier();
      all_here.arrive_and_wait();
      if (rank == 1) {
        // It lives on after the rank and would hold every descriptor that it had inherited.
        pid_t child = 0;
        char name[] = "sleep";
        char seconds[] = "20";
        char* arguments[] = {name, seconds, nullptr};
        harness::expect(::posix_spawnp(&child, name, nullptr, nullptr, arguments, ::environ) == 0, "to start sleep");
        say("dying");
        std::raise(SIGKILL);
      }
      co_await call_until_failure(world, 1000);
    };
    return cohort::run(rank_main);
  });
  check_survivors(ranks, {1}, {errc::peer_lost, {1}, "all_reduce", {"died"}});
  CHECK(slowest_ms(ranks, 1, "dying") < death_bound_ms);
}

TEST_CASE("the survivors of a death end in good order, whether or not they look at the error") {
  for (const int victim : {0, 1}) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    const auto ranks = run_ranks(3, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        if (rank == victim) std::raise(SIGKILL);
        co_await world.barrier();
      };
      return cohort::run(rank_main);
    });
    for (const auto& r : ranks) {
      if (r.rank == victim) continue;
      INFO(harness::describe(r));
      CHECK(r.exit_code == 1);
      CHECK(contains(r.err, "cohort: rank " + std::to_string(r.rank) + " on "));
      CHECK(contains(r.err, "barrier #1 on 'world' failed"));
      CHECK(contains(r.err, "rank " + std::to_string(victim)));
    }
  }
}
