// SPDX-License-Identifier: BSL-1.0
// MPI's own collectives of two ranks that move blocks, as what they are: at most one message each way. MPI's blocking ones are
// no more either, and its non-blocking ones take longer. Used by native_bodies.hpp.
#pragma once

#include <cohort/mpi/check.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/request_list.hpp>
#include <cohort/mpi/unasked.hpp>
#include <cohort/transport/device_memory.hpp>

#include <cstddef>

namespace cohort::transport {

/// The other rank of two, where there are two. Messages under one tag arrive in the order of the collectives, as these are
/// started in one order on both ranks, and nothing else has that tag.
///
/// Errors:   as check_mpi
/// Lifetime: what is given and taken, until MPI is done with what it has left in `parts`
class of_two {
 public:
  /// There are more than two, or fewer.
  of_two() = default;
  of_two(int rank, int tag, const device_ranges& of_device) noexcept : rank_(rank), tag_(tag), of_device_(&of_device) {}

  [[nodiscard]] explicit operator bool() const noexcept { return rank_ >= 0; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int other() const noexcept { return 1 - rank_; }

  void give(const void* data, int count, MPI_Datatype type, MPI_Comm comm, request_list_of_mpi& parts) const {
    detail::check_mpi(MPI_Isend(data, count, type, other(), tag_, comm, &parts.another()), "MPI_Isend");
  }
  void take(void* data, int count, MPI_Datatype type, MPI_Comm comm, request_list_of_mpi& parts) const {
    parts.expect_receive(type == MPI_BYTE && static_cast<std::size_t>(count) <= detail::unasked_by_mpi);
    detail::check_mpi(MPI_Irecv(data, count, type, other(), tag_, comm, &parts.another()), "MPI_Irecv");
  }
  /// What a rank has for itself.
  void keep(void* to, const void* from, std::size_t bytes) const {
    if (to != from && bytes > 0) of_device_->copy(to, from, bytes);
  }

 private:
  int rank_ = -1;
  int tag_ = 0;
  const device_ranges* of_device_ = nullptr;
};

}  // namespace cohort::transport
