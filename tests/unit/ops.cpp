// SPDX-License-Identifier: BSL-1.0
// Every shipped functor on every type against a definition written here, and every property that is claimed of it.
#include <doctest/doctest.h>

#include <cohort/check_reduction.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace ops_test {

struct vec2 {
  float x, y;
  friend vec2 operator+(vec2 a, vec2 b) { return {a.x + b.x, a.y + b.y}; }
  friend vec2 operator/(vec2 a, int n) { return {a.x / static_cast<float>(n), a.y / static_cast<float>(n)}; }
  friend vec2 operator*(vec2 a, float f) { return {a.x * f, a.y * f}; }
  friend bool operator==(vec2, vec2) = default;
};
struct candidate {  // ordered by its key alone
  float key;
  int rank;
  friend bool operator<(candidate a, candidate b) { return a.key < b.key; }
};
struct bare {
  int value;
};
struct sum_to_string {
  friend std::string operator+(sum_to_string, sum_to_string) { return ""; }
};
struct fixed {
  const int value;
};
struct keep_left {
  template <class T>
  constexpr T operator()(const T& a, const T&) const {
    return a;
  }
};
struct declared {
  static constexpr bool commutative = true;
  int operator()(int a, int b) const { return a * b; }
};
struct specialised {
  int operator()(int a, int b) const { return a > b ? a : b; }
};
struct not_const {
  int operator()(int a, int b) { return a + b; }
};
struct with_steps {
  double operator()(double a, double b) const { return a + b; }
  double prepare(double own, int ranks) const { return own * ranks; }
  double finish(double total, int ranks) const { return std::sqrt(total / ranks); }
};
enum class mask : std::uint8_t { none = 0, a = 1, b = 2 };
constexpr mask operator|(mask x, mask y) { return static_cast<mask>(static_cast<int>(x) | static_cast<int>(y)); }

}  // namespace ops_test

template <>
inline constexpr bool cohort::is_commutative<ops_test::specialised, int> = true;
template <>
inline constexpr bool cohort::is_commutative<cohort::sum, ops_test::vec2> = true;
template <>
struct cohort::identity<ops_test::specialised, int> {
  static constexpr int value = std::numeric_limits<int>::min();
};
template <>
struct cohort::accumulator<ops_test::keep_left, cohort::half> {
  using type = double;
};

