// SPDX-License-Identifier: BSL-1.0
// The bodies of point-to-point operations: one request, or two that start together. Called by
// communicator/messages.hpp, calls the transport.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/operation.hpp>
#include <cohort/types.hpp>

#include <cstddef>

namespace cohort::messages {

/// One end of a message: where its bytes are, and whom it goes to or comes from.
struct end {
  transport::piece bytes{};
  std::size_t element_bytes = 1;
  int peer = -1;  ///< rank of the communicator; -1: any source
  int tag = 0;
  bool any_tag = false;
};

template <transport::message_transport Transport>
[[nodiscard]] transport::request request_for(const transport::channel<Transport>& ch, const end& e, bool sending) {
  transport::request r;
  r.peer = e.peer < 0 ? -1 : ch.world_rank(e.peer);
  r.header = ch.header(e.bytes.bytes);
  r.header.tagged = true;
  r.header.sequence = static_cast<std::uint32_t>(e.tag);
  r.header.call.kind = operation_kind::send;
  r.header.call.count = e.bytes.bytes / e.element_bytes;
  r.any_tag = e.any_tag;
  r.sending = sending;
  r.piece_count = e.bytes.bytes > 0 ? 1 : 0;
  return r;
}

[[nodiscard]] inline received outcome(const group& g, const transport::request& r, std::size_t element_bytes) {
  received result;
  result.source = g.rank_of(r.header.source);
  result.tag = static_cast<int>(r.header.sequence);
  result.count = static_cast<std::size_t>(r.header.bytes) / element_bytes;
  return result;
}

template <transport::message_transport Transport>
operation<> send([[maybe_unused]] cohort::detail::ticket t, end what) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request r = request_for(ch, what, true);
  r.pieces = &what.bytes;
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
}

template <transport::message_transport Transport>
operation<received> receive([[maybe_unused]] cohort::detail::ticket t, end what) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request r = request_for(ch, what, false);
  r.pieces = &what.bytes;
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  co_return outcome(c.home(), r, what.element_bytes);
}

template <transport::message_transport Transport>
operation<received> exchange([[maybe_unused]] cohort::detail::ticket t, end outgoing, end incoming) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request both[2] = {request_for(ch, incoming, false), request_for(ch, outgoing, true)};
  both[0].pieces = &incoming.bytes;
  both[1].pieces = &outgoing.bytes;
  transport::transfer_scope scope(c);
  scope.hold(both, 2);
  scope.start(ch.transport(), 0);
  scope.start(ch.transport(), 1);
  co_await scope.done();
  co_return outcome(c.home(), both[0], incoming.element_bytes);
}

}  // namespace cohort::messages
