// SPDX-License-Identifier: BSL-1.0
// Every collective as one function of its kind, for tests that let ranks disagree about what they call.
#pragma once

#include <cohort/cohort.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace harness {

inline constexpr std::array every_collective{
    cohort::operation_kind::barrier,        cohort::operation_kind::broadcast,        cohort::operation_kind::scatter,
    cohort::operation_kind::scatter_v,      cohort::operation_kind::gather,           cohort::operation_kind::gather_v,
    cohort::operation_kind::reduce,         cohort::operation_kind::all_reduce,       cohort::operation_kind::all_gather,
    cohort::operation_kind::all_gather_v,   cohort::operation_kind::reduce_scatter,   cohort::operation_kind::reduce_scatter_v,
    cohort::operation_kind::all_to_all,     cohort::operation_kind::all_to_all_v,     cohort::operation_kind::scan,
    cohort::operation_kind::exclusive_scan,
};

/// What one rank believes that all ranks call.
struct what_to_call {
  cohort::operation_kind kind{};
  std::size_t count = 5;  ///< elements of a block, or of the vector where there is but one
  int root = 0;
};

namespace detail {

template <class World>
cohort::task<> call_rooted(World& world, const what_to_call& what) {
  using cohort::operation_kind;
  const auto n = static_cast<std::size_t>(world.size());
  const cohort::root where{what.root};
  std::vector<float> block(what.count, 1.0F);
  std::vector<float> all(what.count * n, 1.0F);
  const std::vector<std::size_t> counts(n, what.count);
  switch (what.kind) {
    case operation_kind::broadcast: co_await world.broadcast(block, where); break;
    case operation_kind::scatter: co_await world.scatter(all, block, where); break;
    case operation_kind::scatter_v: co_await world.scatter_v(all, counts, block, where); break;
    case operation_kind::gather: co_await world.gather(block, all, where); break;
    case operation_kind::gather_v: co_await world.gather_v(block, all, counts, where); break;
    case operation_kind::reduce: co_await world.reduce(block, cohort::sum{}, where); break;
    default: break;
  }
}

template <class World>
cohort::task<> call_rootless(World& world, const what_to_call& what) {
  using cohort::operation_kind;
  const auto n = static_cast<std::size_t>(world.size());
  std::vector<float> block(what.count, 1.0F);
  std::vector<float> all(what.count * n, 1.0F);
  std::vector<float> other(what.count * n, 0.0F);
  const std::vector<std::size_t> counts(n, what.count);
  switch (what.kind) {
    case operation_kind::barrier: co_await world.barrier(); break;
    case operation_kind::all_reduce: co_await world.all_reduce(block, cohort::sum{}); break;
    case operation_kind::all_gather: co_await world.all_gather(block, all); break;
    case operation_kind::all_gather_v: co_await world.all_gather_v(block, all, counts); break;
    case operation_kind::reduce_scatter: co_await world.reduce_scatter(all, block, cohort::sum{}); break;
    case operation_kind::reduce_scatter_v: co_await world.reduce_scatter_v(all, block, counts, cohort::sum{}); break;
    case operation_kind::all_to_all: co_await world.all_to_all(all, other); break;
    case operation_kind::all_to_all_v: co_await world.all_to_all_v(all, counts, other, counts); break;
    case operation_kind::scan: co_await world.scan(block, cohort::sum{}); break;
    case operation_kind::exclusive_scan:
      other.resize(what.count);
      co_await world.exclusive_scan(block, other, cohort::sum{});
      break;
    default: break;
  }
}

[[nodiscard]] constexpr bool has_root(cohort::operation_kind kind) {
  using cohort::operation_kind;
  return kind == operation_kind::broadcast || kind == operation_kind::scatter || kind == operation_kind::scatter_v ||
         kind == operation_kind::gather || kind == operation_kind::gather_v || kind == operation_kind::reduce;
}

}  // namespace detail

/// Calls it and waits for it.
template <class World>
cohort::task<> call(World& world, const what_to_call& what) {
  if (detail::has_root(what.kind)) {
    auto rooted = detail::call_rooted(world, what);
    co_await rooted;
  } else {
    auto rootless = detail::call_rootless(world, what);
    co_await rootless;
  }
}

/// The first error of a rank that calls these one after the other and then meets the others at a barrier, so that one
/// who could complete its part alone learns what it was worth.
///
/// Lifetime: `calls` is used by reference until the end
template <class World>
cohort::task<std::optional<cohort::error>> first_error(World& world, const std::vector<what_to_call>& calls) {
  std::optional<cohort::error> failure;
  try {
    for (const what_to_call& each : calls) {
      auto one = call(world, each);
      co_await one;
    }
    co_await world.barrier();
  } catch (const cohort::error& e) {
    failure.emplace(e);
  }
  co_return failure;
}

[[nodiscard]] inline std::string text_of(const what_to_call& w) {
  return std::string{cohort::name(w.kind)} + " of " + std::to_string(w.count) + " with root " + std::to_string(w.root);
}

}  // namespace harness
