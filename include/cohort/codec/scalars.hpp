// SPDX-License-Identifier: BSL-1.0
// Codecs of single values: integers, floats, bool, characters, enums, std::byte and the library's small floats.
// The leaves of every shape; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/reader.hpp>
#include <cohort/codec/type_shape.hpp>
#include <cohort/codec/writer.hpp>

#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace cohort {
namespace detail {

/// long takes 8 bytes in a message, wchar_t 4, wherever the program runs. size_t is unsigned int on 32-bit Linux and
/// thus the same type as uint32_t there: what such a host exchanges with others is to be declared uint64_t.
template <class T>
inline constexpr std::size_t wire_width = sizeof(T);
template <>
inline constexpr std::size_t wire_width<long> = 8;
template <>
inline constexpr std::size_t wire_width<unsigned long> = 8;
template <>
inline constexpr std::size_t wire_width<wchar_t> = 4;

template <std::size_t Width>
struct unsigned_of_width;
template <>
struct unsigned_of_width<1> {
  using type = std::uint8_t;
};
template <>
struct unsigned_of_width<2> {
  using type = std::uint16_t;
};
template <>
struct unsigned_of_width<4> {
  using type = std::uint32_t;
};
template <>
struct unsigned_of_width<8> {
  using type = std::uint64_t;
};

template <class T>
concept codec_integer = std::is_integral_v<T> && !std::is_same_v<T, bool> && wire_width<T> <= 8;

template <codec_integer T>
[[nodiscard]] constexpr std::string_view integer_name() noexcept {
  if constexpr (std::is_same_v<T, char>) return "char";  // signed on x86-64 and unsigned on arm64
  else if constexpr (std::is_same_v<T, char8_t>) return "char8";
  else if constexpr (std::is_same_v<T, char16_t>) return "char16";
  else if constexpr (std::is_same_v<T, char32_t>) return "char32";
  else if constexpr (std::is_same_v<T, wchar_t>) return "wchar";
  else if constexpr (wire_width<T> == 1) return std::is_signed_v<T> ? "int8" : "uint8";
  else if constexpr (wire_width<T> == 2) return std::is_signed_v<T> ? "int16" : "uint16";
  else if constexpr (wire_width<T> == 4) return std::is_signed_v<T> ? "int32" : "uint32";
  else return std::is_signed_v<T> ? "int64" : "uint64";
}

template <class T>
concept small_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float8_e4m3> ||
    std::is_same_v<T, float8_e5m2>;

inline constexpr bool is_little_endian = std::endian::native == std::endian::little;

/// A value without levels of nesting, and a name that is fixed.
struct leaf_codec {
  static constexpr bool nests = false;
};

/// The one byte of an object that has no contents: without it a count of such objects would have no bound.
struct empty_codec : leaf_codec {
  static constexpr std::size_t min_size = 1;
  static void write(writer& to) { to.number(std::uint8_t{0}); }
  static void read(reader& from) {
    if (const auto found = from.number<std::uint8_t>(); found != 0) {
      from.fail("expected the byte 0 of an empty object, found " + std::to_string(found));
    }
  }
};

template <class E>
concept described_enum = std::is_enum_v<E> && boost::describe::has_describe_enumerators<E>::value;

/// Asked of the number, before there is a value of the enum.
template <described_enum E>
[[nodiscard]] bool is_enumerator(std::underlying_type_t<E> value) noexcept {
  bool found = false;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>(
      [&](auto enumerator) { found = found || static_cast<std::underlying_type_t<E>>(enumerator.value) == value; });
  return found;
}

}  // namespace detail

template <>
struct codec<bool> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr void shape(const auto& walk) { walk.text("bool"); }
  static void encode(writer& to, bool value) { to.number(static_cast<std::uint8_t>(value)); }
  static bool decode(reader& from) {
    const auto found = from.number<std::uint8_t>();
    if (found > 1) from.fail("expected a bool of 0 or 1, found " + std::to_string(found));
    return found == 1;
  }
};

template <detail::codec_integer T>
struct codec<T> : detail::leaf_codec {
  static constexpr std::size_t min_size = detail::wire_width<T>;
  static constexpr bool bulk = detail::is_little_endian && sizeof(T) == min_size;
  using encoded = typename detail::unsigned_of_width<min_size>::type;

