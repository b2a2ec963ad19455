// SPDX-License-Identifier: BSL-1.0
// The simulator itself: it must find every kind of mistake that a schedule can make, or the property tests say nothing.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/schedule/barrier.hpp>

namespace {

using cohort::collective::buffer;
using cohort::collective::region;
using cohort::collective::schedule_sink;
using cohort::collective::side;
using simulation::world;

constexpr region out_block{buffer::out, 0, 1};

/// Two ranks; what each does in each round is a function of (rank, round, sink).
template <class Round>
struct scripted {
  int rank;
  int count;
  Round what;
  [[nodiscard]] int rounds() const { return count; }
  [[nodiscard]] int blocks() const { return 1; }
  [[nodiscard]] int work_blocks() const { return 1; }
  template <schedule_sink Sink>
  void round(int k, Sink& sink) const {
    what(rank, k, sink);
  }
};

template <class Round>
std::string problem(int rounds, Round what, simulation::size_of_block sizes = {}) {
  world w(2, 2, 2, std::move(sizes));
  w.fill(buffer::in);
  w.fill(buffer::out);
  return w.run([&](int rank) { return scripted<Round>{rank, rounds, what}; });
}

bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("schedule simulator: an exchange is carried out, and its terms tell who stood where") {
  world w(2, 1, 1);
  w.fill(buffer::out);
  const auto exchange = [](int rank, int, auto& sink) {
    sink.send(1 - rank, out_block);
    sink.receive_reduce(1 - rank, out_block, rank == 0 ? side::right : side::left);
  };
  CHECK(w.run([&](int rank) { return scripted<decltype(exchange)>{rank, 1, exchange}; }) == "");
  CHECK(w.get(0, buffer::out, 0) == w.get(1, buffer::out, 0));
  CHECK(w.all_terms().why_not_all(w.get(0, buffer::out, 0), 0, 0, 1, true) == "");
  CHECK(w.all_terms().why_not_all(w.get(0, buffer::out, 0), 0, 0, 2, true) == "2 operands");
  CHECK(w.all_terms().why_not_all(w.get(0, buffer::out, 0), 1, 0, 1, true) == "operand of block 0");
  CHECK(w.all_terms().text(w.get(0, buffer::out, 0)) == "(0 1)");
  CHECK(w.of(0).blocks_sent == 1);
  CHECK(w.of(0).blocks_combined == 1);
}

TEST_CASE("schedule simulator: an exchange with the sides swapped is out of order, and differs between ranks") {
  world w(2, 1, 1);
  w.fill(buffer::out);
  const auto exchange = [](int rank, int, auto& sink) {
    sink.send(1 - rank, out_block);
    sink.receive_reduce(1 - rank, out_block, side::left);
  };
  CHECK(w.run([&](int rank) { return scripted<decltype(exchange)>{rank, 1, exchange}; }) == "");
  CHECK(w.get(0, buffer::out, 0) != w.get(1, buffer::out, 0));
  CHECK(w.all_terms().why_not_all(w.get(0, buffer::out, 0), 0, 0, 1, true) == "operand of rank 1");
  CHECK(w.all_terms().why_not_all(w.get(0, buffer::out, 0), 0, 0, 1, false) == "");
}

TEST_CASE("schedule simulator: a message that nobody takes, or nobody sends, is found") {
  CHECK(says(problem(1, [](int rank, int, auto& sink) {
    if (rank == 0) sink.send(1, out_block);
  }), "rank 0 of the schedule waits for ever in round 0"));
  CHECK(says(problem(2, [](int rank, int k, auto& sink) {
    if (rank == 1 && k == 1) sink.receive(0, out_block);
  }), "rank 1 of the schedule waits for ever in round 1"));
}

TEST_CASE("schedule simulator: a deadlock between rounds is found") {
  // One way, then the other: both ranks move on together.
  CHECK(problem(2, [](int rank, int k, auto& sink) {
    if (k == rank) {
      sink.send(1 - rank, out_block);
    } else {
      sink.receive(1 - rank, out_block);
    }
  }) == "");
  // Both send first and receive in the next round: right with buffered messages, a deadlock without.
  CHECK(says(problem(2, [](int rank, int k, auto& sink) {
    if (k == 0) {
      sink.send(1 - rank, out_block);
    } else {
      sink.receive(1 - rank, out_block);
    }
  }), "waits for ever in round 0"));
}

TEST_CASE("schedule simulator: messages of one pair are matched in order") {
  // The first message has one block and the second two; the receives are posted the other way round.
  CHECK(says(problem(1, [](int rank, int, auto& sink) {
    if (rank == 0) {
      sink.send(1, region{buffer::in, 0, 1});
      sink.send(1, region{buffer::in, 0, 2});
    } else {
      sink.receive(0, region{buffer::out, 0, 2});
      sink.receive(0, region{buffer::work, 0, 1});
    }
  }), "gets 1 blocks for 2"));
}

TEST_CASE("schedule simulator: blocks of different sizes are not mixed up") {
  const auto shifted = [](int rank, int, auto& sink) {
    if (rank == 0) {
      sink.send(1, region{buffer::out, 0, 1});
    } else {
      sink.receive(0, region{buffer::out, 1, 1});
    }
  };
  CHECK(problem(1, shifted) == "");
  CHECK(says(problem(1, shifted, [](int, buffer, int block) { return block; }), "mixes up block sizes"));
}

TEST_CASE("schedule simulator: reads and writes that are not allowed are found") {
  const auto alone = [](auto act) {
    return problem(1, [act](int rank, int, auto& sink) {
      if (rank == 0) act(sink);
    });
  };
  const region work{buffer::work, 0, 1};
  CHECK(says(alone([&](auto& s) { s.copy(work, out_block); }), "reads a block that was never written"));
  CHECK(says(alone([&](auto& s) { s.reduce(out_block, work, side::left); }), "combines into a block that was never"));
  CHECK(says(alone([&](auto& s) { s.send(1, work); }), "reads a block that was never written"));
  CHECK(says(alone([&](auto& s) { s.send(0, out_block); }), "sends to itself"));
  CHECK(says(alone([&](auto& s) { s.send(2, out_block); }), "names rank 2"));
  CHECK(says(alone([&](auto& s) { s.copy(out_block, region{buffer::in, 0, 1}); }), "writes to its input"));
  CHECK(says(alone([&](auto& s) { s.copy(out_block, region{buffer::work, 1, 1}); }), "writes blocks that do not"));
  CHECK(says(alone([&](auto& s) { s.send(1, region{buffer::out, 0, 3}); }), "reads blocks that do not exist"));
  CHECK(says(alone([&](auto& s) {
    s.send(1, out_block);
    s.copy(out_block, work);
  }), "acts locally after a transfer"));
  CHECK(says(alone([&](auto& s) {
    s.send(1, out_block);
    s.receive(1, out_block);
  }), "receives over what it sends"));
  CHECK(says(alone([&](auto& s) {
    s.receive(1, out_block);
    s.receive(1, region{buffer::out, 1, 2});
  }), "receives twice into one block"));
  CHECK(says(alone([&](auto& s) {
    s.receive_reduce(1, out_block, side::left);
    s.receive(1, out_block);
  }), "combines with a block in flight"));
}

TEST_CASE("schedule simulator: ranks that disagree on the rounds are found") {
  const auto nothing = [](int, int, auto&) {};
  world w(2, 1, 1);
  CHECK(says(w.run([&](int rank) { return scripted<decltype(nothing)>{rank, rank, nothing}; }), "number of rounds"));
}

TEST_CASE("schedule simulator: a barrier that stops early leaves ranks that have not heard of each other") {
  world w(8, 1, 1);
  const auto early = [](int rank, int k, auto& sink) {
    cohort::collective::dissemination_barrier{8, rank}.round(k, sink);
  };
  CHECK(w.run([&](int rank) { return scripted<decltype(early)>{rank, 2, early}; }) == "");
  CHECK(w.has_heard(0, 5));
  CHECK_FALSE(w.has_heard(0, 4));
}
