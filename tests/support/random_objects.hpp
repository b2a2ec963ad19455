// SPDX-License-Identifier: BSL-1.0
// Objects of random contents of every type that the tests of the codec know, from a seeded generator.
#pragma once

#include <cohort/codec.hpp>

#include "support/object_types.hpp"

#include <array>
#include <bit>
#include <bitset>
#include <chrono>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace harness {

/// `room` shrinks with every level, so that recursive objects end.
template <class T>
struct random_object;

struct random_source {
  std::mt19937_64 generator;
  int room = 4;

  explicit random_source(std::uint64_t seed) : generator(seed) {}
  [[nodiscard]] std::uint64_t bits() { return generator(); }
  [[nodiscard]] std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(generator() % n); }
  [[nodiscard]] std::size_t size() { return room <= 0 ? 0 : below(static_cast<std::size_t>(room) + 1); }
  template <class T>
  [[nodiscard]] T make() {
    --room;
    T value = random_object<T>::make(*this);
    ++room;
    return value;
  }
};

template <class T>
  requires std::integral<T>
struct random_object<T> {
  static T make(random_source& from) { return static_cast<T>(from.below(4) == 0 ? from.below(3) : from.bits()); }
};
template <>
struct random_object<bool> {
  static bool make(random_source& from) { return from.below(2) == 1; }
};
template <>
struct random_object<float> {
  static float make(random_source& from) { return std::bit_cast<float>(static_cast<std::uint32_t>(from.bits())); }
};
template <>
struct random_object<double> {
  static double make(random_source& from) { return std::bit_cast<double>(from.bits()); }
};
template <>
struct random_object<long double> {
  static long double make(random_source& from) { return static_cast<long double>(from.bits()) / 7; }
};
template <class T>
  requires cohort::detail::small_float<T>
struct random_object<T> {
  static T make(random_source& from) { return T::from_bits(static_cast<decltype(T().bits())>(from.bits())); }
};
template <>
struct random_object<std::byte> {
  static std::byte make(random_source& from) { return static_cast<std::byte>(from.bits()); }
};
template <class T>
  requires(std::is_enum_v<T>&& cohort::detail::range_free_enum<T>)
struct random_object<T> {
  static T make(random_source& from) { return static_cast<T>(from.make<std::underlying_type_t<T>>()); }
};
template <>
struct random_object<objects::plain_color> {
  static objects::plain_color make(random_source& from) {
    return std::array{objects::red, objects::green, objects::blue}[from.below(3)];
  }
};
template <class T>
struct random_object<std::complex<T>> {
  static std::complex<T> make(random_source& from) { return {from.make<T>(), from.make<T>()}; }
};
template <class Rep, class Period>
struct random_object<std::chrono::duration<Rep, Period>> {
  static std::chrono::duration<Rep, Period> make(random_source& from) {
    return std::chrono::duration<Rep, Period>(from.make<Rep>());
  }
};
template <class Clock, class Duration>
struct random_object<std::chrono::time_point<Clock, Duration>> {
  static std::chrono::time_point<Clock, Duration> make(random_source& from) {
    return std::chrono::time_point<Clock, Duration>(from.make<Duration>());
  }
};
template <>
struct random_object<std::chrono::year_month_day> {
  static std::chrono::year_month_day make(random_source& from) {
    return {std::chrono::year(static_cast<int>(from.below(3000))),
            std::chrono::month(static_cast<unsigned>(from.below(13))),
            std::chrono::day(static_cast<unsigned>(from.below(32)))};
  }
};

/// Containers that can grow at one end or anywhere.
template <class C>
  requires(
      requires(C c) {
        c.begin();
        typename C::value_type;
      } &&
      !requires(C c) { c.fill(c.front()); })
struct random_object<C> {
  static C make(random_source& from) {
    C values;
    for (std::size_t left = from.size(); left > 0; --left) {
      if constexpr (requires { typename C::mapped_type; }) {
        auto key = from.make<typename C::key_type>();
        values.emplace(std::move(key), from.make<typename C::mapped_type>());
      } else if constexpr (requires(typename C::value_type v) { values.push_back(std::move(v)); }) {
        values.push_back(from.make<typename C::value_type>());
      } else if constexpr (requires(typename C::value_type v) { values.push_front(std::move(v)); }) {
        values.push_front(from.make<typename C::value_type>());
      } else {
        values.insert(from.make<typename C::value_type>());
      }
    }
    return values;
  }
};
template <class T, std::size_t N>
struct random_object<std::array<T, N>> {
  static std::array<T, N> make(random_source& from) {
    std::array<T, N> values{};
    for (T& value : values) value = from.make<T>();
    return values;
  }
};
template <std::size_t N>
struct random_object<std::bitset<N>> {
  static std::bitset<N> make(random_source& from) {
    std::bitset<N> bits;
    for (std::size_t i = 0; i < N; ++i) bits[i] = from.below(2) == 1;
    return bits;
  }
};
template <class A, class B>
struct random_object<std::pair<A, B>> {
  static std::pair<A, B> make(random_source& from) { return {from.make<A>(), from.make<B>()}; }
};
template <class... Ts>
struct random_object<std::tuple<Ts...>> {
  static std::tuple<Ts...> make(random_source& from) {
    static_cast<void>(from);
    return std::tuple<Ts...>{from.make<Ts>()...};
  }
};
template <>
struct random_object<std::monostate> {
  static std::monostate make(random_source& /*from*/) { return {}; }
};
template <class T>
struct random_object<std::optional<T>> {
  static std::optional<T> make(random_source& from) {
    if (from.size() == 0) return std::nullopt;
    return from.make<T>();
  }
};
template <class T>
struct random_object<std::unique_ptr<T>> {
  static std::unique_ptr<T> make(random_source& from) {
    return from.size() == 0 ? nullptr : std::make_unique<T>(from.make<T>());
  }
};
template <class... Ts>
struct random_object<std::variant<Ts...>> {
  static std::variant<Ts...> make(random_source& from) {
    using maker = std::variant<Ts...> (*)(random_source&);
    constexpr std::array<maker, sizeof...(Ts)> makers{
        +[](random_source& source) { return std::variant<Ts...>(std::in_place_type<Ts>, source.make<Ts>()); }...};
    return makers[from.below(makers.size())](from);
  }
};

template <class T>
  requires cohort::detail::plain_aggregate<T>
struct random_object<T> {
  static T make(random_source& from) {
    T value{};
    cohort::detail::for_each_member(value, [&]<class Member>(Member& member) { fill(from, member); });
    return value;
  }

 private:
  template <class Member>
  static void fill(random_source& from, Member& member) {
    if constexpr (std::is_array_v<Member>) {
      for (auto& each : member) fill(from, each);
    } else {
      member = from.make<Member>();
    }
  }
};
template <>
struct random_object<objects::constant> {
  static objects::constant make(random_source& from) { return {from.make<int>(), from.make<std::string>()}; }
};
template <>
struct random_object<objects::account> {
  static objects::account make(random_source& from) {
    return {from.make<int>(), from.make<std::string>(), from.make<double>()};
  }
};
template <>
struct random_object<objects::square> {
  static objects::square make(random_source& from) {
    objects::square s;
    s.color = from.make<int>();
    s.side = from.make<double>();
    return s;
  }
};
template <>
struct random_object<objects::even> {
  static objects::even make(random_source& from) { return objects::even(from.make<int>() & ~1); }
};
template <class T>
struct random_object<objects::boxed<T>> {
  static objects::boxed<T> make(random_source& from) { return objects::boxed<T>(from.make<T>()); }
};

}  // namespace harness
