// SPDX-License-Identifier: BSL-1.0
// The fold's kernels: the definitions of what launch_fold.hpp declares, through CUB. To be included in a .cu, where folds
// are then made as they are used; COHORT_INSTANTIATE_FOLD makes one for the .cpp files of the program.
//
// Compile with nvcc -std=c++20 --expt-relaxed-constexpr: the functors of ops.hpp are constexpr and run on the device by
// that.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/each_index.cuh>
#include <cohort/gpu/fold_element.cuh>
#include <cohort/gpu/launch_fold.hpp>

#include <cub/device/device_for.cuh>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cohort::detail {

/// For a number of ranks that is known: the vectors of all ranks in, one out.
template <class T, class Op>
struct fold_lanes {
  fold_arithmetic<T, Op> how;

  template <class... Vector>
  [[nodiscard]] COHORT_HOST_DEVICE fold_vector<T> operator()(const fold_vector<T>& first,
                                                             const Vector&... others) const {
    fold_vector<T> out;
#pragma unroll
    for (int i = 0; i < fold_width<T>; ++i) {
      auto total = how.first(first.lane[i]);
      ((total = how.next(total, others.lane[i])), ...);
      out.lane[i] = how.last(total);
    }
    return out;
  }
};

/// For any number of ranks: vector i of all ranks.
template <class T, class Op>
struct fold_vector_at {
  fold_arithmetic<T, Op> how;
  fold_sources<T> from;
  T* out;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    using A = accumulator_t<Op, T>;
    using V = fold_vector<T>;
    const V first = reinterpret_cast<const V*>(from.at(0))[i];
    A total[fold_width<T>];
#pragma unroll
    for (int k = 0; k < fold_width<T>; ++k) total[k] = how.first(first.lane[k]);
    COHORT_UNROLL_BY_4
    for (int r = 1; r < from.ranks; ++r) {
      const V next = reinterpret_cast<const V*>(from.at(r))[i];
#pragma unroll
      for (int k = 0; k < fold_width<T>; ++k) total[k] = how.next(total[k], next.lane[k]);
    }
    V result;
#pragma unroll
    for (int k = 0; k < fold_width<T>; ++k) result.lane[k] = how.last(total[k]);
    reinterpret_cast<V*>(out)[i] = result;
  }
};

/// Element by element: what is left over behind the last whole vector.
template <class T, class Op>
struct fold_element_at {
  fold_arithmetic<T, Op> how;
  fold_sources<T> from;
  T* out;
  std::size_t offset;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    auto total = how.first(from.at(0)[offset + i]);
    COHORT_UNROLL_BY_4
    for (int r = 1; r < from.ranks; ++r) total = how.next(total, from.at(r)[offset + i]);
    out[offset + i] = how.last(total);
  }
};

/// As many elements for a thread of buffers that no vector can be read from as a vector has, at most eight: with one for
/// each, too little is asked of the memory at a time.
template <class T, class Op>
inline constexpr int elements_of_thread =
    std::is_default_constructible_v<accumulator_t<Op, T>> ? (fold_width<T> > 8 ? 8 : fold_width<T>) : 1;

/// Element by element, some for each thread; those that threads beside each other have at a time are beside each other.
template <class T, class Op>
struct fold_elements_at {
  static constexpr int each = elements_of_thread<T, Op>;
  static constexpr std::size_t apart = each_index_threads;

  fold_element_at<T, Op> one;
  std::size_t count;

  /// Calls for so many elements
  [[nodiscard]] static std::size_t calls(std::size_t count) {
    return (count + apart * each - 1) / (apart * each) * apart;
  }

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t at = i / apart * apart * each + i % apart;
    if (at + (each - 1) * apart < count) {
      combine(one.offset + at);
    } else {
      for (std::size_t e = at; e < count; e += apart) one(e);
    }
  }

 private:
  COHORT_HOST_DEVICE void combine(std::size_t at) const {
    accumulator_t<Op, T> total[each];
    const T* own = one.from.at(0) + at;
#pragma unroll
    for (int k = 0; k < each; ++k) total[k] = one.how.first(own[k * apart]);
    COHORT_UNROLL_BY_4
    for (int r = 1; r < one.from.ranks; ++r) {
      own = one.from.at(r) + at;
#pragma unroll
      for (int k = 0; k < each; ++k) total[k] = one.how.next(total[k], own[k * apart]);
    }
#pragma unroll
    for (int k = 0; k < each; ++k) one.out[at + k * apart] = one.how.last(total[k]);
  }
};

