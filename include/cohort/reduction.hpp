// SPDX-License-Identifier: BSL-1.0
// What makes a callable a reduction, and the properties a reduction may have: each is one trait with a default, to
// be specialised next to a functor of your own. Asked by communicator.hpp; used by detail/fold.hpp.
#pragma once

#include <cohort/detail/type_name.hpp>
#include <cohort/element.hpp>
#include <cohort/ops.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace cohort {

namespace detail {

/// The shipped functor that a functor of <functional> means, and the operand type that it is fixed to (or void).
template <class Op>
struct meaning {
  using type = Op;
  using operand = void;
};
template <class Shipped, class U>
struct std_meaning {
  using type = Shipped;
  using operand = U;
};
template <class U>
struct meaning<std::plus<U>> : std_meaning<sum, U> {};
template <class U>
struct meaning<std::multiplies<U>> : std_meaning<product, U> {};
template <class U>
struct meaning<std::bit_and<U>> : std_meaning<bit_and, U> {};
template <class U>
struct meaning<std::bit_or<U>> : std_meaning<bit_or, U> {};
template <class U>
struct meaning<std::bit_xor<U>> : std_meaning<bit_xor, U> {};
template <class U>
struct meaning<std::logical_and<U>> : std_meaning<logical_and, U> {};
template <class U>
struct meaning<std::logical_or<U>> : std_meaning<logical_or, U> {};

/// The functor that is applied where the caller passed Op: std::plus<> becomes sum, which does not overflow.
/// std::plus<double> for elements of float stays what it is: it computes in double.
template <class Op, class T>
using applied = std::conditional_t<std::is_void_v<typename meaning<Op>::operand> ||
                                       std::is_same_v<typename meaning<Op>::operand, T>,
                                   typename meaning<Op>::type, Op>;

// The position of a name is its code, and part of the wire protocol: append, never reorder.
inline constexpr std::array<std::string_view, 12> functor_names{
    "unknown", "sum",    "product", "min",         "max",        "average",
    "bit_and", "bit_or", "bit_xor", "logical_and", "logical_or", "premultiplied_sum"};

template <class Op>
inline constexpr std::uint16_t shipped_code = 0;
template <>
inline constexpr std::uint16_t shipped_code<sum> = 1;
template <>
inline constexpr std::uint16_t shipped_code<product> = 2;
template <>
inline constexpr std::uint16_t shipped_code<min> = 3;
template <>
inline constexpr std::uint16_t shipped_code<max> = 4;
template <>
inline constexpr std::uint16_t shipped_code<average> = 5;
template <>
inline constexpr std::uint16_t shipped_code<bit_and> = 6;
template <>
inline constexpr std::uint16_t shipped_code<bit_or> = 7;
template <>
inline constexpr std::uint16_t shipped_code<bit_xor> = 8;
template <>
inline constexpr std::uint16_t shipped_code<logical_and> = 9;
template <>
inline constexpr std::uint16_t shipped_code<logical_or> = 10;
template <class Factor>
inline constexpr std::uint16_t shipped_code<premultiplied_sum<Factor>> = 11;

template <class Op>
inline constexpr std::uint16_t fixed_functor_code = shipped_code<typename meaning<Op>::type>;

template <class Op, class T>
concept combines = requires(const Op& op, const T& a, const T& b) { { op(a, b) } -> result_for<T>; };

}  // namespace detail

/// The type in which operands are combined: float for the 16-bit floats under a shipped functor, else the element
/// type. Specialise it for a functor of your own that takes a wider type; each combination is then rounded once.
template <class Op, class T>
struct accumulator {
  using type = std::conditional_t<
      detail::half_float<T> && detail::shipped_code<detail::applied<Op, T>> != 0, float, T>;
};
template <class Op, class T>
using accumulator_t = typename accumulator<Op, T>::type;

/// A callable that combines two elements into one: `op(a, b)` on a const Op and const operands, with a result that
/// converts to T. It must be associative, as far as rounding allows; it need not be commutative.
template <class Op, class T>
concept reduction = element<T> && std::is_copy_assignable_v<T> && detail::combines<detail::applied<Op, T>, T> &&
                    detail::combines<detail::applied<Op, T>, accumulator_t<Op, T>>;

