// SPDX-License-Identifier: BSL-1.0
// What collective/reduce_scatter.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/execute.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/reduce_scatter.hpp>
#include <cohort/collective/schedule/reduce_scatter.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/combine.hpp>

#include <algorithm>
#include <utility>

namespace cohort::collective {

template <class Channel, schedule Schedule>
task<> reduce_scatter_in(const Channel& ch, Schedule steps, layouts where, detail::short_vector<std::size_t> offsets,
                         const cohort::detail::reducer& op) {
  // The scratch space is cut like the input, whose blocks may differ in size.
  const bool scratched = steps.work_blocks() > 0;
  const cohort::detail::borrowed_buffer scratch(ch.transport().scratch(), scratched ? offsets.back() : 0);
  if (scratched) where.work = layout::by_offsets(scratch.data(), offsets.data(), steps.work_blocks());
  co_await execute(ch, steps, where, &op);
}

[[nodiscard]] inline std::size_t longest_block(const detail::short_vector<std::size_t>& offsets) noexcept {
  std::size_t longest = 0;
  for (std::size_t k = 0; k + 1 < offsets.size(); ++k) longest = std::max(longest, offsets[k + 1] - offsets[k]);
  return longest;
}

template <class Channel>
task<> reduce_scatter_shared(const Channel& ch, const layouts& where, detail::short_vector<std::size_t> offsets,
                             const cohort::detail::reducer& op);

template <class Channel>
task<> reduce_scatter_by(const Channel& ch, algorithm how, const layouts& where,
                         detail::short_vector<std::size_t> offsets, const cohort::detail::reducer& op) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return reduce_scatter_shared(ch, where, std::move(offsets), op);
    if (how == algorithm::hierarchical) {
      const two_level_reduce_scatter steps{columns{hosts_of(ch), r}};
      return reduce_scatter_in(ch, steps, where, std::move(offsets), op);
    }
  }
  switch (how) {
    case algorithm::circulant:
      return reduce_scatter_in(ch, circulant_reduce_scatter{p, r}, where, std::move(offsets), op);
    case algorithm::ring: return reduce_scatter_in(ch, ring_reduce_scatter{p, r}, where, std::move(offsets), op);
    case algorithm::central: return reduce_scatter_in(ch, central_reduce_scatter{p, r}, where, std::move(offsets), op);
    case algorithm::pairwise:
      return reduce_scatter_in(ch, pairwise_reduce_scatter{p, r}, where, std::move(offsets), op);
    default: return reduce_scatter_in(ch, halving_reduce_scatter{p, r}, where, std::move(offsets), op);
  }
}

template <class Channel>
task<> reduce_scatter_shared(const Channel& ch, const layouts& where, detail::short_vector<std::size_t> offsets,
                             const cohort::detail::reducer& op) {
  const bool done = co_await reduce_scatter_in_window(ch, where.in, where.out, longest_block(offsets), op);
  if (done) co_return;
  const call& c = ch.current();
  const std::size_t bytes = c.signature().kind == operation_kind::reduce_scatter ? offsets.back() : 0;
  co_await reduce_scatter_by(ch, without_window(c, bytes, op.commutative), where, std::move(offsets), op);
}

}  // namespace cohort::collective
