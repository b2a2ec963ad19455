// SPDX-License-Identifier: BSL-1.0
// Objects as one message: a header that says which type they are, then their values. What the object functions of a
// communicator send and receive; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/reader.hpp>
#include <cohort/codec/type_shape.hpp>
#include <cohort/codec/writer.hpp>
#include <cohort/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace cohort {
namespace detail {

void write_object_header(writer& to, std::uint64_t hash, std::string_view name);

/// Errors: bad_message, version_mismatch; wrong_type, which names what was sent and what was expected
void read_object_header(reader& from, std::uint64_t hash, std::string_view name);

/// A built-in array can be written, as the member of a struct is, but nobody could receive it.
template <class T>
constexpr void check_object() noexcept {
  if constexpr (std::is_array_v<T>) refuse_codec<T>();
}

}  // namespace detail

/// Appends a message that holds the objects.
///
/// Errors:   limit_exceeded, invalid_argument (a variant without a value); what the program's own codecs throw, and
///           std::bad_alloc; the vector is then what it was before
/// Lifetime: the objects are read before it returns
/// Cost:     one pass; the vector grows as std::vector does, and keeps its capacity if it is used again
/// Example:  std::vector<std::byte> bytes;
///           cohort::encode_objects(bytes, std::string("weights"), std::map<std::string, double>{{"lr", 0.1}});
template <class... Ts>
void encode_objects(std::vector<std::byte>& out, const codec_limits& limits, const Ts&... objects) {
  static_assert(sizeof...(Ts) > 0, "cohort: a message holds at least one object");
  (detail::check_object<Ts>(), ...);
  const std::size_t before = out.size();
  try {
    writer to(out, limits);
    detail::write_object_header(to, object_type_hash<Ts...>, object_type_name<Ts...>());
    (to.write(objects), ...);
  } catch (...) {
    out.resize(before);
    throw;
  }
}
template <class... Ts>
void encode_objects(std::vector<std::byte>& out, const Ts&... objects) {
  encode_objects(out, codec_limits{}, objects...);
}

/// What `decode_objects<Ts...>` returns: the object if there is one, else a tuple of all.
template <class... Ts>
struct decoded_objects {
  using type = std::tuple<Ts...>;
};
template <class T>
struct decoded_objects<T> {
  using type = T;
};
template <class... Ts>
using decoded_objects_t = typename decoded_objects<Ts...>::type;

/// The objects of a message, made from bytes that nobody vouches for.
///
/// Errors:   wrong_type naming what was sent and what was expected; bad_message for bytes that its type does not send,
///           a byte too few and a byte too many among them; limit_exceeded; version_mismatch; out_of_memory;
///           what constructors and codecs of the program throw
/// Cost:     memory only for what the message can still hold, and never more than codec_limits::memory
/// Example:  auto [name, options] = cohort::decode_objects<std::string, std::map<std::string, double>>(bytes);
template <class... Ts>
[[nodiscard]] decoded_objects_t<Ts...> decode_objects(std::span<const std::byte> message,
                                                      const codec_limits& limits = {}) {
  static_assert(sizeof...(Ts) > 0, "cohort: say what to decode: decode_objects<T>(bytes)");
  try {
    reader from(message, limits);
    detail::read_object_header(from, object_type_hash<Ts...>, object_type_name<Ts...>());
    if constexpr (sizeof...(Ts) == 1) {
      auto object = (from.read<Ts>(), ...);
      from.finish();
      return object;
    } else {
      std::tuple<Ts...> objects{from.read<Ts>()...};  // in braces: from left to right
      from.finish();
      return objects;
    }
  } catch (const std::bad_alloc&) {
    throw error(errc::out_of_memory, "no memory for an object of type " + std::string(object_type_name<Ts...>()) +
                                         " out of a message of " + std::to_string(message.size()) + " bytes");
  }
}

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/codec/impl/message.hpp>
#endif
