// SPDX-License-Identifier: BSL-1.0
// The k-ary array kernel: dst[i] = s0[i] op s1[i] op ... in one pass over memory, for ranks that can read one another's
// buffers. Behind reducer::fold_many, beside the two-operand kernels of fold.hpp; compiled for AVX2 as well.
#pragma once

#include <cohort/detail/float_array.hpp>
#include <cohort/detail/stream_store.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <algorithm>
#include <bit>
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

#if defined(__clang__)
// A user's functor may have loops that nothing vectorises: no reason to warn the user of our asking for it.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

namespace cohort::detail {

/// g++ vectorises loops of known length at -O2 too. Short, as what is over is done one by one.
inline constexpr std::size_t fused_run = 32;

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

/// Two bfloat16 in a word of memory: both are floats after one instruction, and no lane changes its place.
struct bfloat16_pair {
  using word [[gnu::may_alias, gnu::aligned(2)]] = std::uint32_t;

  [[nodiscard]] static constexpr float lower(std::uint32_t both) noexcept { return std::bit_cast<float>(both << 16); }
  [[nodiscard]] static constexpr float upper(std::uint32_t both) noexcept {
    return std::bit_cast<float>(both & 0xffff0000u);
  }
  /// The upper half is the bfloat16 that `value` is rounded to.
  [[nodiscard]] static constexpr std::uint32_t rounded(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t is_nan = value != value ? 0xffffffffu : 0u;
    return ((bits + 0x7fffu + ((bits >> 16) & 1u)) & ~is_nan) | ((bits | 0x00400000u) & is_nan);
  }
  template <class Op, class... Words>
  [[gnu::always_inline]] static inline std::uint32_t combine(const Op& op, std::uint32_t first, Words... rest) {
    float low = lower(first), high = upper(first);
    ((low = static_cast<float>(op(low, lower(rest)))), ...);
    ((high = static_cast<float>(op(high, upper(rest)))), ...);
    return (rounded(low) >> 16) | (rounded(high) & 0xffff0000u);
  }
};

/// fold_fused for bfloat16 that are combined in float.
template <class Op, class... From>
[[gnu::always_inline]] inline void fold_pairs(bfloat16* dst, std::size_t count, const Op& op, const From*... sources) {
  using word = bfloat16_pair::word;
  constexpr std::size_t run = 64;
  std::size_t at = 0;
  for (; count - at >= 2 * run; at += 2 * run) {
    word* const to = reinterpret_cast<word*>(dst + at);
    COHORT_INDEPENDENT_ELEMENTS
    for (std::size_t i = 0; i < run; ++i) {
      to[i] = bfloat16_pair::combine(op, reinterpret_cast<const word*>(sources + at)[i]...);
    }
  }
  for (; at < count; ++at) dst[at] = static_cast<bfloat16>(combine_all<float>(op, at, sources...));
}

/// Whether op(a, b) is a + b or a * b whatever the floats: then vectors of them can be combined without it.
template <class Op>
inline constexpr bool adds_floats = std::is_same_v<Op, sum> || std::is_same_v<Op, average>;
template <class Factor>
inline constexpr bool adds_floats<premultiplied_sum<Factor>> = true;
template <class Op>
inline constexpr bool multiplies_floats = std::is_same_v<Op, product>;

/// The loop over the elements of any number of sources, for one element type.
template <class Arrays, class T, class Op, class... From>
[[gnu::always_inline]] inline void fold_loop(T* dst, std::size_t n, const Op& op, const From*... sources) {
  if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<accumulator_t<Op, T>, float>) {
    fold_pairs(dst, n, op, sources...);
  } else if constexpr (std::is_same_v<T, half> && std::is_same_v<accumulator_t<Op, T>, float>) {
    Arrays::template combine<multiplies_floats<Op>>(dst, n, sources...);
  } else {
    fold_fused<T>(dst, n, op, sources...);
  }
}

