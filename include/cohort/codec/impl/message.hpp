// SPDX-License-Identifier: BSL-1.0
// Bodies of codec/message.hpp that are no templates: the header of a message.
#pragma once

#include <cohort/codec/message.hpp>
#include <cohort/detail/printable.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace cohort::detail {

// magic (4 bytes), format version (1), length of the name (1), reserved (2), type hash (8), name
inline constexpr std::array<std::uint8_t, 4> object_magic{'C', 'o', 'b', 'j'};
inline constexpr std::uint8_t object_format = 1;

COHORT_DECL void write_object_header(writer& to, std::uint64_t hash, std::string_view name) {
  static_assert(shape_name::most <= 255);
  to.bytes(std::as_bytes(std::span(object_magic)));
  to.number(object_format);
  to.number(static_cast<std::uint8_t>(name.size()));
  to.number(std::uint16_t{0});
  to.number(hash);
  to.bytes(std::as_bytes(std::span(name)));
}

/// What another process calls its type, without anything that a terminal could act on.
[[nodiscard]] inline std::string foreign_name(std::span<const std::byte> bytes) {
  std::string name;
  for (const std::byte b : bytes) {
    const char c = static_cast<char>(b);
    name += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return name.empty() ? "no name" : name;
}

[[noreturn, gnu::cold]] inline void throw_wrong_type(std::uint64_t expected, std::string_view expected_name,
                                                     std::uint64_t sent, std::span<const std::byte> sent_name) {
  std::string own(expected_name);
  std::string other = foreign_name(sent_name);
  if (other == own) {  // a name is cut at some length, and classes may share one
    const auto numbered = [](std::uint64_t hash) {
      char text[32] = {};
      std::snprintf(text, sizeof text, " #%016llx", static_cast<unsigned long long>(hash));
      return std::string(text);
    };
    own += numbered(expected);
    other += numbered(sent);
  }
  throw error(errc::wrong_type, "expected an object of type " + own + ", found one of type " + other);
}

COHORT_DECL void read_object_header(reader& from, std::uint64_t hash, std::string_view name) {
  std::array<char, object_magic.size()> magic{};
  from.copy_to(magic.data(), magic.size());
  if (std::memcmp(magic.data(), object_magic.data(), magic.size()) != 0) {
    from.fail("expected an object message, found one that begins with " + detail::quoted({magic.data(), magic.size()}));
  }
  if (const auto format = from.number<std::uint8_t>(); format != object_format) {
    throw error(errc::version_mismatch, "expected an object message of format " + std::to_string(object_format) +
                                            ", found format " + std::to_string(format));
  }
  const auto length = from.number<std::uint8_t>();
  if (const auto reserved = from.number<std::uint16_t>(); reserved != 0) {
    from.fail("expected 0 in the reserved bytes of an object message, found " + std::to_string(reserved));
  }
  const auto sent = from.number<std::uint64_t>();
  const std::span<const std::byte> sent_name = from.bytes(length);
  if (sent != hash) throw_wrong_type(hash, name, sent, sent_name);
}

}  // namespace cohort::detail
