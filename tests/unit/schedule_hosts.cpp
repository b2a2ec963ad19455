// SPDX-License-Identifier: BSL-1.0
// Schedules for several hosts with several ranks each: every operand exactly once, every block where it belongs, for
// even and uneven hosts and for ranks that are dealt to them in any order; and what crosses between hosts is as little
// as theory says.
#include "schedule_simulator.hpp"

#include <doctest/doctest.h>

#include <cohort/collective/hosts.hpp>
#include <cohort/collective/schedule/multi_leader.hpp>
#include <cohort/collective/schedule/single_leader.hpp>
#include <cohort/collective/schedule/two_level.hpp>

#include <random>
#include <string>
#include <vector>

namespace {

using namespace cohort::collective;
using simulation::world;

int block_index(int, buffer, int block) { return block; }

/// Marks for `hosts` hosts of `each` ranks, one host after the other.
std::vector<int> in_a_row(int hosts, int each) {
  std::vector<int> marks;
  for (int h = 0; h < hosts; ++h) marks.insert(marks.end(), static_cast<std::size_t>(each), h);
  return marks;
}

/// Rows, turns, uneven hosts, one host only, one rank on each, and any. Without a sanitizer all of them.
std::vector<std::vector<int>> layouts_to_try() {
  std::vector<std::vector<int>> all{{7}, {0, 0, 0, 0, 0}, {0, 1}, {0, 1, 2, 3, 4}, {0, 0, 1}, {0, 1, 1, 1, 1, 1, 1}};
  for (const int hosts : {2, 3, 4, 5, 7, 8}) {
    for (const int each : {1, 2, 3, 4, 5, 8}) {
      if (harness::sanitized && hosts * each > 16) continue;
      all.push_back(in_a_row(hosts, each));
      std::vector<int> turns(all.back().size());
      for (std::size_t r = 0; r < turns.size(); ++r) turns[r] = static_cast<int>(r) % hosts;
      all.push_back(turns);
    }
  }
  std::mt19937 random(11);
  const int more = harness::sanitized ? 10 : 60;
  for (int n = 0; n < more; ++n) {
    const auto hosts = 1 + random() % 6;
    std::vector<int> any(1 + random() % 26);
    for (int& mark : any) mark = static_cast<int>(random() % hosts * 3);
    all.push_back(any);
  }
  return all;
}

std::string text_of(const std::vector<int>& marks) {
  std::string text;
  for (const int m : marks) text += std::to_string(m) + " ";
  return text;
}

/// Calls f(table) for each layout.
template <class F>
void for_each_layout(F f) {
  for (const std::vector<int>& marks : layouts_to_try()) {
    const std::string layout = text_of(marks);
    CAPTURE(layout);
    f(host_table(marks));
  }
}

std::string not_all_operands(const world& w, int r) {
  for (int b = 0; b < static_cast<int>(w.all(r, buffer::out).size()); ++b) {
    const std::string found = w.all_terms().why_not_all(w.get(r, buffer::out, b), b, 0, w.size() - 1, false);
    if (!found.empty()) return "rank " + std::to_string(r) + ", block " + std::to_string(b) + ": " + found;
  }
  return "";
}

template <class Make>
void check_all_reduce(const host_table& on, int blocks, Make make) {
  world w(on.ranks(), 0, blocks, block_index);
  w.fill(buffer::out);
  REQUIRE(w.run(make) == "");
  for (int r = 0; r < on.ranks(); ++r) {
    REQUIRE(not_all_operands(w, r) == "");
    REQUIRE(why_not(w, r, buffer::out, [&](int b) { return w.get(0, buffer::out, b); }) == "");
  }
}

template <class Make>
void check_reduce(const host_table& on, int root, int blocks, Make make) {
  world w(on.ranks(), 0, blocks, block_index);
  w.fill(buffer::out);
  REQUIRE(w.run(make) == "");
  REQUIRE(not_all_operands(w, root) == "");
}

template <class Make>
void check_broadcast(const host_table& on, int root, int blocks, Make make) {
  world w(on.ranks(), 0, blocks, block_index);
  w.fill(root, buffer::out);
  REQUIRE(w.run(make) == "");
  for (int r = 0; r < on.ranks(); ++r) {
    REQUIRE(why_not(w, r, buffer::out, [&](int b) { return w.leaf(root, b); }) == "");
  }
}

/// Counts the blocks that leave each host in what the schedule of every rank says.
class crossing {
 public:
  explicit crossing(const host_table& on) : on_(&on), out_(static_cast<std::size_t>(on.hosts())) {}
  void rank(int r) { rank_ = r; }
  void send(int peer, region r) {
    if (!on_->near(rank_, peer)) out_[static_cast<std::size_t>(on_->host_of(rank_))] += r.count;
  }
  void receive(int, region) {}
  void receive_reduce(int, region, side) {}
  void copy(region, region) {}
  void reduce(region, region, side) {}
  [[nodiscard]] int from(int host) const { return out_[static_cast<std::size_t>(host)]; }

 private:
  const host_table* on_;
  std::vector<int> out_;
  int rank_ = 0;
};

template <class Make>
crossing crossings(const host_table& on, Make make) {
  crossing count(on);
  for (int r = 0; r < on.ranks(); ++r) {
    count.rank(r);
    const auto steps = make(r);
    for (int k = 0; k < steps.rounds(); ++k) steps.round(k, count);
  }
  return count;
}

}  // namespace

