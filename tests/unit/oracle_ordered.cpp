// SPDX-License-Identifier: BSL-1.0
// After set_ordered(true) a reduction that rounds gives the same bits whatever the size, the root and the operation,
// also where an algorithm that groups its operands otherwise is asked for.
#include "../support/oracle_local.hpp"
#include "../support/oracle_reduce.hpp"

#include <doctest/doctest.h>

using namespace oracle;

namespace {

/// The default table, one that it has for ranks with a core each, or each algorithm that set_ordered must not let through.
task<> ordered(checker<local>& c) {
  using enum operation_kind;
  c.world().set_ordered(true);
  constexpr std::array<algorithm, 5> ways{algorithm{}, algorithm::halving_gather, algorithm::circulant, algorithm::ring,
                                          algorithm::reduce_scatter_gather};
  for (const std::size_t count : {std::size_t{1}, c.ranks() + 1, std::size_t{10007}, std::size_t{100003}}) {
    const operands<float, cohort::sum> x(c.size(), count, data::rough, count);
    const operands<float, cohort::sum> blocks(c.size(), 1009 * c.ranks(), data::rough, count);
    for (const algorithm how : ways) {
      c.world().algorithms() = cohort::collective::selection_table{};
      for (const operation_kind kind : {all_reduce, reduce, reduce_scatter}) {
        if (cohort::collective::find_implementation(kind, how) == nullptr) continue;
        c.world().algorithms().override_with(kind, how);
      }
      auto everywhere = check_all_reduce(c, x, false);
      static_cast<void>(co_await everywhere);
      auto rooted = check_reduce(c, x, static_cast<int>(count % c.ranks()), false);
      co_await rooted;
      auto scattered = check_reduce_scatter(c, blocks, std::vector<std::size_t>(c.ranks(), 1009), scatter_shape::flat);
      co_await scattered;
    }
  }
}

}  // namespace

TEST_CASE("oracle: set_ordered keeps one grouping for every size and algorithm") {
  const tally counts = on_local_worlds(ordered);
  // What the oracle compares bit by bit is what these algorithms promise; the others only come close.
  std::size_t in_one_grouping = 0;
  for (const auto& each : cohort::collective::implementations) {
    if (!each.needs_commutative) in_one_grouping += counts.of(each.operation, each.algorithm);
  }
  CHECK(in_one_grouping + counts.alone() == counts.total());
  CHECK(counts.of(operation_kind::all_reduce, algorithm::halving_doubling) > 0);
  CHECK(counts.of(operation_kind::all_reduce, algorithm::recursive_doubling) > 0);
  CHECK(counts.of(operation_kind::reduce, algorithm::halving_gather) > 0);
}
