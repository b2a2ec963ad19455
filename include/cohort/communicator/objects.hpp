// SPDX-License-Identifier: BSL-1.0
// The calls of a communicator that move objects: anything with a codec, of any size on every rank. A base of
// communicator<Backend>; encodes at the call and starts messages/objects.hpp.
#pragma once

#include <cohort/communicator/front.hpp>
#include <cohort/messages/batch.hpp>
#include <cohort/messages/objects.hpp>

#include <concepts>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cohort {

/// Options of the object calls: timeout{5s}, stop{token}, and codec_limits for objects larger than most.
template <class O>
concept object_option = call_option<O> || std::same_as<std::remove_cvref_t<O>, codec_limits>;

namespace detail {

inline void add_option(call::options&, const codec_limits&) noexcept {}

[[nodiscard]] inline codec_limits limits_in() noexcept { return {}; }
template <class First, class... Rest>
[[nodiscard]] codec_limits limits_in(const First& first, const Rest&... rest) noexcept {
  if constexpr (std::is_same_v<First, codec_limits>) {
    return first;
  } else {
    return limits_in(rest...);
  }
}

/// The options among some arguments.
template <class... Arguments>
[[nodiscard]] call::options options_in(const Arguments&... arguments) {
  call::options o;
  [[maybe_unused]] const auto take = [&o]<class A>(const A& a) {
    if constexpr (object_option<A>) add_option(o, a);
  };
  (take(arguments), ...);
  return o;
}
/// An argument that is no option, as a tuple; of an option an empty one.
template <class Argument>
[[nodiscard]] auto object_in(const Argument& argument) {
  if constexpr (object_option<Argument>) {
    return std::tuple<>();
  } else {
    return std::tuple<const Argument&>(argument);
  }
}

template <class Communicator, backend Backend>
class object_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// Sends an object to one rank, which receives it with recv_object of the same type.
  ///
  /// Needs:     codec<T>, which most types have (cohort/codec.hpp)
  /// Order:     as send: objects are messages like others
  /// Completes: when the bytes are on their way
  /// Errors:    errc::invalid_argument (rank, tag), limit_exceeded, peer_lost, timed_out
  /// Lifetime:  the object is read at the call, and not needed after it
  /// Cost:      one pass over the object, one message
  /// Example:   examples/20_objects.cpp
  template <class T, object_option... Options>
  operation<> send_object(const T& object, to destination, tag label, Options&&... options) const {
    return send_list(destination, label, limits_in(options...), options_in(options...), object);
  }
  template <class T, object_option... Options>
  operation<> send_object(const T& object, to destination, Options&&... options) const {
    return send_object(object, destination, tag{0}, std::forward<Options>(options)...);
  }
  /// Several objects as one message; received with recv_objects of the same types. Options may follow them: what has
  /// the type of an option is one.
  template <class... ObjectsAndOptions>
  operation<> send_objects(to destination, tag label, const ObjectsAndOptions&... each) const {
    const auto objects = std::tuple_cat(object_in(each)...);
    return std::apply(
        [&](const auto&... object) {
          return send_list(destination, label, limits_in(each...), options_in(each...), object...);
        },
        objects);
  }
  template <class First, class... ObjectsAndOptions>
    requires(!std::same_as<First, tag>)
  operation<> send_objects(to destination, const First& first, const ObjectsAndOptions&... rest)
  const { return send_objects(destination, tag{0}, first, rest...); }

  /// Receives an object.
  ///
  /// Result:    the object; a tuple of them from recv_objects
  /// Needs:     source: from{rank} or from_any; label: tag{n} or any_tag; tag{0} if none is given
  /// Errors:    wrong_type naming what was sent and what was expected, bad_message: the message is gone then, and the
  ///            communicator goes on; truncated for a message above codec_limits::bytes; as recv
  /// Cost:      nothing is allocated that the bytes of the message do not account for
  /// Example:   examples/20_objects.cpp
  template <class T, message_source Source, message_label Label, object_option... Options>
  operation<T> recv_object(Source source, Label label, Options&&... options) const {
    return receive_list<T>(source, label, limits_in(options...), options_in(options...));
  }
  template <class T, message_source Source, object_option... Options>
  operation<T> recv_object(Source source, Options&&... options) const {
    return recv_object<T>(source, tag{0}, std::forward<Options>(options)...);
  }
  template <class... Ts, message_source Source, message_label Label, object_option... Options>
    requires(sizeof...(Ts) > 1)
  operation<std::tuple<Ts...>> recv_objects(Source source, Label label, const Options&... options)
  const { return receive_list<Ts...>(source, label, limits_in(options...), options_in(options...)); }
  template <class... Ts, message_source Source, object_option... Options>
    requires(sizeof...(Ts) > 1)
  operation<std::tuple<Ts...>> recv_objects(Source source, const Options&... options)
  const { return receive_list<Ts...>(source, tag{0}, limits_in(options...), options_in(options...)); }

