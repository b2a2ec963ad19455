// SPDX-License-Identifier: BSL-1.0
// adds: groups of ranks with communicators of their own. Only the members of a subgroup call; in a split everybody
// does. Inside a group, ranks are the group's.
#include <cohort/cohort.hpp>

#include <cstdio>
#include <vector>

cohort::task<int> form_groups(cohort::communicator<cohort::cpu> world) {
  const int rank = world.rank();

  // The group {0, 1} of the PyTorch tutorial: the others go on.
  if (rank < 2 && world.size() >= 2) {
    auto pair = co_await world.subgroup(cohort::ranks{0, 1});
    const int ones = co_await pair.all_reduce(1, cohort::sum{});
    std::printf("rank %d: %d ranks in '%s'\n", rank, ones, pair.name().c_str());
    if (ones != 2) co_return 1;
  }

  // Any range of integers, in the order that the group's ranks shall have: here from the last to the first.
  std::vector<int> backwards;
  for (int r = world.size(); r-- > 0;) backwards.push_back(r);
  auto reversed = co_await world.subgroup(backwards, cohort::named{"reversed"});
  if (reversed.rank() != world.size() - 1 - rank || reversed.world_rank_of(0) != world.size() - 1) co_return 1;

  // Every rank gives a color, and gets the group of those that gave the same.
  auto parity = co_await world.split(cohort::color{rank % 2});
  const std::vector<int> members = co_await parity.all_gather(rank);
  for (const int member : members) {
    if (member % 2 != rank % 2) co_return 1;
  }
  if (parity.rank() == 0) std::printf("'%s' has %d ranks\n", parity.name().c_str(), parity.size());

  // A library that is handed a communicator takes a duplicate: its calls cannot meet those of its caller.
  auto own = co_await world.duplicate(cohort::named{"library"});
  auto theirs = world.all_reduce(1, cohort::sum{});
  auto ours = own.all_reduce(rank, cohort::max{});
  if (co_await ours != world.size() - 1 || co_await theirs != world.size()) co_return 1;
  co_return 0;
}

int main() { return cohort::run(form_groups); }
