// SPDX-License-Identifier: BSL-1.0
// Numbers in pinned memory, one cache line each, that streams write and the poller reads. A slot whose write may still
// come is never given out again. Used by poller.hpp.
#pragma once

#include <cohort/gpu/buffer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::detail {

/// A slot, and the number that says that it is done.
struct flag {
  std::uint64_t* place = nullptr;
  std::uint64_t awaited = 0;

  [[nodiscard]] bool raised() const noexcept {
    return std::atomic_ref<std::uint64_t>(*place).load(std::memory_order_acquire) >= awaited;
  }
};

/// Any thread may take and give.
class flag_ring {
 public:
  /// A flag that is not raised.
  [[nodiscard]] flag take() {
    std::unique_lock lock(mutex_);
    while (free_.empty()) grow(lock);
    flag f{free_.back(), 0};
    free_.pop_back();
    f.awaited = std::atomic_ref<std::uint64_t>(*f.place).load(std::memory_order_relaxed) + 1;
    return f;
  }
  /// Of a flag that was raised, or that no stream was told of.
  void give(const flag& f) {
    const std::lock_guard lock(mutex_);
    free_.push_back(f.place);
  }

 private:
  static constexpr std::size_t slots = 64;
  static constexpr std::size_t stride = 64 / sizeof(std::uint64_t);

  /// The memory is made without the lock: a driver may wait for its device there, and whoever gives must not.
  void grow(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    pinned_buffer<std::uint64_t> page(slots * stride);
    lock.lock();
    pages_.push_back(std::move(page));
    free_.reserve(pages_.size() * slots);
    for (std::uint64_t& word : pages_.back()) word = 0;
    for (std::size_t i = slots; i > 0; --i) free_.push_back(pages_.back().data() + (i - 1) * stride);
  }

  std::mutex mutex_{};
  std::vector<pinned_buffer<std::uint64_t>> pages_{};
  std::vector<std::uint64_t*> free_{};
};

}  // namespace cohort::detail
