// SPDX-License-Identifier: BSL-1.0
// Counts the calls of operator new of each thread. Include it in one translation unit of a program only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace harness {
inline thread_local std::size_t allocations = 0;

inline void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  if (void* const block = std::aligned_alloc(alignment, size == 0 ? alignment : size)) return block;
  throw std::bad_alloc();
}
}  // namespace harness

[[gnu::noinline]] void* operator new(std::size_t bytes) { return harness::counted(bytes, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t a) { return harness::counted(bytes, static_cast<std::size_t>(a)); }
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
