// SPDX-License-Identifier: BSL-1.0
// Codecs of pair, tuple and complex: one member after the other, nothing before or between them.
// Part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/scalars.hpp>

#include <complex>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cohort {

template <class A, class B>
struct codec<std::pair<A, B>> : detail::leaf_codec {
  static constexpr std::size_t min_size = detail::min_encoded_size<A>() + detail::min_encoded_size<B>();

  static constexpr void shape(const auto& walk) { walk.template of<A, B>("pair"); }
  static void encode(writer& to, const std::pair<A, B>& value) {
    to.write<std::remove_cv_t<A>>(value.first);
    to.write<std::remove_cv_t<B>>(value.second);
  }
  static std::pair<A, B> decode(reader& from) {
    // In braces, initialisers are evaluated from left to right.
    return std::pair<A, B>{from.read<A>(), from.read<B>()};
  }
};

template <class... Ts>
struct codec<std::tuple<Ts...>> : detail::leaf_codec {
  static constexpr std::size_t min_size = (detail::min_encoded_size<Ts>() + ...);

  static constexpr void shape(const auto& walk) { walk.template of<Ts...>("tuple"); }
  static void encode(writer& to, const std::tuple<Ts...>& value) {
    std::apply([&](const auto&... members) { (to.write(members), ...); }, value);
  }
  static std::tuple<Ts...> decode(reader& from) { return std::tuple<Ts...>{from.read<Ts>()...}; }
};

template <>
struct codec<std::tuple<>> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr void shape(const auto& walk) { walk.text("tuple<>"); }
  static void encode(writer& to, std::tuple<> /*value*/) { detail::empty_codec::write(to); }
  static std::tuple<> decode(reader& from) {
    detail::empty_codec::read(from);
    return {};
  }
};

template <class T>
struct codec<std::complex<T>> : detail::leaf_codec {
  static constexpr std::size_t min_size = 2 * detail::min_encoded_size<T>();
  static constexpr bool bulk = detail::is_bulk<T>();

  static constexpr void shape(const auto& walk) { walk.template of<T>("complex"); }
  static void encode(writer& to, const std::complex<T>& value) {
    to.write(value.real());
    to.write(value.imag());
  }
  static std::complex<T> decode(reader& from) { return std::complex<T>{from.read<T>(), from.read<T>()}; }
};

}  // namespace cohort
