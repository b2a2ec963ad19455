// SPDX-License-Identifier: BSL-1.0
// Cache lines that one core writes and another reads, again and again. To write to a line that somebody has read the writer must
// first take that right away from the reader, which some processors do line by line: there it is far slower than to write to a
// line that the reader has written to since. So the reader does, when it is done with it; where there are several, each of them.
// Used by transport/shm/ and collective/shared/; benchmarks/floors.cpp measures either.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort::detail {

/// Whether this is such a processor.
[[nodiscard]] inline bool lines_are_handed_back() noexcept {
#if defined(__x86_64__)
  static const bool so = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
  }();
  return so;
#else
  return false;
#endif
}

/// This core has read these bytes, which are worth nothing any more.
///
/// Needs: nobody else reads them, and who writes them next has not been told yet that it may
inline void hand_back(std::byte* data, std::size_t bytes) noexcept {
  if (!lines_are_handed_back()) return;
  constexpr std::size_t line = 64;
  // Whole lines: of others somebody may still need the rest.
  const std::size_t before = (line - reinterpret_cast<std::uintptr_t>(data) % line) % line;
  for (std::size_t at = before; at + line <= bytes; at += line) {
    *static_cast<volatile std::byte*>(data + at) = std::byte{};
  }
}

/// This core has read these bytes, which others may be about to read: they stay what they are.
///
/// Needs: who writes them next has not been told yet that it may
inline void hand_on(std::byte* data, std::size_t bytes) noexcept {
  if (!lines_are_handed_back()) return;
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < bytes; at += line) {
    volatile std::byte& one = data[at];
    const std::byte same = one;
    one = same;
  }
}

/// Who reads what a rank has written for others.
enum class readers : unsigned char {
  many,         ///< its lines are left as reading has left them
  one,          ///< this rank, and now for the last time
  on_two_cores  ///< several, but from no more than two cores: each hands on what it has read, and the last one's core has it
};

/// What is handed back or on is read in blocks of so many bytes, which are in this core's first-level cache then; otherwise in one
/// go.
[[nodiscard]] inline std::size_t read_block(readers who) noexcept {
  return who != readers::many && lines_are_handed_back() ? std::size_t{4} << 10 : ~std::size_t{0};
}

/// What becomes of lines that this core has read.
inline void leave(std::byte* data, std::size_t bytes, readers who) noexcept {
  if (who == readers::one) hand_back(data, bytes);
  if (who == readers::on_two_cores) hand_on(data, bytes);
}

}  // namespace cohort::detail
