// SPDX-License-Identifier: BSL-1.0
// The matrices of all operations that move blocks, one after the other: what every backend between processes runs.
#pragma once

#include "oracle_exchange.hpp"
#include "oracle_messages.hpp"

#include <cstdint>
#include <initializer_list>

namespace oracle {

inline constexpr std::initializer_list<operation_kind> moving{
    operation_kind::broadcast,    operation_kind::scatter,    operation_kind::scatter_v,
    operation_kind::gather,       operation_kind::gather_v,   operation_kind::all_gather,
    operation_kind::all_gather_v, operation_kind::all_to_all, operation_kind::all_to_all_v};

/// Counts around the number of ranks, and one that is large.
template <class Backend>
task<> movements(checker<Backend>& c, std::size_t large) {
  const std::vector<std::size_t> counts = counts_for(c.size(), large);
  auto broadcasts = broadcast_matrix<rgb>(c, counts, all_roots(c.size()));
  co_await broadcasts;
  auto scatters = scatter_matrix<std::int32_t>(c, counts, all_roots(c.size()), 1009);
  co_await scatters;
  auto gathers = gather_matrix<std::int32_t>(c, counts, all_roots(c.size()), 1009);
  co_await gathers;
  auto all_gathers = all_gather_matrix<rgb>(c, counts, large);
  co_await all_gathers;
  auto all_to_alls = all_to_all_matrix<rgb>(c, counts, large);
  co_await all_to_alls;
}

/// Blocks of `large` elements, broadcasts of `largest`: longer than what a transport sends without having asked.
template <class Backend>
task<> long_movements(checker<Backend>& c, std::size_t large, std::size_t largest) {
  auto messages = message_matrix<std::int32_t>(c, {large});
  co_await messages;
  auto broadcasts = broadcast_matrix<std::int32_t>(c, {largest}, {c.size() - 1});
  co_await broadcasts;
  auto scatters = scatter_matrix<std::int32_t>(c, {large}, {c.size() / 2}, large);
  co_await scatters;
  auto gathers = gather_matrix<std::int32_t>(c, {large}, {c.size() / 2}, large);
  co_await gathers;
  auto all_gathers = all_gather_matrix<std::int32_t>(c, {large}, large);
  co_await all_gathers;
  auto all_to_alls = all_to_all_matrix<std::int32_t>(c, {large}, large);
  co_await all_to_alls;
}

}  // namespace oracle
