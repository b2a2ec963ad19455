// SPDX-License-Identifier: BSL-1.0
// A few bytes copied word by word: what one of the two cores has just written in words is read at once only in words, as a wider read
// waits for the writes. Used by transport/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cohort::detail {

inline void copy_words(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  std::uint64_t word = 0;
  if (bytes == word_bytes) {  // as most are that are so short; to go round a loop once takes four times as much
    std::memcpy(&word, from, word_bytes);
    std::memcpy(to, &word, word_bytes);
    return;
  }
  for (; bytes >= word_bytes; from += word_bytes, to += word_bytes, bytes -= word_bytes) {
    std::memcpy(&word, from, word_bytes);
    std::memcpy(to, &word, word_bytes);
  }
  for (; bytes > 0; --bytes) *to++ = *from++;
}

}  // namespace cohort::detail
