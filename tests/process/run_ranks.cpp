// SPDX-License-Identifier: BSL-1.0
// The harness of the process tests itself: it must notice every way in which a rank can go wrong, or they say nothing.
#include "../support/processes.hpp"
#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <unistd.h>

using namespace std::chrono_literals;
using harness::contains;
using harness::rank_options;
using harness::run_ranks;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(unset)" : value;
}

int wait_for_a_signal() {
  for (;;) ::pause();
}

std::string failure_of(int n, int (*body)(int), const rank_options& options) {
  try {
    const auto results = run_ranks(n, body, options);
    return "no failure:\n" + harness::describe(results);
  } catch (const harness::ranks_failed& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("every rank has its exit code, its output and the variables of a launcher") {
  ::setenv("COHORT_RANK", "5", 1);
  rank_options options;
  options.environment = {{"COHORT_HOSTNAME", "elsewhere"}, {"LOCAL_RANK", std::nullopt}};
  const auto results = run_ranks(
      3,
      [](int rank) {
        std::printf("%s of %s at %s:%s\n", variable("RANK").c_str(), variable("WORLD_SIZE").c_str(),
                    variable("MASTER_ADDR").c_str(), variable("MASTER_PORT").c_str());
        std::fprintf(stderr, "%s %s %s", variable("COHORT_RANK").c_str(), variable("LOCAL_RANK").c_str(),
                     variable("COHORT_HOSTNAME").c_str());
        return rank * 10;
      },
      options);
  ::unsetenv("COHORT_RANK");
  REQUIRE(results.size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    const harness::rank_result& each = results[static_cast<std::size_t>(rank)];
    CHECK(each.rank == rank);
    CHECK(each.exit_code == rank * 10);
    CHECK(each.signal == 0);
    CHECK(each.out.rfind(std::to_string(rank) + " of 3 at 127.0.0.1:", 0) == 0);
    CHECK(each.out.substr(2) == results[0].out.substr(2));
    CHECK(each.err == "(unset) (unset) elsewhere");
    CHECK(each.elapsed > 0ns);
  }
}

TEST_CASE("a rank that throws has its own exit code and says what it threw") {
  const auto results = run_ranks(2, [](int rank) {
    if (rank == 1) harness::expect(rank == 0, "to be rank 0");
    return 0;
  });
  CHECK(results[0].ok());
  CHECK(results[1].exit_code == harness::exit_exception);
  CHECK(contains(results[1].err, "run_ranks.cpp:"));
  CHECK(contains(results[1].err, "expected to be rank 0"));
}

TEST_CASE("a line of a rank can have it killed") {
  rank_options options;
  options.signals = {harness::kill_when(1, "ready")};
  const auto results = run_ranks(
      2,
      [](int rank) {
        std::puts(rank == 1 ? "ready" : "ready, but only as a part of a line");
        return rank == 1 ? wait_for_a_signal() : 0;
      },
      options);
  CHECK(results[0].ok());
  CHECK(results[1].signal == SIGKILL);
  CHECK(results[1].exit_code == -1);
  CHECK_FALSE(results[1].left_stopped);
}

TEST_CASE("a stopped rank is killed when all others have ended, and marked") {
  rank_options options;
  options.signals = {harness::stop_when(0, "stop me")};
  const auto results = run_ranks(
      3,
      [](int rank) {
        if (rank != 0) return 0;
        std::fputs("stop me\n", stderr);
        return wait_for_a_signal();
      },
      options);
  CHECK(results[0].signal == SIGKILL);
  CHECK(results[0].left_stopped);
  CHECK(results[1].ok());
  CHECK(results[2].ok());
}

TEST_CASE("a line of one rank can wake another that was stopped") {
  rank_options options;
  options.signals = {{0, "wake it", 1, SIGCONT}};
  int told[2];
  REQUIRE(::pipe(told) == 0);
  const auto results = run_ranks(
      2,
      [&told](int rank) {
        pid_t one = ::getpid();
        if (rank == 1) {
          if (::write(told[1], &one, sizeof one) != sizeof one) return 1;
          std::raise(SIGSTOP);
          return 7;
        }
        // A SIGCONT that comes before it has stopped wakes nobody, and on a busy machine that may take a while.
        if (::read(told[0], &one, sizeof one) != sizeof one) return 1;
        while (!contains(harness::detail::kernel_state(one), "state T")) ::usleep(1000);
        ::usleep(50000);  // the parent looks every 10 ms: it has seen it stopped, as a rule
        std::puts("wake it");
        return 0;
      },
      options);
  for (const int end : told) ::close(end);
  CHECK(results[0].ok());
  CHECK(results[1].exit_code == 7);
  CHECK_FALSE(results[1].left_stopped);
}

TEST_CASE("at the deadline every rank is killed and its state and output are told") {
  rank_options options;
  options.deadline = 900ms;
  const std::string text = failure_of(
      2,
      [](int rank) {
        std::printf("this is rank %d\n", rank);
        return rank == 0 ? 3 : wait_for_a_signal();
      },
      options);
  CHECK(contains(text, "the deadline of 900 ms has passed"));
  CHECK(contains(text, "rank 0: exit code 3 after"));
  CHECK(contains(text, "out| this is rank 0"));
  CHECK(contains(text, "rank 1: still alive, state S"));
  CHECK(contains(text, "out| this is rank 1"));
}

TEST_CASE("a line that never comes is a failure") {
  rank_options options;
  options.signals = {harness::kill_when(0, "never")};
  const std::string text = failure_of(
      1, [](int) { return 0; }, options);
  CHECK(contains(text, "rank 0 never printed \"never\", so that rank 0 was not sent Killed"));
}

TEST_CASE("output larger than a pipe arrives whole") {
  constexpr std::size_t size = 1 << 20;
  const auto results = run_ranks(2, [](int rank) {
    const std::string block(size, static_cast<char>('a' + rank));
    std::fputs(block.c_str(), stdout);
    std::fputs(block.c_str(), stderr);
    return 0;
  });
  for (const harness::rank_result& each : results) {
    CHECK(each.ok());
    CHECK(each.out == std::string(size, static_cast<char>('a' + each.rank)));
    CHECK(each.err == each.out);
  }
}

TEST_CASE("a rank that crashes has the signal") {
  const auto results = run_ranks(1, [](int) {
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
    return 0;
  });
  CHECK(results[0].signal == SIGABRT);
  CHECK(contains(harness::describe(results), "rank 0: ended by Aborted after"));
}

#if COHORT_TEST_ADDRESS_SANITIZED
TEST_CASE("a rank that leaks has its own exit code") {
  const auto results = run_ranks(1, [](int) {
    [[maybe_unused]] static char* volatile lost = new char[100];
    lost = nullptr;
    return 0;
  });
  CHECK(results[0].exit_code == harness::exit_leak);
  CHECK(contains(results[0].err, "detected memory leaks"));
}
#endif

TEST_CASE("free ports can be bound and are not always the same") {
  const int first = harness::free_port();
  int others = 0;
  for (int i = 0; i < 20; ++i) others += harness::free_port() != first ? 1 : 0;
  CHECK(harness::detail::try_port(first) == first);
  CHECK(others > 0);
}
