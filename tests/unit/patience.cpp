// SPDX-License-Identifier: BSL-1.0
// How a rank waits: how often it looks before it offers its core, and when it sleeps.
#include <cohort/transport/home_core.hpp>
#include <cohort/transport/inproc.hpp>
#include <cohort/transport/patience.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

using cohort::transport::patience;
using next = patience::next;

namespace {

/// How often `briefly` looks for what never comes.
int looks_in_vain(patience& p) {
  int looks = 0;
  CHECK_FALSE(p.briefly([&looks] {
    ++looks;
    return false;
  }));
  return looks;
}

/// Turns without news until the wait sleeps.
int turns_until_sleep(patience::wait& w) {
  int turns = 1;
  while (w.after(false) != next::sleep) ++turns;
  return turns;
}

}  // namespace

TEST_CASE("one of many ranks goes home, where it may, and remains free to leave") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int other = -1;  // a core that it is not on
  int none = -1;   // one that it may not use
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before)) none = core;
    else if (core != ::sched_getcpu()) other = core;
  }
  for (const int home : {other, none}) {
    if (home < 0) {
      MESSAGE("there is no such core here");
      continue;
    }
    patience p;
    p.among(8, 2);
    p.live_on(home);
    bool was_there = false;
    for (int i = 0; i < 200 && !was_there; ++i) {
      (void)looks_in_vain(p);
      was_there = ::sched_getcpu() == home;
      std::this_thread::sleep_for(std::chrono::milliseconds{was_there ? 0 : 1});
    }
    CHECK(was_there == (home == other));
    cpu_set_t after;
    CPU_ZERO(&after);
    REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
  }
}

TEST_CASE("a rank stays away from a core on which somebody works, longer each time, and tries again") {
  using cohort::transport::home_core;
  using namespace std::chrono_literals;
  for (const bool sure : {true, false}) {
    CAPTURE(sure);
    const auto longest = sure ? home_core::longest_absence : home_core::longest_if_unsure;
    home_core home(0);
    home_core::clock::time_point now{};
    const auto away = [&](std::chrono::nanoseconds passed) { return home.returns(now += passed, false, false, sure); };
    const auto works = [&](std::chrono::nanoseconds passed) { return home.returns(now += passed, true, true, sure); };
    CHECK(away(1h));
    CHECK_FALSE(away(home_core::between_returns - 1ns));
    CHECK(away(1ns));
    CHECK_FALSE(home.returns(now, true, false, sure));  // it is there
    CHECK_FALSE(home.returns(now, false, true, sure));  // whoever works elsewhere says nothing of home
    for (auto absence = home_core::first_absence;; absence = std::min(2 * absence, longest)) {
      CAPTURE(absence.count());
      CHECK_FALSE(works(0ns));
      CHECK_FALSE(away(absence - 1ns));
      CHECK(away(1ns));
      if (absence == longest) break;
    }
    CHECK_FALSE(works(1ns));
    CHECK_FALSE(away(longest - 1ns));
    CHECK(away(1ns));
    CHECK_FALSE(works(2 * longest));  // long ago: it may have been for once
    CHECK_FALSE(away(home_core::first_absence - 1ns));
    CHECK(away(1ns));
  }
}

TEST_CASE("what is there is seen at the first look") {
  patience p;
  int looks = 0;
  CHECK(p.briefly([&looks] { return ++looks == 1; }));
  p.among(8, 2);
  CHECK(p.briefly([&looks] { return ++looks == 2; }));
}

TEST_CASE("a brief look is brief, and offers the core only among more ranks than cores") {
  patience alone;
  CHECK_FALSE(alone.looks_briefly());
  CHECK(looks_in_vain(alone) == 1);

  patience roomy;
  roomy.among(2, 2);
  CHECK(roomy.looks_briefly());
  const int in_a_row = looks_in_vain(roomy);
  CHECK(in_a_row > 100);

  patience crowded;
  crowded.among(8, 2);  // four on a core: a round of yields and one more round
  CHECK(crowded.looks_briefly());
  const int looks = looks_in_vain(crowded);
  CHECK(looks >= 3);  // fewer than 3 + 8 when something else had the core for long
  CHECK(looks <= 3 + 8);
}

TEST_CASE("a wait spins, offers its core for a millisecond, and sleeps") {
  patience p;
  p.among(2, 2);
  patience::wait w(p);
  for (int i = 0; i < 3999; ++i) {
    CHECK(w.spins());
    REQUIRE(w.after(false) == next::look);
  }
  CHECK(turns_until_sleep(w) > 1);
}

TEST_CASE("news begin a wait anew") {
  patience p;
  p.among(2, 2);
  patience::wait w(p);
  (void)turns_until_sleep(w);
  CHECK(w.after(true) == next::look);
  CHECK(w.spins());
}

TEST_CASE("a wait among many ranks offers its core after a few turns") {
  patience p;
  p.among(8, 2);
  patience::wait w(p);
  int spins = 0;
  while (w.spins() && w.after(false) == next::look) ++spins;
  CHECK(spins <= 8);
  CHECK(turns_until_sleep(w) >= 1);
}

TEST_CASE("a rank shows that it waits while it offers its core, and that it works in what it resumes") {
  using namespace cohort::transport;
  const auto hub = std::make_shared<inproc_hub>(1, inproc_hub::threading::one_thread);
  const auto alone = std::make_shared<inproc_endpoint>(hub, 0);
  core_use shown;
  alone->how_to_wait().among(8, 2);
  alone->how_to_wait().beside().show(shown);
  int turns = 0;
  bool waited = false;
  bool worked = false;
  struct {
    core_use* shown;
    bool* worked;
  } seen{&shown, &worked};
  alone->drive_until([&] {
    // Asked once before the first turn; it looks again after that, and offers its core after the second.
    if (++turns == 4) {
      waited = shown.last.to != 0;
      alone->resume_later(
          [](void* argument) {
            const auto* const s = static_cast<decltype(seen)*>(argument);
            *s->worked = s->shown->last.to == 0;
          },
          &seen);
    }
    return turns > 4;
  });
  CHECK(waited);
  CHECK(worked);
  CHECK(shown.last.to == 0);  // back in the caller's code
}

TEST_CASE("a rank that sleeps instead of offering its core shows that it waits") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(::sched_getcpu(), &here);
  REQUIRE(::sched_setaffinity(0, sizeof here, &here) == 0);
  std::atomic<bool> over{false};
  std::thread busy([&over] {  // on the same core, which yields give it for as long as the scheduler likes
    while (!over.load(std::memory_order_relaxed)) {}
  });
  cohort::transport::core_use shown;
  patience p;
  p.among(8, 2);
  p.beside().show(shown);
  int turns = 0;
  const auto give_up = patience::clock::now() + std::chrono::seconds{30};
  while (turns != 2 && patience::clock::now() < give_up) {
    patience::wait w(p);
    CHECK(shown.last.to == 0);
    turns = turns_until_sleep(w);
    CHECK(shown.last.to != 0);
  }
  over = true;
  busy.join();
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(turns == 2);  // without a yield
  CHECK(shown.last.to == 0);
}
