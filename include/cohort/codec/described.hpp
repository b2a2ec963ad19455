// SPDX-License-Identifier: BSL-1.0
// The codec of classes that Boost.Describe knows: base classes, then members, private ones included.
// What the description leaves out does not travel; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/scalars.hpp>

#include <boost/describe/bases.hpp>
#include <boost/describe/members.hpp>
#include <boost/describe/modifiers.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

template <class T>
concept described_class = std::is_class_v<T> && boost::describe::has_describe_members<T>::value && !holds_address<T>;

template <class T>
using described_bases = boost::describe::describe_bases<T, boost::describe::mod_any_access>;
template <class T>
using described_members = boost::describe::describe_members<T, boost::describe::mod_any_access>;

template <class T, class Descriptor>
using member_type = std::remove_cvref_t<decltype(std::declval<T&>().*Descriptor::pointer)>;

}  // namespace detail

/// Needs: a default constructor, for the members are filled in; and each base class has a codec of its own
template <detail::described_class T>
struct codec<T> {
 private:
  static constexpr bool is_empty = boost::mp11::mp_empty<detail::described_bases<T>>::value &&
                                   boost::mp11::mp_empty<detail::described_members<T>>::value;

  // The casts to a base reach private ones too, which a static_cast does not.
  static constexpr void for_each_base(auto&& f) {
    boost::mp11::mp_for_each<detail::described_bases<T>>([&](auto base) {
      static_assert((decltype(base)::modifiers & boost::describe::mod_virtual) == 0,
                    "cohort: a virtual base class would be sent once for each path to it: write codec<T>");
      f(std::type_identity<typename decltype(base)::type>());
    });
  }
  static constexpr void for_each_member(auto&& f) { boost::mp11::mp_for_each<detail::described_members<T>>(f); }
  static constexpr std::size_t smallest() noexcept {
    std::size_t sum = 0;
    for_each_base([&]<class Base>(std::type_identity<Base>) { sum += detail::min_encoded_size<Base>(); });
    for_each_member([&](auto member) { sum += detail::min_encoded_size<detail::member_type<T, decltype(member)>>(); });
    return sum == 0 ? 1 : sum;
  }

 public:
  static constexpr bool nests = true;
  static constexpr std::size_t min_size = smallest();

  static constexpr void shape(const auto& walk) {
    bool first = true;
    const auto comma = [&] {
      if (!first) walk.text(", ");
      first = false;
    };
    walk.class_name(detail::type_name<T>());
    walk.text("{");
    for_each_base([&]<class Base>(std::type_identity<Base>) {
      comma();
      walk.template type<Base>();
    });
    for_each_member([&](auto member) {
      comma();
      walk.text(member.name);
      walk.text(": ");
      walk.template type<detail::member_type<T, decltype(member)>>();
    });
    walk.text("}");
  }

  static void encode(writer& to, const T& value) {
    for_each_base([&]<class Base>(std::type_identity<Base>) {
      const Base& base = (const Base&)value;
      if constexpr (detail::described_class<Base> && detail::is_library_codec<Base>) codec<Base>::encode(to, base);
      else to.write(base);
    });
    for_each_member([&](auto member) { to.write(value.*member.pointer); });
    if constexpr (is_empty) detail::empty_codec::write(to);
  }

  static T decode(reader& from) {
    static_assert(std::is_default_constructible_v<T>,
                  "cohort: a described class is made by its default constructor and then filled: give it one, or write "
                  "codec<T>");
    T value{};
    fill(from, value);
    return value;
  }

  /// Reads over an existing object, which may be a base of another and as such abstract.
  static void fill(reader& from, T& value) {
    for_each_base([&]<class Base>(std::type_identity<Base>) {
      Base& base = (Base&)value;
      if constexpr (detail::described_class<Base> && detail::is_library_codec<Base>) codec<Base>::fill(from, base);
      else from.read_into(base);
    });
    for_each_member([&](auto member) {
      static_assert(!std::is_const_v<std::remove_reference_t<decltype(value.*member.pointer)>>,
                    "cohort: a const member cannot be filled: write codec<T> for its class");
      from.read_into(value.*member.pointer);
    });
    if constexpr (is_empty) detail::empty_codec::read(from);
  }
};

}  // namespace cohort
