// SPDX-License-Identifier: BSL-1.0
// local_ranks: several ranks of one process on one device, each with a stream of its own, which read each other's buffers
// and wait for each other by events. For tests, and for programs that keep several workers on one GPU, where NCCL refuses
// to. The folds and their order are those of communicator<nccl>; the phases those of ipc_ranks.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/peer_rank.hpp>
#include <cohort/gpu/peer_schedule.hpp>
#include <cohort/gpu/stream.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cohort {

/// Ranks of one process on the device that is current when they are made. One thread makes the calls of all of them: each
/// takes one buffer for every rank.
///
/// Order:     of folds, rank order: the same bits on all ranks
/// Completes: on the ranks' streams; what is enqueued on stream_of(r) before a call comes before it, and what is enqueued
///            after it sees its result. No kernel waits for another: only streams do
/// Errors:    invalid_argument (as many buffers as ranks, sizes), bad_environment where there is no device, io_error
/// Lifetime:  buffers are borrowed until their streams have come that far
class local_ranks {
 public:
  template <class T>
  using buffers = peer_buffers<T>;

  explicit local_ranks(int size) {
    if (size < 1 || size > fold_sources<float>::most_listed) {
      throw error(errc::invalid_argument, "local_ranks of " + std::to_string(size) + " ranks: expected 1.." +
                                              std::to_string(fold_sources<float>::most_listed));
    }
    streams_.resize(static_cast<std::size_t>(size));
    arrived_.resize(static_cast<std::size_t>(size));
  }

  [[nodiscard]] int size() const noexcept { return static_cast<int>(streams_.size()); }
  [[nodiscard]] cudaStream_t stream_of(int rank) const { return streams_.at(static_cast<std::size_t>(rank)).get(); }

  /// Makes every stream wait for what is on all of them.
  void barrier() const {
    for (std::size_t r = 0; r < streams_.size(); ++r) arrived_[r].record(streams_[r].get());
    for (const stream& waits : streams_) {
      for (const detail::event& e : arrived_) e.hold_back(waits.get());
    }
  }
  /// Makes every stream wait for what is on one of them. The first step of a capture that begins on that one: the others
  /// become part of it by this, and the barrier at the end of every call leads them back.
  void follow(int rank) const {
    arrived_[static_cast<std::size_t>(rank)].record(stream_of(rank));
    for (int r = 0; r < size(); ++r) {
      if (r != rank) arrived_[static_cast<std::size_t>(rank)].hold_back(stream_of(r));
    }
  }
  /// Blocks this thread until all that was enqueued is done.
  void synchronize() const {
    for (const stream& s : streams_) s.synchronize();
  }

  /// Shapes: as many elements on every rank. In place.
  /// Cost:   each rank folds its own part of the vector and copies the others'
  template <element T, class Op>
  void all_reduce(buffers<T> inout, const Op& op) const {
    check_reduction<Op, T>();
    run(detail::peer_all_reduce<T, Op>{inout, op});
  }

  /// Shapes: in: size() times the count of out; no buffer of out within one of in
  template <element T, class Op>
  void reduce_scatter(buffers<T> in, buffers<T> out, const Op& op) const {
    check_reduction<Op, T>();
    run(detail::peer_reduce_scatter<T, Op>{in, out, op});
  }

  /// Shapes: as many elements on every rank; out on the root alone, and no buffer of in
  template <element T, class Op>
  void reduce(buffers<T> in, device_span<T> out, const Op& op, root to_rank) const {
    check_reduction<Op, T>();
    const detail::peer_reduce<T, Op> how{in, out, op, to_rank};
    how.check(size());
    how.check_out();
    run(how);
  }

  template <element T>
  void broadcast(buffers<T> inout, root from_rank) const {
    run(detail::peer_broadcast<T>{inout, from_rank});
  }

  /// Shapes: out: size() times the count of in
  template <element T>
  void all_gather(buffers<T> in, buffers<T> out) const {
    run(detail::peer_all_gather<T>{in, out});
  }

  /// Shapes: in, out: size() blocks of one size; no buffer of out within one of in
  template <element T>
  void all_to_all(buffers<T> in, buffers<T> out) const {
    run(detail::peer_all_to_all<T>{in, out});
  }

  /// Carries out the phases of a schedule, for headers that add calls.
  template <class Schedule>
  void run(const Schedule& how) const {
    how.check(size());
    for (int phase = 0; phase < Schedule::phases; ++phase) {
      barrier();
      for (int r = 0; r < size(); ++r) how(phase, detail::peer_rank(r, size(), stream_of(r)));
    }
    barrier();  // nobody's buffers are written again before everybody has read them
  }

 private:
  std::vector<stream> streams_{};
  std::vector<detail::event> arrived_{};
};

}  // namespace cohort
