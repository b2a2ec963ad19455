// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/form_group.hpp that are no templates.
#pragma once

#include <cohort/collective/fit.hpp>
#include <cohort/collective/form_group.hpp>
#include <cohort/detail/mix_hash.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort::collective {

/// A context number that follows from the parent's and from what tells its children apart. Two of 2^64: the world has
/// 0, and one stands for every communicator.
[[nodiscard]] inline std::uint64_t derive_context(const group& parent, operation_kind how, std::uint64_t which,
                                                  std::uint64_t what) noexcept {
  using cohort::detail::mix;
  const std::uint64_t h = mix(mix(mix(mix(0, parent.context()), static_cast<std::uint64_t>(how)), which), what);
  return h == 0 || h == transport::every_context ? 1 : h;
}

COHORT_DECL std::string list_text(const std::vector<std::int32_t>& list) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + std::to_string(list[i]);
  if (list.size() > most) text += ", ... (" + std::to_string(list.size()) + ")";
  return "{" + text + "}";
}

/// It inherits the parent's settings.
[[nodiscard]] inline std::shared_ptr<group> make_child(const group& parent, std::uint64_t context, std::string name,
                                                       const std::vector<std::int32_t>& list) {
  std::vector<int> members;
  members.reserve(list.size());
  for (const std::int32_t r : list) members.push_back(parent.world_rank(r));
  const auto mine = std::find(list.begin(), list.end(), parent.rank());
  const int rank = mine == list.end() ? -1 : static_cast<int>(mine - list.begin());
  auto child = std::make_shared<group>(parent.shared_engine(), context, std::move(name), std::move(members), rank);
  child->default_timeout = parent.default_timeout;
  child->costs = parent.costs;
  child->selection = parent.costs ? fitted(parent.selection, child->size(), *parent.costs) : parent.selection;
  child->ordered = parent.ordered;
  return child;
}

COHORT_DECL std::shared_ptr<group> subgroup_of(group& parent, const std::vector<std::int32_t>& list, std::string name) {
  std::vector<std::int32_t> set = list;
  std::sort(set.begin(), set.end());
  std::uint64_t what = set.size();
  for (const std::int32_t r : set) what = cohort::detail::mix(what, static_cast<std::uint64_t>(r));
  const bool member = std::binary_search(set.begin(), set.end(), parent.rank());
  const std::uint64_t which = member ? parent.next_formation(what) : 0;
  const std::uint64_t context = derive_context(parent, operation_kind::subgroup, which, what);
  return make_child(parent, context, std::move(name), list);
}

COHORT_DECL std::shared_ptr<group> child_of(const call& c, operation_kind how, std::uint64_t what, std::string name,
                                            const std::vector<std::int32_t>& list) {
  const std::uint64_t context = derive_context(c.home(), how, static_cast<std::uint64_t>(c.sequence()), what);
  return make_child(c.home(), context, std::move(name), list);
}

}  // namespace cohort::collective
