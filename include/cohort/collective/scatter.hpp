// SPDX-License-Identifier: BSL-1.0
// The scatter: one rank's blocks, one to each rank. Called by communicator/rooted.hpp.
#pragma once

#include <cohort/collective/body.hpp>

namespace cohort::collective {

template <class Channel>
task<> scatter_by(const Channel& ch, algorithm how, int root, const layouts& where, std::size_t block_bytes);

/// `in`, on the root alone, has a block for each rank; `out` is one block.
template <transport::message_transport Transport>
operation<> scatter(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t block_bytes,
                    block_table& keep);

template <transport::message_transport Transport, class T>
operation<T> scatter_value([[maybe_unused]] cohort::detail::ticket t, const T* values) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const int root = c.signature().root;
  T mine{};
  layouts where;
  if (ch.rank() == root) where.in = layout::uniform(bytes_of(values), sizeof(T), ch.size());
  where.out = layout::uniform(bytes_of(&mine), sizeof(T), 1);
  co_await scatter_by(ch, c.signature().algorithm, root, where, sizeof(T));
  co_return mine;
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/scatter.hpp>
#endif
