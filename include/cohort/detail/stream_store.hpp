// SPDX-License-Identifier: BSL-1.0
// Stores that go past the caches: for results too large to be found there again, they save the read of every line that
// an ordinary store makes first. Used by fold_past_caches.hpp and by copies between the buffers of one host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// As a builtin, like those of float_array.hpp: <immintrin.h> costs every translation unit half a second.
#if defined(__has_builtin) && __has_builtin(__builtin_nontemporal_store)
#define COHORT_HAS_STREAM_STORE 1
#define COHORT_STREAM_STORE(bytes, to, value) __builtin_nontemporal_store(value, to)
#elif defined(__SSE2__) && defined(__GNUC__)
#define COHORT_HAS_STREAM_STORE 1
#define COHORT_STREAM_STORE(bytes, to, value) COHORT_STREAM_STORE_##bytes(to, value)
#define COHORT_STREAM_STORE_16(to, value) __builtin_ia32_movntdq(to, value)
#define COHORT_STREAM_STORE_32(to, value) __builtin_ia32_movntdq256(to, value)
#define COHORT_STREAM_STORE_64(to, value) __builtin_ia32_movntdq512(to, value)
#else
#define COHORT_HAS_STREAM_STORE 0
#endif

namespace cohort::detail {

/// A cache line: what a streaming store fills whole, or loses by.
inline constexpr std::size_t stream_line = 64;
/// What is made in the first-level cache and streamed from there, at a time: the shorter, the more of what is read for the
/// next is on its way while the stores of this one leave.
inline constexpr std::size_t stream_block = 512;

/// Makes the streaming stores of this thread visible before any store after it. An ordinary release store does not.
inline void stream_fence() noexcept {
#if defined(__SSE2__) && COHORT_HAS_STREAM_STORE
  __builtin_ia32_sfence();
#endif
}

/// Copies so many whole lines past the caches, to an address at the beginning of one.
using line_streamer = void (*)(std::byte* dst, const std::byte* src, std::size_t lines) noexcept;

#if COHORT_HAS_STREAM_STORE
// One loop for each width, as the store of each needs a function of its own that is compiled for it.
#define COHORT_LINE_STREAMER(name, bytes, instructions)                                             \
  instructions inline void name(std::byte* dst, const std::byte* src, std::size_t lines) noexcept { \
    using vector = long long __attribute__((vector_size(bytes)));                                   \
    for (; lines > 0; --lines, dst += stream_line, src += stream_line) {                            \
      for (std::size_t at = 0; at < stream_line; at += sizeof(vector)) {                            \
        vector part;                                                                                \
        std::memcpy(&part, src + at, sizeof(part));                                                 \
        COHORT_STREAM_STORE(bytes, reinterpret_cast<vector*>(dst + at), part);                      \
      }                                                                                             \
    }                                                                                               \
  }
COHORT_LINE_STREAMER(stream_lines_by_16, 16, )
#if defined(__x86_64__)
COHORT_LINE_STREAMER(stream_lines_by_32, 32, [[gnu::target("avx")]])
COHORT_LINE_STREAMER(stream_lines_by_64, 64, [[gnu::target("avx512f")]])

/// stream_block bytes to the beginning of a line, without a call: for loops that are compiled for AVX and load for the next
/// block meanwhile. `whole_lines`: whether the processor has AVX-512, whose one store fills a line. As an instruction, as
/// what is compiled for AVX-512 itself may round a product and a sum once. Who calls it executes vzeroupper afterwards.
[[gnu::always_inline, gnu::target("avx")]] inline void stream_block_inline(std::byte* dst, const std::byte* src,
                                                                           bool whole_lines) noexcept {
  using vector = long long __attribute__((vector_size(32)));
  using line = char[stream_line];
  for (std::size_t at = 0; at < stream_block; at += stream_line) {
    if (whole_lines) {
      asm volatile("vmovdqu64 {%1, %%zmm0|zmm0, %1}\n\tvmovntdq {%%zmm0, %0|%0, zmm0}"
                   : "=m"(*reinterpret_cast<line*>(dst + at))
                   : "m"(*reinterpret_cast<const line*>(src + at))
                   : "xmm0");
      continue;
    }
    for (std::size_t half = at; half < at + stream_line; half += sizeof(vector)) {
      vector part;
      std::memcpy(&part, src + half, sizeof(part));
      COHORT_STREAM_STORE(32, reinterpret_cast<vector*>(dst + half), part);
    }
  }
}
#endif
#undef COHORT_LINE_STREAMER
#undef COHORT_STREAM_STORE
#undef COHORT_STREAM_STORE_16
#undef COHORT_STREAM_STORE_32
#undef COHORT_STREAM_STORE_64

#if defined(__x86_64__)
/// Whether a store fills a line.
[[nodiscard]] inline bool stores_whole_lines() noexcept {
  static const bool found = __builtin_cpu_supports("avx512f");
  return found;
}
#endif

/// The widest that this processor has: the fewer stores fill a line, the fewer lines are written before they are full.
[[nodiscard]] inline line_streamer widest_streamer() noexcept {
#if defined(__x86_64__)
  static const line_streamer found = stores_whole_lines()            ? &stream_lines_by_64
                                     : __builtin_cpu_supports("avx") ? &stream_lines_by_32
                                                                     : &stream_lines_by_16;
  return found;
#else
  return &stream_lines_by_16;
#endif
}
#else
[[nodiscard]] inline line_streamer widest_streamer() noexcept {
  return [](std::byte* dst, const std::byte* src, std::size_t lines) noexcept {
    std::memcpy(dst, src, lines * stream_line);
  };
}
#endif

/// Copies whole lines past the caches, and what is over at both ends ordinarily. Does not fence.
///
/// Needs: no overlap; fast where dst is aligned to a line
inline void stream_copy(std::byte* dst, const std::byte* src, std::size_t bytes) noexcept {
  const std::size_t before = (stream_line - reinterpret_cast<std::uintptr_t>(dst) % stream_line) % stream_line;
  const std::size_t head = std::min(before, bytes);
  std::memcpy(dst, src, head);
  dst += head, src += head, bytes -= head;
  const std::size_t lines = bytes / stream_line;
  widest_streamer()(dst, src, lines);
  dst += lines * stream_line, src += lines * stream_line, bytes %= stream_line;
  std::memcpy(dst, src, bytes);
}

}  // namespace cohort::detail
