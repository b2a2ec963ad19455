// SPDX-License-Identifier: BSL-1.0
// Communicators made of others: who is in them, that calls on them do not meet, what is refused, and that nothing is
// left when they are gone.
#include "../support/errors.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

using namespace cohort;

namespace {

using harness::contains;
using harness::error_after;
using harness::text_of;

using world_type = communicator<inproc>;

}  // namespace

TEST_CASE("groups: members only call, or everybody does; the order of the list is the order of ranks") {
  for (const bool everybody : {false, true}) {
    const auto body = [everybody](world_type world) -> task<> {
      const bool listed = world.rank() == 3 || world.rank() == 1;
      if (!listed && !everybody) co_return;
      auto pair = co_await world.subgroup(ranks{3, 1});
      CHECK(pair.is_member() == listed);
      CHECK(pair.size() == 2);
      if (!listed) {
        CHECK(pair.rank() == -1);
        auto refused = error_after(pair.all_reduce(1, sum{}));
        const auto e = co_await refused;
        REQUIRE(e.has_value());
        CHECK(e->condition() == errc::not_a_member);
        CHECK(contains(e->what(), "is_member()"));
        co_return;
      }
      CHECK(pair.rank() == (world.rank() == 3 ? 0 : 1));
      CHECK(pair.world_rank_of(0) == 3);
      CHECK(pair.world_rank_of(1) == 1);
      CHECK(pair.rank_of(1) == 1);
      CHECK(pair.rank_of(0) == -1);
      CHECK(pair.name() == "world{3, 1}");
      CHECK(co_await pair.all_reduce(world.rank(), sum{}) == 4);
      CHECK(co_await pair.broadcast(world.rank(), root{0}) == 3);
    };
    run_local(5, body);
  }
}

TEST_CASE("groups: any range of integers") {
  const auto body = [](world_type world) -> task<> {
    std::vector<long> even;
    for (long r = 0; r < world.size(); r += 2) even.push_back(r);
    auto group = co_await world.subgroup(even, named{"even"});
    CHECK(group.name() == "even");
    if (world.rank() % 2 == 0) CHECK(co_await group.all_reduce(1, sum{}) == 3);
  };
  run_local(6, body);
}

