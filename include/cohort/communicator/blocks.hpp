// SPDX-License-Identifier: BSL-1.0
// How a buffer of a call is cut into one block for each rank: evenly, by counts, or as a list of buffers. Used by
// gathers.hpp and exchanges.hpp, which differ in nothing else.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/communicator/front.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace cohort {

/// A count for each rank: any range of integers.
template <class C>
concept count_list = range_like<C> && std::ranges::sized_range<C> &&
    std::integral<std::remove_cvref_t<std::ranges::range_reference_t<C>>>;

namespace detail {

/// Blocks of one size, or the sum of what a list holds.
struct cut {
  collective::layout where{};
  transport::piece whole{};  ///< all blocks, if they lie one after the other in one buffer
  std::size_t block = 0;     ///< elements of a block, if all are of one size
  std::size_t largest = 0;   ///< elements of the largest
  std::size_t elements = 0;  ///< of all together
  bool even = true;
};

template <class T>
[[nodiscard]] cut cut_evenly(T* data, std::size_t block, int ranks) {
  // In its place at once: to copy what has just been written in other widths makes the processor wait.
  const std::size_t elements = block * static_cast<std::size_t>(ranks);
  return {collective::layout::uniform(collective::bytes_of(data), block * sizeof(T), ranks),
          {collective::bytes_of(data), elements * sizeof(T)},
          block,
          block,
          elements,
          true};
}

/// All of a buffer as one block.
template <class T>
[[nodiscard]] collective::layout one_block(std::span<T> whole) noexcept {
  return collective::layout::uniform(collective::bytes_of(whole.data()), whole.size_bytes(), 1);
}

/// Needs: a run for each rank in `runs`, which stays while the layout is used
template <class Front, class List>
[[nodiscard]] cut cut_list(const Front& f, operation_kind kind, const char* buffer, List& list,
                           collective::detail::short_vector<transport::piece>& runs) {
  using T = list_element_t<List>;
  const auto n = static_cast<std::size_t>(f.size());
  if (std::ranges::size(list) != n) {
    f.refuse(kind, std::string{buffer} + " has " + std::to_string(std::ranges::size(list)) + " buffers, expected " +
                       std::to_string(n) + ", one for each rank");
  }
  cut c;
  for (auto& each : list) {
    const auto elements = view(each);
    f.check_null(kind, buffer, elements.data(), elements.size());
    if (runs.empty()) c.block = elements.size();
    c.even = c.even && elements.size() == c.block;
    c.largest = std::max(c.largest, elements.size());
    c.elements += elements.size();
    runs.push_back({collective::bytes_of(elements.data()), elements.size() * sizeof(T)});
  }
  c.where = collective::layout::list(runs.data(), f.size());
  return c;
}

/// The counts as numbers: one for each rank, none negative, their sum representable.
template <class Front, count_list Counts>
[[nodiscard]] collective::detail::short_vector<std::uint64_t> read_counts(const Front& f, operation_kind kind,
                                                                          const char* what, const Counts& counts,
                                                                          std::size_t element_bytes) {
  const auto n = static_cast<std::size_t>(f.size());
  if (std::ranges::size(counts) != n) {
    f.refuse(kind, std::string{what} + " has " + std::to_string(std::ranges::size(counts)) + " entries, expected " +
                       std::to_string(n) + ", one for each rank");
  }
  collective::detail::short_vector<std::uint64_t> all;
  std::uint64_t sum = 0;
  for (const auto count : counts) {
    if (count < decltype(count){})
      f.refuse(kind, std::string{what} + "[" + std::to_string(all.size()) + "] is " + std::to_string(count) +
                         ": a count is not negative");
    const auto value = static_cast<std::uint64_t>(count);
    if (value > std::numeric_limits<std::size_t>::max() / element_bytes - sum) {
      f.refuse(kind, std::string{what} + ": the sum of the counts is larger than memory");
    }
    sum += value;
    all.push_back(value);
  }
  return all;
}

/// Needs: `offsets` stays while the layout is used
template <class T, class Front>
[[nodiscard]] cut cut_by_counts(const Front& f, operation_kind kind, const char* buffer, const char* what, T* data,
                                std::size_t size, const collective::detail::short_vector<std::uint64_t>& counts,
                                collective::detail::short_vector<std::size_t>& offsets) {
  cut c;
  offsets.assign(1, 0);
  for (const std::uint64_t count : counts) {
    c.largest = std::max(c.largest, static_cast<std::size_t>(count));
    c.elements += static_cast<std::size_t>(count);
    offsets.push_back(c.elements * sizeof(T));
  }
  f.check_count(kind, buffer, size, c.elements, [&] { return std::string{"the sum of "} + what; });
  f.check_null(kind, buffer, data, size);
  c.even = false;
  c.whole = {collective::bytes_of(data), c.elements * sizeof(T)};
  c.where = collective::layout::by_offsets(collective::bytes_of(data), offsets.data(), f.size());
  return c;
}

}  // namespace detail
}  // namespace cohort
