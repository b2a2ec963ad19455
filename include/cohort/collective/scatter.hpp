// SPDX-License-Identifier: BSL-1.0
// The scatter: one rank's blocks, one to each rank. Called by communicator/rooted.hpp.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/gather.hpp>
#include <cohort/collective/schedule/scatter.hpp>
#include <cohort/collective/select.hpp>

namespace cohort::collective {

template <class Channel>
task<> scatter_by(const Channel& ch, algorithm how, int root, const layouts& where, std::size_t block_bytes) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::native_scatter<typename Channel::transport_type>) {
    using library = transport::native_collectives<typename Channel::transport_type>;
    if (how == algorithm::native && library::fits(block_bytes, p))
      return library::scatter(ch.current(), root, where.in, where.out);
  }
  if (how == algorithm::binomial) return with_scratch(ch, binomial_scatter{p, r, root}, where, block_bytes);
  return execute(ch, linear_scatter{p, r, root}, where, nullptr);
}

/// `in`, on the root alone, has a block for each rank; `out` is one block.
template <transport::message_transport Transport>
operation<> scatter([[maybe_unused]] cohort::detail::ticket t, layout in, layout out, std::size_t block_bytes,
                    [[maybe_unused]] block_table keep) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  layouts where;
  where.in = in;
  where.out = out;
  co_await scatter_by(ch, c.signature().algorithm, c.signature().root, where, block_bytes);
}

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
