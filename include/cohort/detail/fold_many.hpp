// SPDX-License-Identifier: BSL-1.0
// The k-ary array kernel: dst[i] = s0[i] op s1[i] op ... in one pass over memory, for ranks that can read one another's
// buffers. Behind reducer::fold_many, beside the two-operand kernels of fold.hpp; compiled for AVX2 as well.
#pragma once

#include <cohort/detail/float_array.hpp>
#include <cohort/detail/stream_store.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Element i of dst depends on element i of the sources alone, also where dst is one of them: no check for overlap is
// needed before such a loop is vectorised.
#if defined(__clang__)
#define COHORT_INDEPENDENT_ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define COHORT_INDEPENDENT_ELEMENTS _Pragma("GCC ivdep")
#else
#define COHORT_INDEPENDENT_ELEMENTS
#endif

namespace cohort::detail {

/// As fold_block in fold.hpp, where a loop has no scratch memory.
inline constexpr std::size_t fused_run = 128;

template <class Wide, class Op, class First, class... Rest>
[[gnu::always_inline]] inline Wide combine_all(const Op& op, std::size_t i, const First* first, const Rest*... rest) {
  Wide value = static_cast<Wide>(first[i]);
  ((value = static_cast<Wide>(op(value, static_cast<Wide>(rest[i])))), ...);
  return value;
}

/// One pass over as many sources as are given; dst may be one of them.
template <class Wide, class To, class Op, class... From>
[[gnu::always_inline]] inline void fold_fused(To* dst, std::size_t count, const Op& op, const From*... sources) {
  std::size_t at = 0;
  for (; count - at >= fused_run; at += fused_run) {
    COHORT_INDEPENDENT_ELEMENTS
    for (std::size_t i = 0; i < fused_run; ++i) {
      dst[at + i] = static_cast<To>(combine_all<Wide>(op, at + i, sources...));
    }
  }
  for (; at < count; ++at) dst[at] = static_cast<To>(combine_all<Wide>(op, at, sources...));
}

/// How many of `k` sources one pass takes: the number of operands for which there is a loop.
[[nodiscard]] constexpr int operands_of_pass(int k) noexcept { return k >= 8 ? 8 : k >= 4 ? 4 : k; }

/// One pass over `first` and, from their elements `at` on, as many of the `k` - 1 others as operands_of_pass says.
template <class Wide, class T, class Op>
[[gnu::always_inline]] inline void fold_pass(T* dst, const T* first, const T* const* s, std::size_t at, int k,
                                             std::size_t n, const Op& op) {
  if (k >= 8) {
    fold_fused<Wide>(dst, n, op, first, s[0] + at, s[1] + at, s[2] + at, s[3] + at, s[4] + at, s[5] + at, s[6] + at);
  } else if (k >= 4) {
    fold_fused<Wide>(dst, n, op, first, s[0] + at, s[1] + at, s[2] + at);
  } else if (k == 3) {
    fold_fused<Wide>(dst, n, op, first, s[0] + at, s[1] + at);
  } else {
    fold_fused<Wide>(dst, n, op, first, s[0] + at);
  }
}

/// Memory for elements that need no default constructor.
template <class T, std::size_t Count>
struct block_memory {
  alignas(std::max(alignof(T), stream_line)) std::byte bytes[Count * sizeof(T)];
  [[nodiscard]] T* data() noexcept { return reinterpret_cast<T*>(bytes); }
};

/// Half of it and two operands stay in the first-level cache.
template <class T>
inline constexpr std::size_t many_block = std::max<std::size_t>(1, 4096 / sizeof(T));

/// Any number of sources, in passes; one loop for each number of operands. What is not the last of them leaves its
/// result in memory of its own, as dst may be a source that is still to be read.
///
/// Needs: k >= 2; n is at most many_block where more than one pass is needed
template <class T, class Op>
[[gnu::always_inline]] inline void fold_passes(T* dst, const T* const* s, std::size_t at, int k, std::size_t n,
                                               const Op& op) {
  block_memory<T, many_block<T>> scratch;
  const T* first = *s++ + at;
  for (;;) {
    const int taken = operands_of_pass(k);
    const bool last = taken == k;
    fold_pass<T>(last ? dst : scratch.data(), first, s, at, k, n, op);
    if (last) return;
    first = scratch.data();
    s += taken - 1;
    k -= taken - 1;
  }
}

/// The same for elements that are combined in a wider type: rows of the sources are converted, combined there and
/// converted back, with one rounding.
template <class Arrays, class Wide, class T, class Op>
[[gnu::always_inline]] inline void fold_rows(T* dst, const T* const* s, std::size_t at, int k, std::size_t n,
                                             const Op& op) {
  constexpr int rows = 8;
  constexpr std::size_t row = std::max<std::size_t>(1, 512 / sizeof(Wide));
  block_memory<Wide, row * rows> memory;
  const Wide* wide[rows];
  for (int j = 0; j < rows; ++j) wide[j] = memory.data() + static_cast<std::size_t>(j) * row;
  for (std::size_t done = 0; done < n; done += row) {
    const std::size_t count = std::min(row, n - done);
    for (int next = 0; next < k;) {
      const int held = next == 0 ? 0 : 1;  // what has been combined so far is in the first row
      const int taken = std::min(rows - held, k - next);
      for (int j = 0; j < taken; ++j) {
        const T* const from = s[next + j] + at + done;
        Wide* const to = memory.data() + static_cast<std::size_t>(held + j) * row;
        if constexpr (half_float<T>) {
          Arrays::widen(from, to, count);
        } else {
          for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Wide>(from[i]);
        }
      }
      if (held + taken > 1) fold_passes(memory.data(), wide, 0, held + taken, count, op);
      next += taken;
    }
    if constexpr (half_float<T>) {
      Arrays::narrow(memory.data(), dst + done, count);
    } else {
      for (std::size_t i = 0; i < count; ++i) dst[done + i] = static_cast<T>(memory.data()[i]);
    }
  }
}

template <class Arrays, class T, class Op>
[[gnu::always_inline]] inline void fold_sources(T* dst, const T* const* s, std::size_t at, int k, std::size_t n,
                                                const Op& op) {
  using wide = accumulator_t<Op, T>;
  if constexpr (std::is_same_v<wide, T>) fold_passes(dst, s, at, k, n, op);
  else fold_rows<Arrays, wide>(dst, s, at, k, n, op);
}

// The only code that is compiled more than once: what calls it does so once for each block.
template <class T, class Op>
void fold_sources_portably(T* dst, const T* const* s, std::size_t at, int k, std::size_t n, const Op& op) {
  fold_sources<portable_arrays>(dst, s, at, k, n, op);
}
#if COHORT_HAS_AVX2_KERNELS
template <class T, class Op>
[[gnu::target("avx2,f16c")]] void fold_sources_with_avx2(T* dst, const T* const* s, std::size_t at, int k,
                                                         std::size_t n, const Op& op) {
  fold_sources<avx2_arrays>(dst, s, at, k, n, op);
}
#endif

/// Sources aligned for T, at least two of them.
template <class T, class Op>
void fold_aligned(T* dst, const T* const* sources, int k, std::size_t count, bool streaming, const Op& op) {
  auto* fold_block_of = &fold_sources_portably<T, Op>;
#if COHORT_HAS_AVX2_KERNELS
  if (avx2_arrays::available()) fold_block_of = &fold_sources_with_avx2<T, Op>;
#endif
  if constexpr (stream_line % sizeof(T) == 0) {
    if (streaming) {
      block_memory<T, many_block<T>> result;
      // Whole lines from the first block on: a line that is streamed in two parts is written twice.
      const std::size_t lead = (stream_line - reinterpret_cast<std::uintptr_t>(dst) % stream_line) % stream_line;
      std::size_t n = std::min(lead / sizeof(T), count);
      for (std::size_t at = 0; at < count; at += n, n = std::min(many_block<T>, count - at)) {
        if (n == 0) continue;
        fold_block_of(result.data(), sources, at, k, n, op);
        stream_copy(reinterpret_cast<std::byte*>(dst + at), result.bytes, n * sizeof(T));
      }
      stream_fence();
      return;
    }
  }
  constexpr bool needs_blocks = std::is_same_v<accumulator_t<Op, T>, T>;
  if (!needs_blocks || operands_of_pass(k) == k) return fold_block_of(dst, sources, 0, k, count, op);
  for (std::size_t at = 0; at < count;) {
    const std::size_t n = std::min(many_block<T>, count - at);
    fold_block_of(dst + at, sources, at, k, n, op);
    at += n;
  }
}

/// Sources at any address: element by element.
template <class T, class Op>
void fold_misaligned(std::byte* dst, const std::byte* const* sources, int k, std::size_t count, const Op& op) {
  using wide = accumulator_t<Op, T>;
  alignas(T) std::byte one[sizeof(T)];
  const auto element = [&](int j, std::size_t i) -> wide {
    std::memcpy(one, sources[j] + i * sizeof(T), sizeof(T));
    return static_cast<wide>(*reinterpret_cast<const T*>(one));
  };
  for (std::size_t i = 0; i < count; ++i) {
    wide value = element(0, i);
    for (int j = 1; j < k; ++j) value = static_cast<wide>(op(value, element(j, i)));
    const T rounded = static_cast<T>(value);
    std::memcpy(dst + i * sizeof(T), &rounded, sizeof(T));
  }
}

/// dst[i] = s0[i] op s1[i] op ... op s(k-1)[i], combined from the left.
///
/// Needs:  k >= 1; dst is one of the sources, or overlaps none of them
/// Order:  that of the sources; in float for the 16-bit floats under a shipped functor, rounded once at the end
/// Errors: what op throws, with dst partly written
/// Cost:   reads every source once and writes dst once, for k of 2, 3, 4 and 8; past the caches if `streaming`
template <class T, class Op>
void fold_many_bytes(const void* functor, std::byte* dst, const std::byte* const* sources, int k, std::size_t count,
                     bool streaming) {
  if (k == 1) {
    if (dst == sources[0]) return;
    if (!streaming) {
      std::memcpy(dst, sources[0], count * sizeof(T));
    } else {
      stream_copy(dst, sources[0], count * sizeof(T));
      stream_fence();
    }
    return;
  }
  const Op& op = *static_cast<const Op*>(functor);
  const auto misaligned = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % alignof(T) != 0; };
  if (misaligned(dst) || std::any_of(sources, sources + k, misaligned)) {
    return fold_misaligned<T>(dst, sources, k, count, op);
  }
  fold_aligned(reinterpret_cast<T*>(dst), reinterpret_cast<const T* const*>(sources), k, count, streaming, op);
}

}  // namespace cohort::detail
