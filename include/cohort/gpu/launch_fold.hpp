// SPDX-License-Identifier: BSL-1.0
// The fold that combines the contributions of all ranks in one kernel, as a plain host compiler sees it: declared here,
// defined in fold.cuh. Used by the reductions of communicator<nccl> that NCCL does not have.
//
// A program whose calls are in a .cpp names each such pair of types once, in a .cu:
//
//   #include <cohort/gpu/fold.cuh>
//   COHORT_INSTANTIATE_FOLD(float, my::largest_magnitude)
//
// Where that is forgotten, the linker's message names what to write.
#pragma once

#include <cohort/element.hpp>
#include <cohort/gpu/header.hpp>
#include <cohort/reduction.hpp>

#include <cstddef>

namespace cohort {

/// Where the operands of a fold are: rank r's are `count` elements from at(r) on. Listed one by one, or in slots of one
/// size behind each other, with the own ones anywhere.
template <class T>
struct fold_sources {
  static constexpr int most_listed = 16;

  const T* listed[most_listed] = {};
  const T* slots = nullptr;
  std::size_t stride = 0;
  const T* own = nullptr;
  int own_rank = -1;
  int ranks = 0;
  bool in_slots = false;

  [[nodiscard]] COHORT_HOST_DEVICE const T* at(int r) const {
    if (!in_slots) return listed[r];
    return r == own_rank ? own : slots + static_cast<std::size_t>(r) * stride;
  }

  /// Slot r holds rank r's; those of `own_rank` are at `own` instead, unless it is -1.
  [[nodiscard]] static fold_sources of_slots(const T* slots, std::size_t stride, int ranks, const T* own,
                                             int own_rank) {
    fold_sources s;
    s.slots = slots;
    s.stride = stride;
    s.ranks = ranks;
    s.own = own;
    s.own_rank = own_rank;
    s.in_slots = true;
    return s;
  }
};

/// The fold for elements of T and the functor Op, for ranks in their order. A name that tells the reader of a linker's
/// message what to write.
template <class T, class Op>
struct write_COHORT_INSTANTIATE_FOLD {
  /// out[i] = finish(prepare(x0[i]) op prepare(x1[i]) op ...), where xr is from.at(r)
  static void in_one_cu_file(const fold_sources<T>& from, T* out, std::size_t count, const Op& op, int ranks,
                             cudaStream_t s);
  /// out[i] = start op x0[i] op x1[i] op ..., of as many ranks as `from` has; of none, start
  static void in_one_cu_file(const T& start, const fold_sources<T>& from, T* out, std::size_t count, const Op& op,
                             cudaStream_t s);
};

/// Combines the operands of all ranks, in the order of the ranks, in one kernel.
///
/// Result:   the same bits on every rank, for any functor, commutative or not; 16-bit floats are combined in
///           accumulator_t<Op, T> and rounded once
/// Needs:    an operator() that runs on the device (COHORT_HOST_DEVICE), of a class at namespace scope
/// Lifetime: the operands and `out` are borrowed until the stream has come that far; `out` may be one of the operands
/// Cost:     each operand is read once, `out` is written once
template <class T, class Op>
void launch_fold(const fold_sources<T>& from, T* out, std::size_t count, const Op& op, int ranks, cudaStream_t s) {
  if (count > 0) write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(from, out, count, op, ranks, s);
}

/// The same from a value on that stands before rank 0's.
template <class T, class Op>
void launch_fold_from(const T& start, const fold_sources<T>& from, T* out, std::size_t count, const Op& op,
                      cudaStream_t s) {
  if (count > 0) write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(start, from, out, count, op, s);
}

}  // namespace cohort
