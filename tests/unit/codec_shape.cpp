// SPDX-License-Identifier: BSL-1.0
// The type hash and the type's name: the same in every program and from every compiler, and another for another type.
#include <doctest/doctest.h>

#include <cohort/codec.hpp>
#include <cohort/half.hpp>

#include "support/object_types.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace cohort;
using namespace objects;

template <class A, class B>
inline constexpr bool alike = object_type_hash<A> == object_type_hash<B>;

struct int_float {
  int a;
  float b;
};
struct other_int_float {
  const int x;
  float y;
};
struct float_int {
  float a;
  int b;
};
struct built_in {
  int values[3];
};
struct from_library {
  std::array<int, 3> values;
};

}  // namespace

// Pinned: both compilers of this project see the same numbers, and a change of one is a change of the protocol.
static_assert(object_type_hash<int> == 0xf9e1c08f4291a8df);
static_assert(object_type_hash<int, std::string> == 0xd37f6e49f687cb8e);
static_assert(object_type_hash<std::vector<double>> == 0x3038c43b3d91e93c);
static_assert(object_type_hash<std::map<std::string, std::vector<bool>>> == 0x950fe4c403873f07);
static_assert(object_type_hash<std::tuple<int, float>> == 0x8d437f5685bbb632);
static_assert(object_type_hash<half> == 0x8cfbaea388575d7e);
static_assert(object_type_hash<std::variant<std::monostate, std::optional<char>>> == 0x9aba12ca20163686);
static_assert(object_type_hash<std::array<std::byte, 5>> == 0x3475cc035af6725b);
static_assert(object_type_hash<std::chrono::milliseconds> == 0xa987aad5636ac417);
static_assert(object_type_hash<std::chrono::system_clock::time_point> == 0xf292b0bc8e0d1edc);
static_assert(object_type_hash<person> == 0x370875612546b858);
static_assert(object_type_hash<tree> == 0x3a2ea5f2b181afb0);
static_assert(object_type_hash<folder> == 0x21a14a87052c4e32);
static_assert(object_type_hash<chain> == 0x078458b69cb8d00b);
static_assert(object_type_hash<with_arrays> == 0x3978e969263ef751);
static_assert(object_type_hash<account> == 0x766bb378a0b8fdbb);
static_assert(object_type_hash<shade> == 0x6c7302b33195e04a);
static_assert(object_type_hash<boxed<int>> == 0xbb58d69608e38185);
static_assert(object_type_hash<without_default> == 0x9bbc60fdeeb4a76f);

TEST_CASE("codec: the type hash depends on the structure of a type") {
  CHECK_FALSE(alike<std::vector<int>, std::vector<long long>>);
  CHECK_FALSE(alike<int, unsigned>);
  CHECK_FALSE(alike<int, float>);
  CHECK_FALSE(alike<char, signed char>);
  CHECK_FALSE(alike<char8_t, unsigned char>);
  CHECK_FALSE(alike<int_float, float_int>);
  CHECK_FALSE(alike<int_float, std::tuple<int, float>>);
  CHECK_FALSE(alike<std::pair<int, float>, std::tuple<int, float>>);
  CHECK_FALSE(alike<std::vector<int>, std::list<int>>);
  CHECK_FALSE(alike<std::map<int, int>, std::unordered_map<int, int>>);
  CHECK_FALSE(alike<std::map<int, int>, std::multimap<int, int>>);
  CHECK_FALSE(alike<std::map<int, float>, std::map<float, int>>);
  CHECK_FALSE(alike<std::array<int, 2>, std::array<int, 3>>);
  CHECK_FALSE(alike<std::variant<int, float>, std::variant<float, int>>);
  CHECK_FALSE(alike<std::optional<std::vector<int>>, std::vector<std::optional<int>>>);
  CHECK_FALSE(alike<std::tuple<std::tuple<int>, int>, std::tuple<std::tuple<int, int>>>);
  CHECK_FALSE(alike<std::chrono::seconds, std::chrono::milliseconds>);
  CHECK_FALSE(alike<shade, std::uint8_t>);
  CHECK_FALSE(alike<half, std::uint16_t>);
  CHECK_FALSE(alike<boxed<int>, boxed<float>>);
  CHECK_FALSE(alike<boxed<int>, int>);
  CHECK_FALSE(alike<described_base, int_float>);
  CHECK_FALSE(object_type_hash<int, int> == object_type_hash<std::tuple<int, int>>);
  CHECK_FALSE(object_type_hash<int, int> == object_type_hash<int>);
}

TEST_CASE("codec: the type hash does not depend on what does not travel") {
  CHECK(alike<int_float, other_int_float>);
  CHECK(alike<built_in, from_library>);
  CHECK(alike<std::vector<int>, std::vector<int, std::pmr::polymorphic_allocator<int>>>);
  CHECK(alike<std::set<int>, std::set<int, std::greater<>>>);
  CHECK(alike<long, std::int64_t>);
  CHECK(alike<long long, std::int64_t>);
  CHECK(alike<std::size_t, std::uint64_t>);
  CHECK(alike<std::pair<const int, int>, std::pair<int, int>>);
}

TEST_CASE("codec: names of types can be read") {
  const auto name = []<class... Ts>(std::type_identity<Ts>...) { return object_type_name<Ts...>(); };
  CHECK(name(std::type_identity<std::map<std::string, std::vector<long>>>()) == "map<string, vector<int64>>");
  CHECK(name(std::type_identity<int>(), std::type_identity<std::string>()) == "int32, string");
  CHECK(name(std::type_identity<tree>()) == "objects::tree{int32, vector<objects::tree>}");
  CHECK(name(std::type_identity<account>()) ==
        "objects::account{objects::described_base{id: int32}, owner_: string, balance_: float64, linked_: "
        "vector<objects::account>}");
  CHECK(name(std::type_identity<with_arrays>()) ==
        "objects::with_arrays{int16, array<char, 6>, array<array<float64, 2>, 2>, array<string, 2>, vector<int32>}");
  CHECK(name(std::type_identity<std::vector<shade>>()) == "vector<enum objects::shade : uint8>");
  CHECK(name(std::type_identity<boxed<boxed<int>>>()) == "codec boxed<codec boxed<int32>>");
  CHECK(name(std::type_identity<even>()) == "codec objects::even");
  CHECK(name(std::type_identity<std::chrono::system_clock::time_point>()) ==
        "time_point<system, duration<int64, 1/1000000000>>");
}

TEST_CASE("codec: a long name of a type is cut, its hash is not") {
  using person4 = std::tuple<person, person, person, person>;
  using person3_point = std::tuple<person, person, person, point>;
  CHECK(object_type_name<person4>().size() == detail::shape_name::most);
  CHECK(object_type_name<person4>().ends_with("..."));
  CHECK(object_type_name<person4>() == object_type_name<person3_point>());
  CHECK_FALSE(alike<person4, person3_point>);
}
