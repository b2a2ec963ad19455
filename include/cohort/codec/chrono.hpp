// SPDX-License-Identifier: BSL-1.0
// Codecs of durations, points in time and calendar dates.
// A duration is its number of ticks, a date the numbers it is written with; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/scalars.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cohort {

template <class Rep, class Period>
struct codec<std::chrono::duration<Rep, Period>> : detail::leaf_codec {
  using duration = std::chrono::duration<Rep, Period>;
  static constexpr std::size_t min_size = detail::min_encoded_size<Rep>();

  static constexpr void shape(const auto& walk) {
    walk.text("duration<");
    walk.template type<Rep>();
    walk.text(", ");
    walk.number(static_cast<std::uint64_t>(Period::num));
    walk.text("/");
    walk.number(static_cast<std::uint64_t>(Period::den));
    walk.text(">");
  }
  static void encode(writer& to, const duration& value) { to.write(value.count()); }
  static duration decode(reader& from) { return duration(from.read<Rep>()); }
};

/// Ticks since the epoch of the clock. The epoch of steady_clock is the start of one host: what it says there means
/// nothing on another.
template <class Clock, class Duration>
struct codec<std::chrono::time_point<Clock, Duration>> : detail::leaf_codec {
  using time_point = std::chrono::time_point<Clock, Duration>;
  static constexpr std::size_t min_size = detail::min_encoded_size<Duration>();

  static constexpr void shape(const auto& walk) {
    walk.text("time_point<");
    if constexpr (std::is_same_v<Clock, std::chrono::system_clock>) walk.text("system, ");
    else if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) walk.text("steady, ");
    else walk.text("clock, ");
    walk.template type<Duration>();
    walk.text(">");
  }
  static void encode(writer& to, const time_point& value) { to.write(value.time_since_epoch()); }
  static time_point decode(reader& from) { return time_point(from.read<Duration>()); }
};

template <>
struct codec<std::chrono::year> : detail::leaf_codec {
  static constexpr std::size_t min_size = 2;
  static constexpr void shape(const auto& walk) { walk.text("year"); }
  static void encode(writer& to, std::chrono::year value) {
    to.write(static_cast<std::int16_t>(static_cast<int>(value)));
  }
  static std::chrono::year decode(reader& from) { return std::chrono::year(from.read<std::int16_t>()); }
};

template <>
struct codec<std::chrono::month> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr void shape(const auto& walk) { walk.text("month"); }
  static void encode(writer& to, std::chrono::month value) {
    to.number(static_cast<std::uint8_t>(static_cast<unsigned>(value)));
  }
  static std::chrono::month decode(reader& from) { return std::chrono::month(from.number<std::uint8_t>()); }
};

template <>
struct codec<std::chrono::day> : detail::leaf_codec {
  static constexpr std::size_t min_size = 1;
  static constexpr void shape(const auto& walk) { walk.text("day"); }
  static void encode(writer& to, std::chrono::day value) {
    to.number(static_cast<std::uint8_t>(static_cast<unsigned>(value)));
  }
  static std::chrono::day decode(reader& from) { return std::chrono::day(from.number<std::uint8_t>()); }
};

/// Dates that no calendar has travel like any other: ok() tells, there as here.
template <>
struct codec<std::chrono::year_month_day> : detail::leaf_codec {
  static constexpr std::size_t min_size = 4;
  static constexpr void shape(const auto& walk) { walk.text("year_month_day"); }
  static void encode(writer& to, const std::chrono::year_month_day& value) {
    to.write(value.year());
    to.write(value.month());
    to.write(value.day());
  }
  static std::chrono::year_month_day decode(reader& from) {
    return std::chrono::year_month_day{from.read<std::chrono::year>(), from.read<std::chrono::month>(),
                                       from.read<std::chrono::day>()};
  }
};

}  // namespace cohort
