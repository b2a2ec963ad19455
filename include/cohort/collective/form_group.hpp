// SPDX-License-Identifier: BSL-1.0
// How a communicator is made of another one. Its context number is derived by every member from the same facts, so that
// nobody has to hand numbers out; what is sent only shows that the members agree. Called by communicator/groups.hpp.
#pragma once

#include <cohort/collective/all_gather.hpp>
#include <cohort/collective/barrier.hpp>
#include <cohort/collective/broadcast.hpp>
#include <cohort/collective/fit.hpp>
#include <cohort/detail/mix_hash.hpp>

#include <algorithm>
#include <array>
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

/// "{0, 2, 4}"; of many the first eight.
[[nodiscard]] inline std::string list_text(const std::vector<std::int32_t>& list) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + std::to_string(list[i]);
  if (list.size() > most) text += ", ... (" + std::to_string(list.size()) + ")";
  return "{" + text + "}";
}

/// The group of some ranks of `parent`, given in the order that they shall have; it inherits the parent's settings.
[[nodiscard]] inline std::shared_ptr<group> child_of(const group& parent, std::uint64_t context, std::string name,
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

/// A channel of a group whose ranks may not agree on their order yet: here they have the order of their world ranks.
template <transport::message_transport Transport>
class sorted_channel : public transport::channel<Transport> {
 public:
  explicit sorted_channel(call& c) : transport::channel<Transport>(c), sorted_(c.home().members()) {
    std::sort(sorted_.begin(), sorted_.end());
    const int mine = c.home().world_rank(c.home().rank());
    rank_ = static_cast<int>(std::lower_bound(sorted_.begin(), sorted_.end(), mine) - sorted_.begin());
  }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int world_rank(int r) const noexcept { return sorted_[static_cast<std::size_t>(r)]; }

 private:
  std::vector<int> sorted_;
  int rank_ = 0;
};

/// The first call on a group that its members have made: the one with the lowest rank tells everybody its list.
///
/// Errors: mismatch naming both lists
template <transport::message_transport Transport, class Communicator>
operation<Communicator> agree_on_members([[maybe_unused]] cohort::detail::ticket t, std::shared_ptr<group> formed,
                                         std::vector<std::int32_t> list) {
  call& c = co_await current_call{};
  const sorted_channel<Transport> ch(c);
  std::vector<std::int32_t> theirs = list;
  co_await broadcast_by(ch, algorithm::binomial, 0, bytes_of(theirs.data()), theirs.size(), sizeof(std::int32_t));
  if (theirs != list) {
    const int lowest = ch.world_rank(0);
    c.engine().report_mismatch(
        *formed, c.sequence(), c.engine().rank(), errc::mismatch,
        "world rank " + std::to_string(c.engine().rank()) + " lists the members as " + list_text(list) +
            ", world rank " + std::to_string(lowest) + " as " + list_text(theirs) +
            "; the order of the list is the order of the group's ranks, so every member gives the same list");
    throw c.failure();
  }
  co_return Communicator(std::move(formed));
}

/// The groups of ranks that gave the same color, ordered by key and then by rank.
template <transport::message_transport Transport, class Communicator>
operation<Communicator> split([[maybe_unused]] cohort::detail::ticket t, int my_color, int my_key, std::string name) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const auto p = static_cast<std::size_t>(ch.size());
  std::vector<std::array<std::int32_t, 2>> all(p);
  all[static_cast<std::size_t>(ch.rank())] = {my_color, my_key};
  layouts where;
  where.out = layout::uniform(reinterpret_cast<std::byte*>(all.data()), sizeof(all[0]), ch.size());
  co_await all_gather_by(ch, algorithm::circulant, where);
  std::vector<std::int32_t> list;
  for (std::size_t r = 0; r < p; ++r) {
    if (my_color >= 0 && all[r][0] == my_color) list.push_back(static_cast<std::int32_t>(r));
  }
  std::stable_sort(list.begin(), list.end(), [&all](std::int32_t a, std::int32_t b) {
    return all[static_cast<std::size_t>(a)][1] < all[static_cast<std::size_t>(b)][1];
  });
  const std::uint64_t context = derive_context(
      c.home(), operation_kind::split, static_cast<std::uint64_t>(c.sequence()), static_cast<std::uint64_t>(my_color));
  co_return Communicator(child_of(c.home(), context, std::move(name), list));
}

/// The same ranks under another number: calls on the two do not meet.
template <transport::message_transport Transport, class Communicator>
operation<Communicator> duplicate([[maybe_unused]] cohort::detail::ticket t, std::string name) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  std::vector<std::int32_t> list;
  for (std::int32_t r = 0; r < ch.size(); ++r) list.push_back(r);
  const std::uint64_t context =
      derive_context(c.home(), operation_kind::duplicate, static_cast<std::uint64_t>(c.sequence()), 0);
  co_await execute(ch, dissemination_barrier{ch.size(), ch.rank()}, layouts{}, nullptr);
  co_return Communicator(child_of(c.home(), context, std::move(name), list));
}

}  // namespace cohort::collective
