// SPDX-License-Identifier: BSL-1.0
// What is done with one input of the fuzzer: bytes of unknown origin are decoded as one of many types, and what could
// be decoded must be encoded to as many bytes and decoded once more. Shared by the fuzzer and by the test of its
// corpus.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/codec.hpp>
#include <cohort/float8.hpp>
#include <cohort/half.hpp>

#include "support/object_types.hpp"

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace fuzz {

/// The first byte of an input is the position of a type in this list: append, or the corpus loses its meaning.
using codec_types = std::tuple<
    bool, std::string, std::u32string, long double, std::vector<bool>, std::vector<std::uint8_t>, std::vector<double>,
    std::vector<std::string>, std::vector<std::vector<std::vector<std::uint16_t>>>, std::deque<std::optional<int>>,
    std::list<std::variant<int, std::string, std::vector<bool>>>, std::forward_list<std::pair<char, short>>,
    std::set<std::string>, std::multiset<float>, std::map<std::string, std::vector<int>>,
    std::multimap<char, std::map<int, bool>>, std::unordered_map<std::string, int>, std::unordered_set<int>,
    std::unordered_multimap<char, std::string>, std::vector<std::monostate>, std::vector<objects::nothing>,
    std::vector<std::tuple<>>, std::bitset<77>, std::vector<std::array<float, 3>>, std::vector<std::complex<double>>,
    std::vector<cohort::half>, std::tuple<cohort::bfloat16, cohort::float8_e4m3, cohort::float8_e5m2>,
    std::tuple<std::chrono::nanoseconds, std::chrono::system_clock::time_point, std::chrono::year_month_day>,
    objects::point, std::vector<objects::padded>, objects::person, std::vector<objects::constant>, objects::tree,
    objects::folder, objects::chain, objects::with_arrays, objects::account, objects::square,
    std::vector<objects::shade>, std::vector<objects::truth>, std::vector<objects::plain_color>,
    std::vector<objects::even>, std::map<int, objects::boxed<std::unique_ptr<std::string>>>,
    std::vector<std::optional<std::array<char, 4000>>>, std::vector<std::list<std::set<char>>>>;

/// Positions from this one on are those of whole messages of some types.
inline constexpr std::uint8_t first_message = 200;

[[nodiscard]] inline cohort::codec_limits limits() {
  cohort::codec_limits small;
  small.bytes = 1 << 20;
  small.elements = 1 << 16;
  small.memory = 16 << 20;
  return small;
}

[[noreturn]] inline void broken(std::string_view what, std::string_view type) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(), static_cast<int>(type.size()),
               type.data());
  std::abort();
}

template <class T>
[[nodiscard]] std::vector<std::byte> encoded(const T& value) {
  std::vector<std::byte> bytes;
  cohort::writer(bytes, limits()).write(value);
  return bytes;
}

/// Result: whether the bytes are a T
template <class T>
bool decode_as(std::span<const std::byte> bytes) {
  const std::string_view name = cohort::object_type_name<T>();
  std::vector<std::byte> again;
  try {
    cohort::reader from(bytes, limits());
    const T value = from.read<T>();
    from.finish();
    again = encoded(value);
  } catch (const cohort::error& e) {
    const cohort::errc code = e.condition();
    if (code != cohort::errc::bad_message && code != cohort::errc::limit_exceeded) broken(e.what(), name);
    return false;
  }
  // Every value has one encoding, but for the order of sets and maps.
  if (again.size() != bytes.size()) broken("encoded to another size than it was decoded from", name);
  try {
    cohort::reader from(again, limits());
    if (encoded(from.read<T>()).size() != bytes.size()) broken("another value after a second round", name);
  } catch (const cohort::error& e) {
    broken(e.what(), name);
  }
  return true;
}

template <std::size_t... I>
bool decode_as_type(std::size_t which, std::span<const std::byte> bytes, std::index_sequence<I...> /*unused*/) {
  bool decoded = false;
  static_cast<void>(
      ((which == I && ((decoded = decode_as<std::tuple_element_t<I, codec_types>>(bytes)), true)) || ...));
  return decoded;
}

template <class... Ts>
bool decode_message(std::span<const std::byte> bytes) {
  try {
    static_cast<void>(cohort::decode_objects<Ts...>(bytes, limits()));
    return true;
  } catch (const cohort::error&) {
    return false;
  }
}

/// Result: whether the input holds a value
inline bool codec_input(std::span<const std::uint8_t> input) {
  if (input.empty()) return false;
  const std::span<const std::byte> bytes = std::as_bytes(input.subspan(1));
  if (input[0] == first_message) return decode_message<std::vector<int>>(bytes);
  if (input[0] == first_message + 1)
    return decode_message<std::string, std::map<std::string, double>, objects::tree>(bytes);
  return decode_as_type(input[0], bytes, std::make_index_sequence<std::tuple_size_v<codec_types>>());
}

}  // namespace fuzz
