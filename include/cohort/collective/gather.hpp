// SPDX-License-Identifier: BSL-1.0
// The gather: everybody's block on one rank. Called by communicator/rooted.hpp.
#pragma once

#include <cohort/collective/body.hpp>

#include <vector>

namespace cohort::collective {

template <class Channel>
task<> gather_by(const Channel& ch, algorithm how, int root, const layouts& where, std::size_t block_bytes);

/// `in` is one block; `out`, on the root alone, has one for each rank.
template <transport::message_transport Transport>
operation<> gather(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t block_bytes,
                   block_table& keep);

template <transport::message_transport Transport, class T>
operation<std::vector<T>> gather_value([[maybe_unused]] cohort::detail::ticket t, T value) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const int root = c.signature().root;
  std::vector<T> all;
  if (ch.rank() == root) all.assign(static_cast<std::size_t>(ch.size()), value);
  layouts where;
  where.in = layout::uniform(bytes_of(&value), sizeof(T), 1);
  if (ch.rank() == root) where.out = layout::uniform(bytes_of(all.data()), sizeof(T), ch.size());
  co_await gather_by(ch, c.signature().algorithm, root, where, sizeof(T));
  co_return all;
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/gather.hpp>
#endif
