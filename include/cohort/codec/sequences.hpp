// SPDX-License-Identifier: BSL-1.0
// Codecs of strings and sequences: vector, deque, list, forward_list, array and bitset.
// A count, checked against the bytes that remain, then the elements; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/scalars.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {
namespace detail {

/// What most containers have in common. A node of a list or a tree takes some pointers besides its element.
struct container_codec : leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr std::size_t node = 4 * sizeof(void*);

  template <class Container>
  static void write_elements(writer& to, const Container& values, std::size_t size) {
    to.count(size);
    for (const auto& value : values) to.write(value);
  }
  template <class Container>
  static Container read_to_back(reader& from) {
    using value_type = typename Container::value_type;
    Container values;
    for (std::size_t left = from.count_of<value_type>(node); left > 0; --left) {
      values.push_back(from.read<value_type>());
    }
    return values;
  }
};

/// Bits, 8 to a byte, the first in the lowest; those that fill the last byte up are 0.
template <class Bits>
void write_bits(writer& to, const Bits& bits, std::size_t size) {
  for (std::size_t first = 0; first < size; first += 8) {
    unsigned packed = 0;
    for (std::size_t i = first; i < size && i < first + 8; ++i) packed |= static_cast<unsigned>(bits[i]) << (i - first);
    to.number(static_cast<std::uint8_t>(packed));
  }
}
template <class Bits>
void read_bits(reader& from, Bits& bits, std::size_t size) {
  for (std::size_t first = 0; first < size; first += 8) {
    const unsigned packed = from.number<std::uint8_t>();
    if (size - first < 8 && packed >> (size - first) != 0)
      from.fail("expected 0 in the bits after the last, found others");
    for (std::size_t i = first; i < size && i < first + 8; ++i) bits[i] = (packed >> (i - first) & 1U) != 0;
  }
}

template <class Char>
[[nodiscard]] constexpr std::string_view string_name() noexcept {
  if constexpr (std::is_same_v<Char, char>) return "string";
  else if constexpr (std::is_same_v<Char, char8_t>) return "u8string";
  else if constexpr (std::is_same_v<Char, char16_t>) return "u16string";
  else if constexpr (std::is_same_v<Char, char32_t>) return "u32string";
  else if constexpr (std::is_same_v<Char, wchar_t>) return "wstring";
  else return "";
}

template <class T, std::size_t N, std::size_t... I>
[[nodiscard]] std::array<T, N> read_array(reader& from, std::index_sequence<I...> /*unused*/) {
  return {{(static_cast<void>(I), from.read<T>())...}};
}

}  // namespace detail

/// Any bytes are text: an encoding is neither asked for nor checked, and zeros may be among them.
template <detail::codec_integer Char, class Traits, class Allocator>
struct codec<std::basic_string<Char, Traits, Allocator>> : detail::container_codec {
  using string = std::basic_string<Char, Traits, Allocator>;

  static constexpr void shape(const auto& walk) {
    if constexpr (detail::string_name<Char>().empty()) walk.template of<Char>("string");
    else walk.text(detail::string_name<Char>());
  }
  static void encode(writer& to, const string& text) {
    if constexpr (detail::is_bulk<Char>()) {
      to.count(text.size());
      to.bytes(std::as_bytes(std::span(text)));
    } else {
      write_elements(to, text, text.size());
    }
  }
  static string decode(reader& from) {
    const std::size_t size = from.count_of<Char>();
    string text(size, Char{});
    if constexpr (detail::is_bulk<Char>()) {
      from.copy_to(text.data(), size * sizeof(Char));
    } else {
      for (Char& c : text) c = from.read<Char>();
    }
    return text;
  }
};

template <class T, class Allocator>
struct codec<std::vector<T, Allocator>> : detail::container_codec {
  using vector = std::vector<T, Allocator>;
  static constexpr bool at_once = detail::is_bulk<T>() && std::is_default_constructible_v<T>;

  static constexpr void shape(const auto& walk) { walk.template of<T>("vector"); }
  static void encode(writer& to, const vector& values) {
    if constexpr (at_once) {
      to.count(values.size());
      to.bytes(std::as_bytes(std::span(values)));
    } else {
      write_elements(to, values, values.size());
    }
  }
  static vector decode(reader& from) {
    std::size_t left = from.count_of<T>();
    if constexpr (at_once) {
      vector values(left);
      from.copy_to(values.data(), left * sizeof(T));
      return values;
    } else {
      vector values;
      values.reserve(from.room_for<T>(left));
      for (; left > 0; --left) values.push_back(from.read<T>());
      return values;
    }
  }
};

