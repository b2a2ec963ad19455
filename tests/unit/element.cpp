// SPDX-License-Identifier: BSL-1.0
// Which types may travel, and the numbers and names under which ranks compare them.
#include <doctest/doctest.h>

#include <cohort/bfloat16.hpp>
#include <cohort/element.hpp>
#include <cohort/float8.hpp>
#include <cohort/half.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace element_test {

struct point {
  float x;
  float y;
};
struct no_default {
  int value;
  explicit no_default(int v) : value(v) {}
};
enum class colour : std::uint8_t { red };
enum plain { first };
union either {
  int i;
  float f;
};
struct empty {};
struct handle {
  void* address;
};
struct has_destructor {
  ~has_destructor() {}
};

}  // namespace element_test

template <>
inline constexpr bool cohort::holds_address<element_test::handle> = true;

namespace {

using namespace element_test;
using cohort::element;
using cohort::element_type_id;
using cohort::element_type_name;

template <class... T>
constexpr bool all_elements = (element<T> && ...);
template <class... T>
constexpr bool no_element = (!element<T> && ...);

static_assert(all_elements<bool, char, signed char, unsigned char, short, int, long, long long, unsigned, wchar_t,
                           char8_t, char16_t, char32_t, float, double, long double, std::byte>);
static_assert(all_elements<cohort::half, cohort::bfloat16, cohort::float8_e4m3, cohort::float8_e5m2>);
static_assert(all_elements<std::complex<float>, std::complex<double>, std::complex<long double>>);
static_assert(all_elements<point, no_default, colour, plain, either, empty, std::array<double, 3>, std::optional<int>>);
static_assert(no_element<void, int&, int*, const char*, std::nullptr_t, int point::*, int(int), int (*)(int), int[4]>);
static_assert(no_element<const int, volatile int, const point>);
static_assert(no_element<std::string, std::vector<int>, std::vector<bool>, std::unique_ptr<int>, has_destructor>);
static_assert(no_element<std::span<int>, std::span<int, 3>, std::string_view, std::reference_wrapper<int>, handle>);
static_assert(no_element<std::pair<int, int>>);  // its assignment is not trivial

TEST_CASE("element_type_id: fixed numbers, which are part of the wire protocol") {
  CHECK(element_type_id<bool> == 1);
  CHECK(element_type_id<char> == 2);
  CHECK(element_type_id<std::byte> == 3);
  CHECK(element_type_id<std::int8_t> == 4);
  CHECK(element_type_id<std::int16_t> == 5);
  CHECK(element_type_id<std::int32_t> == 6);
  CHECK(element_type_id<std::int64_t> == 7);
  CHECK(element_type_id<std::uint8_t> == 9);
  CHECK(element_type_id<std::uint16_t> == 10);
  CHECK(element_type_id<std::uint32_t> == 11);
  CHECK(element_type_id<std::uint64_t> == 12);
  CHECK(element_type_id<cohort::half> == 14);
  CHECK(element_type_id<cohort::bfloat16> == 15);
  CHECK(element_type_id<float> == 16);
  CHECK(element_type_id<double> == 17);
  CHECK(element_type_id<cohort::float8_e4m3> == 20);
  CHECK(element_type_id<cohort::float8_e5m2> == 21);
  CHECK(element_type_id<std::complex<float>> == 22);
  CHECK(element_type_id<std::complex<double>> == 23);
}

TEST_CASE("element_type_id: kind and size decide, not the spelling") {
  CHECK(element_type_id<long long> == element_type_id<std::int64_t>);
  CHECK(element_type_id<unsigned long> == element_type_id<std::uint64_t>);
  CHECK(element_type_id<long> == (sizeof(long) == 8 ? element_type_id<std::int64_t> : element_type_id<std::int32_t>));
  CHECK(element_type_id<char8_t> == element_type_id<std::uint8_t>);
  CHECK(element_type_id<char32_t> == element_type_id<std::uint32_t>);
  // char is signed on some processors and unsigned on others, and stays one type for ranks on both.
  CHECK(element_type_id<char> != element_type_id<signed char>);
  CHECK(element_type_id<char> != element_type_id<unsigned char>);
}

TEST_CASE("element_type_id: other types get a hash of name and size, the same from every compiler") {
  CHECK((element_type_id<point> & 0x8000u) != 0);
  CHECK(element_type_id<point> == cohort::detail::hashed_code("element_test::point", 8));
  CHECK(element_type_id<colour> == cohort::detail::hashed_code("element_test::colour", 1));
  CHECK(cohort::detail::hashed_code("s", 8) == 0xd3f8);  // pinned: another value is another protocol
  const std::set<std::uint16_t> ids{element_type_id<point>, element_type_id<no_default>, element_type_id<colour>,
                                    element_type_id<plain>, element_type_id<either>,     element_type_id<empty>,
                                    element_type_id<std::array<double, 3>>};
  CHECK(ids.size() == 7);
}

TEST_CASE("hashed_code: two versions of a struct differ; where and how a lambda was compiled does not matter") {
  using cohort::detail::hashed_code;
  CHECK(hashed_code("s", 8) != hashed_code("s", 12));
  CHECK(hashed_code("f()::<lambda(auto:3, auto:4)>", 1) == hashed_code("f()::<lambda(auto:17, auto:18)>", 1));
  CHECK(hashed_code("f()::<lambda(auto:3, auto:4)>", 1) != hashed_code("f()::<lambda(auto:3)>", 1));
  CHECK(hashed_code("(lambda at /a/b/x.cpp:3:4)", 1) == hashed_code("(lambda at /c/x.cpp:3:4)", 1));
  CHECK(hashed_code("(lambda at /a/x.cpp:3:4)", 1) == hashed_code("(lambda at x.cpp:3:4)", 1));
  CHECK(hashed_code("(lambda at /a/x.cpp:3:4)", 1) != hashed_code("(lambda at /a/y.cpp:3:4)", 1));
  CHECK(hashed_code("(lambda at /a/x.cpp:3:4)", 1) != hashed_code("(lambda at /a/x.cpp:4:4)", 1));
  CHECK(hashed_code("", 0) >= 0x8000);
}

template <class T>
bool names_agree(const char* name) {
  return element_type_name<T>() == name && element_type_name(element_type_id<T>) == name;
}

TEST_CASE("element_type_name: the same from the type and from the number of another process") {
  CHECK(names_agree<bool>("bool"));
  CHECK(names_agree<char>("char"));
  CHECK(names_agree<std::byte>("byte"));
  CHECK(names_agree<signed char>("int8"));
  CHECK(names_agree<short>("int16"));
  CHECK(names_agree<int>("int32"));
  CHECK(names_agree<long long>("int64"));
  CHECK(names_agree<unsigned char>("uint8"));
  CHECK(names_agree<unsigned short>("uint16"));
  CHECK(names_agree<unsigned>("uint32"));
  CHECK(names_agree<unsigned long long>("uint64"));
  CHECK(names_agree<cohort::half>("float16"));
  CHECK(names_agree<cohort::bfloat16>("bfloat16"));
  CHECK(names_agree<float>("float32"));
  CHECK(names_agree<double>("float64"));
  CHECK(names_agree<cohort::float8_e4m3>("float8_e4m3"));
  CHECK(names_agree<cohort::float8_e5m2>("float8_e5m2"));
  CHECK(names_agree<std::complex<float>>("complex64"));
  CHECK(names_agree<std::complex<double>>("complex128"));
}

TEST_CASE("element_type_name: types that not every compiler or processor has keep their numbers") {
  CHECK(element_type_name(8) == "int128");
  CHECK(element_type_name(13) == "uint128");
  CHECK(element_type_name(18) == "float80");
  CHECK(element_type_name(19) == "float128");
  CHECK(element_type_name(24) == "complex_long_double");
  constexpr int digits = std::numeric_limits<long double>::digits;
  CHECK(element_type_id<long double> == (digits == 64 ? 18 : digits == 53 ? 17 : 19));
}

TEST_CASE("element_type_name: a struct by its own name here, by its number elsewhere") {
  CHECK(element_type_name<point>() == "element_test::point");
  CHECK(element_type_name(0x9a2b) == "struct#1a2b");
  CHECK(element_type_name(0x8003) == "struct#0003");
  CHECK(element_type_name(0) == "unknown");
  CHECK(element_type_name(0x7fff) == "unknown");
}

TEST_CASE("type_name: what the compiler calls a type, and nothing around it") {
  CHECK(cohort::detail::type_name<int>() == "int");
  CHECK(cohort::detail::type_name<double>() == "double");
  CHECK(cohort::detail::type_name<point>() == "element_test::point");
  CHECK(cohort::detail::type_name<std::string>().find("basic_string") != std::string_view::npos);
  CHECK(cohort::detail::type_name<std::string>().ends_with(">"));
}

static_assert(cohort::check_element<point>() && cohort::check_element<cohort::half>());

}  // namespace
