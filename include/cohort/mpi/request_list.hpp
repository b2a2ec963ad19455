// SPDX-License-Identifier: BSL-1.0
// What MPI gives for one collective: one request, or several where it is too long for one. The usual one needs no memory
// of its own. Used by the bodies of MPI's own collectives and by the endpoint, which asks MPI about them.
#pragma once

#include <cohort/mpi/header.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace cohort::transport {

class request_list_of_mpi {
 public:
  request_list_of_mpi() = default;
  request_list_of_mpi(request_list_of_mpi&& other) noexcept
      : only_(other.only_), several_(std::move(other.several_)), count_(std::exchange(other.count_, 0)) {}
  request_list_of_mpi& operator=(request_list_of_mpi&& other) noexcept {
    only_ = other.only_;
    several_ = std::move(other.several_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }

  /// Lifetime: the reference holds until the next call of it
  [[nodiscard]] MPI_Request& another() {
    if (count_ == 0) {
      count_ = 1;
      return only_ = MPI_REQUEST_NULL;
    }
    if (count_ == 1) several_.assign(1, only_);
    several_.push_back(MPI_REQUEST_NULL);
    ++count_;
    return several_.back();
  }
  [[nodiscard]] MPI_Request* data() noexcept { return count_ > 1 ? several_.data() : &only_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  void clear() noexcept {
    several_.clear();
    count_ = 0;
  }

 private:
  MPI_Request only_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> several_{};  // all of them, once there are two
  std::size_t count_ = 0;
};

}  // namespace cohort::transport
