// SPDX-License-Identifier: BSL-1.0
// A queue that keeps its memory: a std::deque takes and gives back a block for every few of its elements, however short it
// stays. Used where something is queued for each message.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace cohort::detail {

template <class T>
class fifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size() - first_; }
  [[nodiscard]] T& front() noexcept { return items_[first_]; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return items_[first_ + i]; }
  [[nodiscard]] T* begin() noexcept { return items_.data() + first_; }
  [[nodiscard]] T* end() noexcept { return items_.data() + items_.size(); }

  void push_back(T item) {
    // Moved together once as many have left as are here: each is moved once for one that left.
    if (items_.size() == items_.capacity() && first_ >= size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }
  [[nodiscard]] T pop_front() {
    T item = std::move(items_[first_++]);
    if (first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_{};
  std::size_t first_ = 0;
};

}  // namespace cohort::detail