namespace {

using namespace ops_test;
using cohort::bfloat16;
using cohort::half;
using cohort::reduction;

using average = cohort::average;
using scaled = cohort::premultiplied_sum<float>;

// ---- the concept, and its near misses --------------------------------------------------------------------------

template <class Op, class... T>
constexpr bool reduces_all = (reduction<Op, T> && ...);
template <class Op, class... T>
constexpr bool reduces_none = (!reduction<Op, T> && ...);

static_assert(reduces_all<cohort::sum, bool, char, short, int, long, float, double, long double, half, bfloat16,
                          std::complex<float>, vec2>);
static_assert(reduces_all<cohort::min, bool, int, float, half, bfloat16, candidate, mask>);
static_assert(reduces_all<average, float, half, bfloat16, std::complex<double>, vec2>);
static_assert(reduces_all<cohort::bit_and, bool, char, unsigned, long, std::byte>);
static_assert(reduces_all<cohort::bit_or, mask> && reduces_none<cohort::bit_and, mask>);
static_assert(reduces_all<cohort::logical_and, bool, int, float, half, std::complex<float>>);
static_assert(reduces_all<scaled, float, half, bfloat16, std::complex<float>, vec2>);
static_assert(reduction<cohort::premultiplied_sum<int>, long> && !reduction<scaled, int>);
static_assert(reduces_none<average, bool, int, unsigned long, mask>);
static_assert(reduces_none<cohort::bit_xor, float, half, bfloat16, std::complex<float>>);
static_assert(reduces_none<cohort::max, std::complex<float>, vec2, bare>);
static_assert(reduces_none<cohort::sum, bare, sum_to_string, std::string, int*, const int, mask, fixed>);
static_assert(reduces_none<cohort::sum, cohort::float8_e4m3, cohort::float8_e5m2>);
static_assert(reduces_none<cohort::min, cohort::float8_e4m3> && reduces_none<cohort::logical_or, cohort::float8_e5m2>);
static_assert(reduces_none<cohort::logical_and, bare>);
static_assert(reduces_all<std::plus<>, int, half, vec2> && reduces_none<std::plus<>, bare>);
static_assert(reduction<std::plus<int>, int> && reduction<std::plus<double>, float>);
static_assert(reduction<std::bit_and<>, int> && !reduction<std::bit_and<>, float>);
static_assert(reduction<keep_left, cohort::float8_e4m3>);  // a functor of your own may do what it likes

constexpr auto on_floats = [](float a, float b) { return a + b; };
static_assert(reduction<decltype(on_floats), float> && reduction<decltype(on_floats), half>);
static_assert(reduction<float (*)(float, float), float>);
static_assert(!reduction<decltype([](bare, bare) { return 1; }), bare>);
static_assert(!reduction<decltype([](bare, bare) {}), bare>);
static_assert(!reduction<decltype([](bare& a, const bare&) { return a; }), bare>);
static_assert(!reduction<decltype([](bare a) { return a; }), bare>);
static_assert(!reduction<not_const, int> && !reduction<int, int>);
static_assert(!reduction<decltype([](half, half) { return "text"; }), half>);

static_assert(cohort::check_reduction<cohort::sum, int>() && cohort::check_reduction<with_steps, double>());

// ---- definitions -----------------------------------------------------------------------------------------------

template <class T>
constexpr bool is_small = std::same_as<T, half> || std::same_as<T, bfloat16>;
template <class T>
constexpr bool is_complex = cohort::detail::is_complex<T>;

/// Values at which something may go wrong.
template <class T>
std::vector<T> values() {
  using limits = std::numeric_limits<T>;
  if constexpr (std::same_as<T, bool>) {
    return {false, true};
  } else if constexpr (std::integral<T>) {
    return {T(0), T(1), T(2), T(3), T(100), limits::max(), T(limits::max() - 1), limits::min(), T(limits::min() + 1)};
  } else if constexpr (is_complex<T>) {
    return {T(0), T(1), T(0, 1), T(-2, 3), T(0.5, -7), T(1e10f, -1e-10f)};
  } else {
    return {T(0.0f),
            -T(0.0f),
            T(1.0f),
            T(-3.0f),
            T(0.1f),
            T(1e3f),
            limits::max(),
            limits::lowest(),
            limits::min(),
            limits::denorm_min(),
            limits::infinity(),
            -limits::infinity(),
            limits::quiet_NaN(),
            -limits::quiet_NaN()};
  }
}

template <class T>
bool is_nan(const T& a) {
  if constexpr (std::floating_point<T> || is_small<T>) return a != a;
  else return false;
}
template <class T>
bool is_negative_zero(const T& a) {
  if constexpr (std::floating_point<T> || is_small<T>) return a == T(0) && std::signbit(static_cast<double>(a));
  else return false;
}
/// Equal, with zeros told apart and NaNs not; for complex numbers part by part.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (is_complex<T>) return same(a.real(), b.real()) && same(a.imag(), b.imag());
  else return (is_nan(a) && is_nan(b)) || (a == b && is_negative_zero(a) == is_negative_zero(b));
}

/// What arithmetic should give: integers modulo their size, computed in 128 bits; 16-bit floats rounded from double.
template <class T>
T defined(char op, const T& a, const T& b) {
  if constexpr (std::same_as<T, bool>) {
    return op == '+' ? a || b : a && b;
  } else if constexpr (std::integral<T>) {
    __extension__ using wide = unsigned __int128;
    const wide x = static_cast<wide>(a), y = static_cast<wide>(b);
    return static_cast<T>(op == '+' ? x + y : x * y);
  } else if constexpr (is_small<T>) {
    const double x = static_cast<float>(a), y = static_cast<float>(b);
    return T(op == '+' ? x + y : x * y);
  } else {
    return op == '+' ? a + b : a * b;
  }
}

template <class T>
T defined_extreme(bool smallest, const T& a, const T& b) {
  if (is_nan(a) || is_nan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b && is_negative_zero(a) != is_negative_zero(b)) return is_negative_zero(a) == smallest ? a : b;
  return (a < b) == smallest ? a : b;
}

/// Calls check(a, b) for all pairs of values.
template <class T, class Check>
void for_all_pairs(Check check) {
  for (const T& a : values<T>()) {
    for (const T& b : values<T>()) check(a, b);
  }
}

// ---- the functors ----------------------------------------------------------------------------------------------

#define ALL_INTEGERS                                                                                            \
  bool, char, std::int8_t, std::int16_t, std::int32_t, std::int64_t, long long, std::uint8_t, std::uint16_t,    \
      std::uint32_t, std::uint64_t, wchar_t, char16_t
#define ALL_REALS float, double, long double, half, bfloat16
#define ALL_COMPLEX std::complex<float>, std::complex<double>

