// SPDX-License-Identifier: BSL-1.0
// Schedules of reduce_scatter, all_to_all, scan and exclusive_scan, for many sizes: results, rank order, rounds and
// blocks.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/schedule/all_to_all.hpp>
#include <cohort/collective/schedule/reduce_scatter.hpp>
#include <cohort/collective/schedule/scan.hpp>

namespace {

using namespace cohort::collective;
using simulation::world;

/// Sizes of a reduce_scatter_v.
int size_in_reduce_scatter(int rank, buffer where, int block) { return where == buffer::out ? rank : block; }

template <class Make>
std::string reduce_scatter_problem(world& w, Make make, bool ordered) {
  w.fill(buffer::in);
  if (const std::string found = w.run(make); !found.empty()) return found;
  for (int r = 0; r < w.size(); ++r) {
    const std::string found = w.all_terms().why_not_all(w.get(r, buffer::out, 0), r, 0, w.size() - 1, ordered);
    if (!found.empty()) return "rank " + std::to_string(r) + ": " + found;
    if (make(r).work_blocks() != 0 && make(r).work_blocks() != w.size()) return "work is not cut like in";
  }
  return "";
}

bool moves_as_few_blocks_as_possible(const world& w) {
  const int least = w.size() - 1;
  for (int r = 0; r < w.size(); ++r) {
    const auto& done = w.of(r);
    if (done.blocks_sent != least || done.blocks_received != least || done.blocks_combined != least) return false;
  }
  return true;
}

template <class Make>
std::string all_to_all_problem(world& w, Make make) {
  w.fill(buffer::in);
  if (const std::string found = w.run(make); !found.empty()) return found;
  for (int r = 0; r < w.size(); ++r) {
    const auto expected = [&](int block) { return w.leaf(block, r); };
    if (const std::string found = why_not(w, r, buffer::out, expected); !found.empty()) return found;
  }
  return "";
}

/// The number of ranks 1 .. p-1 above a rank whose distance has bit k.
int blocks_that_move(int p, int k) {
  int count = 0;
  for (int j = 1; j < p; ++j) count += (j >> k) & 1;
  return count;
}

}  // namespace

TEST_CASE("circulant reduce_scatter: ceil(log2 P) rounds, P - 1 blocks, for every P") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, p, 1, size_in_reduce_scatter);
    REQUIRE(reduce_scatter_problem(w, [&](int r) { return circulant_reduce_scatter{p, r}; }, false) == "");
    CHECK(moves_as_few_blocks_as_possible(w));
    CHECK(w.rounds() == std::max(1, ceil_log2(p)));
    CHECK(w.of(0).messages_sent == ceil_log2(p));
    // Half of the input, which the first round keeps, and the result.
    CHECK(w.of(0).blocks_copied == (p > 2 ? (p + 1) / 2 + 1 : 1));
  }
}

TEST_CASE("ring reduce_scatter: P - 1 rounds of one block") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, p, 1, size_in_reduce_scatter);
    REQUIRE(reduce_scatter_problem(w, [&](int r) { return ring_reduce_scatter{p, r}; }, false) == "");
    CHECK(moves_as_few_blocks_as_possible(w));
    CHECK(w.rounds() == std::max(1, p - 1));
    CHECK(w.of(0).messages_sent == p - 1);
  }
}

TEST_CASE("pairwise reduce_scatter: rank order, P rounds of which the last is local") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, p, 1, size_in_reduce_scatter);
    REQUIRE(reduce_scatter_problem(w, [&](int r) { return pairwise_reduce_scatter{p, r}; }, true) == "");
    CHECK(moves_as_few_blocks_as_possible(w));
    CHECK(w.rounds() == p);
    CHECK(w.of(0).messages_sent == p - 1);
    CHECK(w.of(0).blocks_copied == 1);
  }
}

TEST_CASE("halving reduce_scatter: rank order, floor(log2 P) + 1 rounds and one more unless P is a power of two") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    const bool power_of_two = (p & (p - 1)) == 0;
    world w(p, p, 1, size_in_reduce_scatter);
    REQUIRE(reduce_scatter_problem(w, [&](int r) { return halving_reduce_scatter{p, r}; }, true) == "");
    CHECK(w.rounds() == floor_log2(p) + (power_of_two ? 1 : 2));
    int combined = 0;
    for (int r = 0; r < p; ++r) {
      combined += w.of(r).blocks_combined;
      // Halves of the vector, a whole one from the neighbour, one or two blocks that are for others; parts are uneven.
      REQUIRE(w.of(r).blocks_sent <= p + 2);
      REQUIRE(w.of(r).blocks_received <= 2 * p + floor_log2(p) + 1);
      if (power_of_two) REQUIRE(w.of(r).blocks_combined == p - 1);
    }
    CHECK(combined == p * (p - 1));
  }
}