TEST_CASE("hosts are numbered by their lowest ranks, and places count the ranks of a host") {
  const std::vector<int> marks{9, 4, 9, 9, 1, 4};
  const host_table on(marks);
  CHECK(on.ranks() == 6);
  CHECK(on.hosts() == 3);
  CHECK(on.most() == 3);
  CHECK(on.has_two_levels());
  CHECK(on.host_of(4) == 2);
  CHECK(on.place_of(3) == 2);
  CHECK(on.rank_at(1, 1) == 5);
  CHECK(on.near(0, 3));
  CHECK_FALSE(on.near(0, 1));
  CHECK_FALSE(host_table(std::vector<int>{3, 3}).has_two_levels());
  CHECK_FALSE(host_table(std::vector<int>{0, 1, 2}).has_two_levels());
}

TEST_CASE("single leader all_reduce: every operand once, the same grouping on every rank") {
  for_each_layout([](const host_table& on) {
    const auto make = [&](int r) { return single_leader_all_reduce{{&on, r}}; };
    check_all_reduce(on, 1, make);
    // Each host's one vector crosses once a round.
    const crossing count = crossings(on, make);
    for (int h = 0; h < on.hosts(); ++h) REQUIRE(count.from(h) <= ceil_log2(on.hosts()) + 1);
  });
}

TEST_CASE("multi leader all_reduce: every operand once, 2 (H - 1) / H of a vector crosses from each host") {
  for_each_layout([](const host_table& on) {
    const auto make = [&](int r) { return multi_leader_all_reduce{{&on, r}}; };
    check_all_reduce(on, make(0).blocks(), make);
    const crossing count = crossings(on, make);
    for (int h = 0; h < on.hosts(); ++h) REQUIRE(count.from(h) == 2 * (on.hosts() - 1) * on.most());
  });
}

TEST_CASE("single and multi leader reduce and broadcast, for every root") {
  for_each_layout([](const host_table& on) {
    for (int root = 0; root < on.ranks(); ++root) {
      CAPTURE(root);
      check_reduce(on, root, 1, [&](int r) { return single_leader_reduce{{&on, r, root}}; });
      check_broadcast(on, root, 1, [&](int r) { return single_leader_broadcast{{&on, r, root}}; });
      const int blocks = multi_leader{&on, 0}.blocks();
      check_reduce(on, root, blocks, [&](int r) { return multi_leader_reduce{{&on, r}, root}; });
      check_broadcast(on, root, blocks, [&](int r) { return multi_leader_broadcast{{&on, r}, root}; });
    }
  });
}

TEST_CASE("multi leader broadcast: a vector crosses to each host once") {
  for (const int each : {2, 4}) {
    const host_table two(in_a_row(2, each));
    const auto make = [&](int r) { return multi_leader_broadcast{{&two, r}, 1}; };
    const crossing count = crossings(two, make);
    CHECK(count.from(0) == make(0).blocks());
    CHECK(count.from(1) == 0);
  }
}

TEST_CASE("single leader barrier: every rank hears of every other") {
  for_each_layout([](const host_table& on) {
    world w(on.ranks(), 0, 1);
    REQUIRE(w.run([&](int r) { return single_leader_barrier{{&on, r}}; }) == "");
    for (int r = 0; r < on.ranks(); ++r) {
      for (int other = 0; other < on.ranks(); ++other) REQUIRE(w.has_heard(r, other));
    }
  });
}

TEST_CASE("all_gather of two levels, and by a single leader") {
  const auto check = [](const host_table& on, auto make) {
    world w(on.ranks(), 0, on.ranks(), block_index);
    for (int r = 0; r < on.ranks(); ++r) w.set(r, buffer::out, r, w.leaf(r, r));
    REQUIRE(w.run(make) == "");
    for (int r = 0; r < on.ranks(); ++r) {
      REQUIRE(why_not(w, r, buffer::out, [&](int b) { return w.leaf(b, b); }) == "");
    }
    // Each block of a host crosses once to every other host.
    const crossing count = crossings(on, make);
    for (int h = 0; h < on.hosts(); ++h) REQUIRE(count.from(h) == on.count(h) * (on.hosts() - 1));
  };
  for_each_layout([&](const host_table& on) {
    check(on, [&](int r) { return two_level_all_gather{{&on, r}}; });
    check(on, [&](int r) { return single_leader_all_gather{{&on, r}}; });
  });
}

TEST_CASE("reduce_scatter of two levels: one partial result of a block crosses from each other host") {
  for_each_layout([](const host_table& on) {
    const auto make = [&](int r) { return two_level_reduce_scatter{{&on, r}}; };
    const auto sizes = [](int r, buffer where, int block) { return where == buffer::out ? r : block; };
    world w(on.ranks(), on.ranks(), 1, sizes);
    w.fill(buffer::in);
    REQUIRE(w.run(make) == "");
    for (int r = 0; r < on.ranks(); ++r) {
      REQUIRE(w.all_terms().why_not_all(w.get(r, buffer::out, 0), r, 0, on.ranks() - 1, false) == "");
    }
    const crossing count = crossings(on, make);
    for (int h = 0; h < on.hosts(); ++h) REQUIRE(count.from(h) == on.ranks() - on.count(h));
  });
}
