// SPDX-License-Identifier: BSL-1.0
// The name of a type as text and as a 15-bit code, both at compile time and equal in every process built from the
// same source. Stands under element.hpp and reduction.hpp, which put the codes into fingerprints of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#if !defined(__GNUC__)
#error "cohort reads type names from __PRETTY_FUNCTION__, which needs g++ or clang++"
#endif

namespace cohort::detail {

template <class T>
[[nodiscard]] constexpr std::string_view signature() noexcept {
  return __PRETTY_FUNCTION__;
}

/// The name of T as the compiler spells it. What surrounds it is measured on a type whose name is known.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() noexcept {
  constexpr std::string_view probe = "double";
  constexpr std::string_view around = signature<double>();
  constexpr std::size_t before = around.find(probe);
  constexpr std::size_t after = around.size() - before - probe.size();
  constexpr std::string_view whole = signature<T>();
  return whole.substr(before, whole.size() - before - after);
}

/// The end of the directories of a path that starts at `from` and ends at the next colon: clang spells a lambda
/// "(lambda at /path/to/file.cpp:12:3)", and two ranks may have been built in two directories.
[[nodiscard]] constexpr std::size_t directories_end(std::string_view name, std::size_t from) noexcept {
  const std::size_t end = name.find(':', from);
  const std::size_t slash = name.substr(0, end).rfind('/');
  return slash == std::string_view::npos || slash < from ? from : slash + 1;
}

/// A code for a type that has no fixed one: bit 15 set, then a hash of the name and of the size, so that two
/// versions of a struct differ. Skipped are the directories of clang's lambdas and the running number which g++
/// gives the parameters of a generic lambda ("auto:7"): it depends on what else the translation unit includes.
[[nodiscard]] constexpr std::uint16_t hashed_code(std::string_view name, std::size_t size) noexcept {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (std::size_t i = 0; i < name.size();) {
    mix(static_cast<unsigned char>(name[i]));
    ++i;
    const std::string_view seen = name.substr(0, i);
    if (seen.ends_with("lambda at ")) i = directories_end(name, i);
    if (seen.ends_with("auto:")) {
      while (i < name.size() && name[i] >= '0' && name[i] <= '9') ++i;
    }
  }
  mix(size);
  hash ^= hash >> 32;
  hash ^= hash >> 16;
  return static_cast<std::uint16_t>(0x8000u | (hash & 0x7fffu));
}

/// "struct#1a2b": how a hashed code of another process is shown, whose name is not known here.
[[nodiscard]] inline std::string hashed_name(std::string_view kind, std::uint16_t code) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(kind);
  text += '#';
  for (int shift = 12; shift >= 0; shift -= 4) text += digits[((code & 0x7fffu) >> shift) & 15u];
  return text;
}

}  // namespace cohort::detail
