// SPDX-License-Identifier: BSL-1.0
// The point-to-point calls of a communicator: send, recv, exchange. A base of communicator<Backend>; checks the
// arguments and starts messages/transfer.hpp.
#pragma once

#include <cohort/communicator/front.hpp>
#include <cohort/messages/transfer.hpp>

#include <concepts>

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
  /// Completes: when buffer may be reused: a short message is buffered at the receiver, one longer than 256 KiB
  ///            (64 KiB in one process) waits for its receive
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

  /// Receives one message into `buffer`.
  ///
  /// Result:    source, tag and number of elements of the message
  /// Shapes:    buffer: room for at least as many elements as are sent; a longer message is errc::truncated
  /// Order:     the oldest message that fits source and tag
  /// Completes: when the elements are in buffer
  /// Errors:    errc::invalid_argument (rank, tag), mismatch (element type), truncated, peer_lost, timed_out
  /// Lifetime:  buffer is borrowed until then
  /// Cost:      nothing is copied if the receive was posted before the message came
  /// Example:   tests/unit/point_to_point.cpp
  template <class Buffer, call_option... Options>
  operation<received> recv(Buffer&& buffer, from source, tag label, Options&&... options) const {
    return receive_from(buffer_tag<Buffer>{}, buffer, source.rank, false, label, false,
                        std::forward<Options>(options)...);
  }
  template <class Buffer, call_option... Options>
  operation<received> recv(Buffer&& buffer, from source, Options&&... options) const {
    return receive_from(buffer_tag<Buffer>{}, buffer, source.rank, false, tag{0}, false,
                        std::forward<Options>(options)...);
  }
  template <class Buffer, call_option... Options>
  operation<received> recv(Buffer&& buffer, from source, any_tag_t, Options&&... options) const {
    return receive_from(buffer_tag<Buffer>{}, buffer, source.rank, false, tag{0}, true,
                        std::forward<Options>(options)...);
  }
  template <class Buffer, call_option... Options>
  operation<received> recv(Buffer&& buffer, from_any_t, tag label, Options&&... options) const {
    return receive_from(buffer_tag<Buffer>{}, buffer, -1, true, label, false, std::forward<Options>(options)...);
  }
  template <class Buffer, call_option... Options>
  operation<received> recv(Buffer&& buffer, from_any_t, Options&&... options) const {
    return receive_from(buffer_tag<Buffer>{}, buffer, -1, true, tag{0}, false, std::forward<Options>(options)...);
  }
  template <class Buffer, call_option... Options>
  operation<received> recv(Buffer&& buffer, from_any_t, any_tag_t, Options&&... options) const {
    return receive_from(buffer_tag<Buffer>{}, buffer, -1, true, tag{0}, true, std::forward<Options>(options)...);
  }
  template <class Buffer, std::integral Rank, class... Options>
  operation<received> recv(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a source is a type, so that it cannot be taken for a tag: write from{0} or from_any");
    return operation<received>::completed({});
  }

  /// Sends to one rank and receives from one, started together: the step of a ring.
  ///
  /// Result:    source, tag and number of elements of the message received
  /// Shapes:    as send and recv; the two buffers must not overlap
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
      return messages::exchange<transport_type>(enter<Out>(kind, outgoing, options_of(options...)), out, in);
    });
  }
  template <class Out, class In, call_option... Options>
  operation<received> exchange(Out&& outgoing, to destination, In&& incoming, from source, Options&&... options) const {
    return exchange(std::forward<Out>(outgoing), destination, std::forward<In>(incoming), source, tag{0},
                    std::forward<Options>(options)...);
  }

 private:
  using front_type = front<Backend>;
  template <class Buffer>
  struct buffer_tag {};

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

  template <class Buffer, class... Options>
  operation<received> receive_from(buffer_tag<Buffer>, std::remove_reference_t<Buffer>& buffer, int source,
                                   bool any_source, tag label, bool any, Options&&... options) const {
    check_output<Buffer>();
    return guarded<received>([&]() -> operation<received> {
      constexpr auto kind = operation_kind::receive;
      calls().require_open(kind);
      if (!any_source) calls().check_peer(kind, "source", source);
      calls().check_tag(kind, label);
      const messages::end what = end_of(kind, buffer, source, label.value, any);
      return messages::receive<transport_type>(enter<Buffer>(kind, buffer, options_of(options...)), what);
    });
  }
};

}  // namespace cohort::detail
