// SPDX-License-Identifier: BSL-1.0
// The point-to-point calls of a communicator: send, recv, exchange, probe, batch. A base of communicator<Backend>;
// checks the arguments and starts messages/transfer.hpp.
#pragma once

#include <cohort/communicator/front.hpp>
#include <cohort/messages/batch.hpp>
#include <cohort/messages/growing.hpp>
#include <cohort/messages/transfer.hpp>

#include <concepts>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace cohort::detail {

template <class Communicator, backend Backend>
class message_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// Sends the elements of `buffer` to one rank under a tag.
  ///
  /// Shapes:    buffer: any number of elements, also none
  /// Needs:     element type as at the receiver
  /// Order:     messages between two ranks under one tag arrive in the order in which they were sent
  /// Completes: when buffer may be reused: a message of up to 16 KiB is buffered while the receiver has room for it; a longer one
  ///            may wait for its receive
  /// Errors:    errc::invalid_argument (rank, tag), mismatch, truncated, peer_lost, timed_out
  /// Lifetime:  buffer is borrowed until then
  /// Cost:      one message; two more, short ones, if it is long
  /// Example:   tests/unit/point_to_point.cpp
  template <class Buffer, call_option... Options>
  operation<> send(Buffer&& buffer, to destination, tag label, Options&&... options) const {
    check_buffer<Buffer>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::send;
      calls().require_open(kind);
      calls().check_peer(kind, "destination", destination.rank);
      calls().check_tag(kind, label);
      const messages::end what = end_of(kind, buffer, destination.rank, label.value, false);
      return messages::send<transport_type>(enter<Buffer>(kind, buffer, options_of(options...)), what);
    });
  }
  template <class Buffer, call_option... Options>
  operation<> send(Buffer&& buffer, to destination, Options&&... options) const {
    return send(std::forward<Buffer>(buffer), destination, tag{0}, std::forward<Options>(options)...);
  }
  template <class Buffer, std::integral Rank, class... Options>
  operation<> send(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a destination is a type, so that it cannot be taken for a tag: write to{1}");
    return operation<>::completed({});
  }

  /// Receives one message into `buffer`, or into growing(container), which takes the size of the message.
  ///
  /// Result:    source, tag and number of elements of the message
  /// Shapes:    buffer: room for at least as many elements as are sent; a longer message is errc::truncated
  /// Needs:     source: from{rank} or from_any; label: tag{n}, or any_tag; tag{0} if none is given
  /// Order:     the oldest message that fits source and tag
  /// Completes: when the elements are in buffer
  /// Errors:    errc::invalid_argument (rank, tag), mismatch (element type), truncated, peer_lost, timed_out
  /// Lifetime:  buffer is borrowed until then
  /// Cost:      nothing is copied if the receive was posted before the message came
  /// Example:   tests/unit/point_to_point.cpp
  template <class Buffer, message_source Source, message_label Label, call_option... Options>
  operation<received> recv(Buffer&& buffer, Source source, Label label, Options&&... options) const {
    constexpr bool grows = is_growing<std::remove_cvref_t<Buffer>>;
    if constexpr (!grows) check_output<Buffer>();
    return guarded<received>([&]() -> operation<received> {
      constexpr auto kind = operation_kind::receive;
      calls().require_open(kind);
      if constexpr (grows) {
        return start(kind, receiving(buffer, source, label), options_of(options...));
      } else {
        constexpr bool any = std::same_as<Label, any_tag_t>;
        int peer = -1;
        int number = 0;
        if constexpr (std::same_as<Source, from>) calls().check_peer(kind, "source", peer = source.rank);
        if constexpr (!any) calls().check_tag(kind, tag{number = label.value});
        const messages::end what = end_of(kind, buffer, peer, number, any);
        return messages::receive<transport_type>(enter<Buffer>(kind, buffer, options_of(options...)), what);
      }
    });
  }
  template <class Buffer, message_source Source, call_option... Options>
  operation<received> recv(Buffer&& buffer, Source source, Options&&... options) const {
    return recv(std::forward<Buffer>(buffer), source, tag{0}, std::forward<Options>(options)...);
  }
  template <class Buffer, std::integral Rank, class... Options>
  operation<received> recv(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a source is a type, so that it cannot be taken for a tag: write from{0} or from_any");
    return operation<received>::completed({});
  }

  /// Waits until there is a message that a receive from this source and with this label would get, and leaves it there.
  ///
  /// Result:    its source, its tag and the number of its elements
  /// Order:     the oldest; a receive that was posted before has its message already
  /// Completes: when the header of the message is here; its elements may still be on their way
  /// Errors:    errc::invalid_argument (rank, tag), peer_lost, timed_out
  /// Cost:      no message
  /// Example:   tests/unit/point_to_point.cpp
  template <message_source Source, message_label Label, call_option... Options>
  operation<received> probe(Source source, Label label, Options&&... options) const {
    return guarded<received>([&]() -> operation<received> {
      ticket t = enter_probe(options_of(options...));
      return messages::look<transport_type, received>(std::move(t), probed(source, label), false);
    });
  }
  template <message_source Source, call_option... Options>
  operation<received> probe(Source source, Options&&... options) const {
    return probe(source, tag{0}, std::forward<Options>(options)...);
  }
  /// The same without waiting: nothing if there is no such message yet. Moves what can be moved first.
  template <message_source Source, message_label Label>
  [[nodiscard]] std::optional<received> try_probe(Source source, Label label) const {
    auto op = guarded<std::optional<received>>([&]() -> operation<std::optional<received>> {
      ticket t = enter_probe(call::options{});
      calls().state()->engine().turn();
      return messages::look<transport_type, std::optional<received>>(std::move(t), probed(source, label), true);
    });
    return op.wait();
  }

  /// Starts several messages together: `batch(sending(a, to{1}), receiving(b, from{0}))`, or a std::vector of these.
  /// Options follow the messages and hold for each of them.
  ///
  /// Result:    an operation for each message, and one for all: `co_await b.all()`
  /// Order:     receives are posted before anything is sent; messages to one rank under one tag keep their order
  /// Completes: each as it would alone; no order among them can make them wait for each other
  /// Errors:    as send and recv, at the operation that has them; an argument that is wrong concerns its own message
  ///            only
  /// Lifetime:  the buffers are borrowed until their operations have completed
  /// Example:   examples/23_pipeline_ring.cpp
  template <call_option... Options>
  message_batch batch(const std::vector<messages::item>& items, const Options&... options) const {
    std::vector<operation<received>> each;
    each.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) each.push_back(operation<received>::completed({}));
    for (const bool sends : {false, true}) {
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].sending != sends) continue;
        each[i] = guarded<received>([&]() -> operation<received> {
          const auto kind = sends ? operation_kind::send : operation_kind::receive;
          calls().require_open(kind);
          return start(kind, items[i], options_of(options...));
        });
      }
    }
    return message_batch(std::move(each));
  }
  template <class... Rest>
    requires((std::same_as<Rest, messages::item> || call_option<Rest>)&&...)
  message_batch batch(const messages::item& first, const Rest&... rest)
  const {
    std::vector<messages::item> items{first};
    (add_item(items, rest), ...);
    return std::apply([&](const auto&... options) { return batch(items, options...); },
                      std::tuple_cat(option_in(rest)...));
  }

  /// Sends to one rank and receives from one, started together: the step of a ring.
  ///
  /// Result:    source, tag and number of elements of the message received
  /// Shapes:    as send and recv; the two buffers must not overlap
  /// Needs:     each element type as at its other end; the two may differ
  /// Completes: when both have completed
  /// Errors:    as send and recv
  /// Lifetime:  both buffers are borrowed until then
  /// Example:   tests/unit/point_to_point.cpp
  template <class Out, class In, call_option... Options>
  operation<received> exchange(Out&& outgoing, to destination, In&& incoming, from source, tag label,
                               Options&&... options) const {
    check_buffer<Out>();
    check_output<In>();
    return guarded<received>([&]() -> operation<received> {
      constexpr auto kind = operation_kind::exchange;
      calls().require_open(kind);
      calls().check_peer(kind, "destination", destination.rank);
      calls().check_peer(kind, "source", source.rank);
      calls().check_tag(kind, label);
      const messages::end out = end_of(kind, outgoing, destination.rank, label.value, false);
      const messages::end in = end_of(kind, incoming, source.rank, label.value, false);
      calls().check_overlap(kind, out.bytes.data, in.bytes.data, out.bytes.bytes, in.bytes.bytes, false);
      return messages::exchange<transport_type>(enter<Out>(kind, outgoing, options_of(options...)), out, in,
                                                element_type_id<buffer_element_t<std::remove_reference_t<In>>>);
    });
  }
  template <class Out, class In, call_option... Options>
  operation<received> exchange(Out&& outgoing, to destination, In&& incoming, from source, Options&&... options) const {
    return exchange(std::forward<Out>(outgoing), destination, std::forward<In>(incoming), source, tag{0},
                    std::forward<Options>(options)...);
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class Buffer>
  [[nodiscard]] messages::end end_of(operation_kind kind, Buffer& buffer, int peer, int label, bool any) const {
    const auto elements = view(buffer);
    calls().check_null(kind, "buffer", elements.data(), elements.size());
    messages::end e;
    e.bytes = {collective::bytes_of(elements.data()), elements.size_bytes()};
    e.element_bytes = sizeof(buffer_element_t<Buffer>);
    e.peer = peer;
    e.tag = label;
    e.any_tag = any;
    return e;
  }
  template <class Buffer>
  [[nodiscard]] ticket enter(operation_kind kind, Buffer& buffer, call::options o) const {
    using T = buffer_element_t<std::remove_reference_t<Buffer>>;
    return calls().enter_message(calls().sign(kind, {}, element_type_id<T>, view(buffer).size()), std::move(o));
  }

  /// Starts one send or receive; checks rank, tag and address.
  [[nodiscard]] operation<received> start(operation_kind kind, const messages::item& i, call::options o) const {
    if (!i.any_source) calls().check_peer(kind, i.sending ? "destination" : "source", i.what.peer);
    calls().check_tag(kind, tag{i.what.tag});
    if (!i.has_data) calls().check_null(kind, "buffer", nullptr, i.count);
    ticket t = calls().enter_message(calls().sign(kind, {}, i.type, i.count), std::move(o));
    if (i.sending) return messages::send<transport_type, received>(std::move(t), i.what);
    return messages::receive<transport_type>(std::move(t), i.what);
  }
  [[nodiscard]] ticket enter_probe(call::options o) const {
    constexpr auto kind = operation_kind::probe;
    calls().require_open(kind);
    return calls().enter_message(calls().sign(kind, {}, 0, 0), std::move(o));
  }
  static void add_item(std::vector<messages::item>& items, const messages::item& i) { items.push_back(i); }
  template <call_option Option>
  static void add_item(std::vector<messages::item>&, const Option&) noexcept {}
  [[nodiscard]] static std::tuple<> option_in(const messages::item&) noexcept { return {}; }
  template <call_option Option>
  [[nodiscard]] static std::tuple<const Option&> option_in(const Option& o) noexcept {
    return {o};
  }
  template <class Source, class Label>
  [[nodiscard]] messages::end probed(Source source, Label label) const {
    messages::item i;
    i.comes_from(source);
    i.has(label);
    if (!i.any_source) calls().check_peer(operation_kind::probe, "source", i.what.peer);
    calls().check_tag(operation_kind::probe, tag{i.what.tag});
    return i.what;
  }
};

}  // namespace cohort::detail