namespace detail {

template <class Op, class T>
[[nodiscard]] consteval bool commutative_by_default() noexcept {
  if constexpr (requires { static_cast<bool>(Op::commutative); }) return Op::commutative;
  else return fixed_functor_code<Op> != 0 && (number<T> || std::is_enum_v<T>);
}

/// The functors that have an identity on numbers; the order is what min and max lack on complex numbers.
template <class Op, class T>
concept has_known_identity = number<T> && fixed_functor_code<Op> != 0 && reduction<Op, T>;

template <class Op, class T>
[[nodiscard]] consteval T known_identity() noexcept {
  using Meaning = typename meaning<Op>::type;
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<Meaning, product> || std::is_same_v<Meaning, logical_and>) {
    return static_cast<T>(1);
  } else if constexpr (std::is_same_v<Meaning, min>) {
    if constexpr (Limits::has_infinity) return Limits::infinity();
    else return Limits::max();
  } else if constexpr (std::is_same_v<Meaning, max>) {
    if constexpr (Limits::has_infinity) return -Limits::infinity();
    else return Limits::lowest();
  } else if constexpr (std::is_same_v<Meaning, bit_and>) {
    if constexpr (std::is_same_v<T, bool>) return true;
    else return static_cast<T>(~T{});
  } else {
    return T{};
  }
}

}  // namespace detail

/// Whether op(a, b) and op(b, a) are the same, so that operands may be combined in another order than that of the
/// ranks. True for the shipped functors, and the std:: ones that mean the same, on built-in types; false for all
/// others, on structs too, where + may be anything. A functor opts in with a member `static constexpr bool
/// commutative = true`, or with a specialisation: `template <> inline constexpr bool
/// cohort::is_commutative<cohort::sum, vec3> = true;`.
template <class Op, class T>
inline constexpr bool is_commutative = detail::commutative_by_default<Op, T>();

/// The value that changes nothing: `op(value, x) == x`. Empty where none is known; specialise it with a
/// `static constexpr T value`. (That of logical_and and logical_or leaves 0 and 1 as they are.)
template <class Op, class T>
struct identity {};
template <class Op, class T>
  requires detail::has_known_identity<Op, T>
struct identity<Op, T> {
  static constexpr T value = detail::known_identity<Op, T>();
};

template <class Op, class T>
concept has_identity = requires { { identity<Op, T>::value } -> std::convertible_to<T>; };

/// A functor whose member `T prepare(const T& own, int ranks) const` is applied to every element of every rank's
/// contribution once, before anything is combined.
template <class Op, class T>
concept has_prepare =
    requires(const Op& op, const T& own, int ranks) { { op.prepare(own, ranks) } -> detail::result_for<T>; };

/// A functor whose member `T finish(const T& total, int ranks) const` is applied to every element of the result
/// once, after everything is combined.
template <class Op, class T>
concept has_finish =
    requires(const Op& op, const T& total, int ranks) { { op.finish(total, ranks) } -> detail::result_for<T>; };

/// What a rank contributes for its element `own`.
template <class Op, element T>
[[nodiscard]] constexpr T prepare(const Op& op, const T& own, int ranks) {
  if constexpr (has_prepare<Op, T>) return static_cast<T>(op.prepare(own, ranks));
  else return own;
}

/// What the callers get for the combined element `total`.
template <class Op, element T>
[[nodiscard]] constexpr T finish(const Op& op, const T& total, int ranks) {
  if constexpr (has_finish<Op, T>) return static_cast<T>(op.finish(total, ranks));
  else return total;
}

/// The number of a functor, equal in every process: fixed below 0x8000 for the shipped functors and the std:: ones
/// that mean the same, else 0x8000 | a 15-bit hash of the type's name. g++ names all lambdas of one function and
/// signature alike: specialise it, with 0x8000 set, to tell two such functors apart.
template <class Op>
inline constexpr std::uint16_t functor_id = detail::fixed_functor_code<Op> != 0
                                                ? detail::fixed_functor_code<Op>
                                                : detail::hashed_code(detail::type_name<Op>(), 0);

/// The name that belongs to a number from another process: "sum", "functor#1a2b".
[[nodiscard]] inline std::string functor_name(std::uint16_t id) {
  if ((id & 0x8000u) != 0) return detail::hashed_name("functor", id);
  return std::string(detail::functor_names[id < detail::functor_names.size() ? id : 0]);
}

/// The name of a functor of this process: as above for those known, the type's own name for others.
template <class Op>
[[nodiscard]] std::string functor_name() {
  constexpr std::uint16_t code = detail::fixed_functor_code<Op>;
  return std::string(code != 0 ? detail::functor_names[code] : detail::type_name<Op>());
}

}  // namespace cohort
