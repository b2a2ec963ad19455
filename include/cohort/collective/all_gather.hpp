// SPDX-License-Identifier: BSL-1.0
// The all-gather: everybody's block on every rank. Called by communicator/everyone.hpp; even blocks, counts per
// rank and lists of buffers differ only in their layout.
#pragma once

#include <cohort/collective/body.hpp>

#include <vector>

namespace cohort::collective {

template <class Channel>
task<> all_gather_by(const Channel& ch, algorithm how, const layouts& where);

/// `out` has a block for each rank; `in` is this rank's, wherever it lies.
template <transport::message_transport Transport>
operation<> all_gather(cohort::detail::ticket t, const layout& in, const layout& out, block_table& keep);

template <transport::message_transport Transport, class T>
operation<std::vector<T>> all_gather_value([[maybe_unused]] cohort::detail::ticket t, T value) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  std::vector<T> all(static_cast<std::size_t>(ch.size()), value);
  layouts where;
  where.out = layout::uniform(bytes_of(all.data()), sizeof(T), ch.size());
  co_await all_gather_by(ch, c.signature().algorithm, where);
  co_return all;
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/all_gather.hpp>
#endif
