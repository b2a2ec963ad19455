// SPDX-License-Identifier: BSL-1.0
// Combining arrays in the order of the ranks, by loops that the compiler vectorises. Used by bare_memory.hpp and
// bare_sockets.hpp.
#pragma once

#include <cohort/detail/stream_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#define BARE_AVX2 __attribute__((target("avx2")))
#else
#define BARE_AVX2
#endif

namespace bare {

/// out = a op b; `out` may be either.
template <class T, class Op>
BARE_AVX2 void fold_two(T* out, const T* a, const T* b, std::size_t n, const Op& op) {
  for (std::size_t i = 0; i < n; ++i) out[i] = op(a[i], b[i]);
}

/// out = s0 op s1 op ... op s(ranks-1), each read once; out is none of them.
template <int Ranks, class T, class Op>
BARE_AVX2 void fold_fused(T* out, const T* const* s, std::size_t n, const Op& op) {
  constexpr std::size_t run = 32;
  std::size_t i = 0;
  for (; n - i >= run; i += run) {
#pragma GCC ivdep
    for (std::size_t k = i; k < i + run; ++k) {
      T value = s[0][k];
      for (int r = 1; r < Ranks; ++r) value = op(value, s[r][k]);
      out[k] = value;
    }
  }
  for (; i < n; ++i) {
    T value = s[0][i];
    for (int r = 1; r < Ranks; ++r) value = op(value, s[r][i]);
    out[i] = value;
  }
}

/// As many elements as stay in the first-level cache.
template <class T>
inline constexpr std::size_t near_by = 4096 / sizeof(T);

/// out = what `of(0)` to `of(ranks - 1)` hold from element `at` on, combined; out is none of them.
template <class T, class Op, class Of>
void fold(T* out, const Of& of, int ranks, std::size_t at, std::size_t n, const Op& op) {
  if (ranks == 2 || ranks == 4 || ranks == 8) {
    const T* s[8];
    for (int k = 0; k < ranks; ++k) s[k] = of(k) + at;
    return ranks == 2   ? fold_fused<2>(out, s, n, op)
           : ranks == 4 ? fold_fused<4>(out, s, n, op)
                        : fold_fused<8>(out, s, n, op);
  }
  for (std::size_t done = 0; done < n; done += near_by<T>) {
    const std::size_t here = std::min(near_by<T>, n - done);
    if (ranks == 1) std::memcpy(out + done, of(0) + at + done, here * sizeof(T));
    for (int k = 1; k < ranks; ++k) {
      fold_two(out + done, k == 1 ? of(0) + at + done : out + done, of(k) + at + done, here, op);
    }
  }
}

#if defined(__x86_64__)
/// Blocks of elements that begin with lines, past the caches, without a call between their loads and those of the next.
template <int Ranks, class T, class Op, class Of, class To>
BARE_AVX2 void fold_past_caches(const To& to, const Of& of, int rank, std::size_t at, std::size_t blocks,
                                const Op& op) {
  constexpr std::size_t each = cohort::detail::stream_block / sizeof(T);
  alignas(64) T near[each];
  const bool whole_lines = cohort::detail::stores_whole_lines();
  const T* s[Ranks];
  T* d[Ranks];
  for (int k = 0; k < Ranks; ++k) s[k] = of(k) + at, d[k] = to((rank + k) % Ranks) + at;
  for (; blocks > 0; --blocks) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < each; ++i) {
      T value = s[0][i];
      for (int k = 1; k < Ranks; ++k) value = op(value, s[k][i]);
      near[i] = value;
    }
    for (int k = 0; k < Ranks; ++k) {
      cohort::detail::stream_block_inline(reinterpret_cast<std::byte*>(d[k]), reinterpret_cast<const std::byte*>(near),
                                          whole_lines);
      s[k] += each, d[k] += each;
    }
  }
  __builtin_ia32_vzeroupper();
}
#endif

/// The same result to each of `to(0)` to `to(ranks - 1)`, past the caches where that is wanted. A short piece at a time: more
/// of what comes next is on its way meanwhile.
template <class T, class Op, class Of, class To>
void fold_to_all(const To& to, const Of& of, int rank, int ranks, std::size_t at, std::size_t n, bool past_caches,
                 const Op& op) {
  constexpr std::size_t short_piece = 1024 / sizeof(T);
  constexpr std::size_t streamed = cohort::detail::stream_block / sizeof(T);
  constexpr std::size_t far_longer = (std::size_t{512} << 10) / sizeof(T);
  alignas(64) T near[near_by<T>];
  const cohort::detail::line_streamer stream = cohort::detail::widest_streamer();
  const std::size_t each = past_caches ? streamed : n < far_longer ? near_by<T> : short_piece;
  std::size_t done = 0;
#if defined(__x86_64__)
  if (past_caches && (ranks == 2 || ranks == 4 || ranks == 8)) {  // the slices begin with lines
    const std::size_t blocks = n / each;
    const auto all = ranks == 2   ? fold_past_caches<2, T, Op, Of, To>
                     : ranks == 4 ? fold_past_caches<4, T, Op, Of, To>
                                  : fold_past_caches<8, T, Op, Of, To>;
    all(to, of, rank, at, blocks, op);
    done = blocks * each;
  }
#endif
  for (; done < n; done += each) {
    const std::size_t here = std::min(each, n - done);
    fold(near, of, ranks, at + done, here, op);
    for (int i = 0; i < ranks; ++i) {
      T* const there = to((rank + i) % ranks) + at + done;
      if (past_caches && here == streamed) {  // the slices begin with lines
        stream(reinterpret_cast<std::byte*>(there), reinterpret_cast<const std::byte*>(near),
               cohort::detail::stream_block / cohort::detail::stream_line);
      } else {
        std::memcpy(there, near, here * sizeof(T));
      }
    }
  }
  if (past_caches) cohort::detail::stream_fence();
}

/// Some elements cut into one slice for each rank, whole lines as far as there are enough.
struct share {
  std::size_t n, each;
  share(std::size_t count, int ranks)
      : n(count),
        each(((count + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks) + 31) / 32 * 32) {}
  [[nodiscard]] std::size_t begin(int k) const { return std::min(n, each * static_cast<std::size_t>(k)); }
  [[nodiscard]] std::size_t size(int k) const { return begin(k + 1) - begin(k); }
};

}  // namespace bare
