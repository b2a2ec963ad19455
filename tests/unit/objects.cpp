// SPDX-License-Identifier: BSL-1.0
// Objects between ranks of one process: what tests/support/objects.hpp promises of any backend, and what is refused.
#include "../support/objects.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace cohort;

namespace {

using world_type = communicator<inproc>;

template <class T>
task<std::string> text_of(operation<T> op) {
  std::string text = "no error";
  try {
    static_cast<void>(co_await op);
  } catch (const error& e) {
    text = e.what();
  }
  co_return text;
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("objects: ranks that share a thread") {
  for (const int n : {1, 2, 3, 5, 8}) {
    const auto body = [](world_type world) -> task<> {
      for (const std::string& problem : co_await support::objects(world)) FAIL_CHECK(problem);
    };
    run_local(n, body);
  }
}

TEST_CASE("objects: what is refused says what is wrong, and the communicator goes on") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto few = text_of(world.scatter_object(std::vector<std::string>{"one"}, root{0}));
      CHECK(contains(co_await few, "objects has 1 elements, expected 2 = one for each rank"));
    }
    auto where = text_of(world.broadcast_object(1, root{2}));
    CHECK(contains(co_await where, "root 2: expected 0..1"));
    codec_limits small;
    small.bytes = 100;
    auto large = text_of(world.send_object(std::string(1000, 'x'), to{1}, tag{0}, small));
    CHECK(contains(co_await large, "100"));
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}

TEST_CASE("objects: more than the receiver takes") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto sent = text_of(world.send_object(std::string(1000, 'x'), to{1}));
      static_cast<void>(co_await sent);
      co_return;
    }
    codec_limits small;
    small.bytes = 100;
    auto got = text_of(world.recv_object<std::string>(from{0}, small));
    CHECK(contains(co_await got, "cannot make room"));
  };
  run_local(2, body);
}

TEST_CASE("objects: bytes and objects are not confused") {
  const auto body = [](world_type world) -> task<> {
    if (world.rank() == 0) {
      auto sent = text_of(world.send_object(7, to{1}));
      static_cast<void>(co_await sent);
      co_return;
    }
    std::vector<std::byte> raw;
    auto got = text_of(world.recv(growing(raw), from{0}));
    CHECK(contains(co_await got, "rank 0 sent elements of object with tag 0, rank 1 receives byte"));
  };
  run_local(2, body);
}
