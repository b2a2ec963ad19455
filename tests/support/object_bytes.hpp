// SPDX-License-Identifier: BSL-1.0
// Objects as bytes and back, in the ways in which tests want them.
#pragma once

#include <cohort/codec.hpp>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness {

template <class... Ts>
[[nodiscard]] std::vector<std::byte> message_of(const Ts&... objects) {
  std::vector<std::byte> bytes;
  cohort::encode_objects(bytes, objects...);
  return bytes;
}

template <class T>
[[nodiscard]] T round_trip(const T& object) {
  return cohort::decode_objects<T>(message_of(object));
}

/// Without the header.
template <class T>
[[nodiscard]] std::vector<std::byte> value_bytes(const T& object, const cohort::codec_limits& limits = {}) {
  std::vector<std::byte> bytes;
  cohort::writer(bytes, limits).write(object);
  return bytes;
}

template <class T>
[[nodiscard]] T value_of(std::span<const std::byte> bytes, const cohort::codec_limits& limits = {}) {
  cohort::reader from(bytes, limits);
  T value = from.read<T>();
  from.finish();
  return value;
}

[[nodiscard]] inline std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    char two[3] = {};
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(b));
    text += two;
  }
  return text;
}

[[nodiscard]] inline std::vector<std::byte> unhex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
  }
  return bytes;
}

/// "code: text" of the error that f throws; "" if it throws none.
template <class F>
[[nodiscard]] std::string error_of(F&& f) {
  try {
    f();
  } catch (const cohort::error& e) {
    return e.code().message() + ": " + e.what();
  }
  return "";
}
template <class T>
[[nodiscard]] std::string error_of_value(std::string_view bytes, const cohort::codec_limits& limits = {}) {
  return error_of([&] { static_cast<void>(value_of<T>(unhex(bytes), limits)); });
}

}  // namespace harness
