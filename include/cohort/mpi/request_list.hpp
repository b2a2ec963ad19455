// SPDX-License-Identifier: BSL-1.0
// What MPI gives for one collective: one request, or several where it is too long for one or is carried out by messages. One
// or two need no memory of their own. Used by the bodies of MPI's own collectives and by the endpoint, which asks MPI about them.
#pragma once

#include <cohort/mpi/header.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cohort::transport {

class request_list_of_mpi {
 public:
  request_list_of_mpi() = default;
  request_list_of_mpi(request_list_of_mpi&& other) noexcept
      : first_(other.first_),
        several_(std::move(other.several_)),
        count_(std::exchange(other.count_, 0)),
        receives_(other.receives_),
        some_asked_(other.some_asked_) {}
  request_list_of_mpi& operator=(request_list_of_mpi&& other) noexcept {
    first_ = other.first_;
    several_ = std::move(other.several_);
    count_ = std::exchange(other.count_, 0);
    receives_ = other.receives_;
    some_asked_ = other.some_asked_;
    return *this;
  }

  /// Lifetime: the reference holds until the next call of it
  [[nodiscard]] MPI_Request& another() {
    if (count_ < first_.size()) return first_[count_++] = MPI_REQUEST_NULL;
    if (count_ == first_.size()) several_.assign(first_.begin(), first_.end());
    several_.push_back(MPI_REQUEST_NULL);
    ++count_;
    return several_.back();
  }
  /// The next is the receive of a message, which can be taken back: at once, if its sender needs nothing of this rank.
  void expect_receive(bool sent_unasked) noexcept {
    receives_ |= count_ < 64 ? std::uint64_t{1} << count_ : 0;
    some_asked_ = some_asked_ || !sent_unasked;
  }
  [[nodiscard]] bool may_be_left() const noexcept { return receives_ != 0 && !some_asked_; }
  /// Takes back the receives that no message has come for: then these end. Of sends, and of collectives, MPI keeps the buffers.
  void take_back() noexcept {
    for (std::size_t i = 0; i < count_ && i < 64; ++i) {
      MPI_Request& each = data()[i];
      if ((receives_ >> i & 1) != 0 && each != MPI_REQUEST_NULL) (void)MPI_Cancel(&each);
    }
  }
  [[nodiscard]] MPI_Request* data() noexcept { return count_ > first_.size() ? several_.data() : first_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  void clear() noexcept {
    several_.clear();
    count_ = 0;
    receives_ = 0;
    some_asked_ = false;
  }

 private:
  std::array<MPI_Request, 2> first_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::vector<MPI_Request> several_{};  // all of them, once there are more
  std::size_t count_ = 0;
  std::uint64_t receives_ = 0;  // a bit for each of the first
  bool some_asked_ = false;     // of the senders of these
};

}  // namespace cohort::transport