TEST_CASE("groups: what is refused says what is wrong") {
  const auto body = [](world_type world) -> task<> {
    const auto refusal = [&world](const ranks& list) { return error_after(world.subgroup(list)); };
    auto twice = refusal(ranks{0, 1, 0});
    CHECK(contains(text_of(co_await twice), "rank 0 is listed twice, at places 0 and 2"));
    auto beyond = refusal(ranks{0, 2});
    CHECK(contains(text_of(co_await beyond), "rank 2 at place 1 of the list: expected 0..1"));
    auto below = refusal(ranks{-1});
    CHECK(contains(text_of(co_await below), "rank -1 at place 0"));
    auto none = refusal(ranks{});
    CHECK(contains(text_of(co_await none), "the list of members is empty"));
    auto colored = error_after(world.split(color{-2}));
    CHECK(contains(text_of(co_await colored), "color -2: expected 0 or more, or no_color"));
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}

TEST_CASE("groups: members that list each other in another order are told both lists, and the world goes on") {
  const auto body = [](world_type world) -> task<> {
    auto list = world.rank() == 1 ? ranks{1, 0, 2} : ranks{0, 1, 2};
    auto attempt = error_after(world.subgroup(list, named{"triple"}));
    const auto e = co_await attempt;
    // Who has all that it needs may be done before the disagreement is known; whoever then uses the group is told.
    if (world.rank() == 1) {
      REQUIRE(e.has_value());
      CHECK(e->condition() == errc::mismatch);
    }
    if (e) {
      CHECK(contains(e->what(), "{1, 0, 2}"));
      CHECK(contains(e->what(), "{0, 1, 2}"));
      CHECK(contains(e->what(), "'triple'"));
    }
    CHECK(co_await world.all_reduce(1, sum{}) == 3);
  };
  run_local(3, body);
}

TEST_CASE("groups: split by color and key") {
  const auto body = [](world_type world) -> task<> {
    // The highest rank first; rank 6 joins nobody.
    const bool out = world.rank() == 6;
    auto half = co_await world.split(out ? no_color : color{world.rank() % 2}, key{-world.rank()});
    if (out) {
      CHECK_FALSE(half.is_member());
      co_return;
    }
    std::vector<int> expected;
    for (int r = 5; r >= 0; --r) {
      if (r % 2 == world.rank() % 2) expected.push_back(r);
    }
    const std::vector<int> found = co_await half.all_gather(world.rank());
    CHECK(found == expected);
    CHECK(half.name() == "world/color " + std::to_string(world.rank() % 2));
  };
  run_local(7, body);
}

TEST_CASE("groups: equal keys keep the order of ranks") {
  const auto body = [](world_type world) -> task<> {
    auto all = co_await world.split(color{7});
    CHECK(all.rank() == world.rank());
    CHECK(all.size() == world.size());
  };
  run_local(4, body);
}

TEST_CASE("groups: calls on a duplicate do not meet those on the original") {
  const auto body = [](world_type world) -> task<> {
    auto copy = co_await world.duplicate();
    CHECK(copy.size() == world.size());
    // In another order on every rank, which on one communicator would be a mismatch.
    if (world.rank() == 0) {
      auto a = world.all_reduce(1, sum{});
      auto b = copy.all_reduce(10, max{});
      CHECK(co_await a == 3);
      CHECK(co_await b == 10);
    } else {
      auto b = copy.all_reduce(10, max{});
      auto a = world.all_reduce(1, sum{});
      CHECK(co_await b == 10);
      CHECK(co_await a == 3);
    }
  };
  run_local(3, body);
}

TEST_CASE("groups: of groups, overlapping, used at once") {
  const auto body = [](world_type world) -> task<> {
    const int r = world.rank();
    auto low = co_await world.subgroup(ranks{0, 1, 2, 3});
    auto high = co_await world.subgroup(ranks{5, 4, 3, 2});
    std::optional<operation<int>> in_low;
    std::optional<operation<int>> in_high;
    if (low.is_member()) in_low.emplace(low.all_reduce(r, sum{}));
    if (high.is_member()) in_high.emplace(high.all_reduce(r, sum{}));
    if (in_high) CHECK(co_await *in_high == 14);
    if (in_low) CHECK(co_await *in_low == 6);
    if (!high.is_member()) co_return;
    // Ranks 1 and 2 of `high` are 4 and 3 of the world.
    auto inner = co_await high.subgroup(ranks{2, 1});
    if (inner.is_member()) {
      CHECK(inner.world_rank_of(0) == 3);
      CHECK(inner.world_rank_of(1) == 4);
      CHECK(co_await inner.all_reduce(r, sum{}) == 7);
      CHECK(inner.name() == "world{5, 4, 3, 2}{2, 1}");
    }
  };
  run_local(6, body);
}

TEST_CASE("groups: messages carry group ranks") {
  const auto body = [](world_type world) -> task<> {
    auto group = co_await world.subgroup(ranks{4, 2, 0});
    if (!group.is_member()) co_return;
    int value = world.rank();
    if (group.rank() == 0) {
      co_await group.send(std::span(&value, 1), to{2}, tag{9});
    } else if (group.rank() == 2) {
      const received got = co_await group.recv(std::span(&value, 1), from_any, any_tag);
      CHECK(got.source == 0);
      CHECK(got.tag == 9);
      CHECK(value == 4);
    }
    auto refused = error_after(group.recv(std::span(&value, 1), from{4}));
    CHECK(contains(text_of(co_await refused), "source 4: expected 0..2"));
  };
  run_local(5, body);
}

TEST_CASE("groups: hundreds alive, and nothing is left of them") {
  const auto body = [](world_type world) -> task<> {
    std::vector<world_type> alive;
    for (int i = 0; i < 300; ++i) {
      if (i % 3 == 0) {
        alive.push_back(co_await world.split(color{world.rank() % 2}));
      } else {
        alive.push_back(co_await world.subgroup(ranks{i % 4, (i + 1) % 4}));
      }
    }
    for (const world_type& g : alive) {
      if (g.is_member()) CHECK(co_await g.all_reduce(1, sum{}) == 2);
    }
    for (std::size_t i = 0; i < alive.size(); ++i) {
      for (std::size_t k = i + 1; k < alive.size() && k < i + 5; ++k) {
        if (alive[i].is_member() && alive[k].is_member()) {
          CHECK(alive[i].calls().state()->context() != alive[k].calls().state()->context());
        }
      }
    }
    alive.clear();
    co_await world.barrier();
    CHECK(world.engine().groups_alive() == 1);
  };
  run_local(4, body);
}

TEST_CASE("groups: who destroys one while others are in a call on it is named") {
  const auto body = [](world_type world) -> task<> {
    std::optional<world_type> pair = co_await world.subgroup(ranks{0, 1}, named{"pair"});
    if (world.rank() == 1) {
      pair.reset();
    } else {
      auto attempt = error_after(pair->all_reduce(1, sum{}));
      const auto e = co_await attempt;
      REQUIRE(e.has_value());
      CHECK(e->condition() == errc::peer_lost);
      CHECK(contains(e->what(), "all_reduce #1 on 'pair' failed on rank 0 of 2 (world rank 0)"));
      CHECK(contains(e->what(), "world rank 1"));
      CHECK(contains(e->what(), "destroyed this communicator"));
    }
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}

namespace {

/// Ends as `op` does, which has begun before the barrier.
template <class Operation>
task<std::optional<error>> ends(world_type& world, bool barrier_between, Operation op) {
  if (barrier_between) {
    auto barrier = world.barrier();
    co_await barrier;
  }
  auto attempt = error_after(std::move(op));
  co_return co_await attempt;
}

}  // namespace

TEST_CASE("groups: who has destroyed one sends nothing there, and takes nothing") {
  for (int what = 0; what < 4; ++what) {
    // Rank 0 waits before rank 1 has destroyed it, or comes later.
    for (const bool later : {false, true}) {
      CAPTURE(what);
      CAPTURE(later);
      const auto body = [&](world_type world) -> task<> {
        std::optional<world_type> pair = co_await world.subgroup(ranks{0, 1}, named{"pair"});
        if (world.rank() == 1) {
          if (!later) co_await world.barrier();
          pair.reset();
          if (later) co_await world.barrier();
        } else {
          if (later) co_await world.barrier();
          std::vector<int> v(100000);
          auto attempt = what == 0   ? ends(world, !later, pair->recv(v, from{1}))
                         : what == 1 ? ends(world, !later, pair->recv(v, from_any))
                         : what == 2 ? ends(world, !later, pair->probe(from{1}))
                                     : ends(world, !later, pair->send(v, to{1}));
          const auto e = co_await attempt;
          REQUIRE(e.has_value());
          CHECK(e->condition() == errc::peer_lost);
          CHECK(contains(e->what(), "has left 'pair'"));
        }
        CHECK(co_await world.all_reduce(1, sum{}) == 2);
      };
      run_local(2, body);
    }
  }
}

TEST_CASE("groups: who has destroyed one before others have formed it is not waited for") {
  using namespace std::chrono_literals;
  for (const int destroyer : {0, 1}) {
    for (const bool collective : {false, true}) {
      CAPTURE(destroyer);
      CAPTURE(collective);
      const auto body = [&](world_type world) -> task<> {
        std::optional<world_type> copy = co_await world.duplicate(named{"copy"});
        std::vector<int> v(1);
        if (world.rank() == destroyer) {
          copy.reset();
          co_await world.send(v, to{1 - destroyer});
        } else {
          co_await world.recv(v, from{destroyer});
          auto attempt = collective ? error_after(copy->barrier(timeout{10s}))
                                    : ends(world, false, copy->recv(v, from{destroyer}, timeout{10s}));
          const auto e = co_await attempt;
          REQUIRE(e.has_value());
          CHECK(e->condition() == errc::peer_lost);
          CHECK(contains(e->what(), collective ? "destroyed this communicator" : "has left 'copy'"));
        }
        CHECK(co_await world.all_reduce(1, sum{}) == 2);
      };
      run_local(2, body);
    }
  }
}

TEST_CASE("groups: who leaves the world without having formed one is not waited for there") {
  using namespace std::chrono_literals;
  for (const int leaver : {0, 1}) {
    CAPTURE(leaver);
    const auto body = [&](world_type world) -> task<> {
      if (world.rank() == leaver) co_return;
      // Who forms it last, or waits for the last one, may notice then.
      const auto both = [](world_type& w) -> task<> {
        auto pair = co_await w.subgroup(ranks{0, 1}, timeout{10s});
        co_await pair.barrier(timeout{10s});
      };
      auto attempt = error_after(both(world));
      const auto e = co_await attempt;
      REQUIRE(e.has_value());
      CHECK(e->condition() == errc::peer_lost);
      CHECK(e->peer() == leaver);
      CHECK(contains(e->what(), "exited early: it has not called anything yet and left the world"));
    };
    run_local(2, body);
  }
}

TEST_CASE("groups: a timeout of their own") {
  const auto body = [](world_type world) -> task<> {
    using namespace std::chrono_literals;
    auto pair = co_await world.subgroup(ranks{0, 1});
    CHECK(pair.timeout_after() == world.timeout_after());
    pair.set_timeout(50ms);
    if (world.rank() == 0) {
      auto attempt = error_after(pair.all_reduce(1, sum{}));
      const auto e = co_await attempt;
      REQUIRE(e.has_value());
      CHECK(e->condition() == errc::timed_out);
      CHECK(contains(e->what(), "not arrived: world rank 1"));
    }
    // The world has its own, and is not touched by the failure of a group.
    CHECK(world.timeout_after() == 5min);
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}
