// SPDX-License-Identifier: BSL-1.0
// What collective/form_group.hpp sends: lists of members, and what tells the parts of a communicator apart.
#pragma once

#include <cohort/collective/all_gather.hpp>
#include <cohort/collective/broadcast.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/form_group.hpp>
#include <cohort/collective/schedule/barrier.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort::collective {

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

template <transport::message_transport Transport>
task<> compare_lists(call& c, const group& formed, std::vector<std::int32_t> list) {
  const sorted_channel<Transport> ch(c);
  std::vector<std::int32_t> theirs = list;
  co_await broadcast_by(ch, algorithm::binomial, 0, bytes_of(theirs.data()), theirs.size(), sizeof(std::int32_t));
  if (theirs != list) {
    const int lowest = ch.world_rank(0);
    c.engine().report_mismatch(
        formed, c.sequence(), c.engine().rank(), errc::mismatch,
        "world rank " + std::to_string(c.engine().rank()) + " lists the members as " + list_text(list) +
            ", world rank " + std::to_string(lowest) + " as " + list_text(theirs) +
            "; the order of the list is the order of the group's ranks, so every member gives the same list");
    throw c.failure();
  }
}

template <transport::message_transport Transport>
task<std::shared_ptr<group>> split_by(call& c, int my_color, int my_key, std::string name) {
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
  // By rank where keys are equal; not by std::stable_sort, of which clang 19 warns inside the standard library of g++ 12.
  std::sort(list.begin(), list.end(), [&all](std::int32_t a, std::int32_t b) {
    return std::pair(all[static_cast<std::size_t>(a)][1], a) < std::pair(all[static_cast<std::size_t>(b)][1], b);
  });
  co_return child_of(c, operation_kind::split, static_cast<std::uint64_t>(my_color), std::move(name), list);
}

template <transport::message_transport Transport>
task<std::shared_ptr<group>> copy_of(call& c, std::string name) {
  const transport::channel<Transport> ch(c);
  std::vector<std::int32_t> list;
  for (std::int32_t r = 0; r < ch.size(); ++r) list.push_back(r);
  co_await execute(ch, dissemination_barrier{ch.size(), ch.rank()}, layouts{}, nullptr);
  co_return child_of(c, operation_kind::duplicate, 0, std::move(name), list);
}

}  // namespace cohort::collective
