// SPDX-License-Identifier: BSL-1.0
// Schedules of reduce and all_reduce, for many sizes and every root: every operand is combined exactly once, in rank
// order where that is promised, and by all_reduce in one grouping on all ranks.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/schedule/pipeline.hpp>
#include <cohort/collective/schedule/reduce.hpp>
#include <cohort/collective/schedule/reduce_scatter.hpp>

namespace {

using namespace cohort::collective;
using simulation::world;

int block_index(int, buffer, int block) { return block; }

/// "" if every block of rank r's `out` is made of all operands.
std::string not_the_result(const world& w, int r, bool ordered) {
  for (int b = 0; b < static_cast<int>(w.all(r, buffer::out).size()); ++b) {
    const std::string found = w.all_terms().why_not_all(w.get(r, buffer::out, b), b, 0, w.size() - 1, ordered);
    if (!found.empty()) return "rank " + std::to_string(r) + ", block " + std::to_string(b) + ": " + found;
  }
  return "";
}

template <class Make>
std::string reduce_problem(world& w, int root, Make make, bool ordered) {
  w.fill(buffer::out);
  if (const std::string found = w.run(make); !found.empty()) return found;
  return not_the_result(w, root, ordered);
}

template <class Make>
std::string all_reduce_problem(world& w, Make make, bool ordered) {
  if (const std::string found = reduce_problem(w, 0, make, ordered); !found.empty()) return found;
  for (int r = 1; r < w.size(); ++r) {
    const auto as_rank_0 = [&](int block) { return w.get(0, buffer::out, block); };
    if (const std::string found = why_not(w, r, buffer::out, as_rank_0); !found.empty()) return "grouping of " + found;
  }
  return "";
}

int total_combined(const world& w) {
  int sum = 0;
  for (int r = 0; r < w.size(); ++r) sum += w.of(r).blocks_combined;
  return sum;
}

int total_messages(const world& w) {
  int sum = 0;
  for (int r = 0; r < w.size(); ++r) sum += w.of(r).messages_sent;
  return sum;
}

bool power_of_two(int p) { return (p & (p - 1)) == 0; }

}  // namespace

TEST_CASE("binomial reduce: rank order, ceil(log2 P) rounds, one message from each rank") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 0, 1);
      REQUIRE(reduce_problem(w, root, [&](int r) { return binomial_reduce{p, r, root}; }, true) == "");
      REQUIRE(w.rounds() == ceil_log2(p));
      REQUIRE(total_combined(w) == p - 1);
      for (int r = 0; r < p; ++r) REQUIRE(w.of(r).blocks_sent == (r == root ? 0 : 1));
    }
  }
}

TEST_CASE("algorithms that keep rank order combine in one grouping, whatever the algorithm, the block or the root") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world doubling(p, 0, 1);
    REQUIRE(all_reduce_problem(doubling, [&](int r) { return recursive_doubling_all_reduce{p, r}; }, true) == "");
    const std::string grouping = doubling.all_terms().text(doubling.get(0, buffer::out, 0));
    if (p == 5) CHECK(grouping == "(((0 1) 2) (3 4))");
    const int core = 1 << floor_log2(p);
    const auto same = [&](const world& w, int rank) {
      for (int b = 0; b < static_cast<int>(w.all(rank, buffer::out).size()); ++b) {
        if (w.all_terms().text(w.get(rank, buffer::out, b)) != grouping) return false;
      }
      return true;
    };
    world halving(p, 0, core);
    REQUIRE(all_reduce_problem(halving, [&](int r) { return halving_doubling_all_reduce(p, r); }, true) == "");
    CHECK(same(halving, 0));
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(root);
      world tree(p, 0, 1);
      REQUIRE(reduce_problem(tree, root, [&](int r) { return binomial_reduce{p, r, root}; }, true) == "");
      CHECK(same(tree, root));
      world gathered(p, 0, core);
      REQUIRE(reduce_problem(gathered, root, [&](int r) { return halving_gather_reduce(p, r, root); }, true) == "");
      CHECK(same(gathered, root));
    }
    world scattered(p, p, 1);
    scattered.fill(buffer::in);
    REQUIRE(scattered.run([&](int r) { return halving_reduce_scatter{p, r}; }) == "");
    for (int r = 0; r < p; ++r) REQUIRE(same(scattered, r));
  }
}

TEST_CASE("reduce_scatter and gather reduce") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 0, p, block_index);
      const auto make = [&](int r) { return reduce_scatter_gather_reduce(p, r, root); };
      REQUIRE(reduce_problem(w, root, make, false) == "");
      REQUIRE(w.rounds() == 2 * ceil_log2(p));
      REQUIRE(total_combined(w) == p * (p - 1));
      REQUIRE(total_messages(w) == p * ceil_log2(p) + p - 1);
      REQUIRE(w.of(root).blocks_received == 2 * (p - 1));
      REQUIRE(w.of(root).blocks_sent == p - 1);
    }
  }
}

