// SPDX-License-Identifier: BSL-1.0
// Objects between ranks of one process: what tests/support/objects.hpp promises of any backend, and what is refused.
#include "../support/objects.hpp"
#include "../support/errors.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

using harness::contains;
using harness::text_after;

using world_type = communicator<inproc>;

}  // namespace

TEST_CASE("objects: ranks that share a thread") {
  for (const int n : {1, 2, 3, 5, 8}) {
    const auto body = [](world_type world) -> task<> {
      for (const std::string& problem : co_await harness::objects(world)) FAIL_CHECK(problem);
    };
    run_local(n, body);
  }
}

TEST_CASE("objects: what is refused says what is wrong, and the communicator goes on") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto few = text_after(world.scatter_object(std::vector<std::string>{"one"}, root{0}));
      CHECK(contains(co_await few, "objects has 1 elements, expected 2 = one for each rank"));
    }
    auto where = text_after(world.broadcast_object(1, root{2}));
    CHECK(contains(co_await where, "root 2: expected 0..1"));
    codec_limits small;
    small.bytes = 100;
    auto large = text_after(world.send_object(std::string(1000, 'x'), to{1}, tag{0}, small));
    CHECK(contains(co_await large, "100"));
    auto several = text_after(world.send_objects(to{1}, 7, small, std::string(1000, 'x')));
    CHECK(contains(co_await several, "100"));
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}

TEST_CASE("objects: several of them take the options of one, and are not confused with them") {
  const auto body = [](world_type world) -> task<> {
    codec_limits large;
    large.bytes = std::uint64_t{1} << 31;
    std::stop_source stopping;
    if (world.rank() == 0) {
      co_await world.send_objects(to{1}, tag{3}, 1, std::string("two"), timeout{30s}, large);
      co_await world.send_objects(to{1}, 3, timeout{30s}, std::string("four"), stop{stopping.get_token()});
    } else {
      auto first = world.recv_objects<int, std::string>(from{0}, tag{3}, timeout{30s}, large);
      CHECK(co_await first == std::tuple(1, std::string("two")));
      auto second = world.recv_objects<int, std::string>(from_any, stop{stopping.get_token()});
      CHECK(co_await second == std::tuple(3, std::string("four")));
    }
    co_await world.barrier();
    // The message never comes: what was given with the call says how long to wait for it.
    auto late = text_after(world.recv_objects<int, int>(from{1 - world.rank()}, tag{9}, timeout{50ms}));
    CHECK(contains(co_await late, "timed out after 0.0"));
  };
  run_local(2, body);
}

TEST_CASE("objects: several of them that are more than the receiver takes") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto sent = text_after(world.send_objects(to{1}, 1, std::string(1000, 'x')));
      static_cast<void>(co_await sent);
      co_return;
    }
    codec_limits small;
    small.bytes = 100;
    auto got = text_after(world.recv_objects<int, std::string>(from{0}, small));
    CHECK(contains(co_await got, "cannot make room"));
  };
  run_local(2, body);
}

TEST_CASE("objects: more than the receiver takes") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto sent = text_after(world.send_object(std::string(1000, 'x'), to{1}));
      static_cast<void>(co_await sent);
      co_return;
    }
    codec_limits small;
    small.bytes = 100;
    auto got = text_after(world.recv_object<std::string>(from{0}, small));
    CHECK(contains(co_await got, "cannot make room"));
  };
  run_local(2, body);
}

TEST_CASE("objects: more than one rank takes of what all get") {
  const auto body = [](world_type world) -> task<> {
    codec_limits limits;
    if (world.rank() == 1) limits.bytes = 100;
    std::optional<error> e;
    try {
      static_cast<void>(co_await world.broadcast_object(std::string(1000, 'x'), root{0}, limits));
      co_await world.barrier();
    } catch (const error& failure) {
      e.emplace(failure);
    }
    REQUIRE(e.has_value());
    CHECK(e->condition() == errc::limit_exceeded);
    CHECK(e->rank() == world.rank());
    CHECK(e->peer() == 1);
    if (world.rank() == 1) CHECK(e->operation() == "broadcast_objects");
    CHECK(contains(e->what(), "codec_limits::bytes of rank 1 allows 100: give the call larger limits, on every rank"));
  };
  run_local(3, body);
}

TEST_CASE("objects: bytes and objects are not confused") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto sent = text_after(world.send_object(7, to{1}));
      static_cast<void>(co_await sent);
      co_return;
    }
    std::vector<std::byte> raw;
    auto got = text_after(world.recv(growing(raw), from{0}));
    CHECK(contains(co_await got, "rank 0 sent elements of object with tag 0, rank 1 receives byte"));
  };
  run_local(2, body);
}
