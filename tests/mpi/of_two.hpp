// SPDX-License-Identifier: BSL-1.0
// Collectives of two ranks, which without the check are messages without headers: a part of semantics.cpp.
#pragma once

#include "parts.hpp"

#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace mpi_test {

/// Many of them begun before any is awaited, of lengths that MPI sends at once and of such as it asks about: each is told from
/// the others by their order alone.
inline task<> many_of_two(world_type world) {
  auto making = world.subgroup(cohort::ranks{0, 1});
  const world_type two = co_await making;
  if (!two.is_member()) co_return;
  const int r = two.rank();
  const auto value = [](int kind, std::size_t i, int rank) { return static_cast<int>(1000 * i) + 10 * kind + rank; };
  // Does not commute: what comes from rank 1 counts.
  const auto last_of_two = [](int, int b) noexcept { return b; };
  struct call {
    std::vector<int> broadcast, gathered, scattered, gather, all, to_all, exchanged;
    std::vector<int> sum, in_place, reduced, scanned, before, half;
  };
  const std::size_t lengths[] = {1, 3, 1000, 5000, 15000, 20000, 30000, 70000, 300000, 0, 800000, 2};
  constexpr int rounds = 2;
  std::vector<call> calls(std::size(lengths) * rounds);
  std::vector<cohort::operation<>> ops;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::size_t n = lengths[i % std::size(lengths)];
    const cohort::root root{static_cast<int>(i / 3 % 2)};
    call& c = calls[i];
    c.broadcast.assign(n, r == root.rank ? value(1, i, r) : -1);
    ops.push_back(two.broadcast(c.broadcast, root));
    c.gather.assign(n, value(2, i, r));
    c.gathered.assign(2 * n, -1);
    ops.push_back(two.gather(c.gather, c.gathered, root));
    if (i % 4 == 0) ops.push_back(two.barrier());
    c.scattered.assign(n, -1);
    c.exchanged.assign(2 * n, value(3, i, r));
    ops.push_back(two.scatter(c.exchanged, c.scattered, root));
    c.all.assign(2 * n, value(4, i, r));
    ops.push_back(two.all_gather(c.gather, c.all));
    c.to_all.assign(2 * n, -1);
    ops.push_back(two.all_to_all(c.exchanged, c.to_all));
    c.sum.assign(n, -1);
    ops.push_back(two.all_reduce(c.gather, c.sum, cohort::sum{}));
    c.in_place = c.gather;
    ops.push_back(two.all_reduce(c.in_place, last_of_two));
    c.reduced.assign(n, -1);
    ops.push_back(two.reduce(c.gather, c.reduced, cohort::sum{}, root));
    c.scanned.assign(n, -1);
    ops.push_back(two.scan(c.gather, c.scanned, last_of_two));
    c.before.assign(n, -1);
    ops.push_back(two.exclusive_scan(c.gather, c.before, cohort::sum{}));
    c.half.assign(n, -1);
    ops.push_back(two.reduce_scatter(c.exchanged, c.half, cohort::sum{}));
  }
  for (std::size_t i = ops.size(); i-- > 0;) co_await ops[i];
  const auto holds = [](const std::vector<int>& v, std::size_t from, std::size_t to, int wanted, const char* what) {
    for (std::size_t at = from; at < to; ++at) {
      if (v[at] == wanted) continue;
      expect(false, std::to_string(wanted) + " from " + what + " at " + std::to_string(at) + ", found " +
                        std::to_string(v[at]));
    }
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::size_t n = lengths[i % std::size(lengths)];
    const int root = static_cast<int>(i / 3 % 2);
    const call& c = calls[i];
    holds(c.broadcast, 0, n, value(1, i, root), "broadcast");
    holds(c.scattered, 0, n, value(3, i, root), "scatter");
    for (int from = 0; from < 2; ++from) {
      const std::size_t begin = static_cast<std::size_t>(from) * n;
      holds(c.gathered, begin, begin + n, r == root ? value(2, i, from) : -1, "gather");
      holds(c.all, begin, begin + n, value(2, i, from), "all_gather");
      holds(c.to_all, begin, begin + n, value(3, i, from), "all_to_all");
    }
    const int both = value(2, i, 0) + value(2, i, 1);
    holds(c.sum, 0, n, both, "all_reduce");
    holds(c.in_place, 0, n, value(2, i, 1), "all_reduce in place, in the order of ranks");
    holds(c.reduced, 0, n, r == root ? both : -1, "reduce");
    holds(c.scanned, 0, n, value(2, i, r), "scan, in the order of ranks");
    holds(c.before, 0, n, r == 0 ? 0 : value(2, i, 0), "exclusive_scan");
    holds(c.half, 0, n, value(3, i, 0) + value(3, i, 1), "reduce_scatter");
  }
  // A block that is in its place already.
  std::vector<int> in_place(2 * 700, value(5, 0, r));
  auto own = two.all_gather(std::span(in_place).subspan(static_cast<std::size_t>(r) * 700, 700), in_place);
  co_await own;
  holds(in_place, 0, 700, value(5, 0, 0), "all_gather in place");
  holds(in_place, 700, 1400, value(5, 0, 1), "all_gather in place");
}

}  // namespace mpi_test
