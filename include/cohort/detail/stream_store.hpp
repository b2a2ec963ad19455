// SPDX-License-Identifier: BSL-1.0
// Stores that go past the caches: for results too large to be found there again, they save the read of every line that
// an ordinary store makes first. Used by fold_many.hpp and by copies between the buffers of one host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// As a builtin, like those of float_array.hpp: <immintrin.h> costs every translation unit half a second.
#if defined(__has_builtin) && __has_builtin(__builtin_nontemporal_store)
#define COHORT_HAS_STREAM_STORE 1
#elif defined(__SSE2__) && defined(__GNUC__)
#define COHORT_HAS_STREAM_STORE 2
#else
#define COHORT_HAS_STREAM_STORE 0
#endif

namespace cohort::detail {

/// A cache line: what a streaming store fills whole, or loses by.
inline constexpr std::size_t stream_line = 64;

/// Makes the streaming stores of this thread visible before any store after it. An ordinary release store does not.
inline void stream_fence() noexcept {
#if defined(__SSE2__) && COHORT_HAS_STREAM_STORE
  __builtin_ia32_sfence();
#endif
}

/// Copies whole lines past the caches, and what is over at both ends ordinarily. Does not fence.
///
/// Needs: no overlap; fast where dst is aligned to a line
inline void stream_copy(std::byte* dst, const std::byte* src, std::size_t bytes) noexcept {
#if COHORT_HAS_STREAM_STORE
  using vector = long long __attribute__((vector_size(16)));
  const std::size_t before = (stream_line - reinterpret_cast<std::uintptr_t>(dst) % stream_line) % stream_line;
  const std::size_t head = std::min(before, bytes);
  std::memcpy(dst, src, head);
  dst += head, src += head, bytes -= head;
  for (; bytes >= stream_line; bytes -= stream_line, dst += stream_line, src += stream_line) {
    for (std::size_t at = 0; at < stream_line; at += sizeof(vector)) {
      vector part;
      std::memcpy(&part, src + at, sizeof(part));
#if COHORT_HAS_STREAM_STORE == 1
      __builtin_nontemporal_store(part, reinterpret_cast<vector*>(dst + at));
#else
      __builtin_ia32_movntdq(reinterpret_cast<vector*>(dst + at), part);
#endif
    }
  }
#endif
  std::memcpy(dst, src, bytes);
}

}  // namespace cohort::detail
