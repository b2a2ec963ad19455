// SPDX-License-Identifier: BSL-1.0
// Point-to-point messages between ranks of one process: what tests/support/point_to_point.hpp promises of any backend,
// and what is refused.
#include "../support/point_to_point.hpp"
#include "../support/errors.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

using harness::contains;
using harness::error_after;

using world_type = communicator<inproc>;

}  // namespace

TEST_CASE("point to point: ranks that share a thread") {
  for (const int n : {2, 3, 5}) {
    const auto body = [](world_type world) -> task<> {
      for (const std::string& problem : co_await harness::point_to_point(world)) FAIL_CHECK(problem);
    };
    run_local(n, body);
  }
}

TEST_CASE("point to point: ranks with a thread each") {
  constexpr int n = 3;
  const auto hub = std::make_shared<transport::inproc_hub>(n, transport::inproc_hub::threading::thread_per_rank);
  std::vector<std::vector<std::string>> problems(n);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      const world_type world = make_local_world(hub, r);
      auto work = harness::point_to_point(world);
      problems[static_cast<std::size_t>(r)] = sync_wait(work);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& of_rank : problems) {
    for (const std::string& problem : of_rank) FAIL_CHECK(problem);
  }
}

TEST_CASE("point to point: what is refused says what is wrong, and nothing is lost") {
  const auto body = [](world_type world) -> task<> {
    std::vector<int> v(3);
    auto a = error_after(world.probe(from{2}));
    CHECK(contains((co_await a)->what(), "probe on 'world' refused on rank"));
    auto b = error_after(world.probe(from{0}, tag{-1}));
    CHECK(contains((co_await b)->what(), "tag -1: expected 0.."));
    auto mixed = world.batch(sending(v, to{world.rank()}, tag{4}), receiving(v, from{9}), sending(v, to{0}, tag{-7}));
    auto c = error_after(std::move(mixed[1]));
    CHECK(contains((co_await c)->what(), "source 9: expected 0..1"));
    auto d = error_after(std::move(mixed[2]));
    CHECK(contains((co_await d)->what(), "tag -7: expected 0.."));
    std::vector<int> back;
    co_await world.recv(growing(back), from{world.rank()}, tag{4});
    co_await mixed[0];
    CHECK(back == v);
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}

TEST_CASE("point to point: the options of a batch hold for each of its messages") {
  for (const bool as_list : {false, true}) {
    const auto body = [as_list](world_type world) -> task<> {
      const int other = 1 - world.rank();
      const std::vector<int> out{1, 2};
      std::vector<int> in(2);
      std::vector<int> never(2);
      const timeout soon{50ms};
      const std::stop_source stopping;
      auto wrong = world.batch(sending(out, to{other}), timeout{0s});
      auto refused = error_after(std::move(wrong[0]));
      CHECK(contains((co_await refused)->what(), "timeout of 0 ns: expected more than zero"));

      const std::vector<messages::item> list{sending(out, to{other}), receiving(in, from{other})};
      auto well = as_list ? world.batch(list, timeout{30s}, stop{stopping.get_token()})
                          : world.batch(list[0], list[1], timeout{30s}, stop{stopping.get_token()});
      const auto results = co_await well.all();
      CHECK(results.size() == 2);
      CHECK(results[0].source == -1);
      CHECK(in == out);
      co_await world.barrier();

      const std::vector<messages::item> one{receiving(never, from{other})};
      auto late = as_list ? world.batch(one, soon) : world.batch(one[0], soon);
      auto ended = error_after(std::move(late[0]));
      const auto e = co_await ended;
      REQUIRE(e.has_value());
      CHECK(contains(e->what(), "timed out after 0.0"));
    };
    run_local(2, body);
  }
}

TEST_CASE("point to point: a container that may not grow so far") {
  const auto body = [](world_type world) -> task<> {
    std::vector<int> v(world.rank() == 0 ? 11 : 0, 1);
    if (world.rank() == 0) {
      auto sent = error_after(world.send(v, to{1}));
      static_cast<void>(co_await sent);
      co_return;
    }
    auto attempt = error_after(world.recv(growing(v, 10), from{0}));
    const auto e = co_await attempt;
    REQUIRE(e.has_value());
    CHECK(e->condition() == errc::truncated);
    CHECK(contains(e->what(), "rank 0 sent 11 elements with tag 0, rank 1 cannot make room for them"));
  };
  run_local(2, body);
}

TEST_CASE("point to point: a probe of a rank that has left is told so") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 1) co_return;
    auto attempt = error_after(world.probe(from{1}));
    const auto e = co_await attempt;
    REQUIRE(e.has_value());
    CHECK(e->condition() == errc::peer_lost);
    CHECK(contains(e->what(), "rank 1 has left the world"));
  };
  run_local(2, body);
}

TEST_CASE("point to point: an exchange of two element types, each as at its other end") {
  const auto body = [](world_type world) -> task<> {
    const int other = 1 - world.rank();
    std::vector<int> whole{world.rank() + 10};
    std::vector<float> parts{static_cast<float>(world.rank()) + 0.5F};
    if (world.rank() == 0) {
      co_await world.exchange(whole, to{other}, parts, from{other}, timeout{5s});
      CHECK(parts.front() == 1.5F);
    } else {
      co_await world.exchange(parts, to{other}, whole, from{other}, timeout{5s});
      CHECK(whole.front() == 10);
    }
    co_await world.barrier();
  };
  run_local(2, body);
}

TEST_CASE("point to point: an exchange whose message has other elements than it receives") {
  const auto body = [](world_type world) -> task<> {
    const int other = 1 - world.rank();
    const std::vector<std::int32_t> out{3};
    std::vector<float> in{0.25F};
    auto attempt = error_after(world.exchange(out, to{other}, in, from{other}, timeout{5s}));
    const auto e = co_await attempt;
    REQUIRE(e.has_value());
    CHECK(e->condition() == errc::mismatch);
    CHECK(contains(e->what(), "sent elements of int32"));
    CHECK(contains(e->what(), "receives float32"));
    CHECK(in.front() == 0.25F);
  };
  run_local(2, body);
}
