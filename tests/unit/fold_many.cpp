// SPDX-License-Identifier: BSL-1.0
// The k-ary kernel against the definition, one element at a time from the left: every number of sources, length,
// functor and place of the result, with streaming stores and without; for 16-bit floats every pattern.
#include <doctest/doctest.h>

#include <cohort/detail/fold.hpp>

#include "../support/sanitizer.hpp"

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

namespace fold_many_test {

struct affine {  // x -> a x + b under composition: associative, not commutative, exact in wrapping integers
  std::uint32_t a, b;
};
struct compose {
  affine operator()(affine f, affine g) const { return {f.a * g.a, f.a * g.b + f.b}; }
};
struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
};
struct big {
  std::array<std::uint64_t, 700> words;  // more than a block
};
struct saturating {  // needs more than the element type to see an overflow
  int operator()(int a, int b) const { return std::max(-128, std::min(127, a + b)); }
};

}  // namespace fold_many_test

template <>
struct cohort::accumulator<fold_many_test::saturating, std::int8_t> {
  using type = int;
};

namespace {

using namespace fold_many_test;
using cohort::bfloat16;
using cohort::half;
using cohort::detail::fold_many_bytes;
using cohort::detail::make_reducer;
using cohort::detail::reducer;

/// By the one kernel or the other.
void fold_to(const reducer& r, std::byte* dst, const std::byte* const* sources, int k, std::size_t n, bool streaming) {
  if (!streaming) return r.fold_many(r.op, dst, sources, k, n);
  r.fold_past_caches(r.op, {&dst, 1}, {sources, static_cast<std::size_t>(k)}, n, nullptr, 0);
}

constexpr std::array<std::size_t, 10> lengths{0, 1, 3, 8, 9, 31, 32, 65, 129, 300};
constexpr std::size_t two_blocks = 4200;  // of one byte each, and more of others
constexpr std::array<int, 13> source_counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 18};  // up to three passes

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
  if constexpr (requires { a.bits(); }) return a.bits() == b.bits() || (a != a && b != b);
  else return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Elements in raw memory at any address: what a source or a result may be.
template <class T>
class raw_array {
 public:
  raw_array(std::size_t count, std::size_t offset) : bytes_(count * sizeof(T) + 2 * alignment), count_(count) {
    void* start = bytes_.data();
    std::size_t room = bytes_.size();
    first_ = static_cast<std::byte*>(std::align(alignment, 1, start, room)) + offset;
  }
  raw_array(const raw_array&) = delete;
  raw_array& operator=(const raw_array&) = delete;
  std::byte* data() { return first_; }
  T get(std::size_t i) const {
    alignas(T) std::byte one[sizeof(T)];
    std::memcpy(one, first_ + i * sizeof(T), sizeof(T));
    return *reinterpret_cast<const T*>(one);
  }
  void set(std::size_t i, const T& value) { std::memcpy(first_ + i * sizeof(T), &value, sizeof(T)); }

 private:
  static constexpr std::size_t alignment = 64;
  std::vector<std::byte> bytes_;
  std::size_t count_;
  std::byte* first_ = nullptr;
};

template <class Op, class T>
T by_definition(const Op& op, const std::deque<T>& operands) {
  using wide = cohort::accumulator_t<Op, T>;
  wide value = static_cast<wide>(operands[0]);
  for (std::size_t j = 1; j < operands.size(); ++j)
    value = static_cast<wide>(op(value, static_cast<wide>(operands[j])));
  return static_cast<T>(value);
}

/// `target`: the source that the result replaces, or -1. `offset`: of all memory from a cache line, in bytes.
template <class T, class Op>
int wrong_in(const reducer& r, const Op& op, int k, std::size_t length, int target, std::size_t offset,
             bool streaming) {
  int wrong = 0;
  std::vector<std::unique_ptr<raw_array<T>>> arrays;
  std::vector<const std::byte*> sources;
  for (int j = 0; j < k; ++j) {
    arrays.push_back(std::make_unique<raw_array<T>>(length + 1, offset));
    for (std::size_t i = 0; i <= length; ++i) arrays.back()->set(i, sample<T>(i + static_cast<std::size_t>(5 * j)));
    sources.push_back(arrays.back()->data());
  }
  arrays.push_back(std::make_unique<raw_array<T>>(length + 1, offset));
  arrays.back()->set(length, sample<T>(3));
  raw_array<T>& dst = *arrays[static_cast<std::size_t>(target < 0 ? k : target)];
  const T beyond = dst.get(length);
  fold_to(r, dst.data(), sources.data(), k, length, streaming);
  for (std::size_t i = 0; i < length; ++i) {
    std::deque<T> operands;  // not a vector, which for bool has no elements
    for (int j = 0; j < k; ++j) operands.push_back(sample<T>(i + static_cast<std::size_t>(5 * j)));
    wrong += !same_bits(dst.get(i), by_definition(op, operands));
    for (int j = 0; j < k; ++j) {  // sources are only read
      if (j != target)
        wrong += !same_bits(arrays[static_cast<std::size_t>(j)]->get(i), operands[static_cast<std::size_t>(j)]);
    }
  }
  return wrong + !same_bits(dst.get(length), beyond);
}

