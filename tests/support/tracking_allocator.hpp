// SPDX-License-Identifier: BSL-1.0
// An allocator that says how much memory was in use at most, for tests of what a message can make its reader allocate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

namespace harness {

struct memory_use {
  std::size_t now = 0;
  std::size_t peak = 0;
};
inline memory_use tracked_memory;

template <class T>
struct tracking_allocator {
  using value_type = T;
  tracking_allocator() = default;
  template <class U>
  tracking_allocator(const tracking_allocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t n) {
    T* const block = std::allocator<T>().allocate(n);
    tracked_memory.now += n * sizeof(T);
    tracked_memory.peak = std::max(tracked_memory.peak, tracked_memory.now);
    return block;
  }
  void deallocate(T* block, std::size_t n) noexcept {
    tracked_memory.now -= n * sizeof(T);
    std::allocator<T>().deallocate(block, n);
  }
  template <class U>
  friend bool operator==(const tracking_allocator& /*a*/, const tracking_allocator<U>& /*b*/) noexcept {
    return true;
  }
};

}  // namespace harness