  /// Gives every rank the root's object.
  ///
  /// Result:    the root's object; what the others give is not looked at
  /// Needs:     the same root on every rank
  /// Completes: when this rank has the object
  /// Errors:    wrong_type, bad_message (of this rank alone); limit_exceeded; invalid_argument (root), mismatch,
  ///            peer_lost, aborted, timed_out
  /// Lifetime:  the object is read at the call, and not needed after it
  /// Cost:      one broadcast of eight bytes, one of the object
  /// Example:   examples/20_objects.cpp
  template <class T, object_option... Options>
  operation<T> broadcast_object(const T& object, root from_rank, Options&&... options) const {
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::broadcast_objects;
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      const codec_limits limits = limits_in(options...);
      messages::object_bytes bytes;
      if (calls().rank() == from_rank.rank) bytes = encoded(kind, limits, object);
      ticket t = enter(kind, from_rank.rank, options_in(options...));
      return messages::broadcast_objects<transport_type, T>(std::move(t), std::move(bytes), limits);
    });
  }

  /// Gives the root the objects of all ranks.
  ///
  /// Result:    on the root object r is that of rank r; elsewhere none
  /// Errors:    as broadcast_object
  /// Lifetime:  the object is read at the call, and not needed after it
  /// Cost:      one gather of eight bytes, one message from each rank
  /// Example:   examples/20_objects.cpp
  template <class T, object_option... Options>
  operation<std::vector<T>> gather_object(const T& object, root to_rank, Options&&... options) const {
    return guarded<std::vector<T>>([&]() -> operation<std::vector<T>> {
      constexpr auto kind = operation_kind::gather_objects;
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      const codec_limits limits = limits_in(options...);
      messages::object_bytes bytes = encoded(kind, limits, object);
      ticket t = enter(kind, to_rank.rank, options_in(options...));
      return messages::gather_objects<transport_type, T>(std::move(t), std::move(bytes), limits);
    });
  }

  /// Gives every rank the objects of all ranks.
  ///
  /// Result:    object r is that of rank r
  /// Errors:    as broadcast_object
  /// Lifetime:  the object is read at the call, and not needed after it
  /// Cost:      one all_gather of eight bytes, one of the objects
  /// Example:   examples/20_objects.cpp
  template <class T, object_option... Options>
  operation<std::vector<T>> all_gather_object(const T& object, Options&&... options) const {
    return guarded<std::vector<T>>([&]() -> operation<std::vector<T>> {
      constexpr auto kind = operation_kind::all_gather_objects;
      calls().require_open(kind);
      const codec_limits limits = limits_in(options...);
      messages::object_bytes bytes = encoded(kind, limits, object);
      ticket t = enter(kind, -1, options_in(options...));
      return messages::all_gather_objects<transport_type, T>(std::move(t), std::move(bytes), limits);
    });
  }

  /// Gives each rank one of the root's objects.
  ///
  /// Result:    objects[rank()] of the root
  /// Shapes:    objects: one for each rank on the root; ignored elsewhere
  /// Errors:    invalid_argument (root, number of objects); as broadcast_object
  /// Lifetime:  the objects are read at the call, and not needed after it
  /// Cost:      one scatter of eight bytes, one message to each rank
  /// Example:   examples/20_objects.cpp
  template <class T, object_option... Options>
  operation<T> scatter_object(const std::vector<T>& objects, root from_rank, Options&&... options) const {
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::scatter_objects;
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      const codec_limits limits = limits_in(options...);
      messages::object_bytes bytes;
      collective::detail::short_vector<std::uint64_t> sizes;
      if (calls().rank() == from_rank.rank) {
        calls().check_count(kind, "objects", objects.size(), static_cast<std::size_t>(calls().size()),
                            "one for each rank");
        for (const T& each : objects) {
          const messages::object_bytes one = encoded(kind, limits, each);
          bytes.insert(bytes.end(), one.begin(), one.end());
          sizes.push_back(one.size());
        }
      }
      ticket t = enter(kind, from_rank.rank, options_in(options...));
      return messages::scatter_objects<transport_type, T>(std::move(t), std::move(bytes), std::move(sizes), limits);
    });
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class... Ts>
  [[nodiscard]] messages::object_bytes encoded(operation_kind kind, const codec_limits& limits,
                                               const Ts&... objects) const {
    try {
      return messages::encoded(limits, objects...);
    } catch (const error& e) {
      calls().refuse(e.condition(), kind, e.what());
    }
  }
  [[nodiscard]] ticket enter(operation_kind kind, int root_rank, call::options o) const {
    const std::uint16_t root = root_rank >= 0 ? static_cast<std::uint16_t>(root_rank) : transport::signature::no_root;
    return calls().enter(calls().sign(kind, {}, element_type_id<object_byte>, 0, 0, root), std::move(o));
  }

  template <class... Ts>
  operation<> send_list(to destination, tag label, const codec_limits& limits, call::options o,
                        const Ts&... objects) const {
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::send;
      calls().require_open(kind);
      calls().check_peer(kind, "destination", destination.rank);
      calls().check_tag(kind, label);
      messages::object_bytes bytes = encoded(kind, limits, objects...);
      messages::end what;
      what.peer = destination.rank;
      what.tag = label.value;
      ticket t =
          calls().enter_message(calls().sign(kind, {}, element_type_id<object_byte>, bytes.size()), std::move(o));
      // The object is not needed after the call: its bytes are the operation's.
      return messages::send<transport_type, void>(std::move(t), what, messages::owned_bytes(std::move(bytes)));
    });
  }

  template <class... Ts, class Source, class Label>
  operation<decoded_objects_t<Ts...>> receive_list(Source source, Label label, const codec_limits& limits,
                                                   call::options o) const {
    using result = decoded_objects_t<Ts...>;
    return guarded<result>([&]() -> operation<result> {
      constexpr auto kind = operation_kind::receive;
      calls().require_open(kind);
      messages::item i;
      i.comes_from(source);
      i.has(label);
      if (!i.any_source) calls().check_peer(kind, "source", i.what.peer);
      calls().check_tag(kind, tag{i.what.tag});
      ticket t = calls().enter_message(calls().sign(kind, {}, element_type_id<object_byte>, 0), std::move(o));
      return messages::receive_objects<transport_type, Ts...>(std::move(t), i.what, limits);
    });
  }
};

}  // namespace detail
}  // namespace cohort