template <class T, class Op>
int wrongly_folded(const Op& op) {
  const reducer r = make_reducer<T>(op);
  int wrong = 0;
  for (const int k : source_counts) {
    for (const bool streaming : {false, true}) {
      for (const std::size_t length : lengths) wrong += wrong_in<T>(r, op, k, length, -1, 0, streaming);
      for (const int target : {0, k / 2, k - 1}) wrong += wrong_in<T>(r, op, k, 130, target, 0, streaming);
    }
  }
  for (const int k : {2, 5, 9}) wrong += wrong_in<T>(r, op, k, two_blocks, -1, 0, k == 5);
  // Whole blocks past the caches, in one pass or in several, and the result in place of a source.
  for (const int k : {2, 3, 4, 5, 8, 9}) wrong += wrong_in<T>(r, op, k, two_blocks, k == 4 ? 1 : -1, 0, true);
  return wrong;
}

template <class T>
constexpr cohort::sum summed{};

/// The kernel for processors without AVX2, whatever this one has.
template <class T, class Op>
int wrong_in_portable(const Op& op) {
  int wrong = 0;
  for (const int k : {2, 3, 7, 9, 18}) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{300}, two_blocks}) {
      std::vector<std::vector<T>> arrays(static_cast<std::size_t>(k), std::vector<T>(length));
      std::vector<const T*> sources;
      for (std::size_t j = 0; j < arrays.size(); ++j) {
        for (std::size_t i = 0; i < length; ++i) arrays[j][i] = sample<T>(i + 5 * j);
        sources.push_back(arrays[j].data());
      }
      std::vector<T> out(length);
      cohort::detail::fold_arrays_portably(out.data(), sources.data(), 0, k, length, op);
      for (std::size_t i = 0; i < length; ++i) {
        std::deque<T> operands;
        for (const auto& each : arrays) operands.push_back(each[i]);
        wrong += !same_bits(out[i], by_definition(op, operands));
      }
    }
  }
  return wrong;
}

TEST_CASE_TEMPLATE("fold_many: the kernels for any processor", T, std::int32_t, float, double, half, bfloat16) {
  CHECK(wrong_in_portable<T>(cohort::sum{}) == 0);
  CHECK(wrong_in_portable<T>(cohort::max{}) == 0);
  CHECK(wrong_in_portable<T>([](const T& a, const T& b) { return static_cast<T>(a - b); }) == 0);
}

TEST_CASE_TEMPLATE("fold_many: shipped functors, every number of sources", T, char, std::int8_t, std::uint16_t,
                   std::int32_t, std::uint64_t, float, double, half, bfloat16) {
  CHECK(wrongly_folded<T>(cohort::sum{}) == 0);
  CHECK(wrongly_folded<T>(cohort::product{}) == 0);
  CHECK(wrongly_folded<T>(cohort::max{}) == 0);
}

TEST_CASE_TEMPLATE("fold_many: functors of the user's, in the order of the sources", T, int, float, half) {
  CHECK(wrongly_folded<T>([](const T& a, const T& b) { return static_cast<T>(a - b); }) == 0);
  CHECK(wrongly_folded<T>([](const T& a, const T& b) { return static_cast<T>(a * T(2) + b); }) == 0);
  CHECK(wrongly_folded<T>([](const T&, const T& b) { return b; }) == 0);
}

TEST_CASE_TEMPLATE("fold_many: a product and a sum are rounded one after the other", T, float, double) {
  CHECK(wrongly_folded<T>([](const T& a, const T& b) { return a * T(1.1) + b; }) == 0);
}

