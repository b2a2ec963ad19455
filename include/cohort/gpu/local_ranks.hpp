// SPDX-License-Identifier: BSL-1.0
// local_ranks: several ranks of one process on one device, each with a stream of its own, which read each other's buffers
// and wait for each other by events. For tests, and for programs that keep several workers on one GPU, where NCCL refuses
// to. The folds and their order are those of communicator<nccl>.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/gpu/stream.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
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
  using buffers = std::span<const device_span<T>>;

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
  /// Blocks this thread until all that was enqueued is done.
  void synchronize() const {
    for (const stream& s : streams_) s.synchronize();
  }

  /// Shapes: as many elements on every rank. In place.
  /// Cost:   each rank folds its own part of the vector and copies the others'
  template <element T, class Op>
  void all_reduce(buffers<T> inout, const Op& op) const {
    check_reduction<Op, T>();
    const std::size_t count = check("all_reduce", "inout", inout);
    const std::size_t part = part_of(count);
    barrier();
    for (int r = 0; r < size(); ++r) {
      const std::size_t at = std::min(count, static_cast<std::size_t>(r) * part);
      fold_into(inout, at, inout[static_cast<std::size_t>(r)].data() + at, std::min(part, count - at), op, r);
    }
    barrier();
    for (int r = 0; r < size(); ++r) {
      for (int from = 0; from < size(); ++from) {
        const std::size_t at = std::min(count, static_cast<std::size_t>(from) * part);
        const std::size_t n = std::min(part, count - at);
        if (from != r) copy(inout[index(from)].data() + at, inout[index(r)].data() + at, n, r);
      }
    }
    barrier();
  }

  /// Shapes: in: size() times the count of out; no buffer of out within one of in
  template <element T, class Op>
  void reduce_scatter(buffers<T> in, buffers<T> out, const Op& op) const {
    check_reduction<Op, T>();
    const std::size_t block = check("reduce_scatter", "out", out);
    expect("reduce_scatter", "in", check("reduce_scatter", "in", in), block * streams_.size());
    barrier();
    for (int r = 0; r < size(); ++r) fold_into(in, index(r) * block, out[index(r)].data(), block, op, r);
    barrier();
  }

  /// Shapes: as many elements on every rank; out on the root alone, and no buffer of in
  template <element T, class Op>
  void reduce(buffers<T> in, device_span<T> out, const Op& op, root to_rank) const {
    check_reduction<Op, T>();
    const std::size_t count = check("reduce", "in", in);
    check_root("reduce", to_rank);
    expect("reduce", "out", out.size(), count);
    barrier();
    fold_into(in, 0, out.data(), count, op, to_rank.rank);
    barrier();
  }

  template <element T>
  void broadcast(buffers<T> inout, root from_rank) const {
    const std::size_t count = check("broadcast", "inout", inout);
    check_root("broadcast", from_rank);
    barrier();
    for (int r = 0; r < size(); ++r) {
      if (r != from_rank.rank) copy(inout[index(from_rank.rank)].data(), inout[index(r)].data(), count, r);
    }
    barrier();
  }

  /// Shapes: out: size() times the count of in
  template <element T>
  void all_gather(buffers<T> in, buffers<T> out) const {
    const std::size_t block = check("all_gather", "in", in);
    expect("all_gather", "out", check("all_gather", "out", out), block * streams_.size());
    barrier();
    for (int r = 0; r < size(); ++r) {
      for (int from = 0; from < size(); ++from) {
        copy(in[index(from)].data(), out[index(r)].data() + index(from) * block, block, r);
      }
    }
    barrier();
  }

  /// Shapes: in, out: size() blocks of one size; no buffer of out within one of in
  template <element T>
  void all_to_all(buffers<T> in, buffers<T> out) const {
    const std::size_t count = check("all_to_all", "in", in);
    expect("all_to_all", "out", check("all_to_all", "out", out), count);
    const std::size_t block = count / streams_.size();
    expect("all_to_all", "in", count, block * streams_.size());
    barrier();
    for (int r = 0; r < size(); ++r) {
      for (int from = 0; from < size(); ++from) {
        copy(in[index(from)].data() + index(r) * block, out[index(r)].data() + index(from) * block, block, r);
      }
    }
    barrier();
  }

 private:
  [[nodiscard]] static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }
  /// Whole vectors of 16 elements for every rank but the last.
  [[nodiscard]] std::size_t part_of(std::size_t count) const noexcept {
    return ((count + streams_.size() - 1) / streams_.size() + 15) / 16 * 16;
  }

  template <class T>
  [[nodiscard]] std::size_t check(const char* operation, const char* name, buffers<T> all) const {
    if (all.size() != streams_.size()) {
      throw error(errc::invalid_argument, std::string(operation) + ": " + name + " has " + std::to_string(all.size()) +
                                              " buffers, expected " + std::to_string(streams_.size()) +
                                              ", one for each rank");
    }
    for (const device_span<T>& b : all) expect(operation, name, b.size(), all[0].size());
    return all[0].size();
  }
  static void expect(const char* operation, const char* name, std::size_t found, std::size_t expected) {
    if (found == expected) return;
    throw error(errc::invalid_argument, std::string(operation) + ": a buffer of " + name + " has " +
                                            std::to_string(found) + " elements, expected " + std::to_string(expected) +
                                            " on every rank");
  }
  void check_root(const char* operation, root r) const {
    if (r.rank < 0 || r.rank >= size()) {
      throw error(errc::invalid_argument, std::string(operation) + ": root " + std::to_string(r.rank) +
                                              ": expected 0.." + std::to_string(size() - 1));
    }
  }

  template <class T>
  void copy(const T* from, T* to, std::size_t count, int rank) const {
    if (count == 0 || from == to) return;
    detail::check_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream_of(rank)),
                       "cudaMemcpyAsync");
  }
  template <class T, class Op>
  void fold_into(buffers<T> in, std::size_t at, T* out, std::size_t count, const Op& op, int rank) const {
    fold_sources<T> from;
    from.ranks = size();
    for (int r = 0; r < size(); ++r) from.listed[r] = in[index(r)].data() + at;
    launch_fold<T, Op>(from, out, count, op, size(), stream_of(rank));
  }

  std::vector<stream> streams_{};
  std::vector<detail::event> arrived_{};
};

}  // namespace cohort
