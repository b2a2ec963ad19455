// SPDX-License-Identifier: BSL-1.0
// Recycled memory for coroutine frames and the small arrays of an operation, so that a steady state allocates
// nothing. Used by the promise types of task.hpp and operation.hpp and by collective/execute.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define COHORT_DETAIL_PLAIN_FRAMES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COHORT_DETAIL_PLAIN_FRAMES 1
#endif
#endif

namespace cohort::detail {

/// Free lists by size class, one set a thread. A block may be freed on another thread than it came from: it
/// then serves that thread. Under AddressSanitizer every block comes from the heap, so that a use after free
/// is seen.
class frame_pool {
 public:
  /// Of every block: g++ 12 does not tell a promise type what a frame needs that holds an element with alignas.
  static constexpr std::size_t most_aligned = 64;

  static void* allocate(std::size_t bytes) {
#ifndef COHORT_DETAIL_PLAIN_FRAMES
    const std::size_t index = class_of(bytes);
    if (index < classes) {
      if (lists* const mine = local(); mine != nullptr) {
        if (node* const top = mine->heads[index]; top != nullptr) {
          mine->heads[index] = top->next;
          --mine->lengths[index];
          return top;
        }
      }
      return ::operator new((index + 1) * step, alignment);
    }
#endif
    return ::operator new(bytes, alignment);
  }

  static void release(void* block, std::size_t bytes) noexcept {
#ifndef COHORT_DETAIL_PLAIN_FRAMES
    const std::size_t index = class_of(bytes);
    if (index < classes) {
      if (lists* const mine = local(); mine != nullptr && mine->lengths[index] < longest_list(index)) {
        mine->heads[index] = ::new (block) node{mine->heads[index]};
        ++mine->lengths[index];
        return;
      }
    }
#else
    static_cast<void>(bytes);
#endif
    ::operator delete(block, alignment);
  }

 private:
  static constexpr std::align_val_t alignment{most_aligned};
  static constexpr std::size_t step = 64;
  static constexpr std::size_t classes = 64;
  // As many as a peer that runs ahead may leave with this rank, but no hoard of large ones.
  static constexpr std::size_t longest_list(std::size_t index) noexcept {
    constexpr std::size_t most_bytes = std::size_t{1} << 20;
    const std::size_t fit = most_bytes / ((index + 1) * step);
    return fit > 128 ? fit : 128;
  }

  struct node {
    node* next;
  };
  struct lists {
    std::array<node*, classes> heads{};
    std::array<std::size_t, classes> lengths{};
    bool* gone;
    explicit lists(bool* g) noexcept : gone(g) {}
    lists(const lists&) = delete;
    lists& operator=(const lists&) = delete;
    ~lists() {
      *gone = true;
      for (node* head : heads) {
        while (head != nullptr) {
          node* const next = head->next;
          ::operator delete(head, alignment);
          head = next;
        }
      }
    }
  };

  static constexpr std::size_t class_of(std::size_t bytes) noexcept { return bytes == 0 ? 0 : (bytes - 1) / step; }

  // Null once the thread's lists are destroyed: frames freed by later destructors go to the heap.
  static lists* local() noexcept {
    static thread_local bool gone = false;
    if (gone) return nullptr;
    static thread_local lists mine{&gone};
    return &mine;
  }
};

/// Mixed into a promise type: its coroutine's frames come from the pool.
struct pooled_frame {
  static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { frame_pool::release(block, bytes); }
};

/// A standard allocator over the pool, for the short arrays of one operation.
template <class T>
struct pool_allocator {
  using value_type = T;
  pool_allocator() = default;
  template <class U>
  pool_allocator(const pool_allocator<U>&) noexcept {}
  T* allocate(std::size_t n) { return static_cast<T*>(frame_pool::allocate(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { frame_pool::release(block, n * sizeof(T)); }
  friend bool operator==(const pool_allocator&, const pool_allocator&) noexcept { return true; }
};

}  // namespace cohort::detail
