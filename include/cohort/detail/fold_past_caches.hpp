// SPDX-License-Identifier: BSL-1.0
// The k-ary array kernel of fold_many.hpp for results that go past the caches, to one place or to several: what is combined
// stays in the first-level cache until it has been stored everywhere. Behind reducer::fold_past_caches.
#pragma once

#include <cohort/detail/fold_many.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/detail/stream_store.hpp>
#include <cohort/half.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>

#if defined(__clang__)
// As in fold_many.hpp: not every functor's loop can be vectorised.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

namespace cohort::detail {

/// How far from the beginning of a line all of these are, or a whole line if they are not equally far.
[[nodiscard]] inline std::size_t into_line(std::span<std::byte* const> places) noexcept {
  const auto of = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % stream_line; };
  const std::size_t first = of(places.front());
  const bool together = std::all_of(places.begin(), places.end(), [&](const std::byte* p) { return of(p) == first; });
  return together ? first : stream_line;
}

/// What is combined at a time where the elements are no parts of lines, or the places begin differently: whole lines in bytes.
template <class T>
inline constexpr std::size_t lines_of_block = [] {
  constexpr std::size_t unit = stream_line / std::gcd(stream_line, sizeof(T));
  return std::max(many_block<T> / unit * unit, std::size_t{1});
}();

#if COHORT_HAS_AVX2_KERNELS
/// Elements [at, at + blocks * stream_block / sizeof(T)) of all sources to all places, which begin lines there. What is
/// between the loads of one block and of the next decides how many of them wait for memory at a time: no calls.
///
/// Needs: has_fold_loop; one pass takes all k >= 2 sources; a line is a whole number of elements
template <class T, class Op>
[[gnu::target("avx2,f16c")]] void fold_blocks_with_avx2(std::span<std::byte* const> places, const T* const* sources,
                                                        std::size_t at, std::size_t blocks, int k, const Op& op,
                                                        const void* functor, last_step finish, int ranks) {
  constexpr std::size_t n = stream_block / sizeof(T);
  std::size_t length = n;
  // g++ 12 warns of what would be over of halves, which it knows there is none of.
  if constexpr (std::is_same_v<T, half>) asm("" : "+r"(length));
  block_memory<T, n> memory;
  const bool whole_lines = stores_whole_lines();
  for (; blocks > 0; --blocks, at += n) {
    fold_pass<avx2_arrays>(memory.data(), sources[0] + at, sources + 1, at, k, length, op);
    if (finish != nullptr) finish(functor, memory.bytes, memory.bytes, n, ranks);
    for (std::byte* const place : places) stream_block_inline(place + at * sizeof(T), memory.bytes, whole_lines);
  }
  __builtin_ia32_vzeroupper();
}
#endif

/// place[i] = s0[i] op s1[i] op ... op s(k-1)[i] for every place, combined from the left, and then op's last step.
///
/// Needs:  a place and a source at least; a place is one of the sources, or overlaps none of them
/// Order:  that of fold_many_bytes
/// Errors: what op throws, with the places partly written
/// Cost:   reads every source once for k of 2, 3, 4 and 8, and writes every place once, past the caches
template <class T, class Op>
void fold_past_caches_bytes(const void* functor, std::span<std::byte* const> places,
                            std::span<const std::byte* const> sources, std::size_t count, last_step finish, int ranks) {
  const Op& op = *static_cast<const Op*>(functor);
  const auto k = static_cast<int>(sources.size());
  const auto misaligned = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % alignof(T) != 0; };
  const bool aligned = std::none_of(sources.begin(), sources.end(), misaligned);
  const auto typed = reinterpret_cast<const T* const*>(sources.data());
  const auto kernel = fold_kernel<T, Op>();

  // A line that is streamed in two parts is written twice: whole lines of every place, as far as that can be.
  const std::size_t begun = into_line(places);
  const std::size_t lead = (stream_line - begun) % stream_line;
  const bool lines = stream_line % sizeof(T) == 0 && begun < stream_line && lead % sizeof(T) == 0;
  const std::size_t each = lines ? stream_block / sizeof(T) : lines_of_block<T>;
  block_memory<T, many_block<T>> memory;
  const line_streamer stream = widest_streamer();
  std::size_t n = lines && lead > 0 ? lead / sizeof(T) : each;
  for (std::size_t at = 0; at < count; at += n, n = each) {
    n = std::min(n, count - at);
#if COHORT_HAS_AVX2_KERNELS
    if constexpr (has_fold_loop<avx2_arrays, T, Op> && stream_line % sizeof(T) == 0) {
      const bool one_pass = k > 1 && operands_of_pass<avx2_arrays>(k) == k && avx2_arrays::available();
      if (lines && aligned && one_pass && n == each) {
        const std::size_t blocks = (count - at) / each;
        fold_blocks_with_avx2<T, Op>(places, typed, at, blocks, k, op, functor, finish, ranks);
        n = blocks * each;
        continue;
      }
    }
#endif
    if (k == 1) {
      std::memcpy(memory.bytes, sources[0] + at * sizeof(T), n * sizeof(T));
    } else if (aligned) {
      kernel(memory.data(), typed, at, k, n, op);
    } else {
      fold_misaligned<T>(memory.bytes, sources.data(), at, k, n, op);
    }
    if (finish != nullptr) finish(functor, memory.bytes, memory.bytes, n, ranks);
    const std::size_t bytes = n * sizeof(T);
    for (std::byte* const place : places) {
      if (lines && bytes == stream_block) {
        // What stream_copy looks at first would take as long as so few stores.
        stream(place + at * sizeof(T), memory.bytes, stream_block / stream_line);
      } else {
        stream_copy(place + at * sizeof(T), memory.bytes, bytes);
      }
    }
  }
  stream_fence();
}

}  // namespace cohort::detail

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