TEST_CASE("halving and gather reduce: rank order") {
  for (const int p : simulation::sizes_to_try()) {
    const int core = 1 << floor_log2(p);
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 0, core, block_index);
      const auto make = [&](int r) { return halving_gather_reduce(p, r, root); };
      REQUIRE(reduce_problem(w, root, make, true) == "");
      REQUIRE(w.rounds() == 2 * floor_log2(p) + (power_of_two(p) ? 0 : 1));
      REQUIRE(total_combined(w) == (p - core) * core + core * (core - 1));
      REQUIRE(total_messages(w) == (p - core) + core * floor_log2(p) + core - 1);
      REQUIRE(w.of(root).blocks_received <= core + 2 * (core - 1));
    }
  }
}

TEST_CASE("circulant reduce: every rank passes each segment on once, in s - 1 + ceil(log2 P) rounds") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int segments : {1, 2, 5, 16}) {
      for (const int root : {0, p / 3, p - 1}) {
        CAPTURE(p);
        CAPTURE(root);
        CAPTURE(segments);
        world w(p, 0, segments, block_index);
        const auto make = [&](int r) { return circulant_reduce(p, r, root, segments); };
        REQUIRE(reduce_problem(w, root, make, false) == "");
        REQUIRE(w.rounds() == (p == 1 ? 0 : segments - 1 + ceil_log2(p)));
        REQUIRE(total_combined(w) == (p - 1) * segments);
        for (int r = 0; r < p; ++r) REQUIRE(w.of(r).blocks_sent == (r == root ? 0 : segments));
      }
    }
  }
}

TEST_CASE("recursive doubling all_reduce: rank order, floor(log2 P) rounds and two more unless P is a power of two") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, 1);
    REQUIRE(all_reduce_problem(w, [&](int r) { return recursive_doubling_all_reduce{p, r}; }, true) == "");
    CHECK(w.rounds() == floor_log2(p) + (power_of_two(p) ? 0 : 2));
    for (int r = 0; r < p; ++r) REQUIRE(w.of(r).blocks_sent <= floor_log2(p) + 1);
    CHECK(w.of(p - 1).blocks_sent == floor_log2(p));
  }
}

TEST_CASE("halving and doubling all_reduce: rank order, less than two vectors for a power of two") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    const int core = 1 << floor_log2(p);
    world w(p, 0, core, block_index);
    REQUIRE(all_reduce_problem(w, [&](int r) { return halving_doubling_all_reduce(p, r); }, true) == "");
    CHECK(w.rounds() == 2 * floor_log2(p) + (power_of_two(p) ? 0 : 2));
    CHECK(w.of(p - 1).blocks_sent == 2 * (core - 1));
    CHECK(w.of(p - 1).blocks_received == 2 * (core - 1));
    for (int r = 0; r < p; ++r) REQUIRE(w.of(r).blocks_sent <= 2 * (core - 1) + (power_of_two(p) ? 0 : core));
  }
}

TEST_CASE("circulant all_reduce: 2 ceil(log2 P) rounds, 2 (P - 1) blocks, for every P") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, p, block_index);
    REQUIRE(all_reduce_problem(w, [&](int r) { return circulant_all_reduce(p, r); }, false) == "");
    CHECK(w.rounds() == 2 * ceil_log2(p));
    for (int r = 0; r < p; ++r) {
      REQUIRE(w.of(r).blocks_sent == 2 * (p - 1));
      REQUIRE(w.of(r).blocks_received == 2 * (p - 1));
      REQUIRE(w.of(r).blocks_combined == p - 1);
      REQUIRE(w.of(r).most_messages_in_a_round <= 2);
    }
  }
}

TEST_CASE("ring all_reduce: 2 (P - 1) rounds of one block") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, p, block_index);
    REQUIRE(all_reduce_problem(w, [&](int r) { return ring_all_reduce(p, r); }, false) == "");
    CHECK(w.rounds() == 2 * (p - 1));
    for (int r = 0; r < p; ++r) {
      REQUIRE(w.of(r).blocks_sent == 2 * (p - 1));
      REQUIRE(w.of(r).blocks_combined == p - 1);
    }
  }
}

TEST_CASE("algorithms that say that they reorder do so: they may not be chosen for a functor that does not commute") {
  world circulant(5, 0, 5);
  CHECK(all_reduce_problem(circulant, [](int r) { return circulant_all_reduce(5, r); }, true) != "");
  world ring(5, 0, 5);
  CHECK(all_reduce_problem(ring, [](int r) { return ring_all_reduce(5, r); }, true) != "");
  world gathered(5, 0, 5);
  CHECK(reduce_problem(gathered, 0, [](int r) { return reduce_scatter_gather_reduce(5, r, 0); }, true) != "");
}
