// SPDX-License-Identifier: BSL-1.0
// Which reductions NCCL carries out itself: a table from a functor and an element type to NCCL's operation and type,
// settled when the program is compiled. What is not in it goes through the fold of gpu/launch_fold.hpp; nothing is mapped
// to something that is only similar.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/nccl/datatype.hpp>
#include <cohort/nccl/header.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <complex>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace cohort {

/// Makes a reduction go through the fold even where NCCL has it: 16-bit floats are then added in float and rounded once,
/// and the smallest and the largest of floats are what min and max of ops.hpp say, NaN and -0 included.
///
/// Example: co_await world.all_reduce(grad, folded{sum{}});
template <class Op>
struct folded {
  Op op;
  static constexpr bool commutative = false;  ///< the fold is in rank order in any case

  template <class T>
    requires std::is_invocable_v<const Op&, const T&, const T&>
  [[nodiscard]] constexpr auto operator()(const T& a, const T& b) const { return op(a, b); }
  template <class T>
    requires has_prepare<Op, T>
  [[nodiscard]] constexpr T prepare(const T& own, int ranks) const { return op.prepare(own, ranks); }
  template <class T>
    requires has_finish<Op, T>
  [[nodiscard]] constexpr T finish(const T& total, int ranks) const { return op.finish(total, ranks); }
};
template <class Op>
folded(Op) -> folded<Op>;

template <class Op, class T>
struct accumulator<folded<Op>, T> : accumulator<Op, T> {};

namespace detail {

/// What NCCL is told: `scalars` elements of `type` for each of the caller's, combined by `op`.
struct nccl_reduction {
  bool native = false;
  ncclRedOp_t op = ncclNumOps;
  ncclDataType_t type = no_nccl_type;
  std::size_t scalars = 1;
  bool scaled = false;  ///< by an operation that is made for the factor
};

template <class T>
inline constexpr bool is_complex_float = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

template <class Op, class T>
[[nodiscard]] consteval nccl_reduction nccl_reduction_of() noexcept {
  using Meaning = applied<Op, T>;
  constexpr ncclDataType_t type = nccl_type_of<T>();
  constexpr bool any = std::same_as<Meaning, sum>;
  constexpr bool all = std::same_as<Meaning, product>;
  if constexpr (std::same_as<T, bool>) {
    // One byte that is 0 or 1. Adding would wrap, the larger of two is "any" and the smaller is "all".
    if (any || std::same_as<Meaning, max> || std::same_as<Meaning, logical_or> || std::same_as<Meaning, bit_or>)
      return {true, ncclMax, ncclUint8, 1, false};
    if (all || std::same_as<Meaning, min> || std::same_as<Meaning, logical_and> || std::same_as<Meaning, bit_and>)
      return {true, ncclMin, ncclUint8, 1, false};
    return {};
  } else if constexpr (is_complex_float<T>) {
    if (any) return {true, ncclSum, nccl_type_of<typename T::value_type>(), 2, false};
    return {};
  } else if constexpr (type == no_nccl_type) {
    return {};
  } else {
    constexpr bool wide = std::same_as<T, float> || std::same_as<T, double>;
    if (any) return {true, ncclSum, type, 1, false};
    if (all) return {true, ncclProd, type, 1, false};
    if (std::same_as<Meaning, min>) return {true, ncclMin, type, 1, false};
    if (std::same_as<Meaning, max>) return {true, ncclMax, type, 1, false};
    // NCCL multiplies by 1/n or by the factor in the type of the elements: of 16 bits that is off by up to 0.2 %.
    if (wide && std::same_as<Meaning, average>) return {true, ncclAvg, type, 1, false};
    if (wide && premultiplied<Meaning>) return {true, ncclNumOps, type, 1, true};
    return {};
  }
}

}  // namespace detail

/// Whether NCCL itself reduces elements of T by Op.
///
/// Needs: to know that NCCL rounds the sum of 16-bit floats after each addition, and that of a number and a NaN its min
///        and max give the number; folded{op} does neither
template <class Op, class T>
inline constexpr bool nccl_reduces = detail::nccl_reduction_of<Op, T>().native;

/// Whether a fold can: any functor, any type.
template <class Op, class T>
concept nccl_folds = reduction<Op, T> && !nccl_reduces<Op, T>;

}  // namespace cohort
