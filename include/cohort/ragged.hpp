// SPDX-License-Identifier: BSL-1.0
// ragged<T>: blocks of different sizes, one for each rank, in one piece of memory. What the forms in _v give when
// only the senders know how much they send.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace cohort {

template <class T>
class ragged {
 public:
  ragged() : offsets_(1, 0) {}
  /// Needs: offsets ascend from 0 to values.size()
  ragged(std::vector<T> values, std::vector<std::size_t> offsets)
      : values_(std::move(values)), offsets_(std::move(offsets)) {}

  /// The number of blocks.
  [[nodiscard]] int size() const noexcept { return static_cast<int>(offsets_.size()) - 1; }
  /// The block of one rank.
  [[nodiscard]] std::span<T> operator[](int rank) noexcept {
    return std::span(values_).subspan(begin_of(rank), count(rank));
  }
  [[nodiscard]] std::span<const T> operator[](int rank) const noexcept {
    return std::span(values_).subspan(begin_of(rank), count(rank));
  }
  [[nodiscard]] std::size_t count(int rank) const noexcept { return begin_of(rank + 1) - begin_of(rank); }
  /// All blocks, one after the other.
  [[nodiscard]] const std::vector<T>& values() const& noexcept { return values_; }
  [[nodiscard]] std::vector<T>&& values() && noexcept { return std::move(values_); }

 private:
  [[nodiscard]] std::size_t begin_of(int rank) const noexcept { return offsets_[static_cast<std::size_t>(rank)]; }

  std::vector<T> values_{};
  std::vector<std::size_t> offsets_;
};

}  // namespace cohort
