// SPDX-License-Identifier: BSL-1.0
// The customisation point `codec<T>`, and what the compiler says of a type that has none.
// The bottom of the codec's headers: programs include cohort/codec.hpp, which has all the cases.
#pragma once

#include <cohort/element.hpp>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

namespace cohort {

class reader;
class writer;

namespace detail {

template <class T>
inline constexpr bool is_shared_pointer = false;
template <class T>
inline constexpr bool is_shared_pointer<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool is_shared_pointer<std::weak_ptr<T>> = true;

template <class T>
inline constexpr bool is_unique_pointer = false;
template <class T, class Deleter>
inline constexpr bool is_unique_pointer<std::unique_ptr<T, Deleter>> = true;

/// An enum of fixed underlying type can be initialised with an integer in braces, and holds any of its values. Of one
/// without, a value outside the range of its enumerators is undefined behaviour, which no message may bring about.
template <class E>
concept range_free_enum = std::is_enum_v<E> && requires {
  E{0};
};

/// Says why T has no codec, and what to write instead.
template <class T>
constexpr void refuse_codec() noexcept {
  if constexpr (std::is_reference_v<T> || holds_address<T>) {
    static_assert(
        always_false<T>,
        "cohort: an address (a pointer, a reference, a span, a string_view) means nothing in another process: "
        "send what it points to, as a value, a std::string, a std::vector or a std::unique_ptr");
  } else if constexpr (is_shared_pointer<T>) {
    static_assert(always_false<T>,
                  "cohort: a shared_ptr would arrive as so many separate copies: hold the object by value or in a "
                  "std::unique_ptr, or write codec<T> for the class that shares it");
  } else if constexpr (is_unique_pointer<T>) {
    static_assert(always_false<T>,
                  "cohort: this unique_ptr has no codec: one of an array does not know its size (use std::vector), and "
                  "one with a deleter cannot be made on the other side (write codec<T>)");
  } else if constexpr (std::is_array_v<T>) {
    static_assert(always_false<T>,
                  "cohort: a built-in array cannot be returned from a function: use std::array, or std::string for a "
                  "string literal; as a member of a struct it is fine");
  } else if constexpr (std::is_union_v<T>) {
    static_assert(always_false<T>, "cohort: a union does not know which of its members it holds: use std::variant");
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(always_false<T>,
                  "cohort: an enum without a fixed underlying type has no values besides its enumerators: fix the type "
                  "(enum color : int), or describe it with BOOST_DESCRIBE_ENUM");
  } else {
    static_assert(always_false<T>,
                  "cohort: a class that is neither an aggregate nor described has no codec: write codec<T> or describe "
                  "it with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_CLASS");
  }
}

}  // namespace detail

/// How values of T are written to and read from a message. Specialise it for a class of your own:
///
///     template <>
///     struct cohort::codec<app::date> {
///       static constexpr std::string_view name = "app::date";  // in the type hash, and in errors
///       static constexpr std::size_t min_size = 8;             // fewest bytes that encode() writes; 1 if left out
///       static void encode(cohort::writer& to, const app::date& d) { to.write(d.day_number()); }
///       static app::date decode(cohort::reader& from) { return app::date(from.read<std::int64_t>()); }
///     };
///
/// Shapes: for a class template, `using contains = std::tuple<T>;` puts the arguments into the type hash too
/// Needs:  decode() reads exactly what encode() wrote, and at least one byte of it
/// Errors: decode() refuses values with `from.fail("...")`; every count it reads comes from `from.count(min_size)`
template <class T>
struct codec {
  using undefined = void;  ///< what `has_codec` looks for
  template <class Value>
  static void encode(writer& /*to*/, const Value& /*value*/) {
    detail::refuse_codec<T>();
  }
  [[noreturn]] static std::decay_t<T> decode(reader& /*from*/) {
    detail::refuse_codec<T>();
    std::abort();
  }
};

/// A type with a codec. Looks at T alone: a vector of pointers has one, and is refused where it is used.
template <class T>
concept has_codec = !requires {
  typename codec<T>::undefined;
};

}  // namespace cohort