TEST_CASE("circulant and ring reduce_scatter reorder") {
  world circulant(5, 5, 1);
  CHECK(reduce_scatter_problem(circulant, [](int r) { return circulant_reduce_scatter{5, r}; }, true) != "");
  world ring(5, 5, 1);
  CHECK(reduce_scatter_problem(ring, [](int r) { return ring_reduce_scatter{5, r}; }, true) != "");
}

TEST_CASE("bruck all_to_all: ceil(log2 P) messages, and each block moves once for every bit of its distance") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, p, p);
    REQUIRE(all_to_all_problem(w, [&](int r) { return bruck_all_to_all{p, r}; }) == "");
    CHECK(w.rounds() == std::max(1, ceil_log2(p)));
    int moved = 0;
    for (int k = 0; k < ceil_log2(p); ++k) moved += blocks_that_move(p, k);
    for (int r = 0; r < p; ++r) {
      REQUIRE(w.of(r).messages_sent == ceil_log2(p));
      REQUIRE(w.of(r).blocks_sent == moved);
      REQUIRE(w.of(r).blocks_copied <= 2 * moved + 1);
    }
  }
}

TEST_CASE("pairwise all_to_all: each block moves once, at most `window` at a time, and may be of any size") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int window : {1, 3, 4, 32}) {
      if (p > 129 && window != 4) continue;
      CAPTURE(p);
      CAPTURE(window);
      // The size is that of the block from one rank to another, as in all_to_all_v.
      const auto sizes = [p](int r, buffer where, int block) {
        return where == buffer::in ? r * p + block : block * p + r;
      };
      world w(p, p, p, sizes);
      REQUIRE(all_to_all_problem(w, [&](int r) { return pairwise_all_to_all{p, r, window}; }) == "");
      CHECK(w.rounds() == std::max(1, (p - 1 + window - 1) / window));
      for (int r = 0; r < p; ++r) {
        REQUIRE(w.of(r).blocks_sent == p - 1);
        REQUIRE(w.of(r).blocks_copied == 1);
        REQUIRE(w.of(r).most_messages_in_a_round <= 2 * window);
      }
    }
  }
  CHECK(pairwise_all_to_all{}.window == 4);
}

TEST_CASE("scan: operands of the ranks up to each, in rank order, in ceil(log2 P) rounds") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, 1);
    w.fill(buffer::out);
    REQUIRE(w.run([&](int r) { return recursive_doubling_scan{p, r}; }) == "");
    CHECK(w.rounds() == ceil_log2(p));
    for (int r = 0; r < p; ++r) REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, 0), 0, 0, r, true) == "");
  }
}

TEST_CASE("exclusive_scan: operands of the ranks below each, in rank order; rank 0's output is left alone") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 1, 1);
    w.fill(buffer::in);
    REQUIRE(w.run([&](int r) { return recursive_doubling_exclusive_scan{p, r}; }) == "");
    CHECK(w.rounds() == ceil_log2(p));
    CHECK(w.get(0, buffer::out, 0) == simulation::undefined);
    for (int r = 1; r < p; ++r) {
      REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, 0), 0, 0, r - 1, true) == "");
      REQUIRE(w.of(r).messages_sent <= ceil_log2(p));
    }
  }
}

TEST_CASE("chain scan: the same in P - 2 + s rounds of one segment, and one vector sent") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int segments : {1, 2, 5, 16}) {
      CAPTURE(p);
      CAPTURE(segments);
      world w(p, 0, segments);
      w.fill(buffer::out);
      REQUIRE(w.run([&](int r) { return chain_scan{p, r, segments}; }) == "");
      CHECK(w.rounds() == (p > 1 ? p - 2 + segments : 0));
      for (int r = 0; r < p; ++r) {
        REQUIRE(w.of(r).blocks_sent == (r + 1 < p ? segments : 0));
        REQUIRE(w.of(r).most_messages_in_a_round <= 2);
        for (int b = 0; b < segments; ++b) {
          REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, b), b, 0, r, true) == "");
        }
      }
    }
  }
}

TEST_CASE("chain exclusive_scan: the same in P - 2 + s rounds of one segment; rank 0's output is left alone") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int segments : {1, 2, 5, 16}) {
      CAPTURE(p);
      CAPTURE(segments);
      world w(p, segments, segments);
      w.fill(buffer::in);
      REQUIRE(w.run([&](int r) { return chain_exclusive_scan{p, r, segments}; }) == "");
      CHECK(w.rounds() == (p > 1 ? p - 2 + segments : 0));
      for (int b = 0; b < segments; ++b) CHECK(w.get(0, buffer::out, b) == simulation::undefined);
      for (int r = 1; r < p; ++r) {
        REQUIRE(w.of(r).blocks_sent == (r + 1 < p ? segments : 0));
        for (int b = 0; b < segments; ++b) {
          REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, b), b, 0, r - 1, true) == "");
        }
      }
    }
  }
}
