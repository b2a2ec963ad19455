// SPDX-License-Identifier: BSL-1.0
// What `make_shared_vector` gives: elements in memory that was made to be shared.
#pragma once

#include <cohort/element.hpp>
#include <cohort/registration.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <cstddef>
#include <utility>

namespace cohort {

/// Elements in memory that the ranks of a communicator share where they can.
///
/// Needs:    trivially copyable elements; they begin as zero bytes
/// Lifetime: as `registration`
template <element T>
class shared_vector {
 public:
  shared_vector() = default;
  shared_vector(shared_vector&&) noexcept = default;
  shared_vector& operator=(shared_vector&&) noexcept = default;
  ~shared_vector() = default;

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] bool active() const noexcept { return registered_.active(); }

  /// For communicators.
  shared_vector(transport::shared_segment memory, registration registered, std::size_t count) noexcept
      : memory_(std::move(memory)),
        registered_(std::move(registered)),
        data_(reinterpret_cast<T*>(memory_.data())),
        size_(count) {}

 private:
  transport::shared_segment memory_{};
  registration registered_{};
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cohort
