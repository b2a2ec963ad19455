// SPDX-License-Identifier: BSL-1.0
// Operations that go: one in flight takes with it all that would have gone on with it, one that has ended takes nothing.
#include <cohort/run_local.hpp>
#include <cohort/task.hpp>
#include <cohort/when_all.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace cohort;

using local_world = communicator<inproc>;

/// Turns of the engine: messages to oneself, which are waited for.
task<> take_turns(local_world& world) {
  int sent = 1;
  int came = 0;
  for (int i = 0; i < 3; ++i) {
    auto receiving = world.recv(std::span(&came, 1), from{world.rank()}, tag{77});
    co_await world.send(std::span(&sent, 1), to{world.rank()}, tag{77});
    co_await receiving;
  }
}

TEST_CASE("dropped: a receive whose message has come, before it has gone on") {
  bool ended = false;
  const auto rank_main = [&ended](local_world world) -> task<> {
    auto other = co_await world.duplicate();
    int came = 0;
    int sent = 5;
    {
      auto receiving = world.recv(std::span(&came, 1), from{0}, tag{1});
      co_await world.send(std::span(&sent, 1), to{0}, tag{1});
      CHECK_FALSE(receiving.ready());
    }
    CHECK(world.failed());
    auto turns = take_turns(other);
    co_await turns;
    ended = true;
  };
  run_local(1, rank_main);
  CHECK(ended);
}

TEST_CASE("dropped: several at once, of which the first ends the wait of the others") {
  int ended = 0;
  const auto rank_main = [&ended](local_world world) -> task<> {
    auto other = co_await world.duplicate();
    std::vector<int> values(6, world.rank());
    const std::span<int> all(values);
    if (world.rank() == 0) {
      std::vector<operation<received>> receives;
      receives.push_back(world.recv(all.subspan(0, 1), from{1}, tag{1}));
      receives.push_back(world.recv(all.subspan(1, 1), from{1}, tag{2}));
      std::vector<operation<>> sums;
      sums.push_back(world.all_reduce(all.subspan(2, 2), sum{}));
      sums.push_back(world.all_reduce(all.subspan(4, 2), sum{}));
      for (const auto& each : receives) CHECK_FALSE(each.ready());
      for (const auto& each : sums) CHECK_FALSE(each.ready());
    }
    auto turns = take_turns(other);
    co_await turns;
    ++ended;
  };
  run_local(2, rank_main);
  CHECK(ended == 2);
}

TEST_CASE("dropped: a receive in flight, by the error of another call") {
  std::vector<std::string> errors(2);
  int ended = 0;
  const auto rank_main = [&](local_world world) -> task<> {
    auto other = co_await world.duplicate();
    int value = 0;
    try {
      if (world.rank() == 1) {
        co_await world.broadcast(std::span(&value, 1), root{0});
      } else {
        auto receiving = world.recv(std::span(&value, 1), from{1}, tag{1});
        co_await world.barrier();
        co_await receiving;
      }
    } catch (const error& e) {
      errors[static_cast<std::size_t>(world.rank())] = e.what();
    }
    auto turns = take_turns(other);
    co_await turns;
    ++ended;
  };
  run_local(2, rank_main);
  CHECK(ended == 2);
  for (const std::string& e : errors) CHECK(e.find("broadcast(") != std::string::npos);
}

/// An operation that one coroutine waits for and another one lets go of afterwards.
struct shared_receive {
  std::optional<operation<received>> first{};
  int ended = 0;
};

task<> waits_for_it(local_world& world, shared_receive& shared) {
  int x = 0;
  shared.first.emplace(world.recv(std::span(&x, 1), from{1}, tag{1}));
  co_await *shared.first;
  co_await world.recv(std::span(&x, 1), from{1}, tag{3});
  CHECK(x == 7);
  ++shared.ended;
}
task<> lets_go_of_it(local_world& world, shared_receive& shared) {
  int x = 0;
  co_await world.recv(std::span(&x, 1), from{1}, tag{2});
  REQUIRE(shared.first.has_value());
  CHECK(shared.first->taken());
  shared.first.reset();
  ++shared.ended;
}

// Where this fails it does not end: the coroutine that has been forgotten waits for nothing that could time out.
TEST_CASE("dropped: an operation that has ended, while who waited for it is about to go on with something else") {
  shared_receive shared;
  const auto rank_main = [&shared](local_world world) -> task<> {
    if (world.rank() == 0) {
      auto both = when_all(waits_for_it(world, shared), lets_go_of_it(world, shared));
      co_await both;
      co_return;
    }
    int sent = 7;
    co_await world.send(std::span(&sent, 1), to{0}, tag{1});
    auto turns = take_turns(world);
    co_await turns;
    // Both messages are there when rank 0 has its turn.
    co_await world.send(std::span(&sent, 1), to{0}, tag{2});
    co_await world.send(std::span(&sent, 1), to{0}, tag{3});
  };
  run_local(2, rank_main);
  CHECK(shared.ended == 2);
}

}  // namespace
