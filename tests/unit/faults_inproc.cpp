// SPDX-License-Identifier: BSL-1.0
// Failures of ranks inside one process, with ranks that share a thread and with a thread for each: whoever waits is
// told once, by whom and why, and nobody waits for ever.
#include "../support/sanitizer.hpp"
#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using harness::contains;

using namespace cohort;
using namespace std::chrono_literals;

using local_world = communicator<inproc>;
using threading = transport::inproc_hub::threading;

/// The errors of each rank, in the order in which its operations ended.
using told = std::vector<std::vector<error>>;

/// Awaits one operation; false after an error, which is noted.
template <class T>
task<bool> tell(operation<T>& op, std::vector<error>& into) {
  try {
    co_await op;
  } catch (const error& e) {
    into.push_back(e);
    co_return false;
  }
  co_return true;
}

using part = std::function<task<>(local_world&, std::vector<error>&)>;

/// Runs one part a rank and gives what each was told. A hang would end as timed_out after 10 s.
told run(threading how, int ranks, const part& each) {
  told errors(static_cast<std::size_t>(ranks));
  const auto rank_main = [&](local_world world) -> task<> {
    world.set_timeout(10s);
    auto mine = each(world, errors[static_cast<std::size_t>(world.rank())]);
    co_await mine;
  };
  if (how == threading::one_thread) {
    try {
      run_local(ranks, rank_main);
    } catch (const std::runtime_error&) {
      // What a rank threw on purpose comes out of run_local.
      return errors;
    }
    return errors;
  }
  const auto hub = std::make_shared<transport::inproc_hub>(ranks, how);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        auto mine = detail::run_rank(rank_main, make_local_world(hub, r));
        static_cast<void>(sync_wait(mine));
      } catch (const std::runtime_error&) {
        return;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

constexpr threading both[] = {threading::one_thread, threading::thread_per_rank};

/// One error from a pending operation, one from the call after it, with the same cause.
void check_survivor(const std::vector<error>& errors, errc code, int culprit, const std::vector<std::string>& words) {
  REQUIRE(errors.size() == 2);
  const std::string first = errors[0].what();
  const std::string later = errors[1].what();
  INFO(first);
  INFO(later);
  CHECK(errors[0].condition() == code);
  if (culprit >= 0) CHECK(errors[0].peer() == culprit);
  for (const std::string& word : words) CHECK(contains(first, word));
  CHECK(errors[1].condition() == code);
  CHECK(contains(later, "refused"));
  CHECK(contains(first, later.substr(later.find("first cause: ") + 13)));
}

template <class T>
task<> tell_and_call_again(local_world& world, operation<T>& op, std::vector<error>& into) {
  auto first = tell(op, into);
  co_await first;
  auto next = world.barrier();
  auto second = tell(next, into);
  co_await second;
}

}  // namespace

TEST_CASE("faults inproc: a rank drops an operation in flight") {
  for (const threading how : both) {
    for (const std::size_t count : {std::size_t{10}, std::size_t{200000}}) {
      const told errors = run(how, 4, [&](local_world& world, std::vector<error>& mine) -> task<> {
        std::vector<float> v(count, 1.0F);
        if (world.rank() == 1) {
          // Rank 3 does not come before it is dropped: it cannot be complete.
          const auto dropped = world.all_reduce(v, sum{});
          co_return;
        }
        if (world.rank() == 3) {
          int value = 0;
          auto op = world.recv(std::span(&value, 1), from{0});
          auto all = tell_and_call_again(world, op, mine);
          co_await all;
          co_return;
        }
        auto op = world.all_reduce(v, sum{});
        auto all = tell_and_call_again(world, op, mine);
        co_await all;
      });
      for (const int r : {0, 2, 3})
        check_survivor(errors[static_cast<std::size_t>(r)], errc::aborted, 1,
                       {"rank 1 dropped all_reduce #0 before it was complete", r == 3 ? "receive" : "all_reduce #0"});
    }
  }
}

