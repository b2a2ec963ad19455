// SPDX-License-Identifier: BSL-1.0
// The codec of plain structs: their members one after the other, found by Boost.PFR without a word from the program.
// What is not public, or has a constructor, is for codec/described.hpp; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/described.hpp>
#include <cohort/codec/fields.hpp>
#include <cohort/codec/scalars.hpp>

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

template <class T>
concept plain_aggregate = std::is_class_v<T> && std::is_aggregate_v<T> && !described_class<T> && !holds_address<T>;

template <class Members>
struct aggregate_traits;
template <class... Ts>
struct aggregate_traits<type_list<Ts...>> {
  static constexpr std::size_t min_size = sizeof...(Ts) == 0 ? 1 : (min_encoded_size<Ts>() + ... + 0);
  static constexpr bool bulk = sizeof...(Ts) != 0 && (is_bulk<Ts>() && ...);
  static constexpr std::size_t bytes = (sizeof(Ts) + ... + 0);

  static constexpr void list(const auto& walk) { walk.template list<Ts...>(); }

  static constexpr bool has_array = (std::is_array_v<Ts> || ...);
  template <class T>
  static constexpr bool is_made_of_members = requires {
    T{std::declval<Ts>()...};
  };

  template <class T>
  static constexpr void check() noexcept {
    static_assert(has_array || is_made_of_members<T>,
                  "cohort: this struct cannot be made of the values of its members (is one of them a reference?): "
                  "write codec<T>, or describe it with BOOST_DESCRIBE_STRUCT");
  }

  template <class T>
  [[nodiscard]] static T make(reader& from) {
    if constexpr (has_array) {
      T value{};
      for_each_member(value, [&](auto& member) { from.read_into(member); });
      return value;
    } else if constexpr (is_made_of_members<T>) {
      return T{from.read<Ts>()...};
    } else {
      std::abort();
    }
  }
};

}  // namespace detail

/// The members in the order of their declaration, which is all that both sides must agree on.
///
/// Needs: at most 200 members, or 12 if there are built-in arrays among them; no bit-fields and no references. Members
///        need neither default constructors nor assignment, except next to a built-in array.
template <detail::plain_aggregate T>
struct codec<T> {
  using members = detail::aggregate_traits<detail::member_types<T>>;
  static constexpr bool nests = true;
  static constexpr std::size_t min_size = members::min_size;
  // Without padding, in memory as in the message.
  static constexpr bool bulk =
      members::bulk && members::bytes == sizeof(T) && std::is_trivially_copyable_v<T> && std::is_copy_assignable_v<T>;

  static constexpr void shape(const auto& walk) {
    walk.class_name(detail::type_name<T>());
    walk.text("{");
    members::list(walk);
    walk.text("}");
  }
  static void encode(writer& to, const T& value) {
    members::template check<T>();
    if constexpr (std::is_empty_v<T>) detail::empty_codec::write(to);
    else detail::for_each_member(value, [&](const auto& member) { to.write(member); });
  }
  static T decode(reader& from) {
    members::template check<T>();
    if constexpr (std::is_empty_v<T>) {
      detail::empty_codec::read(from);
      return T{};
    } else {
      return members::template make<T>(from);
    }
  }
};

/// A base class is not among the members that PFR finds.
template <detail::plain_aggregate T>
  requires detail::has_base<T>
struct codec<T> {
  static constexpr bool nests = true;
  static constexpr std::size_t min_size = 1;
  static constexpr void shape(const auto& /*walk*/) { refuse(); }
  static void encode(writer& /*to*/, const T& /*value*/) { refuse(); }
  [[noreturn]] static T decode(reader& /*from*/) {
    refuse();
    std::abort();
  }

 private:
  static constexpr void refuse() noexcept {
    static_assert(detail::always_false<T>,
                  "cohort: a struct with a base class has no codec by itself: describe it with "
                  "BOOST_DESCRIBE_STRUCT(name, (bases), (members)), or write codec<T>");
  }
};

}  // namespace cohort
