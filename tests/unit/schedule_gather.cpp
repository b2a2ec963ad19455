// SPDX-License-Identifier: BSL-1.0
// Schedules of all_gather, gather and scatter, for many sizes and every root: every block ends where it belongs, in as
// many rounds and with as many blocks as theory says.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/schedule/all_gather.hpp>
#include <cohort/collective/schedule/gather.hpp>
#include <cohort/collective/schedule/scatter.hpp>

namespace {

using namespace cohort::collective;
using simulation::world;

int block_index(int, buffer, int block) { return block; }

/// Sizes of a gather_v or a scatter_v: the one block of a rank is as large as its place among the root's.
int owner(int rank, buffer, int block, buffer many, buffer where) { return where == many ? block : rank; }

template <class Make>
std::string all_gather_problem(world& w, Make make) {
  for (int r = 0; r < w.size(); ++r) w.set(r, buffer::out, r, w.leaf(r, r));
  if (const std::string found = w.run(make); !found.empty()) return found;
  for (int r = 0; r < w.size(); ++r) {
    const auto expected = [&](int block) { return w.leaf(block, block); };
    if (const std::string found = why_not(w, r, buffer::out, expected); !found.empty()) return found;
    if (w.of(r).blocks_sent != w.size() - 1) return "sends another number of blocks than P - 1";
    if (w.of(r).blocks_received != w.size() - 1) return "receives another number of blocks than P - 1";
  }
  return "";
}

/// The `out` of ranks other than the root does not exist in a gather: it is left undefined and must stay so.
template <class Make>
std::string gather_problem(world& w, int root, Make make) {
  w.fill(buffer::in);
  if (const std::string found = w.run(make); !found.empty()) return found;
  for (int r = 0; r < w.size(); ++r) {
    const auto expected = [&](int block) { return r == root ? w.leaf(block, 0) : simulation::undefined; };
    if (const std::string found = why_not(w, r, buffer::out, expected); !found.empty()) return found;
  }
  if (w.of(root).blocks_received != w.size() - 1) return "the root receives another number of blocks than P - 1";
  return "";
}

template <class Make>
std::string scatter_problem(world& w, int root, Make make) {
  w.fill(root, buffer::in);
  if (const std::string found = w.run(make); !found.empty()) return found;
  for (int r = 0; r < w.size(); ++r) {
    if (w.get(r, buffer::out, 0) != w.leaf(root, r)) return "rank " + std::to_string(r) + " has another block";
  }
  if (w.of(root).blocks_sent != w.size() - 1) return "the root sends another number of blocks than P - 1";
  return "";
}

}  // namespace

TEST_CASE("circulant all_gather: ceil(log2 P) rounds, P - 1 blocks, for every P") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, p, block_index);
    REQUIRE(all_gather_problem(w, [&](int r) { return circulant_all_gather{p, r}; }) == "");
    CHECK(w.rounds() == ceil_log2(p));
    CHECK(w.of(0).messages_sent == ceil_log2(p));
  }
}

TEST_CASE("ring all_gather: P - 1 rounds of one block") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, p, block_index);
    REQUIRE(all_gather_problem(w, [&](int r) { return ring_all_gather{p, r}; }) == "");
    CHECK(w.rounds() == p - 1);
    CHECK(w.of(0).messages_sent == p - 1);
  }
}

TEST_CASE("linear all_gather: one round") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, p, block_index);
    REQUIRE(all_gather_problem(w, [&](int r) { return linear_all_gather{p, r}; }) == "");
    CHECK(w.rounds() == (p > 1 ? 1 : 0));
    CHECK(w.of(0).messages_sent == p - 1);
  }
}

TEST_CASE("binomial gather: ceil(log2 P) rounds, one message from each rank, no work at the root and the leaves") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 1, p);
      const auto make = [&](int r) { return binomial_gather{p, r, root}; };
      REQUIRE(gather_problem(w, root, make) == "");
      REQUIRE(w.rounds() == (p > 1 ? ceil_log2(p) : 1));
      REQUIRE(make(root).work_blocks() == 0);
      for (int r = 0; r < p; ++r) {
        REQUIRE(w.of(r).messages_sent == (r == root ? 0 : 1));
        REQUIRE(make(r).work_blocks() <= (p + 1) / 2);
        REQUIRE((make(r).work_blocks() == 0 || w.of(r).blocks_sent == make(r).work_blocks()));
      }
    }
  }
}

TEST_CASE("linear gather: one round, and blocks of any sizes") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 1, p, [](int r, buffer where, int block) { return owner(r, where, block, buffer::out, where); });
      REQUIRE(gather_problem(w, root, [&](int r) { return linear_gather{p, r, root}; }) == "");
      REQUIRE(w.rounds() == 1);
      REQUIRE(w.of(root).blocks_copied == 1);
    }
  }
}

TEST_CASE("binomial scatter: ceil(log2 P) rounds, one message to each rank, no work at the root and the leaves") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, p, 1);
      const auto make = [&](int r) { return binomial_scatter{p, r, root}; };
      REQUIRE(scatter_problem(w, root, make) == "");
      REQUIRE(w.rounds() == (p > 1 ? ceil_log2(p) : 1));
      REQUIRE(make(root).work_blocks() == 0);
      for (int r = 0; r < p; ++r) {
        if (r == root) continue;
        REQUIRE(make(r).work_blocks() <= (p + 1) / 2);
        REQUIRE(w.of(r).blocks_received == std::max(1, make(r).work_blocks()));
        REQUIRE(w.of(r).blocks_copied == (make(r).work_blocks() > 0 ? 1 : 0));
      }
    }
  }
}

TEST_CASE("linear scatter: one round, and blocks of any sizes") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, p, 1, [](int r, buffer where, int block) { return owner(r, where, block, buffer::in, where); });
      REQUIRE(scatter_problem(w, root, [&](int r) { return linear_scatter{p, r, root}; }) == "");
      REQUIRE(w.rounds() == 1);
      REQUIRE(w.of(root).messages_sent == p - 1);
    }
  }
}
