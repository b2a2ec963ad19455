// SPDX-License-Identifier: BSL-1.0
// Schedules of barrier and broadcast, for many sizes and every root: everybody gets the root's vector, in as many
// rounds and with as many blocks as theory says.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/schedule/barrier.hpp>
#include <cohort/collective/schedule/broadcast.hpp>
#include <cohort/collective/schedule/pipeline.hpp>

namespace {

using namespace cohort::collective;
using simulation::world;

int block_index(int, buffer, int block) { return block; }

/// "" if make(rank) is a broadcast from `root` in which every other rank receives each block as often as `times` says.
template <class Make>
std::string problem(world& w, int root, Make make, int blocks) {
  w.fill(root, buffer::out);
  if (const std::string found = w.run(make); !found.empty()) return found;
  for (int r = 0; r < w.size(); ++r) {
    const auto expected = [&](int block) { return w.leaf(root, block); };
    if (const std::string found = why_not(w, r, buffer::out, expected); !found.empty()) return found;
    if (w.of(r).blocks_combined != 0 || make(r).work_blocks() != 0) return "does more than to move blocks";
    if (r != root && w.of(r).blocks_received < blocks) return "received too little";
  }
  return "";
}

}  // namespace

TEST_CASE("dissemination barrier: every rank hears of every other in ceil(log2 P) rounds") {
  for (const int p : simulation::sizes_to_try()) {
    CAPTURE(p);
    world w(p, 0, 1);
    REQUIRE(w.run([&](int r) { return dissemination_barrier{p, r}; }) == "");
    CHECK(w.rounds() == ceil_log2(p));
    int heard = 0;
    for (int r = 0; r < p; ++r) {
      for (int other = 0; other < p; ++other) heard += w.has_heard(r, other) ? 1 : 0;
    }
    CHECK(heard == p * p);
    CHECK(w.of(0).messages_sent == ceil_log2(p));
    CHECK(w.of(0).blocks_sent == 0);
  }
}

TEST_CASE("binomial broadcast") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 0, 1);
      REQUIRE(problem(w, root, [&](int r) { return binomial_broadcast{p, r, root}; }, 1) == "");
      REQUIRE(w.rounds() == ceil_log2(p));
      int received = 0;
      for (int r = 0; r < p; ++r) received += w.of(r).blocks_received;
      REQUIRE(received == p - 1);
      REQUIRE(w.of(root).messages_sent == ceil_log2(p));
    }
  }
}

TEST_CASE("scatter and all_gather broadcast") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int root : simulation::roots_to_try(p)) {
      CAPTURE(p);
      CAPTURE(root);
      world w(p, 0, p, block_index);
      const auto make = [&](int r) { return scatter_all_gather_broadcast(p, r, root); };
      REQUIRE(problem(w, root, make, p - 1) == "");
      REQUIRE(w.rounds() == 2 * ceil_log2(p));
      REQUIRE(w.of(root).blocks_sent == 2 * (p - 1));
      for (int r = 0; r < p; ++r) REQUIRE(w.of(r).blocks_received <= 2 * (p - 1));
    }
  }
}

TEST_CASE("chain broadcast: one segment in a round, P - 2 + s rounds") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int segments : {1, 2, 7}) {
      for (const int root : {0, p / 2, p - 1}) {
        CAPTURE(p);
        CAPTURE(root);
        CAPTURE(segments);
        world w(p, 0, segments, block_index);
        const auto make = [&](int r) { return chain_broadcast{p, r, root, segments}; };
        REQUIRE(problem(w, root, make, segments) == "");
        REQUIRE(w.rounds() == (p == 1 ? 0 : p - 2 + segments));
        for (int r = 0; r < p; ++r) {
          REQUIRE(w.of(r).blocks_received == (r == root ? 0 : segments));
          REQUIRE(w.of(r).most_messages_in_a_round <= 2);
        }
      }
    }
  }
}

TEST_CASE("circulant broadcast: every segment arrives once, in s - 1 + ceil(log2 P) rounds") {
  for (const int p : simulation::sizes_to_try()) {
    for (const int segments : {1, 2, 3, 5, 8, 13, 32}) {
      for (const int root : {0, p / 3, p - 1}) {
        CAPTURE(p);
        CAPTURE(root);
        CAPTURE(segments);
        world w(p, 0, segments, block_index);
        const auto make = [&](int r) { return circulant_broadcast(p, r, root, segments); };
        REQUIRE(problem(w, root, make, segments) == "");
        REQUIRE(w.rounds() == (p == 1 ? 0 : segments - 1 + ceil_log2(p)));
        for (int r = 0; r < p; ++r) {
          REQUIRE(w.of(r).blocks_received == (r == root ? 0 : segments));
          REQUIRE(w.of(r).most_messages_in_a_round <= 2);
        }
      }
    }
  }
}

TEST_CASE("circulant broadcast: every size up to 600 and beyond, from rank 0") {
  for (int p = 1; p <= 600; p = p < 130 ? p + 1 : p + 23) {
    CAPTURE(p);
    world w(p, 0, 12, block_index);
    REQUIRE(problem(w, 0, [&](int r) { return circulant_broadcast(p, r, 0, 12); }, 12) == "");
  }
}
