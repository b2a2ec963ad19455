// SPDX-License-Identifier: BSL-1.0
// Ranks that are stopped, slow, late or absent: a stopped one is found by its silence, a late one by the deadline of
// those who wait, and a slow one not at all.
#include "fault_support.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <time.h>
#include <unistd.h>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

// What a machine with more ranks than cores may add to a bound.
constexpr std::int64_t slack_ms = 3000;

harness::rank_options with_peer_timeout(const char* seconds) {
  harness::rank_options options;
  options.environment = {{"COHORT_PEER_TIMEOUT", seconds}};
  return options;
}

/// Time that passes is what these tests are about; a rank that computes does not poll either.
void compute_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  volatile unsigned work = 0;
  while (std::chrono::steady_clock::now() < end) work = work + 1;
}

task<> call_until_failure(world_type& world) {
  std::vector<float> v(1000, 1.0F);
  for (bool fine = true; fine;) {
    auto op = world.all_reduce(v, max{});
    fine = co_await tell(op);
  }
  auto later = world.barrier();
  co_await tell(later);
}

}  // namespace

TEST_CASE("a stopped rank is found by its silence, within the peer timeout and a second") {
  for (const int victim : {0, 2}) {
    CAPTURE(victim);
    const meeting_point all_here(4);
    const auto ranks = run_ranks(
        4,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            co_await world.barrier();
            all_here.arrive_and_wait();
            if (rank == victim) {
              std::vector<float> v(1000, 1.0F);
              const auto op = world.all_reduce(v, max{});
              say("stopping");
              std::raise(SIGSTOP);
            }
            co_await call_until_failure(world);
          };
          return cohort::run(rank_main);
        },
        with_peer_timeout("1"));
    CHECK(ranks[static_cast<std::size_t>(victim)].left_stopped);
    check_survivors(ranks, {victim},
                    {errc::peer_unresponsive, {victim}, "all_reduce", {"has sent no heartbeat for 1."}});
    CHECK(slowest_ms(ranks, victim, "stopping") < 2000 + slack_ms);
  }
}

TEST_CASE("a rank that is stopped for less than the peer timeout is waited for") {
  const shared<std::atomic<pid_t>> pid;
  const meeting_point all_here(3);
  for (const int victim : {0, 1}) {
    CAPTURE(victim);
    const auto ranks = run_ranks(
        3,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            if (rank == victim) pid->store(::getpid());
            co_await world.barrier();
            for (int i = 0; i < 50; ++i) {
              if (rank == 2 && i == 10) {
                // The pause is what is tested: 0.4 of the timeout.
                const timespec pause{0, 800'000'000};
                ::kill(pid->load(), SIGSTOP);
                ::nanosleep(&pause, nullptr);
                ::kill(pid->load(), SIGCONT);
              }
              std::vector<int> v(1000, rank + i);
              co_await world.all_reduce(v, sum{});
              harness::expect(v == std::vector<int>(1000, 3 + 3 * i), "the right sum");
            }
          };
          return cohort::run(rank_main);
        },
        with_peer_timeout("2"));
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) CHECK(r.ok());
  }
}

TEST_CASE("a rank that wakes up after it was given up learns that, and ends") {
  for (const int victim : {0, 1}) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    harness::rank_options options = with_peer_timeout("1");
    options.signals = {{2, "wake it", victim, SIGCONT}};
    const auto ranks = run_ranks(
        3,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            co_await world.barrier();
            all_here.arrive_and_wait();
            if (rank == victim) std::raise(SIGSTOP);
            co_await call_until_failure(world);
            if (rank == 2) std::puts("wake it");
          };
          return cohort::run(rank_main);
        },
        options);
    check_survivors(ranks, {victim}, {errc::peer_unresponsive, {victim}, "all_reduce", {}});
    // The others have left for its sake: it is told that it was given up, or that they are gone.
    INFO(harness::describe(ranks));
    CHECK(ranks[static_cast<std::size_t>(victim)].exit_code == 0);
    CHECK(errors_of(ranks[static_cast<std::size_t>(victim)]).size() == 2);
  }
}

TEST_CASE("what the first rank found travels, though rank 0 was given up and came back") {
  const meeting_point all_here(3);
  harness::rank_options options = with_peer_timeout("1");
  options.signals = {{2, "wake it", 0, SIGCONT}};
  const auto ranks = run_ranks(
      3,
      [&](int rank) {
        // Rank 1 is slower to find out than rank 2, which has left when rank 0 speaks again.
        if (rank == 1) ::setenv("COHORT_PEER_TIMEOUT", "5", 1);
        const auto rank_main = [&](world_type world) -> task<> {
          co_await world.barrier();
          all_here.arrive_and_wait();
          if (rank == 0) std::raise(SIGSTOP);
          co_await call_until_failure(world);
          if (rank == 2) std::puts("wake it");
        };
        return cohort::run(rank_main);
      },
      options);
  check_survivors(ranks, {0},
                  {errc::peer_unresponsive, {0}, "all_reduce", {"rank 0 (", "has sent no heartbeat for 1."}});
  INFO(harness::describe(ranks));
  CHECK(ranks[0].exit_code == 0);
  CHECK(errors_of(ranks[0]).size() == 2);
}

