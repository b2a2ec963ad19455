// SPDX-License-Identifier: BSL-1.0
// A rank that reads the device memory of the others, as the phases of peer_schedule.hpp see it: its number, and how it
// enqueues a fold or a copy on its stream. Used by local_ranks.hpp and ipc_ranks.hpp.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/launch_fold.hpp>

#include <cstddef>

namespace cohort::detail {

class peer_rank {
 public:
  peer_rank(int rank, int size, cudaStream_t s) noexcept : rank_(rank), size_(size), stream_(s) {}

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

  template <class T, class Op>
  void fold(const fold_sources<T>& from, T* out, std::size_t count, const Op& op) const {
    launch_fold<T, Op>(from, out, count, op, size_, stream_);
  }
  template <class T>
  void copy(const T* from, T* to, std::size_t count) const {
    if (count == 0 || from == to) return;
    check_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
  }

 private:
  int rank_;
  int size_;
  cudaStream_t stream_;
};

}  // namespace cohort::detail
