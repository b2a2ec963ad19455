// SPDX-License-Identifier: BSL-1.0
// Objects, groups and meshes between processes over TCP.
#include "../support/objects.hpp"
#include "../support/all_end_well.hpp"
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <numeric>

using namespace cohort;

namespace {

task<int> exchange_objects(communicator<cpu> world) {
  const auto problems = co_await harness::objects(world);
  for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
  co_return problems.empty() ? 0 : 1;
}

task<int> make_groups(communicator<cpu> world) {
  const int r = world.rank();
  int bad = 0;
  // Members only, everybody, of a group, by color, and on a mesh.
  if (r == 1 || r == 3) {
    auto pair = co_await world.subgroup(ranks{3, 1});
    if (co_await pair.broadcast(r, root{0}) != 3) bad |= 1;
  }
  auto low = co_await world.subgroup(ranks{0, 1, 2});
  if (low.is_member()) {
    auto inner = co_await low.subgroup(ranks{2, 0});
    if (inner.is_member() && co_await inner.all_reduce(r, sum{}) != 2) bad |= 2;
  }
  auto half = co_await world.split(color{r % 2}, key{-r});
  const std::vector<int> met = co_await half.all_gather(r);
  if (met.front() < met.back()) bad |= 4;
  auto m = co_await make_mesh(world, axis{"rows", 2}, axis{"columns", 2});
  std::vector<int> v(1000, r);
  co_await m.along("columns").all_reduce(v, sum{});
  if (v[0] != (r / 2) * 4 + 1) bad |= 8;
  // Hundreds alive.
  std::vector<communicator<cpu>> many;
  for (int i = 0; i < 200; ++i) many.push_back(co_await world.subgroup(ranks{i % 4, (i + 1) % 4}));
  for (const auto& g : many) {
    if (g.is_member() && co_await g.all_reduce(1, sum{}) != 2) bad |= 16;
  }
  many.clear();
  co_await world.barrier();
  co_return bad;
}

task<int> disagree_about_members(communicator<cpu> world) {
  auto list = world.rank() == 2 ? ranks{2, 1, 0} : ranks{0, 1, 2};
  std::string said;
  try {
    auto g = co_await world.subgroup(list, named{"triple"});
    co_await g.barrier();
  } catch (const error& e) {
    said = e.what();
  }
  std::printf("%s\n", said.c_str());
  const bool named_both = said.find("{2, 1, 0}") != std::string::npos && said.find("{0, 1, 2}") != std::string::npos;
  // The world goes on.
  const int total = co_await world.all_reduce(1, sum{});
  co_return named_both&& total == 3 ? 0 : 1;
}

task<int> destroy_early(communicator<cpu> world) {
  std::optional<communicator<cpu>> pair = co_await world.subgroup(ranks{0, 1}, named{"pair"});
  int bad = 0;
  if (world.rank() == 1) {
    pair.reset();
  } else {
    std::string said;
    try {
      co_await pair->all_reduce(1, sum{});
    } catch (const error& e) {
      said = e.what();
    }
    std::printf("%s\n", said.c_str());
    if (said.find("world rank 1") == std::string::npos || said.find("destroyed this communicator") == std::string::npos)
      bad = 1;
  }
  if (co_await world.all_reduce(1, sum{}) != 2) bad |= 2;
  co_return bad;
}

void expect_all_end_well(int n, task<int> (*rank_main)(communicator<cpu>)) {
  harness::rank_options options;
  options.environment = {{"COHORT_PEER_TIMEOUT", "2"}};  // a tenth of it is how often ranks tell what they did
  harness::expect_all_end_well(n, rank_main, options);
}

}  // namespace

TEST_CASE("objects: processes over TCP") {
  for (const int n : {1, 2, 4}) expect_all_end_well(n, exchange_objects);
}

TEST_CASE("groups: processes over TCP") { expect_all_end_well(4, make_groups); }

TEST_CASE("groups over TCP: members that list each other in another order are told both lists") {
  expect_all_end_well(3, disagree_about_members);
}

TEST_CASE("groups over TCP: who destroys one while others are in a call on it is named") {
  expect_all_end_well(2, destroy_early);
}