/// The mean of sources to several places at once, which begin as far from a line each, or not.
template <class T>
int wrong_in_places(int ranks, std::size_t places, std::size_t length, std::size_t offset, std::size_t of_last) {
  const cohort::average mean;
  const reducer r = make_reducer<T>(mean);
  std::vector<std::unique_ptr<raw_array<T>>> in, out;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> to;
  for (int k = 0; k < ranks; ++k) {
    in.push_back(std::make_unique<raw_array<T>>(length, offset));
    for (std::size_t i = 0; i < length; ++i) in.back()->set(i, sample<T>(i + static_cast<std::size_t>(3 * k)));
    sources.push_back(in.back()->data());
  }
  for (std::size_t p = 0; p < places; ++p) {
    out.push_back(std::make_unique<raw_array<T>>(length + 1, p + 1 == places ? of_last : offset));
    out.back()->set(length, sample<T>(3));
    to.push_back(out.back()->data());
  }
  r.fold_past_caches(r.op, to, sources, length, r.finish, ranks);
  int wrong = 0;
  for (std::size_t i = 0; i < length; ++i) {
    float total = 0;
    for (int k = 0; k < ranks; ++k) total += static_cast<float>(sample<T>(i + static_cast<std::size_t>(3 * k)));
    const T expected = static_cast<T>(static_cast<float>(static_cast<T>(total)) / static_cast<float>(ranks));
    for (const auto& each : out) wrong += !same_bits(each->get(i), expected);
  }
  for (const auto& each : out) wrong += !same_bits(each->get(length), sample<T>(3));
  return wrong;
}

TEST_CASE_TEMPLATE("fold_past_caches: the same to several places, with the functor's last step", T, float, half,
                   bfloat16) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    for (const std::size_t places : {1U, 2U, 5U}) {
      for (const std::size_t length : {0U, 16U, 255U, 256U, 1500U}) {
        CHECK(wrong_in_places<T>(ranks, places, length, 0, 0) == 0);
        CHECK(wrong_in_places<T>(ranks, places, length, 24, 24) == 0);
        CHECK(wrong_in_places<T>(ranks, places, length, 0, 8) == 0);
      }
    }
  }
}

TEST_CASE("fold_many: bool, complex numbers, structs, wider accumulators") {
  CHECK(wrongly_folded<bool>(cohort::bit_xor{}) == 0);
  CHECK(wrongly_folded<std::complex<float>>(cohort::sum{}) == 0);
  CHECK(wrongly_folded<affine>(compose{}) == 0);
  CHECK(wrongly_folded<std::int8_t>(saturating{}) == 0);
  CHECK(wrongly_folded<no_default>([](no_default a, no_default b) { return no_default(a.value * 3 + b.value); }) == 0);
}

TEST_CASE("fold_many: an element larger than a block") {
  const auto add = [](const big& a, const big& b) {
    big c = a;
    for (std::size_t i = 0; i < c.words.size(); ++i) c.words[i] = c.words[i] * 3 + b.words[i];
    return c;
  };
  const reducer r = make_reducer<big>(add);
  std::vector<big> a(3), b(3), c(3), out(3);
  for (std::size_t e = 0; e < 3; ++e) {
    for (std::size_t i = 0; i < a[e].words.size(); ++i) a[e].words[i] = i, b[e].words[i] = e, c[e].words[i] = 7 * i;
  }
  const std::byte* sources[] = {reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data()),
                                reinterpret_cast<std::byte*>(c.data()), reinterpret_cast<std::byte*>(b.data()),
                                reinterpret_cast<std::byte*>(a.data())};
  for (const bool streaming : {false, true}) {
    fold_to(r, reinterpret_cast<std::byte*>(out.data()), sources, 5, 3, streaming);
    for (std::size_t e = 0; e < 3; ++e) {
      CHECK(out[e].words == add(add(add(add(a[e], b[e]), c[e]), b[e]), a[e]).words);
    }
  }
}

