// SPDX-License-Identifier: BSL-1.0
// The array kernels against the scalar functors: every type, length, side and alignment, and for the 16-bit floats
// every pattern, with the vector instructions and without.
#include <doctest/doctest.h>

#include <cohort/detail/fold.hpp>

#include "../support/sanitizer.hpp"

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fold_test {

struct affine {  // x -> a x + b under composition: associative, not commutative, exact in wrapping integers
  std::uint32_t a, b;
  friend bool operator==(affine, affine) = default;
};
struct compose {
  affine operator()(affine f, affine g) const { return {f.a * g.a, f.a * g.b + f.b}; }
};
struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
};
struct big {
  std::array<std::uint64_t, 300> words;  // more than the buffer for misaligned pieces holds
};
struct saturating {  // needs more than the element type to see an overflow
  int operator()(int a, int b) const { return std::max(-128, std::min(127, a + b)); }
};

}  // namespace fold_test

template <>
struct cohort::accumulator<fold_test::saturating, std::int8_t> {
  using type = int;
};

namespace {

using namespace fold_test;
using cohort::bfloat16;
using cohort::half;
using cohort::collective::side;
using cohort::detail::fold;
using cohort::detail::make_reducer;
using cohort::detail::reducer;

constexpr std::array<std::size_t, 16> lengths{0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 255, 300, 1000};

template <class T>
concept small_float = std::same_as<T, half> || std::same_as<T, bfloat16>;

/// A value for every position, never the same twice in a row, and exact in every type.
template <class T>
T sample(std::size_t i) {
  const auto small = static_cast<int>((i * 37 + i / 7) % 11);
  if constexpr (std::same_as<T, affine>) return {static_cast<std::uint32_t>(small + 2), static_cast<std::uint32_t>(i)};
  else if constexpr (std::same_as<T, no_default>) return no_default(small);
  else if constexpr (std::same_as<T, bool>) return small % 2 == 0;
  else if constexpr (std::same_as<T, std::complex<float>>) return static_cast<float>(small);
  else return static_cast<T>(small);
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
template <small_float T>
bool same_bits(const T& a, const T& b) {
  return a.bits() == b.bits() || (a != a && b != b);  // which of two NaNs survives is the processor's choice
}

/// Compares fold with one scalar call for each element, for all lengths and both sides.
template <class T, class Op>
int wrongly_folded(const Op& op) {
  int wrong = 0;
  for (const std::size_t length : lengths) {
    for (const side where : {side::left, side::right}) {
      std::vector<std::byte> to((length + 1) * sizeof(T)), from((length + 1) * sizeof(T));
      T* dst = reinterpret_cast<T*>(to.data());
      T* src = reinterpret_cast<T*>(from.data());
      for (std::size_t i = 0; i <= length; ++i) {
        std::construct_at(dst + i, sample<T>(i));
        std::construct_at(src + i, sample<T>(i + 5));
      }
      fold(dst, src, length, where, op);
      for (std::size_t i = 0; i < length; ++i) {
        const T present = sample<T>(i), arrived = sample<T>(i + 5);
        const T expected = static_cast<T>(where == side::left ? op(arrived, present) : op(present, arrived));
        wrong += !same_bits(dst[i], expected) + !same_bits(src[i], arrived);
      }
      wrong += !same_bits(dst[length], sample<T>(length));  // nothing beyond the end
    }
  }
  return wrong;
}

#define FOLDED_TYPES                                                                                       \
  char, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, \
      std::uint64_t, float, double, half, bfloat16

TEST_CASE_TEMPLATE("fold: every functor, every length, both sides", T, FOLDED_TYPES) {
  CHECK(wrongly_folded<T>(cohort::sum{}) == 0);
  CHECK(wrongly_folded<T>(cohort::product{}) == 0);
  CHECK(wrongly_folded<T>(cohort::min{}) == 0);
  CHECK(wrongly_folded<T>(cohort::max{}) == 0);
  CHECK(wrongly_folded<T>(cohort::logical_and{}) == 0);
  CHECK(wrongly_folded<T>(cohort::logical_or{}) == 0);
  CHECK(wrongly_folded<T>(std::plus<>{}) == 0);
  CHECK(wrongly_folded<T>([](const T& a, const T& b) { return static_cast<T>(a + b); }) == 0);
  CHECK(wrongly_folded<T>([](const T& a, const T&) { return a; }) == 0);
  if constexpr (std::integral<T>) {
    CHECK(wrongly_folded<T>(cohort::bit_and{}) == 0);
    CHECK(wrongly_folded<T>(cohort::bit_or{}) == 0);
    CHECK(wrongly_folded<T>(cohort::bit_xor{}) == 0);
  } else {
    CHECK(wrongly_folded<T>(cohort::average{}) == 0);
    CHECK(wrongly_folded<T>(cohort::premultiplied_sum{2.0f}) == 0);
  }
}

TEST_CASE("fold: bool, complex numbers, structs, and functors that are not commutative") {
  CHECK(wrongly_folded<bool>(cohort::sum{}) == 0);
  CHECK(wrongly_folded<bool>(cohort::bit_xor{}) == 0);
  CHECK(wrongly_folded<std::complex<float>>(cohort::sum{}) == 0);
  CHECK(wrongly_folded<std::complex<double>>(cohort::product{}) == 0);
  CHECK(wrongly_folded<affine>(compose{}) == 0);
  CHECK(wrongly_folded<int>(std::minus<>{}) == 0);
  CHECK(wrongly_folded<no_default>([](no_default a, no_default b) { return no_default(a.value * 16 + b.value); }) == 0);
  int captured = 3;
  CHECK(wrongly_folded<long>([&captured](long a, long b) { return a * captured + b; }) == 0);
  CHECK(wrongly_folded<float>(+[](float a, float b) { return a - b; }) == 0);
  CHECK(wrongly_folded<half>([](float a, float b) { return a - b; }) == 0);
}

TEST_CASE("fold: a std:: functor is the shipped one, so integers wrap") {
  int dst = std::numeric_limits<int>::max();
  const int src = 1;
  fold(&dst, &src, 1, side::left, std::plus<>{});
  CHECK(dst == std::numeric_limits<int>::min());
  fold(&dst, &src, 1, side::left, std::multiplies<int>{});
  CHECK(dst == std::numeric_limits<int>::min());
}

TEST_CASE("fold: a std:: functor that is fixed to another type stays what it is") {
  using cohort::detail::applied;
  static_assert(std::same_as<applied<std::plus<float>, float>, cohort::sum>);
  static_assert(std::same_as<applied<std::plus<double>, float>, std::plus<double>>);
  float dst = 1.5f;
  const float src = 2.0f;
  fold(&dst, &src, 1, side::left, std::plus<double>{});
  CHECK(dst == 3.5f);
}

TEST_CASE("fold: an accumulator that a specialisation asks for") {
  std::vector<std::int8_t> dst(300, 100), src(300, 100);
  fold(dst.data(), src.data(), dst.size(), side::left, saturating{});
  CHECK(dst == std::vector<std::int8_t>(300, 127));
}

// ---- 16-bit floats ---------------------------------------------------------------------------------------------

constexpr std::size_t patterns = 0x10000;

template <small_float T>
std::vector<T> every_pattern() {
  std::vector<T> all;
  for (std::size_t bits = 0; bits < patterns; ++bits) all.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  return all;
}

/// 40 partners: zeros, ones, the extremes, infinities, NaNs, subnormals, ties, and a spread of others; 5 under a
/// sanitizer.
template <small_float T>
std::vector<T> partners() {
  using limits = std::numeric_limits<T>;
  std::vector<T> chosen;
  for (const T positive : {T(0), T(1), T(3), T(0.1f), limits::max(), limits::min(), limits::denorm_min(),
                           limits::infinity(), limits::quiet_NaN(), limits::signaling_NaN(), limits::epsilon()}) {
    chosen.push_back(positive);
    chosen.push_back(-positive);
  }
  for (std::uint32_t k = 0; chosen.size() < 40; ++k) {
    chosen.push_back(T::from_bits(static_cast<std::uint16_t>(k * 3659u + 7u)));
  }
  if (harness::sanitized) return {chosen[0], chosen[3], chosen[7], chosen[13], chosen[39]};
  return chosen;
}

template <class Fold, small_float T, class Op>
int wrong_patterns(const std::vector<T>& all, const Op& op, Fold kernel) {
  int wrong = 0;
  for (const T partner : partners<T>()) {
    std::vector<T> dst = all;
    const std::vector<T> src(patterns, partner);
    kernel(dst.data(), src.data(), patterns, op);
    for (std::size_t i = 0; i < patterns; ++i) wrong += !same_bits(dst[i], op(partner, all[i]));
  }
  return wrong;
}

struct dispatched {
  template <class T, class Op>
  void operator()(T* dst, const T* src, std::size_t count, const Op& op) const {
    fold(dst, src, count, side::left, op);
  }
};
struct portable {
  template <class T, class Op>
  void operator()(T* dst, const T* src, std::size_t count, const Op& op) const {
    const T* const in_order[] = {src, dst};
    cohort::detail::fold_arrays_portably(dst, in_order, 0, 2, count, op);
  }
};

TEST_CASE_TEMPLATE("fold: every pattern with 40 partners, with vector instructions and without", T, half, bfloat16) {
  const std::vector<T> all = every_pattern<T>();
  const auto check = [&all](const auto& op) {
    return wrong_patterns<dispatched>(all, op, dispatched{}) + wrong_patterns<portable>(all, op, portable{});
  };
  CHECK(check(cohort::sum{}) == 0);
  CHECK(check(cohort::product{}) == 0);
  CHECK(check(cohort::min{}) == 0);
  CHECK(check(cohort::max{}) == 0);
  CHECK(check(cohort::logical_and{}) == 0);
  CHECK(check(cohort::logical_or{}) == 0);
}

#if COHORT_HAS_AVX2_KERNELS
TEST_CASE_TEMPLATE("conversion of arrays: the vector instructions give the portable bits", T, half, bfloat16) {
  if (!cohort::detail::avx2_arrays::available()) {
    MESSAGE("skipped: this processor has no AVX2 and F16C");
    return;
  }
  using fast = cohort::detail::avx2_arrays;
  using slow = cohort::detail::portable_arrays;
  int wrong = 0;
  const std::vector<T> all = every_pattern<T>();
  std::vector<float> wide_fast(patterns), wide_slow(patterns);
  fast::widen(all.data(), wide_fast.data(), patterns - 3);  // not a multiple of the vector length
  slow::widen(all.data(), wide_slow.data(), patterns - 3);
  CHECK(std::memcmp(wide_fast.data(), wide_slow.data(), patterns * sizeof(float)) == 0);
  // One float out of 1021 (under a sanitizer 65537) of them all, a prime so that every exponent meets every kind of mantissa.
  std::vector<float> sampled;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += harness::sanitized ? 65537 : 1021) {
    sampled.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  std::vector<T> narrow_fast(sampled.size()), narrow_slow(sampled.size());
  fast::narrow(sampled.data(), narrow_fast.data(), sampled.size());
  slow::narrow(sampled.data(), narrow_slow.data(), sampled.size());
  for (std::size_t i = 0; i < sampled.size(); ++i) wrong += narrow_fast[i].bits() != narrow_slow[i].bits();
  CHECK(wrong == 0);
}
#endif

// ---- the reducer -----------------------------------------------------------------------------------------------

template <class T>
std::byte* bytes(std::vector<T>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

TEST_CASE("reducer: carries what a transport needs to know, and folds through it") {
  const cohort::sum op;
  const reducer r = make_reducer<float>(op);
  CHECK(r.element_bytes == 4);
  CHECK(r.element_type == cohort::element_type_id<float>);
  CHECK(r.functor == cohort::functor_id<cohort::sum>);
  CHECK(r.commutative);
  CHECK(r.op == &op);
  CHECK((r.prepare == nullptr));
  CHECK((r.finish == nullptr));
  std::vector<float> dst{1, 2, 3}, src{10, 20, 30};
  r.fold(r.op, bytes(dst), bytes(src), 3, side::left);
  CHECK(dst == std::vector<float>{11, 22, 33});

  const auto minus = [](int a, int b) { return a - b; };
  const reducer m = make_reducer<int>(minus);
  CHECK_FALSE(m.commutative);
  std::vector<int> left{1}, right{1}, arrived{5};
  m.fold(m.op, bytes(left), bytes(arrived), 1, side::left);
  m.fold(m.op, bytes(right), bytes(arrived), 1, side::right);
  CHECK(left[0] == 4);
  CHECK(right[0] == -4);

  const std::plus<> plus;
  CHECK(make_reducer<int>(plus).functor == cohort::functor_id<cohort::sum>);
  CHECK(make_reducer<int>(plus).commutative);
}

template <class Op>
concept reducible_temporary = requires {
  make_reducer<float>(Op{});
};
static_assert(!reducible_temporary<cohort::sum>);  // the reducer would outlive its functor

TEST_CASE_TEMPLATE("reducer: prepare and finish give what the scalar functions give", T, float, double, half, bfloat16,
                   std::complex<float>) {
  const cohort::average mean;
  const cohort::premultiplied_sum scaled{0.3f};
  const reducer a = make_reducer<T>(mean), s = make_reducer<T>(scaled);
  REQUIRE((a.finish != nullptr));
  REQUIRE((s.prepare != nullptr));
  CHECK((a.prepare == nullptr));
  CHECK((s.finish == nullptr));
  int wrong = 0;
  for (const std::size_t length : lengths) {
    std::vector<T> own;
    for (std::size_t i = 0; i <= length; ++i) own.push_back(sample<T>(i));
    std::vector<T> apart(length + 1), in_place = own;
    a.finish(a.op, bytes(apart), bytes(own), length, 3);
    a.finish(a.op, bytes(in_place), bytes(in_place), length, 3);
    for (std::size_t i = 0; i < length; ++i) {
      const T expected = cohort::finish(mean, own[i], 3);
      wrong += !same_bits(apart[i], expected) + !same_bits(in_place[i], expected);
    }
    wrong += !same_bits(in_place[length], own[length]);
    s.prepare(s.op, bytes(apart), bytes(own), length, 3);
    for (std::size_t i = 0; i < length; ++i) wrong += !same_bits(apart[i], cohort::prepare(scaled, own[i], 3));
  }
  CHECK(wrong == 0);
}

struct halves_only {  // float is not what its finish takes
  float operator()(float a, float b) const { return a + b; }
  half finish(half total, int ranks) const { return half(total.bits() == 0 ? -1 : ranks); }
};

}  // namespace

template <>
struct cohort::accumulator<halves_only, half> {
  using type = float;
};

namespace {

TEST_CASE("reducer: a finish that only takes the element type is not skipped by the float kernels") {
  const halves_only op;
  const reducer r = make_reducer<half>(op);
  std::vector<half> data{half(0), half(1)};
  r.finish(r.op, bytes(data), bytes(data), 2, 5);
  CHECK(data[0] == -1.0f);
  CHECK(data[1] == 5.0f);
}

template <class T, class Op>
int wrong_when_misaligned(const Op& op) {
  const reducer r = make_reducer<T>(op);
  int wrong = 0;
  for (std::size_t to = 0; to < alignof(T); ++to) {
    for (std::size_t from = 0; from < alignof(T); ++from) {
      const std::size_t length = 700;
      std::vector<std::byte> dst(length * sizeof(T) + alignof(T) + 1), src(length * sizeof(T) + alignof(T));
      const std::byte guard{0xa5};
      dst[to + length * sizeof(T)] = guard;
      for (std::size_t i = 0; i < length; ++i) {
        const T present = sample<T>(i), arrived = sample<T>(i + 5);
        std::memcpy(dst.data() + to + i * sizeof(T), &present, sizeof(T));
        std::memcpy(src.data() + from + i * sizeof(T), &arrived, sizeof(T));
      }
      r.fold(r.op, dst.data() + to, src.data() + from, length, side::left);
      for (std::size_t i = 0; i < length; ++i) {
        T found = sample<T>(0);
        std::memcpy(&found, dst.data() + to + i * sizeof(T), sizeof(T));
        wrong += !same_bits(found, static_cast<T>(op(sample<T>(i + 5), sample<T>(i))));
      }
      wrong += dst[to + length * sizeof(T)] != guard;
    }
  }
  return wrong;
}

TEST_CASE("reducer: bytes at any address") {
  CHECK(wrong_when_misaligned<double>(cohort::sum{}) == 0);
  CHECK(wrong_when_misaligned<half>(cohort::max{}) == 0);
  CHECK(wrong_when_misaligned<affine>(compose{}) == 0);
  CHECK(wrong_when_misaligned<std::int8_t>(cohort::sum{}) == 0);

  const auto add = [](const big& a, const big& b) {
    big c = a;
    for (std::size_t i = 0; i < c.words.size(); ++i) c.words[i] += b.words[i];
    return c;
  };
  const reducer r = make_reducer<big>(add);
  std::vector<std::byte> dst(2 * sizeof(big) + 1), src(2 * sizeof(big) + 1, std::byte{1});
  r.fold(r.op, dst.data() + 1, src.data() + 1, 2, side::right);
  CHECK(std::vector<std::byte>(dst.begin() + 1, dst.end()) == std::vector<std::byte>(2 * sizeof(big), std::byte{1}));

  const cohort::average mean;
  const reducer a = make_reducer<double>(mean);
  std::vector<std::byte> raw(sizeof(double) + 1);
  const double total = 6;
  std::memcpy(raw.data() + 1, &total, sizeof(total));
  a.finish(a.op, raw.data() + 1, raw.data() + 1, 1, 4);
  double found = 0;
  std::memcpy(&found, raw.data() + 1, sizeof(found));
  CHECK(found == 1.5);
}

TEST_CASE_TEMPLATE("fold: an exception of the functor reaches the caller", T, int, half) {
  const auto op = [](const T& a, const T& b) -> T {
    if (b == T(10)) throw std::runtime_error("ten");
    return static_cast<T>(a + b);
  };
  std::vector<T> dst(300, T(1)), src(300, T(2));
  dst[200] = T(10);
  const reducer r = make_reducer<T>(op);
  CHECK_THROWS_WITH_AS(r.fold(r.op, bytes(dst), bytes(src), 300, side::left), "ten", std::runtime_error);
  CHECK(dst[199] == T(3));
  CHECK(dst[201] == T(1));

  const auto always = [](const T&, const T&) -> T { throw std::runtime_error("always"); };
  const reducer a = make_reducer<T>(always);
  CHECK_THROWS_WITH_AS(a.fold(a.op, bytes(dst) + 1, bytes(src), 1, side::right), "always", std::runtime_error);
}

}  // namespace