/// The same from a value on, without prepare and finish: a scan's.
template <class T, class Op>
struct fold_from_at {
  fold_arithmetic<T, Op> how;
  fold_sources<T> from;
  T start;
  T* out;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    auto total = convert_element<accumulator_t<Op, T>>(start);
    COHORT_UNROLL_BY_4
    for (int r = 0; r < from.ranks; ++r) total = how.next(total, from.at(r)[i]);
    out[i] = convert_element<T>(total);
  }
};

/// The vectors at an index, of as many ranks as are named: what CUB copies into every thread is then no array to index.
template <class T, class Op, int Ranks>
struct fold_named_at {
  fold_lanes<T, Op> how;
  const fold_vector<T>* in[Ranks];
  fold_vector<T>* out;

  fold_named_at(const fold_arithmetic<T, Op>& with, const fold_sources<T>& from, T* to)
      : how{with}, out(reinterpret_cast<fold_vector<T>*>(to)) {
    for (int r = 0; r < Ranks; ++r) in[r] = reinterpret_cast<const fold_vector<T>*>(from.at(r));
  }
  COHORT_HOST_DEVICE void operator()(std::size_t i) const { combine(i, std::make_index_sequence<Ranks>{}); }

 private:
  template <std::size_t... R>
  COHORT_HOST_DEVICE void combine(std::size_t i, std::index_sequence<R...>) const {
    const fold_vector<T> mine[Ranks] = {in[R][i]...};
    out[i] = how(mine[R]...);
  }
};

/// The result for `vectors` vectors, which all operands have at aligned addresses.
template <class T, class Op>
[[nodiscard]] cudaError_t fold_vectors(const fold_sources<T>& from, T* out, std::size_t vectors,
                                       const fold_arithmetic<T, Op>& how, cudaStream_t s) {
  const auto of = [&](auto ranks) {
    return cub::DeviceFor::Bulk(vectors, fold_named_at<T, Op, decltype(ranks)::value>(how, from, out), s);
  };
  switch (from.ranks) {
    case 2: return of(std::integral_constant<int, 2>{});
    case 3: return of(std::integral_constant<int, 3>{});
    case 4: return of(std::integral_constant<int, 4>{});
    case 5: return of(std::integral_constant<int, 5>{});
    case 6: return of(std::integral_constant<int, 6>{});
    case 7: return of(std::integral_constant<int, 7>{});
    case 8: return of(std::integral_constant<int, 8>{});
    default: return for_each_index(vectors, fold_vector_at<T, Op>{how, from, out}, s);
  }
}

/// The result for `count` elements, at any addresses.
template <class T, class Op>
[[nodiscard]] cudaError_t fold_elements(std::size_t count, const fold_element_at<T, Op>& one, cudaStream_t s) {
  using some = fold_elements_at<T, Op>;
  if constexpr (some::each > 1) {
    if (count >= std::size_t{some::each} * some::apart) return for_each_index(some::calls(count), some{one, count}, s);
  }
  return for_each_index(count, one, s);
}

}  // namespace cohort::detail

namespace cohort {

template <class T, class Op>
void write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(const fold_sources<T>& from, T* out, std::size_t count,
                                                          const Op& op, int ranks, cudaStream_t s) {
  constexpr std::size_t width = static_cast<std::size_t>(detail::fold_width<T>);
  const detail::fold_arithmetic<T, Op> how{detail::make_applied<T>(op), ranks};
  bool aligned = width > 1 && detail::is_vector_aligned(out);
  for (int r = 0; aligned && r < from.ranks; ++r) aligned = detail::is_vector_aligned(from.at(r));
  const std::size_t vectors = aligned ? count / width : 0;
  if (vectors > 0) detail::check_cuda(detail::fold_vectors(from, out, vectors, how, s), "the fold's kernel");
  if (const std::size_t done = vectors * width; done < count) {
    detail::check_cuda(detail::fold_elements(count - done, detail::fold_element_at<T, Op>{how, from, out, done}, s),
                       "the fold's kernel for single elements");
  }
}

template <class T, class Op>
void write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(const T& start, const fold_sources<T>& from, T* out,
                                                          std::size_t count, const Op& op, cudaStream_t s) {
  const detail::fold_arithmetic<T, Op> how{detail::make_applied<T>(op), from.ranks};
  detail::check_cuda(detail::for_each_index(count, detail::fold_from_at<T, Op>{how, from, start, out}, s),
                     "the scan's kernel");
}

}  // namespace cohort

/// Makes the fold for elements of a type and a functor, for calls in files that nvcc does not compile. Outside of any
/// namespace; the functor last, because its name may hold commas.
#define COHORT_INSTANTIATE_FOLD(ELEMENT, ...) \
  template struct cohort::write_COHORT_INSTANTIATE_FOLD<ELEMENT, __VA_ARGS__>;