TEST_CASE_TEMPLATE("fold_many: at any address, with every distance of the result from a cache line", T, half, bfloat16,
                   float, double, affine, std::complex<float>) {
  int wrong = 0;
  for (const bool streaming : {false, true}) {
    for (std::size_t offset = 0; offset < 64; ++offset) {
      for (const int k : {1, 2, 5, 9}) {
        if constexpr (std::same_as<T, affine>) {
          const compose op;
          wrong += wrong_in<T>(make_reducer<T>(op), op, k, 600, -1, offset, streaming);
        } else {
          wrong += wrong_in<T>(make_reducer<T>(summed<T>), summed<T>, k, 600, k - 1, offset, streaming);
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("fold_many: a functor of <functional> is the shipped one, so integers wrap") {
  const std::plus<> op;
  const reducer r = make_reducer<int>(op);
  const int most = std::numeric_limits<int>::max(), one = 1;
  int out = 0;
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&most), reinterpret_cast<const std::byte*>(&one),
                                reinterpret_cast<const std::byte*>(&one)};
  r.fold_many(r.op, reinterpret_cast<std::byte*>(&out), sources, 3, 1);
  CHECK(out == std::numeric_limits<int>::min() + 1);
}

TEST_CASE_TEMPLATE("fold_many: an exception of the functor reaches the caller", T, int, half) {
  const auto op = [](const T& a, const T& b) -> T {
    if (b == T(10)) throw std::runtime_error("ten");
    return static_cast<T>(a + b);
  };
  const reducer r = make_reducer<T>(op);
  std::vector<T> a(300, T(1)), b(300, T(2)), out(300, T(0));
  b[200] = T(10);
  const std::byte* sources[] = {reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data())};
  CHECK_THROWS_WITH_AS(r.fold_many(r.op, reinterpret_cast<std::byte*>(out.data()), sources, 2, 300), "ten",
                       std::runtime_error);
}

// ---- 16-bit floats: one rounding, at the end ----------------------------------------------------------------------

constexpr std::size_t patterns = 0x10000;

/// Zeros, ones, the extremes, infinities, NaNs, subnormals, ties, and a spread of others.
template <class T>
std::vector<T> partners() {
  using limits = std::numeric_limits<T>;
  std::vector<T> chosen;
  for (const T positive : {T(0), T(1), T(3), T(0.1f), limits::max(), limits::min(), limits::denorm_min(),
                           limits::infinity(), limits::quiet_NaN(), limits::signaling_NaN(), limits::epsilon()}) {
    chosen.push_back(positive);
    chosen.push_back(-positive);
  }
  for (std::uint32_t n = 0; chosen.size() < 40; ++n) {
    chosen.push_back(T::from_bits(static_cast<std::uint16_t>(n * 3659u + 7u)));
  }
  return chosen;
}

template <class T, class Op>
int wrong_patterns(const Op& op) {
  const reducer r = make_reducer<T>(op);
  std::vector<T> all, out(patterns);
  for (std::size_t bits = 0; bits < patterns; ++bits) all.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  const std::vector<T> chosen = partners<T>();
  int wrong = 0;
  for (std::size_t p = 0; p < chosen.size(); p += harness::sanitized ? 20 : 1) {
    const T x = chosen[p], y = chosen[(p * 7 + 3) % chosen.size()];
    const std::vector<T> xs(patterns, x), ys(patterns, y);
    const std::byte* sources[] = {reinterpret_cast<const std::byte*>(all.data()),
                                  reinterpret_cast<const std::byte*>(xs.data()),
                                  reinterpret_cast<const std::byte*>(ys.data())};
    for (const int k : {2, 3}) {
      r.fold_many(r.op, reinterpret_cast<std::byte*>(out.data()), sources, k, patterns);
      for (std::size_t i = 0; i < patterns; ++i) {
        float expected = op(static_cast<float>(all[i]), static_cast<float>(x));
        if (k == 3) expected = op(expected, static_cast<float>(y));
        wrong += !same_bits(out[i], T(expected));
      }
    }
  }
  return wrong;
}

TEST_CASE_TEMPLATE("fold_many: every pattern with 40 pairs of partners", T, half, bfloat16) {
  CHECK(wrong_patterns<T>(cohort::sum{}) == 0);
  CHECK(wrong_patterns<T>(cohort::product{}) == 0);
  CHECK(wrong_patterns<T>(cohort::min{}) == 0);
  CHECK(wrong_patterns<T>(cohort::max{}) == 0);
}

TEST_CASE_TEMPLATE("fold_many: sixteen-bit floats are rounded once, not after every operand", T, half, bfloat16) {
  const cohort::sum op;
  const reducer r = make_reducer<T>(op);
  // Each small one alone is lost beside the large one; all together they are not.
  const T large(1024), small(std::numeric_limits<T>::digits == 11 ? 0.25f : 2.0f);
  std::vector<std::vector<T>> arrays(9, std::vector<T>(200, small));
  arrays[0].assign(200, large);
  std::vector<const std::byte*> sources;
  for (const auto& a : arrays) sources.push_back(reinterpret_cast<const std::byte*>(a.data()));
  std::vector<T> out(200);
  r.fold_many(r.op, reinterpret_cast<std::byte*>(out.data()), sources.data(), 9, 200);
  const T expected(1024.0f + 8.0f * static_cast<float>(small));
  CHECK(static_cast<float>(expected) > 1024.0f);
  for (const T each : out) CHECK(each == expected);
}

}  // namespace
