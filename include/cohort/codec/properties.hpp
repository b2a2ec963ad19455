// SPDX-License-Identifier: BSL-1.0
// What the writer, the reader and the codecs of containers ask of an element's codec.
// Stands between codec/refusal.hpp, which declares codec<T>, and everything that uses one.
#pragma once

#include <cohort/codec/refusal.hpp>

#include <cstddef>
#include <type_traits>

namespace cohort::detail {

/// The fewest bytes that a value of T takes; never 0, so that the bytes that remain bound every count.
template <class T>
[[nodiscard]] constexpr std::size_t min_encoded_size() noexcept {
  using plain = std::remove_cv_t<T>;
  if constexpr (std::is_bounded_array_v<plain>) {
    return std::extent_v<plain> * min_encoded_size<std::remove_extent_t<plain>>();
  } else if constexpr (requires { codec<plain>::min_size; }) {
    static_assert(codec<plain>::min_size >= 1,
                  "cohort: a value takes at least one byte: codec<T>::min_size is 1 or more");
    return codec<plain>::min_size;
  } else {
    return 1;
  }
}

/// The codecs of this library describe their type's shape; those of programs have a name.
template <class T>
inline constexpr bool is_library_codec = requires {
  codec<T>::nests;
};

/// Whether a value of T is a level of nesting: every recursive type goes through a class, so that classes suffice.
template <class T>
[[nodiscard]] constexpr bool codec_nests() noexcept {
  if constexpr (is_library_codec<T>) return codec<T>::nests;
  else return true;
}

/// Whether an array of T has the bytes in memory that it has in a message, and any bytes are a T.
template <class T>
[[nodiscard]] constexpr bool is_bulk() noexcept {
  using plain = std::remove_cv_t<T>;
  if constexpr (std::is_bounded_array_v<plain>) return is_bulk<std::remove_extent_t<plain>>();
  else if constexpr (requires { codec<plain>::bulk; }) return codec<plain>::bulk;
  else return false;
}

}  // namespace cohort::detail
