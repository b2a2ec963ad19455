// SPDX-License-Identifier: BSL-1.0
// Text to endpoints, and where a job meets (env://, tcp://host:port, file:///path): strict parsing, no I/O.
// Read by launch.hpp; every malformed text is an error that names the variable it came from.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>

#include <arpa/inet.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace cohort {

/// The largest world that this version of the wire protocol numbers.
inline constexpr int max_world_size = 65536;

/// A host name or address without brackets, and a port.
struct endpoint {
  std::string host{};
  unsigned short port = 0;
  friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// "host:port", with brackets around an IPv6 address.
[[nodiscard]] inline std::string to_string(const endpoint& e) {
  const bool v6 = e.host.find(':') != std::string::npos;
  return (v6 ? "[" + e.host + "]" : e.host) + ":" + std::to_string(e.port);
}

enum class init_kind : unsigned char {
  env,   ///< MASTER_ADDR and MASTER_PORT, or what the launcher sets in their place
  tcp,   ///< rank 0 listens at `where`
  file,  ///< a file that every rank can reach
};

/// Where the ranks of a job meet, and optionally who this process is.
struct init_method {
  init_kind kind = init_kind::env;
  endpoint where{};
  std::string path{};
  std::optional<int> rank{};
  std::optional<int> world_size{};
};

namespace detail {

[[noreturn]] inline void bad_text(std::string_view origin, std::string_view text, const std::string& expected) {
  throw error(errc::bad_environment, std::string(origin) + "=" + detail::quoted(text) + ": expected " + expected);
}

/// An integer that is the whole text: no sign but '-', no blanks, no trailing characters.
[[nodiscard]] inline std::optional<std::int64_t> whole_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// An integer from `low` to `high`; anything else is an error that says which of the two rules it breaks.
[[nodiscard]] inline std::int64_t parse_integer(std::string_view text, std::string_view origin, std::int64_t low,
                                                std::int64_t high) {
  const std::optional<std::int64_t> value = whole_integer(text);
  const std::string range = std::to_string(low) + ".." + std::to_string(high);
  if (!value) bad_text(origin, text, "an integer, " + range);
  if (*value < low || *value > high) {
    throw error(errc::bad_environment, std::string(origin) + "=" + std::to_string(*value) + ": expected " + range);
  }
  return *value;
}

/// Seconds, more than 0 and at most a year; with a point, whatever the program's locale has.
[[nodiscard]] inline std::chrono::nanoseconds parse_seconds(std::string_view text, std::string_view origin) {
  double seconds = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double longest = 86400.0 * 365;
  const bool whole = failure == std::errc{} && end == text.data() + text.size();
  if (!whole || !(seconds > 0) || seconds > longest) bad_text(origin, text, "seconds, more than 0");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

[[nodiscard]] inline std::uint16_t parse_port(std::string_view text, std::string_view origin) {
  return static_cast<std::uint16_t>(parse_integer(text, origin, 1, 65535));
}

[[nodiscard]] inline bool is_v6_literal(std::string_view text) noexcept {
  const std::string bare(text.substr(0, text.find('%')));
  in6_addr ignored{};
  const bool zone_named = text.find('%') == std::string_view::npos || text.back() != '%';
  return zone_named && ::inet_pton(AF_INET6, bare.c_str(), &ignored) == 1;
}

/// The host alone: a name, an IPv4 address, or an IPv6 address with or without brackets.
[[nodiscard]] inline std::string parse_host(std::string_view text, std::string_view origin) {
  const char* const expected = "a host name, an IPv4 address or an IPv6 address";
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    const std::string_view inner = text.substr(1, text.size() - 2);
    if (!is_v6_literal(inner)) bad_text(origin, text, "an IPv6 address between the brackets");
    return std::string(inner);
  }
  if (is_v6_literal(text)) return std::string(text);
  bool good = !text.empty() && text.size() <= 253;
  for (const char c : text) {
    good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                    c == '-' || c == '_');
  }
  if (!good) bad_text(origin, text, expected);
  return std::string(text);
}

}  // namespace detail

/// Reads "host:port"; an IPv6 address stands in brackets.
///
/// Errors: bad_environment naming `origin`, the variable or option that the text came from
[[nodiscard]] inline endpoint parse_endpoint(std::string_view text, std::string_view origin) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) detail::bad_text(origin, text, "host:port");
  if (text.find(':', colon + 1) != std::string_view::npos) {
    detail::bad_text(origin, text, "host:port, with brackets around an IPv6 address: [::1]:29500");
  }
  endpoint e;
  e.host = detail::parse_host(text.substr(0, colon), origin);
  e.port = detail::parse_port(text.substr(colon + 1), origin);
  return e;
}

namespace detail {

[[nodiscard]] inline std::string decode_percent(std::string_view text, std::string_view origin) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned value = 0;
    const char* const first = text.data() + i + 1;
    const bool room = i + 2 < text.size();
    if (!room || std::from_chars(first, first + 2, value, 16).ptr != first + 2 || value == 0) {
      bad_text(origin, text, "two hexadecimal digits after each %");
    }
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain;
}

inline void parse_query(std::string_view query, std::string_view origin, init_method& method) {
  while (!query.empty()) {
    const std::string_view item = query.substr(0, query.find('&'));
    query.remove_prefix(item.size() == query.size() ? query.size() : item.size() + 1);
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
    const std::string field = std::string(origin) + " ?" + std::string(name);
    if (name == "world_size" && !method.world_size) {
      method.world_size = static_cast<int>(parse_integer(value, field, 1, max_world_size));
    } else if (name == "rank" && !method.rank) {
      method.rank = static_cast<int>(parse_integer(value, field, 0, max_world_size - 1));
    } else {
      bad_text(origin, item, "rank=R and world_size=N after the question mark, each once");
    }
  }
}

}  // namespace detail

/// Reads env://, tcp://host:port or file:///path, each with an optional ?rank=R&world_size=N.
///
/// Errors: bad_environment naming `origin`, the variable or option that the text came from
[[nodiscard]] inline init_method parse_init_method(std::string_view text, std::string_view origin) {
  init_method method;
  const std::size_t question = text.find('?');
  const std::string_view body = text.substr(0, question);
  if (question != std::string_view::npos) detail::parse_query(text.substr(question + 1), origin, method);
  if (method.rank.has_value() != method.world_size.has_value()) {
    detail::bad_text(origin, text, "rank and world_size together, or neither");
  }
  if (method.rank && *method.rank >= *method.world_size) {
    detail::bad_text(origin, text, "a rank below world_size=" + std::to_string(*method.world_size));
  }
  if (body == "env://") return method;
  if (body.starts_with("tcp://")) {
    method.kind = init_kind::tcp;
    method.where = parse_endpoint(body.substr(6), origin);
    return method;
  }
  if (body.starts_with("file:///") && body.size() > 8) {
    method.kind = init_kind::file;
    method.path = detail::decode_percent(body.substr(7), origin);
    return method;
  }
  detail::bad_text(origin, text, "env://, tcp://host:port or file:///absolute/path");
}

/// Whether a numeric address reaches only this host. A name is not an address: resolve it first.
[[nodiscard]] inline bool is_loopback_address(const std::string& address) noexcept {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.c_str(), &v6) != 1) return false;
  unsigned char bytes[16] = {};
  std::memcpy(bytes, &v6, sizeof bytes);
  const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(bytes, mapped, sizeof mapped) == 0) return bytes[12] == 127;
  const unsigned char one[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return std::memcmp(bytes, one, sizeof one) == 0;
}

}  // namespace cohort
