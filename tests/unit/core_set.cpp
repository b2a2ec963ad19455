// SPDX-License-Identifier: BSL-1.0
// The cores that ranks tell each other of, and what follows from that.
#include <cohort/detail/core_set.hpp>
#include <cohort/detail/hand_back.hpp>
#include <cohort/transport/core_share.hpp>
#include <cohort/transport/shm/window.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

using cohort::detail::core_set;

namespace {

core_set of(std::initializer_list<int> cores) {
  std::string bytes;
  for (const int c : cores) {
    const auto at = static_cast<std::size_t>(c) / 8;
    if (bytes.size() <= at) bytes.resize(at + 1);
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) | 1U << c % 8);
  }
  return core_set::decode(bytes);
}

}  // namespace

TEST_CASE("a thread's cores are those that the kernel gives it") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(core_set::usable().count() == CPU_COUNT(&before));
  const int here = ::sched_getcpu();
  REQUIRE(here >= 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(core_set::usable() == of({here}));
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("what is told of cores is what is understood") {
  for (const core_set& each : {of({}), of({0}), of({7}), of({8}), of({0, 1, 63, 64, 1023}), core_set::usable()}) {
    CHECK(core_set::decode(each.encode()) == each);
  }
  CHECK(of({}).encode().empty());
  CHECK(of({9}).encode().size() == 2);
  CHECK(core_set::decode(std::string(200, '\xff')).count() == static_cast<int>(core_set::most));
}

TEST_CASE("cores have an order") {
  const core_set some = of({3, 5, 64, 1023});
  for (int i = 0; const int core : {3, 5, 64, 1023}) CHECK(some.at(i++) == core);
}

TEST_CASE("more ranks than cores are dealt out to the cores, if all may use the same") {
  using cohort::transport::core_share;
  using cohort::transport::host_address;
  const auto rank_on = [](const char* host, const core_set& cores) {
    host_address a;
    a.host = host;
    a.cores = cores;
    return a;
  };
  std::vector<host_address> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(rank_on("here by itself", of({2, 6})));
    all.push_back(rank_on("there", of({2, 6, 7})));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const core_share s = core_share::of(all[i], all);
    CHECK(s.ranks == 5);
    CHECK(s.crowded());
    CHECK(s.cores == (i % 2 == 0 ? 2 : 3));
    const int turn = static_cast<int>(i / 2);
    CHECK(s.home == (i % 2 == 0 ? of({2, 6}).at(turn % 2) : of({2, 6, 7}).at(turn % 3)));
    REQUIRE(s.at_home.size() == all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      CHECK(s.at_home[r] == (r % 2 == i % 2 && core_share::of(all[r], all).home == s.home));
    }
  }
  all[2].cores = of({2});  // somebody has bound it
  CHECK(core_share::of(all[0], all).home == -1);
  CHECK(core_share::of(all[0], all).at_home.empty());
  CHECK(core_share::of(all[2], all).home == -1);
  CHECK(core_share::of(all[1], all).home == 2);
  all[1].cores = all[3].cores = of({});  // the kernel does not say
  CHECK(core_share::of(all[1], all).home == -1);
  const std::vector<host_address> roomy{rank_on("here", of({0, 1})), rank_on("here", of({0, 1}))};
  CHECK_FALSE(core_share::of(roomy[1], roomy).crowded());
}

TEST_CASE("in a window those are waited for first that take turns with this rank on a core, beginning behind it") {
  using cohort::transport::shm_window;
  for (const int size : {2, 3, 5, 8}) {
    for (int rank = 0; rank < size; ++rank) {
      for (const int cores : {1, 2, 3}) {
        std::vector<bool> on_core;
        for (int r = 0; r < size; ++r) on_core.push_back(r % cores == rank % cores);
        const shm_window window(rank, size, on_core);
        std::vector<int> expected;
        for (const bool here : {true, false}) {
          for (int k = 1; k < size; ++k) {
            const int r = (rank + k) % size;
            if (on_core[static_cast<std::size_t>(r)] == here) expected.push_back(r);
          }
        }
        CHECK(window.takes_turns());
        CHECK(std::equal(window.in_turn().begin(), window.in_turn().end(), expected.begin(), expected.end()));
        for (int r = 0; r < size; ++r) CHECK(window.on_other_core(r) == !on_core[static_cast<std::size_t>(r)]);
      }
      const shm_window window(rank, size, {});
      CHECK_FALSE(window.takes_turns());
      CHECK(window.in_turn().empty());
      for (int r = 0; r < size; ++r) CHECK_FALSE(window.on_other_core(r));
    }
  }
}

TEST_CASE("what several read is handed on between two cores that ranks take turns on, unless many read of each other") {
  using cohort::detail::readers;
  using cohort::transport::shm_window;
  for (const int size : {2, 3, 4, 5, 8}) {
    const std::vector<bool> on_core(static_cast<std::size_t>(size), true);
    for (const int cores : {0, 1, 2, 3}) {
      const shm_window window(0, size, on_core, cores);
      CHECK(window.readers_of_all(true) == (cores == 2 ? readers::on_two_cores : readers::many));
      CHECK(window.readers_of_all(false) == (cores == 2 && size <= 4 ? readers::on_two_cores : readers::many));
    }
    const shm_window window(0, size, {}, 2);
    CHECK(window.readers_of_all(true) == readers::many);
  }
}

TEST_CASE("ranks meet where they have a core in common, or may have") {
  CHECK(of({0, 1}).may_meet(of({1, 2})));
  CHECK_FALSE(of({0, 1}).may_meet(of({2, 3})));
  CHECK(of({}).may_meet(of({2})));
  CHECK(of({2}).may_meet(of({})));
  core_set both = of({0});
  both.add(of({5}));
  CHECK(both == of({0, 5}));
}
