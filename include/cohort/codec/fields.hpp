// SPDX-License-Identifier: BSL-1.0
// The members of an aggregate, by Boost.PFR; and by a few structured bindings where some of them are built-in arrays,
// which PFR counts element by element. Stands under codec/aggregates.hpp.
#pragma once

#include <boost/pfr/core.hpp>
#include <boost/pfr/tuple_size.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cohort::detail {

/// Converts to whatever an initialiser is needed for.
struct any_value {
  template <class T>
  operator T() const noexcept;  // never called
};

/// Converts to a base class of T and to nothing else.
template <class T>
struct any_base_of {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  operator Base() const noexcept;
};

/// Converts to nothing.
struct no_value {};

/// The first initialiser of an aggregate is its base class, if it has one. A member that takes anything at all, as
/// std::any does, proves nothing.
template <class T>
inline constexpr bool has_base = requires {
  T{any_base_of<T>{}};
}
&&!requires { T{no_value{}}; };

template <class T, std::size_t... I>
[[nodiscard]] constexpr bool initialised_by(std::index_sequence<I...> /*unused*/) noexcept {
  return requires { T{(static_cast<void>(I), any_value{})...}; };
}

/// Whether T{any, any, {}, any, any} compiles, with so many before and after the empty braces.
template <class T, std::size_t... Before, std::size_t... After>
[[nodiscard]] constexpr bool skips(std::index_sequence<Before...> /*unused*/,
                                   std::index_sequence<After...> /*unused*/) noexcept {
  return requires { T{(static_cast<void>(Before), any_value{})..., {}, (static_cast<void>(After), any_value{})...}; };
}

/// How many of the remaining initialisers belong to the member that begins at one of them: empty braces stand for a
/// whole array, so that fewer than all others may follow.
template <class T, std::size_t All, std::size_t At>
[[nodiscard]] constexpr std::size_t initialisers_of_member() noexcept {
  constexpr auto skipped_with = []<std::size_t After>(std::integral_constant<std::size_t, After> /*unused*/) {
    return skips<T>(std::make_index_sequence<At>(), std::make_index_sequence<After>());
  };
  constexpr std::size_t others = All - At - 1;
  if constexpr (skipped_with(std::integral_constant<std::size_t, others>())) {
    return 1;
  } else if constexpr (!skipped_with(std::integral_constant<std::size_t, 0>())) {
    return 1;  // a member that empty braces do not initialise, and no array
  } else {
    // `fits` initialisers may follow, `others` may not.
    constexpr auto search = []<std::size_t Fits, std::size_t TooMany>(auto self,
                                                                      std::integral_constant<std::size_t, Fits>,
                                                                      std::integral_constant<std::size_t, TooMany>) {
      if constexpr (TooMany - Fits == 1) {
        return All - At - Fits;
      } else {
        constexpr std::size_t middle = Fits + (TooMany - Fits) / 2;
        if constexpr (skips<T>(std::make_index_sequence<At>(), std::make_index_sequence<middle>())) {
          return self(self, std::integral_constant<std::size_t, middle>(),
                      std::integral_constant<std::size_t, TooMany>());
        } else {
          return self(self, std::integral_constant<std::size_t, Fits>(), std::integral_constant<std::size_t, middle>());
        }
      }
    };
    return search(search, std::integral_constant<std::size_t, 0>(), std::integral_constant<std::size_t, others>());
  }
}

template <class T, std::size_t All, std::size_t At = 0>
[[nodiscard]] constexpr std::size_t count_members() noexcept {
  if constexpr (At >= All) return 0;
  else return 1 + count_members<T, All, At + initialisers_of_member<T, All, At>()>();
}

/// The most initialisers that T takes, each element of an array for one: at least Fits, and fewer than TooMany. Where a
/// member is such that this cannot be found out, less than there are.
template <class T, std::size_t Fits = 0, std::size_t TooMany = sizeof(T) + 1>
[[nodiscard]] constexpr std::size_t count_initialisers() noexcept {
  constexpr std::size_t middle = Fits + (TooMany - Fits) / 2;
  if constexpr (TooMany - Fits == 1) return Fits;
  else if constexpr (initialised_by<T>(std::make_index_sequence<middle>()))
    return count_initialisers<T, middle, TooMany>();
  else return count_initialisers<T, Fits, middle>();
}

