// SPDX-License-Identifier: BSL-1.0
// Schedules by way of one rank, for many sizes: results, two rounds, and two messages with every other rank: the fewest by which
// everybody can know of everybody.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/schedule/all_gather.hpp>
#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/schedule/all_to_all.hpp>
#include <cohort/collective/schedule/barrier.hpp>
#include <cohort/collective/schedule/reduce_scatter.hpp>

#include <string>

namespace {

using namespace cohort::collective;
using simulation::world;

int block_index(int, buffer, int block) { return block; }
int size_in_reduce_scatter(int rank, buffer where, int block) { return where == buffer::out ? rank : block; }

/// Whether the centre has sent one message to each of the others, and they one each.
bool has_sent_as_few_as_possible(const world& w, int centre) {
  if (w.size() > 1 && w.rounds() != 2) return false;
  for (int r = 0; r < w.size(); ++r) {
    if (w.of(r).messages_sent != (r == centre ? w.size() - 1 : 1)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("central barrier: every rank hears of every other in two rounds") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    for (const int centre : simulation::roots_to_try(p)) {
      CAPTURE(centre);
      world w(p, 0, 1);
      REQUIRE(w.run([&](int r) { return central_barrier{p, r, centre}; }) == "");
      CHECK(has_sent_as_few_as_possible(w, centre));
      int heard = 0;
      for (int r = 0; r < p; ++r) {
        for (int other = 0; other < p; ++other) heard += w.has_heard(r, other) ? 1 : 0;
      }
      CHECK(heard == p * p);
    }
  }
}

TEST_CASE("central all_gather: blocks of any size") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, p, block_index);
    for (int r = 0; r < p; ++r) w.set(r, buffer::out, r, w.leaf(r, r));
    REQUIRE(w.run([&](int r) { return central_all_gather{p, r}; }) == "");
    CHECK(has_sent_as_few_as_possible(w, p - 1));
    for (int r = 0; r < p; ++r) {
      REQUIRE(why_not(w, r, buffer::out, [&](int block) { return w.leaf(block, block); }) == "");
    }
  }
}

TEST_CASE("central all_reduce: from the last rank downwards, the same on every rank") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, 1);
    w.fill(buffer::out);
    REQUIRE(w.run([&](int r) { return central_all_reduce{p, r}; }) == "");
    CHECK(has_sent_as_few_as_possible(w, p - 1));
    if (p == 4) CHECK(w.all_terms().text(w.get(3, buffer::out, 0)) == "(0 (1 (2 3)))");
    for (int r = 0; r < p; ++r) {
      REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, 0), 0, 0, p - 1, true) == "");
      REQUIRE(w.get(r, buffer::out, 0) == w.get(0, buffer::out, 0));
    }
  }
}

TEST_CASE("central reduce_scatter: from the last rank downwards, blocks of any size, scratch at the last rank alone") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, p, 1, size_in_reduce_scatter);
    w.fill(buffer::in);
    REQUIRE(w.run([&](int r) { return central_reduce_scatter{p, r}; }) == "");
    CHECK(has_sent_as_few_as_possible(w, p - 1));
    for (int r = 0; r < p; ++r) {
      REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, 0), r, 0, p - 1, true) == "");
      REQUIRE(central_reduce_scatter{p, r}.work_blocks() == (p > 1 && r == p - 1 ? p : 0));
    }
  }
}

TEST_CASE("central all_to_all: every block to its place, scratch at the last rank alone") {
  for (const int p : simulation::sizes_to_try()) {
    if (p > 129) continue;
    CAPTURE(p);
    world w(p, p, p);
    w.fill(buffer::in);
    REQUIRE(w.run([&](int r) { return central_all_to_all{p, r}; }) == "");
    CHECK(has_sent_as_few_as_possible(w, p - 1));
    for (int r = 0; r < p; ++r) {
      REQUIRE(why_not(w, r, buffer::out, [&](int block) { return w.leaf(block, r); }) == "");
      REQUIRE(central_all_to_all{p, r}.work_blocks() == (p > 1 && r == p - 1 ? 2 * p * p : 0));
    }
  }
}
