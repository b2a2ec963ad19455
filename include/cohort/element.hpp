// SPDX-License-Identifier: BSL-1.0
// What may travel: the concept of an element type, and the number and name by which ranks compare types.
// Every function of communicator.hpp asks for it; the number is part of the fingerprint of every message.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/type_name.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cohort {

class half;
class bfloat16;
class float8_e4m3;
class float8_e5m2;

/// True for types whose value is an address, which means nothing in another process. Pointers are refused
/// without it; specialise it for a trivially copyable handle of your own that holds one.
template <class T>
inline constexpr bool holds_address = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class T, std::size_t N>
inline constexpr bool holds_address<std::span<T, N>> = true;
template <class Char, class Traits>
inline constexpr bool holds_address<std::basic_string_view<Char, Traits>> = true;
template <class T>
inline constexpr bool holds_address<std::reference_wrapper<T>> = true;

/// A type whose values travel as their bytes: arithmetic types, bool, enumerations, std::complex, half, bfloat16,
/// the 8-bit floats, and any trivially copyable class, whether it can be default constructed or not.
template <class T>
concept element = std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> &&
                  std::is_trivially_copyable_v<T> && !holds_address<T>;

namespace detail {

template <class T>
inline constexpr bool is_bit_vector = false;
template <class Allocator>
inline constexpr bool is_bit_vector<std::vector<bool, Allocator>> = true;

template <class...>
inline constexpr bool always_false = false;

// The position of a name is its code, and part of the wire protocol: append, never reorder.
inline constexpr std::array<std::string_view, 26> element_names{
    "unknown",  "bool",    "char",     "byte",     "int8",      "int16",      "int32",       "int64",  "int128",
    "uint8",    "uint16",  "uint32",   "uint64",   "uint128",   "float16",    "bfloat16",    "float32", "float64",
    "float80",  "float128", "float8_e4m3", "float8_e5m2", "complex64", "complex128", "complex_long_double",
    "object"};

/// A byte of an object's message: an element type of its own, so that objects and arrays of bytes are not confused.
struct object_byte {
  std::byte value;
};

[[nodiscard]] constexpr std::uint16_t element_code(std::string_view name) noexcept {
  for (std::uint16_t code = 0; code < element_names.size(); ++code) {
    if (element_names[code] == name) return code;
  }
  return 0;
}

/// The fixed name of a built-in element type, by kind and size, so that long and long long agree; else "".
template <class T>
[[nodiscard]] constexpr std::string_view fixed_element_name() noexcept {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_same_v<T, char>) return "char";  // signed on x86-64 and unsigned on arm64
  else if constexpr (std::is_same_v<T, std::byte>) return "byte";
  else if constexpr (std::is_same_v<T, object_byte>) return "object";
  else if constexpr (std::is_same_v<T, half>) return "float16";
  else if constexpr (std::is_same_v<T, bfloat16>) return "bfloat16";
  else if constexpr (std::is_same_v<T, float8_e4m3>) return "float8_e4m3";
  else if constexpr (std::is_same_v<T, float8_e5m2>) return "float8_e5m2";
  else if constexpr (std::is_same_v<T, std::complex<float>>) return "complex64";
  else if constexpr (std::is_same_v<T, std::complex<double>>) return "complex128";
  else if constexpr (std::is_same_v<T, std::complex<long double>>) return "complex_long_double";
  else if constexpr (std::is_integral_v<T>) {
    constexpr int first = element_code(std::is_signed_v<T> ? "int8" : "uint8");
    int doublings = 0;
    while ((std::size_t{1} << doublings) < sizeof(T)) ++doublings;
    return element_names[static_cast<std::size_t>(first + doublings)];
  } else if constexpr (std::is_floating_point_v<T>) {
    // By precision, not by size: long double fills 16 bytes with two different formats.
    constexpr int digits = std::numeric_limits<T>::digits;
    return digits == 24 ? "float32" : digits == 53 ? "float64" : digits == 64 ? "float80" : "float128";
  } else return "";
}

}  // namespace detail

/// The number of an element type, equal in every process: fixed below 0x8000 for the built-in types, else
/// 0x8000 | a 15-bit hash of the type's name and size, which two different structs share once in 32,768 cases.
template <element T>
inline constexpr std::uint16_t element_type_id = detail::fixed_element_name<T>().empty()
                                                     ? detail::hashed_code(detail::type_name<T>(), sizeof(T))
                                                     : detail::element_code(detail::fixed_element_name<T>());

/// The name that belongs to a number from another process: "float32", "bfloat16", "struct#1a2b".
[[nodiscard]] inline std::string element_type_name(std::uint16_t id) {
  if ((id & 0x8000u) != 0) return detail::hashed_name("struct", id);
  return std::string(detail::element_names[id < detail::element_names.size() ? id : 0]);
}

/// The name of a type of this process: as above for built-in types, the type's own name for others.
template <element T>
[[nodiscard]] std::string element_type_name() {
  constexpr std::string_view fixed = detail::fixed_element_name<T>();
  return std::string(fixed.empty() ? detail::type_name<T>() : fixed);
}

/// Refuses, with a text that says what to write instead, a type that is no element. True where it compiles.
template <class T>
constexpr bool check_element() noexcept {
  if constexpr (detail::is_bit_vector<T>) {
    static_assert(detail::always_false<T>,
                  "cohort: std::vector<bool> packs its bits, so there is no array of bool to send: use "
                  "std::vector<char>, std::array<bool, N> or std::unique_ptr<bool[]>");
  } else if constexpr (!std::is_same_v<T, std::remove_cv_t<T>>) {
    static_assert(detail::always_false<T>, "cohort: an element type has no const or volatile: name the plain type");
  } else if constexpr (holds_address<T>) {
    static_assert(detail::always_false<T>,
                  "cohort: an address (a pointer, a span, a string_view) means nothing in another process: send what "
                  "it points to");
  } else if constexpr (!std::is_object_v<T> || std::is_array_v<T>) {
    static_assert(detail::always_false<T>,
                  "cohort: an element is one value: pass a built-in array as a std::span, or use std::array<T, N> as "
                  "the element type");
  } else {
    static_assert(element<T>,
                  "cohort: an element type must be trivially copyable, because its bytes are what travels: send "
                  "strings and containers with send_object or broadcast_object, use a plain struct for std::pair and "
                  "std::tuple");
  }
  return true;
}

}  // namespace cohort