template <class Allocator>
struct codec<std::vector<bool, Allocator>> : detail::container_codec {
  static constexpr void shape(const auto& walk) { walk.text("vector<bool>"); }
  static void encode(writer& to, const std::vector<bool, Allocator>& bits) {
    to.count(bits.size());
    detail::write_bits(to, bits, bits.size());
  }
  static std::vector<bool, Allocator> decode(reader& from) {
    std::vector<bool, Allocator> bits(from.bit_count());
    detail::read_bits(from, bits, bits.size());
    return bits;
  }
};

template <class T, class Allocator>
struct codec<std::deque<T, Allocator>> : detail::container_codec {
  static constexpr void shape(const auto& walk) { walk.template of<T>("deque"); }
  static void encode(writer& to, const std::deque<T, Allocator>& values) { write_elements(to, values, values.size()); }
  static std::deque<T, Allocator> decode(reader& from) {
    // An empty one has a block of elements already, and a map of eight blocks.
    from.charge(1, std::max<std::size_t>(512, sizeof(T)) + 8 * sizeof(void*));
    return read_to_back<std::deque<T, Allocator>>(from);
  }
};

template <class T, class Allocator>
struct codec<std::list<T, Allocator>> : detail::container_codec {
  static constexpr void shape(const auto& walk) { walk.template of<T>("list"); }
  static void encode(writer& to, const std::list<T, Allocator>& values) { write_elements(to, values, values.size()); }
  static std::list<T, Allocator> decode(reader& from) { return read_to_back<std::list<T, Allocator>>(from); }
};

template <class T, class Allocator>
struct codec<std::forward_list<T, Allocator>> : detail::container_codec {
  static constexpr void shape(const auto& walk) { walk.template of<T>("forward_list"); }
  static void encode(writer& to, const std::forward_list<T, Allocator>& values) {
    write_elements(to, values, static_cast<std::size_t>(std::distance(values.begin(), values.end())));
  }
  static std::forward_list<T, Allocator> decode(reader& from) {
    std::forward_list<T, Allocator> values;
    auto last = values.before_begin();
    for (std::size_t left = from.count_of<T>(node); left > 0; --left) {
      last = values.insert_after(last, from.read<T>());
    }
    return values;
  }
};

/// No count: it is part of the type.
template <class T, std::size_t N>
struct codec<std::array<T, N>> : detail::leaf_codec {
  static constexpr std::size_t min_size = N == 0 ? 1 : N * detail::min_encoded_size<T>();
  static constexpr bool bulk = N != 0 && detail::is_bulk<T>() && sizeof(std::array<T, N>) == N * sizeof(T);

  static constexpr void shape(const auto& walk) { walk.template array<T>(N); }
  static void encode(writer& to, const std::array<T, N>& values) {
    if constexpr (N == 0) detail::empty_codec::write(to);
    else if constexpr (bulk) to.bytes(std::as_bytes(std::span(values)));
    else
      for (const T& value : values) to.write(value);
  }
  static std::array<T, N> decode(reader& from) {
    if constexpr (N == 0) {
      detail::empty_codec::read(from);
      return {};
    } else if constexpr (std::is_default_constructible_v<T>) {
      std::array<T, N> values{};
      if constexpr (bulk) from.copy_to(values.data(), N * sizeof(T));
      else
        for (T& value : values) from.read_into(value);
      return values;
    } else {
      return detail::read_array<T, N>(from, std::make_index_sequence<N>());
    }
  }
};

template <std::size_t N>
struct codec<std::bitset<N>> : detail::leaf_codec {
  static constexpr std::size_t min_size = N == 0 ? 1 : (N + 7) / 8;

  static constexpr void shape(const auto& walk) {
    walk.text("bitset<");
    walk.number(N);
    walk.text(">");
  }
  static void encode(writer& to, const std::bitset<N>& bits) {
    if constexpr (N == 0) detail::empty_codec::write(to);
    else detail::write_bits(to, bits, N);
  }
  static std::bitset<N> decode(reader& from) {
    std::bitset<N> bits;
    if constexpr (N == 0) detail::empty_codec::read(from);
    else detail::read_bits(from, bits, N);
    return bits;
  }
};

}  // namespace cohort