/// Whether fold_loop knows elements of T; others are converted first, by fold_rows.
template <class Arrays, class T, class Op>
inline constexpr bool has_fold_loop = std::is_same_v<accumulator_t<Op, T>, T> ||
                                      (std::is_same_v<accumulator_t<Op, T>, float> &&
                                       (std::is_same_v<T, bfloat16> ||
                                        (std::is_same_v<T, half> && !std::is_same_v<Arrays, portable_arrays> &&
                                         (adds_floats<Op> || multiplies_floats<Op>))));

// Where the loops are compiled for AVX2 too, the others are for old processors: one for two operands will do, and saves
// half of the time that a reduction takes to compile.
template <class Arrays>
inline constexpr bool only_pairs = COHORT_HAS_AVX2_KERNELS&& std::is_same_v<Arrays, portable_arrays>;

/// How many of `k` sources one pass takes: the number of operands for which there is a loop.
template <class Arrays>
[[nodiscard]] constexpr int operands_of_pass(int k) noexcept {
  return only_pairs<Arrays> ? 2 : k >= 8 ? 8 : k >= 4 ? 4 : k;
}

/// One pass over `first` and, from their elements `at` on, as many of the `k` - 1 others as operands_of_pass says.
template <class Arrays, class T, class Op>
[[gnu::always_inline]] inline void fold_pass(T* dst, const T* first, const T* const* s, std::size_t at, int k,
                                             std::size_t n, const Op& op) {
  if constexpr (!only_pairs<Arrays>) {
    if (k >= 8) {
      return fold_loop<Arrays>(dst, n, op, first, s[0] + at, s[1] + at, s[2] + at, s[3] + at, s[4] + at, s[5] + at,
                               s[6] + at);
    }
    if (k >= 4) return fold_loop<Arrays>(dst, n, op, first, s[0] + at, s[1] + at, s[2] + at);
    if (k == 3) return fold_loop<Arrays>(dst, n, op, first, s[0] + at, s[1] + at);
  }
  fold_loop<Arrays>(dst, n, op, first, s[0] + at);
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

/// Any number of sources, in passes, block by block where one does not suffice. What is not the last of them leaves its
/// result in memory of its own, as dst may be a source that is still to be read. Needs k >= 2.
template <class Arrays, class T, class Op>
[[gnu::always_inline]] inline void fold_passes(T* dst, const T* const* sources, std::size_t at, int k, std::size_t n,
                                               const Op& op) {
  block_memory<T, many_block<T>> scratch;
  const std::size_t block = operands_of_pass<Arrays>(k) == k ? n : many_block<T>;
  for (std::size_t done = 0; done < n;) {
    const std::size_t count = std::min(block, n - done);
    const T* first = sources[0] + at + done;
    int next = 1;
    for (bool last = false; !last;) {
      const int taken = operands_of_pass<Arrays>(k - next + 1);
      last = next + taken - 1 == k;
      fold_pass<Arrays>(last ? dst + done : scratch.data(), first, sources + next, at + done, taken, count, op);
      first = scratch.data();
      next += taken - 1;
    }
    done += count;
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
      if (held + taken > 1) fold_passes<Arrays>(memory.data(), wide, 0, held + taken, count, op);
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
[[gnu::always_inline]] inline void fold_arrays(T* dst, const T* const* s, std::size_t at, int k, std::size_t n,
                                               const Op& op) {
  using wide = accumulator_t<Op, T>;
  if constexpr (std::is_same_v<wide, T>) {
    fold_passes<Arrays>(dst, s, at, k, n, op);
  } else {
    if constexpr (has_fold_loop<Arrays, T, Op>) {
      if (operands_of_pass<Arrays>(k) == k) return fold_pass<Arrays>(dst, s[0] + at, s + 1, at, k, n, op);
    }
    fold_rows<Arrays, wide>(dst, s, at, k, n, op);
  }
}

template <class T, class Op>
void fold_arrays_portably(T* dst, const T* const* s, std::size_t at, int k, std::size_t n, const Op& op) {
  fold_arrays<portable_arrays>(dst, s, at, k, n, op);
}
#if COHORT_HAS_AVX2_KERNELS
template <class T, class Op>
[[gnu::target("avx2,f16c")]] void fold_arrays_with_avx2(T* dst, const T* const* s, std::size_t at, int k, std::size_t n,
                                                        const Op& op) {
  fold_arrays<avx2_arrays>(dst, s, at, k, n, op);
}
#endif

/// dst[i] = the sources' elements at + i combined, for at least two sources that are aligned for T as dst is.
template <class T, class Op>
using fold_function = void (*)(T* dst, const T* const* sources, std::size_t at, int k, std::size_t n, const Op& op);

/// What this processor is fastest with.
template <class T, class Op>
[[nodiscard]] fold_function<T, Op> fold_kernel() {
#if COHORT_HAS_AVX2_KERNELS
  if (avx2_arrays::available()) return &fold_arrays_with_avx2<T, Op>;
#endif
  return &fold_arrays_portably<T, Op>;
}

/// Element by element: so few that choosing a kernel would take longer. An element may be so long that each copy of one is felt,
/// and on the stack most of all. Needs k >= 2.
template <class T, class Op>
void fold_elements(T* dst, const T* const* sources, int k, std::size_t count, const Op& op) {
  using wide = accumulator_t<Op, T>;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<wide, T>) {
      T value = static_cast<T>(op(sources[0][i], sources[1][i]));
      for (int j = 2; j < k; ++j) value = static_cast<T>(op(value, sources[j][i]));
      dst[i] = value;
    } else {
      wide value = static_cast<wide>(sources[0][i]);
      for (int j = 1; j < k; ++j) value = static_cast<wide>(op(value, static_cast<wide>(sources[j][i])));
      dst[i] = static_cast<T>(value);
    }
  }
}

/// The same for sources and a dst at any address: up to eight by pieces in aligned memory, more of them element by element.
template <class T, class Op>
void fold_misaligned(std::byte* dst, const std::byte* const* sources, std::size_t first, int k, std::size_t count,
                     const Op& op) {
  constexpr int most = 8;
  constexpr std::size_t piece = std::max<std::size_t>(1, 512 / sizeof(T));
  if (k <= most) {
    block_memory<T, piece * most> memory;
    const T* aligned[most];
    for (std::size_t at = 0; at < count; at += piece) {
      const std::size_t n = std::min(piece, count - at);
      for (int j = 0; j < k; ++j) {
        T* const row = memory.data() + static_cast<std::size_t>(j) * piece;
        std::memcpy(static_cast<void*>(row), sources[j] + (first + at) * sizeof(T), n * sizeof(T));
        aligned[j] = row;
      }
      fold_kernel<T, Op>()(memory.data(), aligned, 0, k, n, op);
      std::memcpy(dst + at * sizeof(T), memory.bytes, n * sizeof(T));
    }
    return;
  }
  using wide = accumulator_t<Op, T>;
  alignas(T) std::byte one[sizeof(T)];
  const auto element = [&](int j, std::size_t i) -> wide {
    std::memcpy(one, sources[j] + (first + i) * sizeof(T), sizeof(T));
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
/// Cost:   reads every source once and writes dst once, for k of 2, 3, 4 and 8
template <class T, class Op>
void fold_many_bytes(const void* functor, std::byte* dst, const std::byte* const* sources, int k, std::size_t count) {
  if (k == 1) {
    if (dst != sources[0]) std::memcpy(dst, sources[0], count * sizeof(T));
    return;
  }
  const Op& op = *static_cast<const Op*>(functor);
  constexpr std::size_t few = 8;
  const auto misaligned = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % alignof(T) != 0; };
  if (misaligned(dst) || std::any_of(sources, sources + k, misaligned)) {
    return fold_misaligned<T>(dst, sources, 0, k, count, op);
  }
  T* const to = reinterpret_cast<T*>(dst);
  const auto from = reinterpret_cast<const T* const*>(sources);
  if (count <= few) return fold_elements(to, from, k, count, op);
  fold_kernel<T, Op>()(to, from, 0, k, count, op);
}

}  // namespace cohort::detail

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