TEST_CASE("faults inproc: a rank throws") {
  for (const threading how : both) {
    const told errors = run(how, 3, [](local_world& world, std::vector<error>& mine) -> task<> {
      if (world.rank() == 2) throw std::runtime_error("no bread in the house");
      auto op = world.barrier();
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    for (const std::size_t r : {0U, 1U})
      check_survivor(errors[r], errc::aborted, 2,
                     {"barrier #0", "rank 2 ended with an exception: no bread in the house"});
  }
}

TEST_CASE("faults inproc: a rank returns early while others are in a collective") {
  for (const threading how : both) {
    const told errors = run(how, 3, [](local_world& world, std::vector<error>& mine) -> task<> {
      if (world.rank() == 0) co_return;
      std::vector<float> v(10);
      auto op = world.all_reduce(v, sum{});
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    for (const std::size_t r : {1U, 2U})
      check_survivor(errors[r], errc::peer_lost, 0,
                     {"all_reduce #0", "rank 0 exited early: it has not called anything yet and left the world"});
  }
}

TEST_CASE("faults inproc: a rank returns early while another waits for a message from it") {
  for (const threading how : both) {
    for (const int leaver : {0, 1}) {
      const told errors = run(how, 2, [leaver](local_world& world, std::vector<error>& mine) -> task<> {
        if (world.rank() == leaver) co_return;
        int value = 0;
        auto op = world.recv(std::span(&value, 1), from{leaver});
        auto all = tell_and_call_again(world, op, mine);
        co_await all;
      });
      check_survivor(errors[static_cast<std::size_t>(1 - leaver)], errc::peer_lost, leaver,
                     {"receive", "rank " + std::to_string(leaver) + " has left the world"});
    }
  }
}

TEST_CASE("faults inproc: the last rank that could send returns while another waits for anybody") {
  for (const threading how : both) {
    const told errors = run(how, 3, [](local_world& world, std::vector<error>& mine) -> task<> {
      if (world.rank() != 0) co_return;
      int value = 0;
      auto op = world.recv(std::span(&value, 1), from_any, any_tag);
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    check_survivor(errors[0], errc::peer_lost, -1, {"receive", "has left the world"});
  }
}

TEST_CASE("faults inproc: a rank returns early while another sends what nobody will receive") {
  for (const threading how : both) {
    const told errors = run(how, 2, [](local_world& world, std::vector<error>& mine) -> task<> {
      if (world.rank() == 1) {
        // The send is there, or is still to come.
        for (int i = 0; i < 10; ++i) world.poll();
        co_return;
      }
      const std::vector<float> v(100000);
      auto op = world.send(v, to{1});
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    check_survivor(errors[0], errc::peer_lost, 1, {"send", "rank 1 has left the world"});
  }
}

TEST_CASE("faults inproc: what a rank sent before it returned arrives") {
  for (const threading how : both) {
    const told errors = run(how, 2, [](local_world& world, std::vector<error>& mine) -> task<> {
      std::vector<int> v(100, world.rank());
      if (world.rank() == 1) {
        co_await world.send(v, to{0}, tag{1});
        co_return;
      }
      for (int i = 0; i < 1000; ++i) world.poll();
      auto op = world.recv(v, from{1}, any_tag);
      auto one = tell(op, mine);
      co_await one;
      CHECK(v == std::vector<int>(100, 1));
    });
    CHECK(errors[0].empty());
  }
}

TEST_CASE("faults inproc: deadlines of messages and of collectives say what is missing") {
  for (const threading how : both) {
    const told errors = run(how, 3, [](local_world& world, std::vector<error>& mine) -> task<> {
      int value = 0;
      if (world.rank() == 2) {
        auto op = world.recv(std::span(&value, 1), from{0}, tag{5}, timeout{50ms});
        auto all = tell_and_call_again(world, op, mine);
        co_await all;
        co_return;
      }
      auto op = world.barrier();
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    for (const auto& each : errors)
      check_survivor(each, errc::timed_out, 0, {"receive of rank 2 from rank 0 with tag 5 timed out after 0.0"});

    const told late = run(how, 3, [](local_world& world, std::vector<error>& mine) -> task<> {
      int value = 0;
      if (world.rank() == 2) {
        auto op = world.recv(std::span(&value, 1), from_any, any_tag);
        auto all = tell_and_call_again(world, op, mine);
        co_await all;
        co_return;
      }
      auto op = world.rank() == 0 ? world.barrier(timeout{50ms}) : world.barrier();
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    for (const auto& each : late)
      check_survivor(each, errc::timed_out, 2,
                     {"barrier #0 of rank 0 timed out after 0.0", "not arrived: rank 2 has not called anything yet"});
  }
}

TEST_CASE("faults inproc: an exchange and a receive from anybody say what they miss") {
  for (const threading how : both) {
    const told errors = run(how, 2, [](local_world& world, std::vector<error>& mine) -> task<> {
      if (world.rank() == 1) {
        auto op = world.barrier();
        auto all = tell_and_call_again(world, op, mine);
        co_await all;
        co_return;
      }
      std::vector<float> out(100000);
      std::vector<float> in(100000);
      auto op = world.exchange(out, to{1}, in, from{1}, tag{6}, timeout{50ms});
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    for (const auto& each : errors)
      check_survivor(each, errc::timed_out, 1,
                     {"exchange of rank 0 from rank 1 with tag 6 and to rank 1 with tag 6 timed out"});

    const told any = run(how, 2, [](local_world& world, std::vector<error>& mine) -> task<> {
      int value = 0;
      auto op = world.rank() == 0 ? world.recv(std::span(&value, 1), from_any, any_tag, timeout{50ms})
                                  : world.recv(std::span(&value, 1), from{0}, tag{1});
      auto all = tell_and_call_again(world, op, mine);
      co_await all;
    });
    for (const auto& each : any)
      check_survivor(each, errc::timed_out, -1, {"receive of rank 0 from any rank with any tag timed out"});
  }
}

TEST_CASE("faults inproc: stop requests, before the call and in flight") {
  for (const threading how : both) {
    for (const bool before : {true, false}) {
      std::stop_source source;
      if (before) source.request_stop();
      std::optional<std::jthread> other;
      const told errors = run(how, 3, [&](local_world& world, std::vector<error>& mine) -> task<> {
        std::vector<float> v(10);
        if (world.rank() == 2) {
          int value = 0;
          auto op = world.recv(std::span(&value, 1), from{0});
          auto all = tell_and_call_again(world, op, mine);
          co_await all;
          co_return;
        }
        auto op = world.rank() == 1 ? world.all_reduce(v, sum{}, stop{source.get_token()}) : world.all_reduce(v, sum{});
        if (world.rank() == 1 && !before) other.emplace([&] { source.request_stop(); });
        auto all = tell_and_call_again(world, op, mine);
        co_await all;
      });
      for (const auto& each : errors) check_survivor(each, errc::cancelled, 1, {"rank 1 cancelled all_reduce #0"});
    }
  }
}

TEST_CASE("faults inproc: a functor throws on one rank") {
  for (const threading how : both) {
    const told errors = run(how, 4, [](local_world& world, std::vector<error>& mine) -> task<> {
      std::vector<int> v(1000, 1);
      const bool throws = world.rank() == 3;
      const auto careful = [throws](int a, int b) -> int {
        if (throws) throw std::domain_error("no such sum");
        return a + b;
      };
      bool thrown = false;
      for (bool fine = true; fine && !thrown;) {
        auto op = world.all_reduce(v, careful);
        auto one = tell(op, mine);
        try {
          fine = co_await one;
        } catch (const std::domain_error&) {
          thrown = true;
        }
      }
      CHECK(thrown == throws);
      auto op = world.barrier();
      auto one = tell(op, mine);
      co_await one;
    });
    for (const std::size_t r : {0U, 1U, 2U})
      check_survivor(errors[r], errc::user_function_failed, 3, {"a function of rank 3 threw: no such sum"});
    REQUIRE(errors[3].size() == 1);
    CHECK(errors[3][0].condition() == errc::user_function_failed);
  }
}

TEST_CASE("faults inproc: every operation in flight ends once, in whatever order it is awaited") {
  for (const threading how : both) {
    const told errors = run(how, 3, [](local_world& world, std::vector<error>& mine) -> task<> {
      if (world.rank() == 2) throw std::runtime_error("gone");
      std::vector<float> a(10);
      std::vector<float> b(100000);
      std::vector<float> c(100000);
      int value = 0;
      auto first = world.all_reduce(a, sum{});
      auto second = world.all_reduce(b, sum{});
      auto third = world.recv(std::span(&value, 1), from{2});
      auto fourth = world.send(c, to{2});
      for (operation<>* each : {&second, &fourth, &first}) {
        auto one = tell(*each, mine);
        co_await one;
      }
      auto last = tell(third, mine);
      co_await last;
    });
    for (const std::size_t r : {0U, 1U}) {
      REQUIRE(errors[r].size() == 4);
      for (const error& e : errors[r]) {
        CHECK(e.condition() == errc::aborted);
        CHECK(e.peer() == 2);
      }
    }
  }
}

TEST_CASE("faults inproc: as_result gives the code") {
  for (const threading how : both) {
    run(how, 2, [](local_world& world, std::vector<error>&) -> task<> {
      if (world.rank() == 1) throw std::runtime_error("gone");
      for (int i = 0; i < 3; ++i) {
        auto op = as_result(world.barrier());
        const auto outcome = co_await op;
        CHECK_FALSE(outcome.has_value());
        CHECK(std::error_code(outcome.error()) == errc::aborted);
      }
      CHECK(world.failed());
    });
  }
}

TEST_CASE("faults inproc: a rank that leaves while another enters an operation is missed at once") {
  // Between the end of its communicator and its leave the other comes to the operation that will never be.
  for (int round = 0; round < (harness::sanitized ? 300 : 3000); ++round) {
    const told errors =
        run(threading::thread_per_rank, 2, [round](local_world& world, std::vector<error>& mine) -> task<> {
          std::vector<float> v(100);
          co_await world.all_reduce(v, sum{});
          if (world.rank() == 1) co_return;
          auto alone = world.broadcast(v, root{0});  // needs nobody, if the other's leave is not known yet
          auto told_alone = tell(alone, mine);
          if (!co_await told_alone) co_return;
          const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(round % 50 * 100);
          while (std::chrono::steady_clock::now() < until) continue;
          auto op = world.barrier(timeout{2s});
          auto one = tell(op, mine);
          co_await one;
        });
    REQUIRE(errors[0].size() == 1);
    INFO(std::string(errors[0][0].what()));
    REQUIRE(errors[0][0].condition() == errc::peer_lost);
  }
}

namespace {

// How a rank may end its part of the world.
enum class ending : int { ordinary, dropped, thrown, early, stopped, unreceived };

/// Steps of random operations, the same on every rank; one rank ends in its own way at one step.
task<> random_part(local_world& world, std::vector<error>& mine, unsigned seed, int culprit, int step, ending how) {
  std::minstd_rand same(seed + 1);
  for (int i = 0; i < 8; ++i) {
    const auto what = same() % 5;
    const std::size_t count = 1 + same() % 30000;
    std::vector<float> v(count, 1.0F);
    std::vector<float> w(count * static_cast<std::size_t>(world.size()));
    std::stop_source source;
    const auto start = [&]() -> operation<> {
      switch (what) {
        case 0: return world.all_reduce(v, sum{}, stop{source.get_token()});
        case 1: return world.broadcast(v, root{static_cast<int>(count) % world.size()}, stop{source.get_token()});
        case 2: return world.all_gather(v, w, stop{source.get_token()});
        case 3: return world.reduce(v, max{}, root{0}, stop{source.get_token()});
        default: return world.barrier(stop{source.get_token()});
      }
    };
    if (world.rank() == culprit && i == step) {
      switch (how) {
        case ending::ordinary: break;
        case ending::dropped: {
          const auto op = start();
          for (unsigned k = 0; k < seed % 4; ++k) world.poll();
          co_return;
        }
        case ending::thrown: throw std::runtime_error("on purpose");
        case ending::early: co_return;
        case ending::stopped: source.request_stop(); break;
        case ending::unreceived: {
          auto op = world.send(w, to{(culprit + 1) % world.size()}, tag{99}, timeout{5ms});
          auto one = tell(op, mine);
          co_await one;
          co_return;
        }
      }
    }
    auto op = start();
    auto one = tell(op, mine);
    if (!co_await one) co_return;
  }
}

}  // namespace

TEST_CASE("faults inproc: whatever one rank does at whatever step, every rank ends, and no error is a hang") {
  for (const threading how : both) {
    const unsigned seeds = how == threading::one_thread ? 300 : 60;
    for (unsigned seed = 0; seed < seeds; ++seed) {
      std::mt19937 random(seed);
      const int ranks = 2 + static_cast<int>(random() % 4);
      const int culprit = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const int step = static_cast<int>(random() % 8);
      const auto end = static_cast<ending>(random() % 6);
      CAPTURE(seed);
      const told errors = run(how, ranks, [&](local_world& world, std::vector<error>& mine) -> task<> {
        auto all = random_part(world, mine, seed, culprit, step, end);
        co_await all;
      });
      for (const auto& each : errors) {
        CHECK(each.size() <= 1);
        for (const error& e : each) {
          INFO(std::string(e.what()));
          // The guard of 10 s has not been needed; a deadline of 5 ms is one of the endings.
          CHECK((e.condition() != errc::timed_out || end == ending::unreceived));
          CHECK(e.elapsed() < 8s);
          if (end == ending::ordinary) FAIL(e.what());
        }
      }
    }
  }
}
