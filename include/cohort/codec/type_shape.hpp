// SPDX-License-Identifier: BSL-1.0
// The shape of a type as a readable name and as a 64-bit hash, at compile time and without the compiler's spelling:
// two programs that declare the same shape agree. Put into every object message by codec/message.hpp.
#pragma once

#include <cohort/codec/properties.hpp>
#include <cohort/codec/refusal.hpp>
#include <cohort/detail/byte_codec.hpp>
#include <cohort/detail/type_name.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace cohort {
namespace detail {

/// What both sides must agree on: structure, and the members' names where they are described.
class shape_hash {
 public:
  constexpr void structure(std::string_view text) noexcept { value_ = fnv1a(text, value_); }
  constexpr void class_name(std::string_view /*name*/) noexcept {}
  constexpr void again(char levels, std::string_view /*name*/) noexcept {
    structure("^");
    structure({&levels, 1});
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = fnv1a("");
};

/// What errors say: the structure, and each class by its name.
class shape_name {
 public:
  static constexpr std::size_t most = 240;

  constexpr void structure(std::string_view text) noexcept {
    constexpr std::string_view cut = "...";
    for (const char c : text) {
      if (size_ == most) return;
      text_[size_++] = c;
    }
    if (size_ == most) cut.copy(text_.data() + most - cut.size(), cut.size());
  }
  constexpr void class_name(std::string_view name) noexcept { structure(name); }
  constexpr void again(char /*levels*/, std::string_view name) noexcept { structure(name); }
  [[nodiscard]] constexpr std::string_view value() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, most> text_{};
  std::size_t size_ = 0;
};

/// Classes between a type and an enclosing T; the number of them when T is none.
template <class T, class... Enclosing>
[[nodiscard]] constexpr std::size_t levels_up() noexcept {
  std::size_t level = 0;
  static_cast<void>(((std::is_same_v<T, Enclosing> || (++level, false)) || ...));
  return level;
}

/// Hands the shape of a type to a sink. Within itself, a recursive class is the number of classes between the two.
template <class Sink, class... Enclosing>
class shape_walk {
 public:
  constexpr explicit shape_walk(Sink& sink) noexcept : sink_(&sink) {}

  constexpr void text(std::string_view t) const noexcept { sink_->structure(t); }
  constexpr void class_name(std::string_view name) const noexcept { sink_->class_name(name); }
  constexpr void number(std::uint64_t n) const noexcept {
    std::array<char, 20> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + n % 10);
      n /= 10;
    } while (n != 0);
    text({digits.data() + at, digits.size() - at});
  }

  template <class T>
  constexpr void type() const noexcept {
    constexpr std::size_t level = levels_up<T, Enclosing...>();
    if constexpr (std::is_bounded_array_v<T>) {
      array<std::remove_extent_t<T>>(std::extent_v<T>);
    } else if constexpr (std::is_const_v<T> || std::is_volatile_v<T>) {
      type<std::remove_cv_t<T>>();
    } else if constexpr (level < sizeof...(Enclosing)) {
      sink_->again(static_cast<char>('0' + level), type_name<T>());
    } else if constexpr (!has_codec<T>) {
      refuse_codec<T>();
    } else if constexpr (!is_library_codec<T>) {
      shape_walk<Sink, T, Enclosing...>(*sink_).template custom<T>();
    } else if constexpr (codec<T>::nests) {
      codec<T>::shape(shape_walk<Sink, T, Enclosing...>(*sink_));
    } else {
      codec<T>::shape(*this);
    }
  }

  /// "a, b, c"
  template <class... Ts>
  constexpr void list() const noexcept {
    std::size_t at = 0;
    static_cast<void>(at);
    ((text(at++ == 0 ? "" : ", "), type<Ts>()), ...);
  }
  /// "name<a, b, c>"
  template <class... Ts>
  constexpr void of(std::string_view name) const noexcept {
    text(name);
    text("<");
    list<Ts...>();
    text(">");
  }
  template <class T>
  constexpr void array(std::size_t size) const noexcept {
    text("array<");
    type<T>();
    text(", ");
    number(size);
    text(">");
  }

  /// A class with a codec of the program's own: its name is all that is known.
  template <class T>
  constexpr void custom() const noexcept {
    text("codec ");
    if constexpr (requires { codec<T>::name; }) text(codec<T>::name);
    else text(type_name<T>());
    if constexpr (requires { typename codec<T>::contains; })
      contained(static_cast<typename codec<T>::contains*>(nullptr));
  }

 private:
  template <class... Ts>
  constexpr void contained(std::tuple<Ts...>* /*unused*/) const noexcept {
    of<Ts...>("");
  }

  Sink* sink_;
};

template <class Sink, class... Ts>
[[nodiscard]] constexpr Sink shape_of() noexcept {
  Sink sink;
  shape_walk<Sink>(sink).template list<Ts...>();
  return sink;
}

template <class... Ts>
inline constexpr shape_name stored_shape_name = shape_of<shape_name, Ts...>();

}  // namespace detail

/// A hash of what the objects consist of: equal for the same declarations in two programs, whichever of g++ and clang
/// compiled them, and different for another order, width or kind of anything in them. Names of classes do not count,
/// and those of members only where they are described; a class with a codec of its own counts by `codec<T>::name`,
/// and without one by the compiler's spelling of the class.
template <class... Ts>
inline constexpr std::uint64_t object_type_hash = detail::shape_of<detail::shape_hash, Ts...>().value();

/// What errors call the objects: "vector<int32>", "app::point{float64, float64}"; at most 240 characters.
template <class... Ts>
[[nodiscard]] constexpr std::string_view object_type_name() noexcept {
  return detail::stored_shape_name<Ts...>.value();
}

}  // namespace cohort
