// SPDX-License-Identifier: BSL-1.0
// Calls in a forked child, and from two threads at once: each is one clear error, and the world goes on as if nobody
// had made them. A communicator that goes from thread to thread is no mistake.
#include "fault_support.hpp"

#include <cohort/cohort.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::expect;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

/// The error of something that must not be waited for.
template <class Call>
std::optional<error> error_at_once(const Call& call) {
  const auto began = now_ms();
  try {
    call();
  } catch (const error& e) {
    expect(now_ms() - began < 2000, "an error at once");
    return e;
  }
  return std::nullopt;
}

void expect_error(const std::optional<error>& e, errc code, const std::string& operation,
                  const std::vector<std::string>& words) {
  expect(e.has_value(), operation + " to be refused");
  expect(e->condition() == code, operation + ": another code: " + e->what());
  expect(e->operation() == operation, operation + ": another operation: " + e->what());
  for (const std::string& word : words) expect(contains(e->what(), word), "\"" + word + "\" in: " + e->what());
}

/// Runs `body` in a child of this process; what it leaves with is its exit code.
template <class Body>
int in_a_child(const Body& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 97;
    try {
      code = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "the child threw: %s\n", e.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  expect(child > 0 && ::waitpid(child, &status, 0) == child, "a child");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int sum_of_ranks(world_type& world) { return world.all_reduce(world.rank() + 1, sum{}).wait(); }

/// Some thread of this process sleeps inside the world, not just passes through.
void wait_until_someone_sleeps_in(world_type& world) {
  for (int same = 0; same < 3000; ::sched_yield()) same = world.engine().visitor().thread() != 0 ? same + 1 : 0;
}

template <class Body>
void expect_all_well(int n, Body body) {
  const auto ranks = run_ranks(n, body);
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

}  // namespace

TEST_CASE("misuse: a call in a forked child is refused, and the parent's world goes on") {
  expect_all_well(3, [](int) {
    const auto rank_main = [](world_type world) -> task<> {
      expect(sum_of_ranks(world) == 6, "a sum before the fork");
      std::vector<int> v{1};
      auto before = world.recv(v, from{(world.rank() + 1) % 3});
      const std::string both = "was forked from the one that joined the world (pid " + std::to_string(::getpid()) + ")";
      const int code = in_a_child([&] {
        const std::vector<std::string> words{"this process (pid " + std::to_string(::getpid()) + ") " + both};
        expect_error(error_at_once([&] { (void)sum_of_ranks(world); }), errc::forked, "all_reduce", words);
        expect_error(error_at_once([&] { world.barrier().wait(); }), errc::forked, "barrier", words);
        expect_error(error_at_once([&] { world.send(v, to{0}).wait(); }), errc::forked, "send", words);
        expect_error(error_at_once([&] { world.send_object(v, to{0}).wait(); }), errc::forked, "send", words);
        expect_error(error_at_once([&] { (void)world.duplicate().wait(); }), errc::forked, "duplicate", words);
        expect_error(error_at_once([&] { world.poll(); }), errc::forked, "poll", words);
        expect_error(error_at_once([&] { before.wait(); }), errc::forked, "wait", words);
        expect_error(error_at_once([&] { sync_wait(before); }), errc::forked, "wait", words);
        // What the child lets go of is not the parent's: nobody is told, nothing is joined.
        { const auto gone = std::move(before); }
        { const world_type gone = std::move(world); }
        return 42;
      });
      expect(code == 42, "the child to end well, found " + std::to_string(code));
      co_await world.barrier();  // a message that is here when it is asked for would have been waited for already
      const std::vector<int> mine{world.rank()};
      co_await world.send(mine, to{(world.rank() + 2) % 3});
      co_await before;
      expect(v[0] == (world.rank() + 1) % 3, "the message that was under way");
      expect(sum_of_ranks(world) == 6, "a sum after the fork");
    };
    return run(rank_main);
  });
}

TEST_CASE("misuse: a child that runs to the end of its rank's function ends, and says nothing to anybody") {
  expect_all_well(2, [](int) {
    int child_code = -1;
    bool is_child = false;
    const auto rank_main = [&](world_type world) -> task<int> {
      expect(sum_of_ranks(world) == 3, "a sum before the fork");
      std::fflush(nullptr);
      const pid_t child = ::fork();
      if (child == 0) {
        is_child = true;
        co_return 42;
      }
      int status = 0;
      expect(::waitpid(child, &status, 0) == child, "a child");
      child_code = WIFEXITED(status) ? WEXITSTATUS(status) : -2;
      expect(sum_of_ranks(world) == 3, "a sum after the child's end");
      co_return 0;
    };
    const int code = run(rank_main);
    if (is_child) return code;
    expect(child_code == 42, "the child to end with its own code, found " + std::to_string(child_code));
    return code;
  });
}

TEST_CASE("misuse: a child that waits for a message ends with the error, and the parent gets the message") {
  expect_all_well(2, [](int) {
    int child_code = -1;
    bool is_child = false;
    const auto rank_main = [&](world_type world) -> task<> {
      std::vector<int> v{0};
      auto coming = world.recv(v, from{1 - world.rank()});
      std::fflush(nullptr);
      const pid_t child = ::fork();
      if (child == 0) {
        is_child = true;
        co_await coming;
        co_return;
      }
      int status = 0;
      expect(::waitpid(child, &status, 0) == child, "a child");
      child_code = WIFEXITED(status) ? WEXITSTATUS(status) : -2;
      const std::vector<int> mine{7 + world.rank()};
      co_await world.send(mine, to{1 - world.rank()});
      co_await coming;
      expect(v[0] == 8 - world.rank(), "the message");
    };
    const int code = run(rank_main);
    if (is_child) return code;
    expect(child_code == 1, "the child to end with 1, found " + std::to_string(child_code));
    return code;
  });
}

TEST_CASE("misuse: a thread that calls while another one waits is refused, and the one that waits is not disturbed") {
  const meeting_point all_refused(2);
  expect_all_well(2, [&](int) {
    const auto rank_main = [&](world_type world) -> task<> {
      expect(sum_of_ranks(world) == 3, "a sum before");
      if (world.rank() == 0) {
        std::vector<int> v{0};
        std::atomic<long> waiter{0};
        std::thread waits([&] {
          waiter = ::syscall(SYS_gettid);
          world.recv(v, from{1}).wait();
        });
        wait_until_someone_sleeps_in(world);
        const std::vector<std::string> words{"refused on rank 0", "thread " + std::to_string(::syscall(SYS_gettid)) +
                                                                      " calls while thread " + std::to_string(waiter) +
                                                                      " is inside the same world"};
        const std::vector<int> w{1};
        const auto refused = [&](const char* operation, const auto& call) {
          wait_until_someone_sleeps_in(world);
          expect_error(error_at_once(call), errc::concurrent_use, operation, words);
        };
        refused("all_reduce", [&] { (void)sum_of_ranks(world); });
        refused("barrier", [&] { world.barrier().wait(); });
        refused("send", [&] { world.send(w, to{1}).wait(); });
        refused("send", [&] { world.send_object(w, to{1}).wait(); });
        refused("poll", [&] { world.poll(); });
        wait_until_someone_sleeps_in(world);
        all_refused.arrive_and_wait();
        waits.join();
        expect(v[0] == 5, "the message");
        // A refused call took no number: the ranks still agree on which is the next.
        expect(sum_of_ranks(world) == 3, "a sum after, on this thread");
      } else {
        all_refused.arrive_and_wait();
        const std::vector<int> v{5};
        co_await world.send(v, to{0});
        expect(sum_of_ranks(world) == 3, "a sum after");
      }
    };
    return run(rank_main);
  });
}

TEST_CASE("misuse: a communicator that goes from thread to thread between its calls is no mistake") {
  expect_all_well(2, [](int) {
    const auto rank_main = [](world_type world) -> task<> {
      for (int i = 0; i < 100; ++i) {
        int found = 0;
        std::thread([&] { found = sum_of_ranks(world); }).join();
        expect(found == 3, "a sum on another thread");
      }
      // Nor is one that a coroutine lends to a thread while the engine resumes it.
      const std::vector<int> mine{world.rank()};
      std::vector<int> v{0};
      auto op = world.recv(v, from{1 - world.rank()});
      co_await world.send(mine, to{1 - world.rank()});
      co_await op;
      int found = 0;
      std::thread([&] { found = sum_of_ranks(world); }).join();
      expect(found == 3, "a sum on a thread of a resumed coroutine");
    };
    return run(rank_main);
  });
}
