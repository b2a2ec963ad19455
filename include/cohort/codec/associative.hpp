// SPDX-License-Identifier: BSL-1.0
// Codecs of sets and maps, ordered and not, with one element a key or several.
// A count, then the elements in the order in which the sender walks over them; part of cohort/codec.hpp.
#pragma once

#include <cohort/codec/sequences.hpp>

#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace cohort {
namespace detail {

enum class keys : bool { unique, repeated };

/// Shared by all eight. A key that comes twice in a container that holds each once is an error, for no container sends
/// one, and the receiver would have to guess which value is meant. The order of the message is not asked to be the
/// order of the container: the sender's may be a hash table of other size.
///
/// Cost: an unordered container takes quadratic time for keys that were chosen to collide; the limits bound it
template <class Container, keys Keys>
struct associative_codec : container_codec {
  static constexpr bool is_map = requires { typename Container::mapped_type; };

  static void encode(writer& to, const Container& values) {
    to.count(values.size());
    for (const auto& value : values) {
      if constexpr (is_map) {
        to.write(value.first);
        to.write(value.second);
      } else {
        to.write(value);
      }
    }
  }

  static Container decode(reader& from) {
    using key_type = typename Container::key_type;
    Container values;
    std::size_t left = 0;
    if constexpr (is_map) {
      left = from.count(min_encoded_size<key_type>() + min_encoded_size<typename Container::mapped_type>(),
                        sizeof(typename Container::value_type) + node);
    } else {
      left = from.count_of<key_type>(node);
    }
    for (; left > 0; --left) {
      key_type key = from.read<key_type>();
      const std::size_t before = values.size();
      if constexpr (is_map) {
        values.emplace_hint(values.end(), std::move(key), from.read<typename Container::mapped_type>());
      } else {
        values.emplace_hint(values.end(), std::move(key));
      }
      if (Keys == keys::unique && values.size() == before) from.fail("expected every key once, found one twice");
    }
    return values;
  }
};

}  // namespace detail

template <class T, class Compare, class Allocator>
struct codec<std::set<T, Compare, Allocator>>
    : detail::associative_codec<std::set<T, Compare, Allocator>, detail::keys::unique> {
  static constexpr void shape(const auto& walk) { walk.template of<T>("set"); }
};

template <class T, class Compare, class Allocator>
struct codec<std::multiset<T, Compare, Allocator>>
    : detail::associative_codec<std::multiset<T, Compare, Allocator>, detail::keys::repeated> {
  static constexpr void shape(const auto& walk) { walk.template of<T>("multiset"); }
};

template <class T, class Hash, class Equal, class Allocator>
struct codec<std::unordered_set<T, Hash, Equal, Allocator>>
    : detail::associative_codec<std::unordered_set<T, Hash, Equal, Allocator>, detail::keys::unique> {
  static constexpr void shape(const auto& walk) { walk.template of<T>("unordered_set"); }
};

template <class T, class Hash, class Equal, class Allocator>
struct codec<std::unordered_multiset<T, Hash, Equal, Allocator>>
    : detail::associative_codec<std::unordered_multiset<T, Hash, Equal, Allocator>, detail::keys::repeated> {
  static constexpr void shape(const auto& walk) { walk.template of<T>("unordered_multiset"); }
};

template <class Key, class T, class Compare, class Allocator>
struct codec<std::map<Key, T, Compare, Allocator>>
    : detail::associative_codec<std::map<Key, T, Compare, Allocator>, detail::keys::unique> {
  static constexpr void shape(const auto& walk) { walk.template of<Key, T>("map"); }
};

template <class Key, class T, class Compare, class Allocator>
struct codec<std::multimap<Key, T, Compare, Allocator>>
    : detail::associative_codec<std::multimap<Key, T, Compare, Allocator>, detail::keys::repeated> {
  static constexpr void shape(const auto& walk) { walk.template of<Key, T>("multimap"); }
};

template <class Key, class T, class Hash, class Equal, class Allocator>
struct codec<std::unordered_map<Key, T, Hash, Equal, Allocator>>
    : detail::associative_codec<std::unordered_map<Key, T, Hash, Equal, Allocator>, detail::keys::unique> {
  static constexpr void shape(const auto& walk) { walk.template of<Key, T>("unordered_map"); }
};

template <class Key, class T, class Hash, class Equal, class Allocator>
struct codec<std::unordered_multimap<Key, T, Hash, Equal, Allocator>>
    : detail::associative_codec<std::unordered_multimap<Key, T, Hash, Equal, Allocator>, detail::keys::repeated> {
  static constexpr void shape(const auto& walk) { walk.template of<Key, T>("unordered_multimap"); }
};

}  // namespace cohort
