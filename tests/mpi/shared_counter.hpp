// SPDX-License-Identifier: BSL-1.0
// A number that all ranks of one host see at once: what shows that a barrier lets nobody through early.
#pragma once

#include <cohort/mpi/header.hpp>

#include <cohort/backend/mpi.hpp>

#include <atomic>
#include <new>
#include <stdexcept>

namespace oracle {

class shared_counter {
 public:
  /// Collective over MPI_COMM_WORLD.
  explicit shared_counter(const cohort::communicator<cohort::mpi>& world) {
    void* base = nullptr;
    const MPI_Aint bytes = world.rank() == 0 ? sizeof(std::atomic<int>) : 0;
    if (MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window_) != MPI_SUCCESS) {
      throw std::runtime_error("MPI_Win_allocate_shared failed");
    }
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 0, &size, &unit, &base);
    if (world.rank() == 0) counter_ = new (base) std::atomic<int>(0);
    MPI_Barrier(MPI_COMM_WORLD);
    counter_ = static_cast<std::atomic<int>*>(base);
  }
  shared_counter(const shared_counter&) = delete;
  shared_counter& operator=(const shared_counter&) = delete;
  ~shared_counter() { MPI_Win_free(&window_); }
  [[nodiscard]] std::atomic<int>& get() const noexcept { return *counter_; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::atomic<int>* counter_ = nullptr;
};

}  // namespace oracle