  static constexpr void shape(const auto& walk) { walk.text(detail::integer_name<T>()); }
  static void encode(writer& to, T value) { to.number(static_cast<encoded>(value)); }
  static T decode(reader& from) {
    const auto found = from.number<encoded>();
    const T value = static_cast<T>(found);
    if constexpr (sizeof(T) != min_size) {
      if (static_cast<encoded>(value) != found)
        from.fail("expected an integer that fits this host's, found a larger one");
    }
    return value;
  }
};

template <>
struct codec<std::byte> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr bool bulk = true;
  static constexpr void shape(const auto& walk) { walk.text("byte"); }
  static void encode(writer& to, std::byte value) { to.number(static_cast<std::uint8_t>(value)); }
  static std::byte decode(reader& from) { return std::byte{from.number<std::uint8_t>()}; }
};

/// float and double travel bit by bit: the payloads of NaNs and the sign of zero arrive.
template <class T>
  requires(std::is_floating_point_v<T>&& std::numeric_limits<T>::is_iec559&& std::numeric_limits<T>::digits <= 53)
struct codec<T> : detail::leaf_codec {
  static constexpr std::size_t min_size = sizeof(T);
  static constexpr bool bulk = detail::is_little_endian;
  using encoded = typename detail::unsigned_of_width<min_size>::type;

  static constexpr void shape(const auto& walk) { walk.text(sizeof(T) == 4 ? "float32" : "float64"); }
  static void encode(writer& to, T value) { to.number(std::bit_cast<encoded>(value)); }
  static T decode(reader& from) { return std::bit_cast<T>(from.number<encoded>()); }
};

/// The long double of x86: 10 bytes, without the padding that it has in memory.
template <class T>
  requires(std::is_floating_point_v<T>&& std::numeric_limits<T>::digits == 64 && detail::is_little_endian)
struct codec<T> : detail::leaf_codec {
  static constexpr std::size_t min_size = 10;
  static constexpr void shape(const auto& walk) { walk.text("float80"); }
  static void encode(writer& to, T value) {
    std::byte raw[sizeof(T)] = {};
    std::memcpy(raw, &value, min_size);
    to.bytes({raw, min_size});
  }
  static T decode(reader& from) {
    const auto fraction = from.number<std::uint64_t>();
    const auto exponent = from.number<std::uint16_t>();
    // What no processor since the 80287 makes, nor takes for a number.
    if (fraction >> 63 == 0 && (exponent & 0x7fffU) != 0) {
      from.fail("expected a float80 with its leading bit set, found it clear");
    }
    T value = 0;
    std::memcpy(&value, &fraction, sizeof fraction);
    std::memcpy(reinterpret_cast<unsigned char*>(&value) + sizeof fraction, &exponent, sizeof exponent);
    return value;
  }
};

template <detail::small_float T>
struct codec<T> : detail::leaf_codec {
  static constexpr std::size_t min_size = sizeof(T);
  static constexpr bool bulk = detail::is_little_endian;
  using encoded = typename detail::unsigned_of_width<min_size>::type;

  static constexpr void shape(const auto& walk) { walk.text(detail::fixed_element_name<T>()); }
  static void encode(writer& to, T value) { to.number(encoded{value.bits()}); }
  static T decode(reader& from) { return T::from_bits(from.number<encoded>()); }
};

/// An enum of fixed type travels as that type, and every value of it is accepted, enumerator or not. An enum without
/// one needs BOOST_DESCRIBE_ENUM, and only its enumerators are accepted.
template <class E>
  requires(detail::range_free_enum<E> || detail::described_enum<E>)
struct codec<E> : detail::leaf_codec {
  using number = codec<std::underlying_type_t<E>>;
  static constexpr std::size_t min_size = number::min_size;
  static constexpr bool bulk = detail::range_free_enum<E> && detail::is_bulk<std::underlying_type_t<E>>();

  static constexpr void shape(const auto& walk) {
    walk.text("enum ");
    walk.class_name(detail::type_name<E>());
    walk.text(" : ");
    walk.template type<std::underlying_type_t<E>>();
  }
  static void encode(writer& to, E value) { number::encode(to, static_cast<std::underlying_type_t<E>>(value)); }
  static E decode(reader& from) {
    const std::underlying_type_t<E> found = number::decode(from);
    if constexpr (!detail::range_free_enum<E>) {
      if (!detail::is_enumerator<E>(found)) {
        from.fail("expected an enumerator of " + std::string(detail::type_name<E>()) + ", found " +
                  std::to_string(found));
      }
    }
    return static_cast<E>(found);
  }
};

}  // namespace cohort
