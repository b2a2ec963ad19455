// SPDX-License-Identifier: BSL-1.0
// The kernels of the folds as work of streams of host_runtime.cpp, by the arithmetic that the kernels call. Included in the
// place of gpu/fold.cuh and gpu/quantised_fold.cuh.
#pragma once

#include <cohort/gpu/fold_element.cuh>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/gpu/launch_quantised.hpp>

#include "float8_on_host.hpp"
#include "host_runtime.hpp"

template <class T, class Op>
void cohort::write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(const fold_sources<T>& from, T* out,
                                                                  std::size_t count, const Op& op, int ranks,
                                                                  cudaStream_t s) {
  const detail::fold_arithmetic<T, Op> how{detail::make_applied<T>(op), ranks};
  gpu_test::enqueue_on_host(s, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      auto total = how.first(from.at(0)[i]);
      for (int r = 1; r < from.ranks; ++r) total = how.next(total, from.at(r)[i]);
      out[i] = how.last(total);
    }
  });
}
template <class T, class Op>
void cohort::write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(const T& start, const fold_sources<T>& from, T* out,
                                                                  std::size_t count, const Op& op, cudaStream_t s) {
  const detail::fold_arithmetic<T, Op> how{detail::make_applied<T>(op), from.ranks};
  gpu_test::enqueue_on_host(s, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      auto total = detail::convert_element<accumulator_t<Op, T>>(start);
      for (int r = 0; r < from.ranks; ++r) total = how.next(total, from.at(r)[i]);
      out[i] = detail::convert_element<T>(total);
    }
  });
}

template <class T, class Op, class Blocks>
void cohort::write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(device_span<const T> in,
                                                                               const float8_cut<Blocks>& cut,
                                                                               std::uint8_t* wire, cudaStream_t s) {
  gpu_test::enqueue_on_host(s, [=] { gpu_test::quantise_on_host(in, cut, wire); });
}
template <class T, class Op, class Blocks>
void cohort::write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(const fold_sources<std::uint8_t>& from,
                                                                               const float8_cut<Blocks>& cut,
                                                                               std::uint8_t* out, const Op& op,
                                                                               cudaStream_t s) {
  gpu_test::enqueue_on_host(s, [=] { gpu_test::fold_quantised_on_host(from, cut, out, op); });
}
template <class T, class Op, class Blocks>
void cohort::write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(const fold_sources<std::uint8_t>& pieces,
                                                                               const float8_cut<Blocks>& cut,
                                                                               device_span<T> out, cudaStream_t s) {
  gpu_test::enqueue_on_host(s, [=] { gpu_test::dequantise_on_host(pieces, cut, out); });
}
