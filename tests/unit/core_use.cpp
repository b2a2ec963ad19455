// SPDX-License-Identifier: BSL-1.0
// What ranks show each other of how they use their cores, and what one of them concludes from it.
#include <cohort/transport/core_use.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <chrono>
#include <cstdint>

using cohort::transport::core_use;
using cohort::transport::fellows;
using namespace std::chrono_literals;

namespace {

using time_point = fellows::clock::time_point;

constexpr time_point zero{};

/// What a rank shows that has worked on `core` from the one time to the other; without the second it still does.
void show(core_use& use, int core, std::chrono::nanoseconds from, std::chrono::nanoseconds until = 0ns) {
  use.core = core;
  use.worked_from = from.count();
  use.waits_since = until.count();
}

}  // namespace

TEST_CASE("fellows: whoever works shows since when and where, and whoever waits since when") {
  core_use mine;
  fellows f;
  f.works(zero + 1s);
  f.waits(zero + 1s);  // nobody sees it
  f.show(mine);
  CHECK(mine.waits_since == 0);
  f.waits(zero + 5s);
  CHECK(mine.waits_since == std::int64_t{5'000'000'000});
  f.waits(zero + 6s);  // it has waited since then
  CHECK(mine.waits_since == std::int64_t{5'000'000'000});
  f.works(zero + 7s);
  CHECK(mine.waits_since == 0);
  CHECK(mine.worked_from == std::int64_t{7'000'000'000});
  CHECK(mine.core >= 0);
  CHECK(mine.core < CPU_SETSIZE);
  f.works(zero + 8s);  // it has worked since then
  CHECK(mine.worked_from == std::int64_t{7'000'000'000});
}

TEST_CASE("fellows: of a time in which one worked counts what lies in it") {
  core_use its;
  fellows f;
  CHECK_FALSE(f.any());
  f.watch(its);
  CHECK(f.any());
  const auto worked = [&](int core) { return f.worked(core, zero + 10ms, zero + 20ms); };
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
  CHECK(f.worked(1, zero + 10ms, zero + 20ms) == 3ms);
  CHECK(f.worked(0, zero + 10ms, zero + 20ms) == 10ms);
}