TEST_CASE("ranks meet although the one that serves the store is stopped for a while") {
  harness::rank_options options;
  options.signals = {{2, "stop it", 0, SIGSTOP}, {2, "wake it", 0, SIGCONT}};
  const auto ranks = run_ranks(
      3,
      [](int rank) {
        if (rank == 2) {
          ::usleep(500000);  // the others have begun to meet
          std::puts("stop it");
          std::fflush(stdout);
          ::usleep(4000000);  // longer than any grace
          std::puts("wake it");
          std::fflush(stdout);
        }
        const auto rank_main = [rank](world_type world) -> task<> {
          const int all = co_await world.all_reduce(rank, sum{});
          harness::expect(all == 3, "the right sum");
        };
        return cohort::run(rank_main);
      },
      options);
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

TEST_CASE("a rank that computes for twice the peer timeout is slow, not dead") {
  for (const int slow : {0, 1}) {
    CAPTURE(slow);
    const auto ranks = run_ranks(
        3,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            co_await world.barrier();
            if (rank == slow) compute_for(2000ms);
            const int all = co_await world.all_reduce(rank, sum{});
            harness::expect(all == 3, "the right sum");
          };
          return cohort::run(rank_main);
        },
        with_peer_timeout("1"));
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) CHECK(r.ok());
  }
}

TEST_CASE("a deadline names every rank that has not arrived and what it last called") {
  struct way {
    const char* name;
    bool per_call;
  };
  for (const way& how : {way{"with the call", true}, way{"from the communicator", false}}) {
    CAPTURE(how.name);
    const auto ranks = run_ranks(4, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        if (rank % 2 == 1) {
          // Ranks 1 and 3 wait for something else that nobody does.
          int value = 0;
          auto op = world.recv(std::span(&value, 1), from{0}, tag{9});
          co_await tell(op);
        } else {
          std::vector<float> v(10, 1.0F);
          if (!how.per_call) world.set_timeout(300ms);
          auto op = how.per_call ? world.all_reduce(v, sum{}, timeout{300ms}) : world.all_reduce(v, sum{});
          co_await tell(op);
        }
        auto later = world.barrier();
        co_await tell(later);
      };
      return cohort::run(rank_main);
    });
    for (const auto& r : ranks) {
      check_survivor(r, {errc::timed_out,
                         {},
                         r.rank % 2 == 1 ? "receive" : "all_reduce",
                         {"timed out", "all_reduce #1", "not arrived: "}});
      INFO(harness::describe(r));
      const std::string text = errors_of(r).at(0).text;
      const std::string list = text.substr(text.find("not arrived: "));
      for (const int absent : {1, 3}) {
        const std::size_t at = list.find("rank " + std::to_string(absent) + " (");
        REQUIRE(at != std::string::npos);
        CHECK(contains(list.substr(at, list.find(';', at) - at), "last called barrier() #0"));
      }
      for (const int present : {0, 2}) CHECK_FALSE(contains(list, "rank " + std::to_string(present) + " ("));
    }
  }
}

TEST_CASE("a deadline with one absent rank makes it the culprit") {
  const auto ranks = run_ranks(3, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      if (rank == 1) {
        int value = 0;
        auto op = world.recv(std::span(&value, 1), from{0}, tag{9});
        co_await tell(op);
      } else {
        auto op = world.barrier(timeout{200ms});
        co_await tell(op);
      }
      auto later = world.barrier();
      co_await tell(later);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : ranks)
    check_survivor(r, {errc::timed_out, {1}, "", {"barrier #0", "not arrived: rank 1 (", "has not called anything"}});
}

TEST_CASE("a receive that nobody sends to times out, says what it waited for, and takes the others with it") {
  const auto ranks = run_ranks(3, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      if (rank == 0) {
        int value = 0;
        auto op = world.recv(std::span(&value, 1), from{2}, tag{7}, timeout{300ms});
        co_await tell(op);
      } else {
        auto op = world.barrier();
        co_await tell(op);
      }
      auto later = world.barrier();
      co_await tell(later);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : ranks)
    check_survivor(r, {errc::timed_out,
                       {2},
                       r.rank == 0 ? "receive" : "barrier",
                       {"receive of rank 0 from rank 2 with tag 7 timed out after 0.3"}});
}

TEST_CASE("a send that is never received times out, and says to whom") {
  const auto ranks = run_ranks(2, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      if (rank == 0) {
        const std::vector<float> long_message(1 << 20, 1.0F);
        auto op = world.send(long_message, to{1}, tag{3}, timeout{300ms});
        co_await tell(op);
      } else {
        auto op = world.barrier();
        co_await tell(op);
      }
      auto later = world.barrier();
      co_await tell(later);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : ranks)
    check_survivor(r, {errc::timed_out,
                       {1},
                       r.rank == 0 ? "send" : "barrier",
                       {"send of rank 0 to rank 1 with tag 3 timed out after 0.3"}});
}

TEST_CASE("a stopped rank does not keep the others from ending, though nobody looks at the error") {
  for (const int victim : {0, 1}) {
    CAPTURE(victim);
    const meeting_point all_here(3);
    harness::rank_options options = with_peer_timeout("1");
    const auto ranks = run_ranks(
        3,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            co_await world.barrier();
            all_here.arrive_and_wait();
            if (rank == victim) std::raise(SIGSTOP);
            // These leave at once, in good order, and wait for the stopped one to leave too.
          };
          return cohort::run(rank_main);
        },
        options);
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) {
      if (r.rank == victim) continue;
      CHECK(r.exit_code == 0);
      CHECK(r.elapsed < 2s + std::chrono::milliseconds{slack_ms});
    }
  }
}