/// The number of members if there is a built-in array among them, else 0. PFR is not asked about such a class: g++ 12
/// does not survive its questions if the elements have destructors.
template <class T>
[[nodiscard]] constexpr std::size_t count_beside_arrays() noexcept {
  constexpr std::size_t all = count_initialisers<T>();
  constexpr std::size_t members = count_members<T, all>();
  return members == all ? 0 : members;
}

template <class T>
inline constexpr std::size_t members_beside_arrays = count_beside_arrays<T>();

template <class T>
inline constexpr bool has_array_member = members_beside_arrays<T> != 0;

/// The members of an aggregate that has built-in arrays among them.
template <std::size_t N, class T, class F>
constexpr decltype(auto) bind_members(T& v, F&& f) {
  static_assert(
      N <= 12,
      "cohort: a struct of more than 12 members that has built-in arrays among them: use std::array, or describe "
      "it with BOOST_DESCRIBE_STRUCT");
  if constexpr (N == 1) {
    auto& [a] = v;
    return f(a);
  } else if constexpr (N == 2) {
    auto& [a, b] = v;
    return f(a, b);
  } else if constexpr (N == 3) {
    auto& [a, b, c] = v;
    return f(a, b, c);
  } else if constexpr (N == 4) {
    auto& [a, b, c, d] = v;
    return f(a, b, c, d);
  } else if constexpr (N == 5) {
    auto& [a, b, c, d, e] = v;
    return f(a, b, c, d, e);
  } else if constexpr (N == 6) {
    auto& [a, b, c, d, e, g] = v;
    return f(a, b, c, d, e, g);
  } else if constexpr (N == 7) {
    auto& [a, b, c, d, e, g, h] = v;
    return f(a, b, c, d, e, g, h);
  } else if constexpr (N == 8) {
    auto& [a, b, c, d, e, g, h, i] = v;
    return f(a, b, c, d, e, g, h, i);
  } else if constexpr (N == 9) {
    auto& [a, b, c, d, e, g, h, i, j] = v;
    return f(a, b, c, d, e, g, h, i, j);
  } else if constexpr (N == 10) {
    auto& [a, b, c, d, e, g, h, i, j, k] = v;
    return f(a, b, c, d, e, g, h, i, j, k);
  } else if constexpr (N == 11) {
    auto& [a, b, c, d, e, g, h, i, j, k, l] = v;
    return f(a, b, c, d, e, g, h, i, j, k, l);
  } else if constexpr (N == 12) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m] = v;
    return f(a, b, c, d, e, g, h, i, j, k, l, m);
  }
}

template <class... Ts>
struct type_list {};

struct list_types {
  template <class... Members>
  constexpr type_list<std::remove_cv_t<Members>...> operator()(Members&...) const noexcept {
    return {};
  }
};

template <class T, std::size_t... I>
[[nodiscard]] constexpr auto list_members(std::index_sequence<I...> /*unused*/) noexcept
    -> type_list<std::remove_cv_t<boost::pfr::tuple_element_t<I, T>>...> {
  return {};
}

template <class T>
[[nodiscard]] constexpr auto list_members() noexcept {
  if constexpr (has_array_member<T>)
    return decltype(bind_members<members_beside_arrays<T>>(std::declval<T&>(), list_types())){};
  else return list_members<T>(std::make_index_sequence<boost::pfr::tuple_size_v<T>>());
}

/// The types of the members of an aggregate, in the order of their declaration.
template <class T>
using member_types = decltype(list_members<T>());

/// Calls f with each member in turn.
template <class T, class F>
constexpr void for_each_member(T& value, const F& f) {
  if constexpr (has_array_member<std::remove_const_t<T>>) {
    bind_members<members_beside_arrays<std::remove_const_t<T>>>(value, [&](auto&... members) { (f(members), ...); });
  } else {
    boost::pfr::for_each_field(value, [&](auto& member) { f(member); });
  }
}

}  // namespace cohort::detail
