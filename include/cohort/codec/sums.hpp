// SPDX-License-Identifier: BSL-1.0
// Codecs of what may be one thing or another: optional, variant, monostate and unique_ptr.
// A byte that says which, then the value; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/scalars.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace cohort {

template <>
struct codec<std::monostate> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr void shape(const auto& walk) { walk.text("monostate"); }
  static void encode(writer& to, std::monostate /*value*/) { detail::empty_codec::write(to); }
  static std::monostate decode(reader& from) {
    detail::empty_codec::read(from);
    return {};
  }
};

template <class T>
struct codec<std::optional<T>> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;

  static constexpr void shape(const auto& walk) { walk.template of<T>("optional"); }
  static void encode(writer& to, const std::optional<T>& value) {
    to.write(value.has_value());
    if (value) to.write(*value);
  }
  static std::optional<T> decode(reader& from) {
    if (!from.read<bool>()) return std::nullopt;
    return std::optional<T>(std::in_place, from.read<T>());
  }
};

/// The number of the alternative, counted from 0, in one byte; in two where there are more than 256.
template <class... Ts>
struct codec<std::variant<Ts...>> : detail::leaf_codec {
  using variant = std::variant<Ts...>;
  using index = std::conditional_t<(sizeof...(Ts) > 256), std::uint16_t, std::uint8_t>;
  static constexpr std::size_t min_size = sizeof(index) + std::min({detail::min_encoded_size<Ts>()...});

  static constexpr void shape(const auto& walk) { walk.template of<Ts...>("variant"); }
  static void encode(writer& to, const variant& value) {
    if (value.valueless_by_exception()) {
      throw error(errc::invalid_argument, "a std::variant that an exception left without a value cannot be sent");
    }
    to.number(static_cast<index>(value.index()));
    std::visit([&](const auto& alternative) { to.write(alternative); }, value);
  }
  static variant decode(reader& from) {
    const index which = from.number<index>();
    if (which >= sizeof...(Ts)) {
      from.fail("expected one of " + std::to_string(sizeof...(Ts)) + " alternatives of a variant, found number " +
                std::to_string(which));
    }
    return alternative<0>(from, which);
  }

 private:
  template <std::size_t I>
  static variant alternative(reader& from, std::size_t which) {
    if constexpr (I + 1 < sizeof...(Ts)) {
      if (which != I) return alternative<I + 1>(from, which);
    }
    return variant(std::in_place_index<I>, from.read<std::variant_alternative_t<I, variant>>());
  }
};

/// As an optional: null, or the object, which is made anew. A base class of others is refused: what is behind the
/// pointer would arrive as a mere base.
template <class T>
  requires(!std::is_array_v<T>)
struct codec<std::unique_ptr<T>> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;

  static constexpr void shape(const auto& walk) { walk.template of<T>("unique_ptr"); }
  static void encode(writer& to, const std::unique_ptr<T>& value) {
    check();
    to.write(value != nullptr);
    if (value) to.write(*value);
  }
  static std::unique_ptr<T> decode(reader& from) {
    check();
    if (!from.read<bool>()) return nullptr;
    from.charge(sizeof(T));
    return std::unique_ptr<T>(new T(from.read<T>()));
  }

 private:
  static constexpr void check() noexcept {
    static_assert(
        !std::is_polymorphic_v<T> || std::is_final_v<T>,
        "cohort: a unique_ptr to a class with virtual functions may hold a derived one, which would be cut to "
        "its base: use std::variant, make the class final, or write codec<std::unique_ptr<T>>");
  }
};

}  // namespace cohort
