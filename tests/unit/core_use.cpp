// SPDX-License-Identifier: BSL-1.0
// What ranks show each other of how they use their cores, and what one of them concludes from it.
#include <cohort/transport/core_use.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <chrono>
#include <cstdint>

using cohort::transport::core_use;
using cohort::transport::fellows;
using cohort::transport::stretch_of_work;
using namespace std::chrono_literals;

namespace {

using time_point = fellows::clock::time_point;

constexpr time_point zero{};

/// What a rank shows that has worked on `core` from the one time to the other; without the second it still does.
void show(stretch_of_work& s, int core, std::chrono::nanoseconds from, std::chrono::nanoseconds until = 0ns) {
  s.first_core = s.last_core = core;
  s.from = from.count();
  s.to = until.count();
}
void show(core_use& use, int core, std::chrono::nanoseconds from, std::chrono::nanoseconds until = 0ns) {
  show(use.last, core, from, until);
}

}  // namespace

TEST_CASE("fellows: whoever works shows since when and where, and whoever waits since when") {
  core_use mine;
  fellows f;
  f.works(zero + 1s);
  f.waits(zero + 1s);  // nobody sees it
  f.show(mine);
  CHECK(mine.last.to == 0);
  f.waits(zero + 5s);
  CHECK(mine.last.to == std::int64_t{5'000'000'000});
  f.waits(zero + 6s);  // it has waited since then
  CHECK(mine.last.to == std::int64_t{5'000'000'000});
  f.works(zero + 7s);
  CHECK(mine.last.to == 0);
  CHECK(mine.last.from == std::int64_t{7'000'000'000});
  CHECK(mine.last.first_core >= 0);
  CHECK(mine.last.first_core < CPU_SETSIZE);
  f.works(zero + 8s);  // it has worked since then
  CHECK(mine.last.from == std::int64_t{7'000'000'000});
}

TEST_CASE("fellows: of a time in which one worked counts what lies in it") {
  core_use its;
  fellows f;
  CHECK_FALSE(f.any());
  f.watch(its);
  CHECK(f.any());
  const auto worked = [&](int core) { return f.worked(core, core, zero + 10ms, zero + 20ms); };
  CHECK(worked(3) == 0ns);  // it has shown nothing yet
  show(its, 3, 12ms, 15ms);
  CHECK(worked(3) == 3ms);
  CHECK(worked(2) == 0ns);
  show(its, 3, 5ms, 15ms);
  CHECK(worked(3) == 5ms);
  show(its, 3, 12ms, 25ms);
  CHECK(worked(3) == 8ms);
  show(its, 3, 5ms, 25ms);
  CHECK(worked(3) == 10ms);
  show(its, 3, 12ms);
  CHECK(worked(3) == 8ms);
  show(its, 3, 5ms);
  CHECK(worked(3) == 10ms);
  show(its, 3, 5ms, 10ms);
  CHECK(worked(3) == 0ns);
  show(its, 3, 20ms);
  CHECK(worked(3) == 0ns);
  show(its, 3, 22ms, 4ms);  // it went on while it was looked at
  CHECK(worked(3) == 0ns);
}

TEST_CASE("fellows: those of one core are added up") {
  core_use a, b, elsewhere;
  fellows f;
  for (const core_use* each : {&a, &b, &elsewhere}) f.watch(*each);
  show(a, 1, 10ms, 12ms);
  show(b, 1, 12ms, 13ms);
  show(elsewhere, 0, 10ms, 20ms);
  CHECK(f.worked(1, 1, zero + 10ms, zero + 20ms) == 3ms);
  CHECK(f.worked(0, 0, zero + 10ms, zero + 20ms) == 10ms);
}

TEST_CASE("fellows: a long stretch of work is shown until the next long one, whatever short ones follow") {
  core_use mine;
  fellows f;
  f.show(mine);
  const auto work = [&](std::chrono::nanoseconds from, std::chrono::nanoseconds until) {
    f.works(zero + from);
    f.waits(zero + until);
  };
  f.waits(zero + 1ms);
  work(2ms, 4ms);
  work(5ms, 5ms + 10us);
  work(6ms, 6ms + 10us);
  CHECK(mine.last_long.from == 2'000'000);
  CHECK(mine.last_long.to == 4'000'000);
  CHECK(mine.last_long.first_core >= 0);
  CHECK(mine.last_long.last_core >= 0);
  CHECK(mine.last.from == 6'000'000);
  work(7ms, 8ms);
  f.works(zero + 9ms);
  CHECK(mine.last_long.from == 7'000'000);

  fellows other;
  other.watch(mine);
  show(mine.last_long, 3, 12ms, 14ms);
  show(mine.last, 3, 15ms, 16ms);
  CHECK(other.worked(3, 3, zero + 10ms, zero + 20ms) == 3ms);
  show(mine.last, 2, 15ms, 16ms);
  CHECK(other.worked(3, 3, zero + 10ms, zero + 20ms) == 2ms);
  CHECK(other.worked(3, 2, zero + 10ms, zero + 20ms) == 3ms);
}

TEST_CASE("fellows: work counts for the core where it began and for the one where it ended") {
  core_use its;
  fellows f;
  f.watch(its);
  show(its, 0, 12ms, 15ms);
  its.last.last_core = 1;
  for (const int core : {0, 1}) CHECK(f.worked(core, core, zero + 10ms, zero + 20ms) == 3ms);
  CHECK(f.worked(0, 1, zero + 10ms, zero + 20ms) == 3ms);
  CHECK(f.worked(2, 2, zero + 10ms, zero + 20ms) == 0ns);
}