TEST_CASE_TEMPLATE("sum, product and the like: every pair of values", T, ALL_INTEGERS, ALL_REALS, ALL_COMPLEX) {
  int wrong = 0;
  for_all_pairs<T>([&](const T& a, const T& b) {
    wrong += !same(cohort::sum{}(a, b), defined('+', a, b)) + !same(cohort::product{}(a, b), defined('*', a, b));
    if constexpr (!std::integral<T>) {
      wrong += !same(average{}(a, b), defined('+', a, b)) + !same(scaled{2.0f}(a, b), defined('+', a, b));
    } else if constexpr (!std::same_as<T, bool>) {
      wrong += !same(cohort::premultiplied_sum{3}(a, b), defined('+', a, b));
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("min and max: NaN wins, -0 is below +0, whatever the order", T, ALL_INTEGERS, ALL_REALS) {
  int wrong = 0;
  for_all_pairs<T>([&](const T& a, const T& b) {
    wrong += !same(cohort::min{}(a, b), defined_extreme(true, a, b));
    wrong += !same(cohort::max{}(a, b), defined_extreme(false, a, b));
  });
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("min and max: the NaN is the default one, bit for bit", T, float, double, half, bfloat16) {
  using limits = std::numeric_limits<T>;
  const T expected = limits::quiet_NaN();
  for (const T nan : {limits::quiet_NaN(), -limits::quiet_NaN(), limits::signaling_NaN()}) {
    for (const T result : {cohort::min{}(nan, T(1)), cohort::min{}(T(1), nan), cohort::max{}(nan, limits::infinity()),
                           cohort::max{}(-limits::infinity(), nan), cohort::min{}(nan, nan)}) {
      CHECK(std::memcmp(&result, &expected, sizeof(T)) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("logical operations give 0 or 1 of the element type", T, ALL_INTEGERS, ALL_REALS, ALL_COMPLEX) {
  int wrong = 0;
  for_all_pairs<T>([&](const T& a, const T& b) {
    const bool x = a != T(0), y = b != T(0);
    wrong += !same(cohort::logical_and{}(a, b), T(x && y ? 1 : 0));
    wrong += !same(cohort::logical_or{}(a, b), T(x || y ? 1 : 0));
  });
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("bitwise operations: every pair of values", T, ALL_INTEGERS, std::byte) {
  int wrong = 0;
  const auto check = [&](const T& a, const T& b) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    wrong += cohort::bit_and{}(a, b) != static_cast<T>(x & y);
    wrong += cohort::bit_or{}(a, b) != static_cast<T>(x | y);
    wrong += cohort::bit_xor{}(a, b) != static_cast<T>(x ^ y);
  };
  if constexpr (std::same_as<T, std::byte>) check(std::byte{0x5a}, std::byte{0x0f});
  else for_all_pairs<T>(check);
  CHECK(wrong == 0);
}

TEST_CASE("integers wrap around in constant expressions, so without undefined behaviour") {
  constexpr int largest = std::numeric_limits<int>::max();
  static_assert(cohort::sum{}(largest, 1) == std::numeric_limits<int>::min());
  static_assert(cohort::product{}(largest, 2) == -2);
  static_assert(cohort::product{}(std::uint16_t{0xffff}, std::uint16_t{0xffff}) == 1);
  static_assert(cohort::sum{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) > 0);
  static_assert(cohort::premultiplied_sum{2}.prepare(largest, 4) == -2);
}

TEST_CASE("structs: the operators of the element type, rank order among equivalents") {
  CHECK(cohort::sum{}(vec2{1, 2}, vec2{3, 4}) == vec2{4, 6});
  CHECK(cohort::min{}(candidate{1, 0}, candidate{1, 1}).rank == 0);
  CHECK(cohort::max{}(candidate{1, 0}, candidate{1, 1}).rank == 0);
  CHECK(cohort::min{}(candidate{2, 0}, candidate{1, 1}).rank == 1);
  CHECK(cohort::max{}(candidate{2, 0}, candidate{3, 1}).rank == 1);
  CHECK(cohort::bit_or{}(mask::a, mask::b) == static_cast<mask>(3));
}

// ---- properties ------------------------------------------------------------------------------------------------

template <class Op, class T>
void check_claims(const Op& op) {
  int wrong = 0;
  static_assert(cohort::is_commutative<Op, T>);
  for_all_pairs<T>([&](const T& a, const T& b) { wrong += !same(op(a, b), op(b, a)); });
  static_assert(cohort::has_identity<Op, T>);
  const T unit = cohort::identity<Op, T>::value;
  using meaning = typename cohort::detail::meaning<Op>::type;
  constexpr bool logical = std::same_as<meaning, cohort::logical_and> || std::same_as<meaning, cohort::logical_or>;
  for (const T& x : values<T>()) {
    if (logical && x != T(0) && x != T(1)) continue;
    const T left = op(unit, x), right = op(x, unit);
    const bool unchanged = is_nan(x) ? is_nan(left) && is_nan(right) : left == x && right == x;
    wrong += !unchanged;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("what is called commutative is, and an identity changes nothing", T, ALL_INTEGERS, ALL_REALS) {
  check_claims<cohort::sum, T>({});
  check_claims<cohort::product, T>({});
  check_claims<cohort::min, T>({});
  check_claims<cohort::max, T>({});
  check_claims<cohort::logical_and, T>({});
  check_claims<cohort::logical_or, T>({});
  if constexpr (std::integral<T>) {
    check_claims<cohort::bit_and, T>({});
    check_claims<cohort::bit_or, T>({});
    check_claims<cohort::bit_xor, T>({});
    check_claims<std::bit_xor<T>, T>({});
  } else {
    check_claims<average, T>({});
    check_claims<scaled, T>(scaled{3});
    check_claims<std::plus<T>, T>({});
  }
}

TEST_CASE("commutativity: shipped on built-in types, declared elsewhere, never assumed") {
  using cohort::is_commutative;
  static_assert(is_commutative<std::plus<>, int> && is_commutative<std::multiplies<float>, float>);
  static_assert(is_commutative<cohort::sum, std::complex<float>> && is_commutative<cohort::min, mask>);
  static_assert(is_commutative<cohort::premultiplied_sum<double>, double>);
  static_assert(!is_commutative<cohort::product, vec2> && !is_commutative<cohort::min, candidate>);
  static_assert(!is_commutative<decltype(on_floats), float> && !is_commutative<std::minus<>, int>);
  static_assert(!is_commutative<keep_left, int> && !is_commutative<float (*)(float, float), float>);
  static_assert(is_commutative<declared, int> && is_commutative<specialised, int>);
  static_assert(is_commutative<cohort::sum, vec2>);  // specialised above
  CHECK(is_commutative<std::logical_or<>, bool>);
}

TEST_CASE("identities: of built-in types and functors; a specialisation adds others") {
  using cohort::has_identity;
  using cohort::identity;
  static_assert(identity<cohort::product, std::complex<float>>::value == std::complex<float>(1));
  static_assert(identity<cohort::min, float>::value == std::numeric_limits<float>::infinity());
  static_assert(identity<cohort::max, int>::value == std::numeric_limits<int>::min());
  static_assert(identity<cohort::bit_and, std::uint16_t>::value == 0xffff && identity<std::plus<>, double>::value == 0);
  static_assert(identity<specialised, int>::value == std::numeric_limits<int>::min());
  static_assert(!has_identity<cohort::sum, vec2> && !has_identity<cohort::min, candidate>);
  static_assert(!has_identity<keep_left, int> && !has_identity<cohort::min, std::complex<float>>);
  CHECK(has_identity<specialised, int>);
}

TEST_CASE("accumulator: float for 16-bit floats under what is known, else the element type") {
  using cohort::accumulator_t;
  static_assert(std::same_as<accumulator_t<cohort::sum, half>, float>);
  static_assert(std::same_as<accumulator_t<std::plus<>, bfloat16>, float>);
  static_assert(std::same_as<accumulator_t<cohort::sum, float>, float>);
  static_assert(std::same_as<accumulator_t<decltype(on_floats), half>, half>);
  static_assert(std::same_as<accumulator_t<cohort::sum, std::int8_t>, std::int8_t>);
  CHECK(std::same_as<accumulator_t<keep_left, half>, double>);
}

TEST_CASE("prepare and finish: average divides, premultiplied_sum multiplies, others leave alone") {
  using cohort::finish;
  using cohort::prepare;
  static_assert(cohort::has_finish<average, float> && !cohort::has_prepare<average, float>);
  static_assert(cohort::has_prepare<scaled, half> && !cohort::has_finish<scaled, half>);
  static_assert(!cohort::has_finish<cohort::sum, float> && !cohort::has_prepare<std::plus<>, float>);
  static_assert(!cohort::has_finish<average, int>);
  CHECK(finish(average{}, 10.0f, 4) == 2.5f);
  CHECK(finish(average{}, 1.0L, 3) == 1.0L / 3);
  CHECK(finish(average{}, half(1), 3).bits() == half(1.0 / 3).bits());
  CHECK(finish(average{}, bfloat16(10), 3).bits() == bfloat16(10.0 / 3).bits());
  CHECK(finish(average{}, std::complex<float>(3, 6), 3) == std::complex<float>(1, 2));
  CHECK(finish(average{}, vec2{2, 4}, 2) == vec2{1, 2});
  CHECK(finish(cohort::sum{}, 10.0f, 4) == 10.0f);
  CHECK(prepare(cohort::premultiplied_sum{0.5f}, 3.0f, 4) == 1.5f);
  CHECK(prepare(cohort::premultiplied_sum{0.5}, half(3), 4) == 1.5f);
  CHECK(prepare(cohort::premultiplied_sum{half(2)}, bfloat16(3), 4) == 6.0f);
  CHECK(prepare(cohort::premultiplied_sum{2.0}, std::complex<float>(1, 2), 4) == std::complex<float>(2, 4));
  CHECK(prepare(cohort::premultiplied_sum{std::complex<double>(0, 1)}, std::complex<float>(1, 2), 4) ==
        std::complex<float>(-2, 1));
  CHECK(prepare(cohort::premultiplied_sum{2.0f}, vec2{1, 2}, 4) == vec2{2, 4});
  CHECK(prepare(cohort::premultiplied_sum{3}, std::int8_t{100}, 4) == std::int8_t{44});
  CHECK(prepare(cohort::sum{}, 3.0f, 4) == 3.0f);
  CHECK(prepare(with_steps{}, 3.0, 4) == 12.0);
  CHECK(finish(with_steps{}, 36.0, 4) == 3.0);
  static_assert(std::same_as<decltype(cohort::premultiplied_sum{0.5f}), cohort::premultiplied_sum<float>>);
}

TEST_CASE("functor_id: fixed and distinct for the shipped ones, shared with their std:: equals") {
  using cohort::functor_id;
  const std::set<std::uint16_t> ids{
      functor_id<cohort::sum>,         functor_id<cohort::product>,    functor_id<cohort::min>,
      functor_id<cohort::max>,         functor_id<average>,            functor_id<cohort::bit_and>,
      functor_id<cohort::bit_or>,      functor_id<cohort::bit_xor>,    functor_id<cohort::logical_and>,
      functor_id<cohort::logical_or>,  functor_id<scaled>,             functor_id<keep_left>,
      functor_id<decltype(on_floats)>, functor_id<std::minus<>>,       functor_id<declared>};
  CHECK(ids.size() == 15);
  CHECK(functor_id<cohort::sum> == 1);
  CHECK(functor_id<scaled> == 11);
  CHECK(functor_id<cohort::premultiplied_sum<double>> == functor_id<scaled>);
  CHECK(functor_id<std::plus<>> == functor_id<cohort::sum>);
  CHECK(functor_id<std::plus<float>> == functor_id<cohort::sum>);
  CHECK(functor_id<std::multiplies<>> == functor_id<cohort::product>);
  CHECK(functor_id<std::bit_and<>> == functor_id<cohort::bit_and>);
  CHECK(functor_id<std::bit_or<int>> == functor_id<cohort::bit_or>);
  CHECK(functor_id<std::bit_xor<>> == functor_id<cohort::bit_xor>);
  CHECK(functor_id<std::logical_and<>> == functor_id<cohort::logical_and>);
  CHECK(functor_id<std::logical_or<>> == functor_id<cohort::logical_or>);
  CHECK(functor_id<keep_left> == cohort::detail::hashed_code("ops_test::keep_left", 0));
}

TEST_CASE("functor_name: the same from the type and from the number of another process") {
  CHECK(cohort::functor_name<std::plus<>>() == "sum");
  CHECK(cohort::functor_name<scaled>() == "premultiplied_sum");
  CHECK(cohort::functor_name<keep_left>() == "ops_test::keep_left");
  const std::array<std::string, 11> names{"sum",     "product",     "min",        "max",
                                          "average", "bit_and",     "bit_or",     "bit_xor",
                                          "logical_and", "logical_or", "premultiplied_sum"};
  for (std::uint16_t id = 1; id <= names.size(); ++id) CHECK(cohort::functor_name(id) == names[id - 1u]);
  CHECK(cohort::functor_name(0x9a2b) == "functor#1a2b");
  CHECK(cohort::functor_name(0x7000) == "unknown");
}

}  // namespace
