// SPDX-License-Identifier: BSL-1.0
// Work that outlives who asked for it: it is done, the end of the program waits for it, but not for ever.
#include <cohort/nccl/late_work.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

using cohort::detail::late_work;
using namespace std::chrono_literals;

namespace {

/// Ends a process of its own by exit() while work of that length is under way.
///
/// Result: whether the work was done, and how long the end took
std::pair<bool, std::chrono::duration<double>> end_amid_work_of(std::chrono::milliseconds length) {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    late_work::begin([length, to = ends[1]] {
      std::this_thread::sleep_for(length);
      if (::write(to, "x", 1) != 1) std::_Exit(2);
    });
    std::exit(0);
  }
  ::close(ends[1]);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  const auto took = std::chrono::steady_clock::now() - begin;
  char done = 0;
  const bool written = ::read(ends[0], &done, 1) == 1;
  ::close(ends[0]);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return {written, took};
}

}  // namespace

TEST_CASE("the end of a program waits for late work") { CHECK(end_amid_work_of(150ms).first); }

TEST_CASE("the end of a program does not wait for late work for ever") {
  const auto [written, took] = end_amid_work_of(60s);
  CHECK(!written);
  CHECK(took < 30s);
}

// Last: processes that fork are to have one thread.
TEST_CASE("late work is done on another thread, and may be moved only") {
  std::promise<std::thread::id> done;
  std::future<std::thread::id> who = done.get_future();
  late_work::begin([done = std::move(done)]() mutable { done.set_value(std::this_thread::get_id()); });
  CHECK(who.get() != std::this_thread::get_id());
}
