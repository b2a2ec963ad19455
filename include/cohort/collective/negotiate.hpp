// SPDX-License-Identifier: BSL-1.0
// The forms in _v whose receivers do not know the sizes: the counts travel first, under the same number, then the
// blocks. Called by communicator/gathers.hpp and communicator/exchanges.hpp.
#pragma once

#include <cohort/collective/all_gather.hpp>
#include <cohort/collective/all_to_all.hpp>
#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/gather.hpp>
#include <cohort/collective/scatter.hpp>
#include <cohort/ragged.hpp>

#include <cstdint>
#include <limits>
#include <new>
#include <vector>

namespace cohort::collective {

/// Where each block begins, in elements; the last entry is the total.
[[nodiscard]] std::vector<std::size_t> offsets_of(const detail::short_vector<std::uint64_t>& counts,
                                                  std::size_t element_bytes);

[[nodiscard]] std::vector<std::size_t> in_bytes(std::vector<std::size_t> offsets, std::size_t element_bytes);

[[nodiscard]] layout counts_layout(detail::short_vector<std::uint64_t>& counts);

/// What carries the blocks once the counts are known. Neither the window nor a collective of the backend's own: operations
/// use them in the order of their calls, and this one comes to them later than at its call.
[[nodiscard]] algorithm without_turn(const call& c);

/// Every rank gets the blocks of all.
template <class T, class Channel>
task<ragged<T>> all_gather_ragged(const Channel& ch, algorithm how, const T* in, std::size_t count) {
  detail::short_vector<std::uint64_t> counts(static_cast<std::size_t>(ch.size()), count);
  layouts first;
  first.out = counts_layout(counts);
  co_await all_gather_by(ch, algorithm::circulant, first);
  std::vector<std::size_t> offsets = offsets_of(counts, sizeof(T));
  const std::vector<std::size_t> cuts = in_bytes(offsets, sizeof(T));
  std::vector<T> values(offsets.back());
  layouts where;
  where.in = layout::uniform(bytes_of(in), count * sizeof(T), 1);
  where.out = layout::by_offsets(bytes_of(values.data()), cuts.data(), ch.size());
  detail::copy_region(where.in, {buffer::in, 0, 1}, where.out, {buffer::out, ch.rank(), 1});
  co_await all_gather_by(ch, how, where);
  co_return ragged<T>(std::move(values), std::move(offsets));
}

/// The root gets the blocks of all, the others nothing.
template <class T, class Channel>
task<ragged<T>> gather_ragged(const Channel& ch, int root, const T* in, std::size_t count) {
  const bool here = ch.rank() == root;
  detail::short_vector<std::uint64_t> counts(here ? static_cast<std::size_t>(ch.size()) : 0);
  const std::uint64_t mine = count;
  layouts first;
  first.in = layout::uniform(bytes_of(&mine), sizeof mine, 1);
  if (here) first.out = counts_layout(counts);
  co_await gather_by(ch, algorithm::binomial, root, first, sizeof mine);
  std::vector<std::size_t> offsets = offsets_of(counts, sizeof(T));
  const std::vector<std::size_t> cuts = in_bytes(offsets, sizeof(T));
  std::vector<T> values(offsets.back());
  layouts where;
  where.in = layout::uniform(bytes_of(in), count * sizeof(T), 1);
  if (here) where.out = layout::by_offsets(bytes_of(values.data()), cuts.data(), ch.size());
  co_await gather_by(ch, algorithm::linear, root, where, 0);
  co_return ragged<T>(std::move(values), std::move(offsets));
}

/// Each rank gets its own block of what the root has.
template <class T, class Channel>
task<std::vector<T>> scatter_ragged(const Channel& ch, int root, const T* in,
                                    detail::short_vector<std::uint64_t> counts) {
  const bool here = ch.rank() == root;
  std::uint64_t mine = 0;
  layouts first;
  if (here) first.in = counts_layout(counts);
  first.out = layout::uniform(bytes_of(&mine), sizeof mine, 1);
  co_await scatter_by(ch, algorithm::binomial, root, first, sizeof mine);
  const std::vector<std::size_t> cuts = in_bytes(offsets_of(counts, sizeof(T)), sizeof(T));
  if (mine > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
  std::vector<T> values(static_cast<std::size_t>(mine));
  layouts where;
  if (here) where.in = layout::by_offsets(bytes_of(in), cuts.data(), ch.size());
  where.out = layout::uniform(bytes_of(values.data()), values.size() * sizeof(T), 1);
  co_await scatter_by(ch, algorithm::linear, root, where, 0);
  co_return values;
}

template <transport::message_transport Transport, class T>
operation<ragged<T>> all_gather_negotiated([[maybe_unused]] cohort::detail::ticket t, const T* in, std::size_t count) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  auto all = all_gather_ragged<T>(ch, without_turn(c), in, count);
  co_return co_await all;
}

template <transport::message_transport Transport, class T>
operation<ragged<T>> gather_negotiated([[maybe_unused]] cohort::detail::ticket t, const T* in, std::size_t count) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  auto all = gather_ragged<T>(ch, c.signature().root, in, count);
  co_return co_await all;
}

template <transport::message_transport Transport, class T>
operation<std::vector<T>> scatter_negotiated([[maybe_unused]] cohort::detail::ticket t, const T* in,
                                             detail::short_vector<std::uint64_t> counts) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  auto mine = scatter_ragged<T>(ch, c.signature().root, in, std::move(counts));
  co_return co_await mine;
}

template <transport::message_transport Transport, class T>
operation<ragged<T>> all_to_all_negotiated([[maybe_unused]] cohort::detail::ticket t, const T* in,
                                           detail::short_vector<std::uint64_t> send_counts) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  detail::short_vector<std::uint64_t> counts(send_counts.size());
  layouts first;
  first.in = counts_layout(send_counts);
  first.out = counts_layout(counts);
  co_await all_to_all_by(ch, algorithm::pairwise, first, sizeof(std::uint64_t));
  const std::vector<std::size_t> send_cuts = in_bytes(offsets_of(send_counts, sizeof(T)), sizeof(T));
  std::vector<std::size_t> offsets = offsets_of(counts, sizeof(T));
  const std::vector<std::size_t> cuts = in_bytes(offsets, sizeof(T));
  std::vector<T> values(offsets.back());
  layouts where;
  where.in = layout::by_offsets(bytes_of(in), send_cuts.data(), ch.size());
  where.out = layout::by_offsets(bytes_of(values.data()), cuts.data(), ch.size());
  co_await all_to_all_by(ch, without_turn(c), where, 0);
  co_return ragged<T>(std::move(values), std::move(offsets));
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/negotiate.hpp>
#endif
