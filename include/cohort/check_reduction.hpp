// SPDX-License-Identifier: BSL-1.0
// Refuses a reduction that cannot be meant, with a text that names the mistake and what to write instead.
// Called first by every reducing function, so that the reader never meets the concept's own diagnostics.
#pragma once

#include <cohort/element.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <concepts>
#include <type_traits>

namespace cohort {

namespace detail {

template <class Op>
concept bitwise = std::same_as<Op, bit_and> || std::same_as<Op, bit_or> || std::same_as<Op, bit_xor>;
template <class Op>
concept extreme = std::same_as<Op, min> || std::same_as<Op, max>;
template <class Op>
concept premultiplied = shipped_code<Op> == shipped_code<premultiplied_sum<int>>;

// Members that are neither overloaded nor templates, which is what users write.
template <class Op>
concept has_member_prepare = requires { &Op::prepare; };
template <class Op>
concept has_member_finish = requires { &Op::finish; };

template <class Op, class T>
constexpr void check_shipped() noexcept {
  if constexpr (storage_only<T>) {
    static_assert(always_false<Op, T>,
                  "cohort: 8-bit floats are storage only: convert to float, half or bfloat16 before reducing them");
  } else if constexpr (std::same_as<Op, average> && (std::integral<T> || std::is_enum_v<T>)) {
    static_assert(always_false<Op, T>,
                  "cohort: average of an integer type truncates: use sum and divide, or reduce in float");
  } else if constexpr (premultiplied<Op> && std::integral<T>) {
    static_assert(always_false<Op, T>,
                  "cohort: premultiplied_sum of an integer type needs an integer factor, any other truncates: "
                  "reduce in float");
  } else if constexpr (bitwise<Op> && (real_float<T> || is_complex<T>)) {
    static_assert(always_false<Op, T>,
                  "cohort: a bitwise operation on a floating-point type means nothing: reduce an unsigned integer "
                  "type, made with std::bit_cast if the bits are what you want");
  } else if constexpr (extreme<Op> && is_complex<T>) {
    static_assert(always_false<Op, T>,
                  "cohort: complex numbers have no order, so no min and max: reduce std::abs or std::norm of them, or "
                  "pass a functor: all_reduce(x, [](const T& a, const T& b) { ... })");
  } else {
    static_assert(always_false<Op, T>,
                  "cohort: the element type lacks the operator of this functor (+ for sum, + and / int for average, "
                  "* for product, < for min and max, & | ^ for the bitwise ones, bool for the logical ones) or its "
                  "result is another type: define it, or pass a functor: "
                  "all_reduce(x, [](const S& a, const S& b) { ... })");
  }
}

template <class Op, class T>
constexpr void check_callable() noexcept {
  if constexpr (std::is_invocable_v<Op&, const T&, const T&> && !std::is_invocable_v<const Op&, const T&, const T&>) {
    static_assert(always_false<Op, T>,
                  "cohort: the functor can only be called when it is not const: remove 'mutable' from the lambda, or "
                  "declare operator() const; a reduction keeps no state between calls");
  } else if constexpr (!std::is_invocable_v<const Op&, const T&, const T&>) {
    static_assert(always_false<Op, T>,
                  "cohort: this is not a functor for these elements, op(a, b) does not compile: pass "
                  "[](const T& a, const T& b) { ... } with T the element type, or one of cohort::sum{}, max{}, ...");
  } else if constexpr (!combines<Op, T>) {
    static_assert(always_false<Op, T>,
                  "cohort: the functor's result does not convert to the element type: return an element from it");
  } else {
    static_assert(combines<Op, accumulator_t<Op, T>>,
                  "cohort: the functor cannot be called with its accumulator type, or returns something else: correct "
                  "the specialisation of cohort::accumulator<Op, T>");
  }
}

}  // namespace detail

/// Compiles, and is true, where Op reduces elements of type T; else one error says what is wrong.
template <class Op, class T>
constexpr bool check_reduction() noexcept {
  check_element<T>();
  if constexpr (!element<T>) {
    return true;  // has been said
  } else if constexpr (!std::is_copy_assignable_v<T>) {
    static_assert(detail::always_false<T>,
                  "cohort: elements are combined in place, so their type must be assignable: remove const from its "
                  "members");
  } else if constexpr (!reduction<Op, T> && detail::fixed_functor_code<Op> != 0) {
    detail::check_shipped<typename detail::meaning<Op>::type, T>();
  } else if constexpr (!reduction<Op, T>) {
    detail::check_callable<Op, T>();
  } else {
    static_assert(has_prepare<Op, T> || !detail::has_member_prepare<Op>,
                  "cohort: the functor's prepare would never be called: it must be T prepare(const T&, int ranks) "
                  "const");
    static_assert(has_finish<Op, T> || !detail::has_member_finish<Op>,
                  "cohort: the functor's finish would never be called: it must be T finish(const T&, int ranks) "
                  "const");
  }
  return true;
}

}  // namespace cohort
