// SPDX-License-Identifier: BSL-1.0
// What messages/transfer.hpp does, which no element type changes: requests to the transport, or its shortest way.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/messages/transfer.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cohort::messages {

[[nodiscard]] inline transport::envelope header_of(const group& g, const transport::signature& s, const end& e) {
  transport::envelope header;
  header.context = g.context();
  header.sequence = static_cast<std::uint32_t>(e.tag);
  header.tagged = true;
  header.source = g.world_rank(g.rank());
  header.bytes = e.bytes.bytes;
  header.call.set_packed(s.packed_as(operation_kind::send));
  header.call.count = e.bytes.bytes / e.element_bytes;
  return header;
}

template <transport::message_transport Transport>
[[nodiscard]] transport::request request_for(const transport::channel<Transport>& ch, const end& e, bool sending) {
  transport::request r;
  r.peer = e.peer < 0 ? -1 : ch.world_rank(e.peer);
  r.header = header_of(ch.current().home(), ch.current().signature(), e);
  r.any_tag = e.any_tag;
  r.sending = sending;
  r.piece_count = e.bytes.bytes > 0 ? 1 : 0;
  return r;
}

[[nodiscard]] inline received outcome(const group& g, const transport::envelope& came, std::size_t element_bytes) {
  received result;
  result.source = g.rank_of(came.source);
  result.tag = static_cast<int>(came.sequence);
  result.count = static_cast<std::size_t>(came.bytes) / element_bytes;
  return result;
}

/// What a send tells that has a Result: as a receive does, but no source.
[[nodiscard]] inline received sent(const end& what) {
  received result{};
  result.tag = what.tag;
  result.count = what.bytes.bytes / what.element_bytes;
  return result;
}

template <transport::message_transport Transport, class Result, class Bytes>
operation<Result> send_in_frame([[maybe_unused]] cohort::detail::ticket t, end what, Bytes kept) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  what = kept.placed(what);
  transport::request r = request_for(ch, what, true);
  r.pieces = &what.bytes;
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  if constexpr (!std::is_void_v<Result>) co_return sent(what);
}

template <transport::message_transport Transport, class Result, class Bytes>
operation<Result> send(cohort::detail::ticket&& t, const end& what, Bytes kept) {
  if constexpr (transport::sharing_transport<Transport>) {
    const group& g = *t.home;
    const end& placed = kept.placed(what);
    auto& transport = static_cast<Transport&>(g.engine());
    if (!transport.hears_of_failure(g) &&
        transport.send_now(g.world_rank(placed.peer), header_of(g, t.signature, placed), placed.bytes)) {
      transport.push_out();
      if constexpr (std::is_void_v<Result>) return operation<>::completed({});
      else return operation<Result>::completed(sent(placed));
    }
  }
  return send_in_frame<Transport, Result, Bytes>(std::move(t), what, std::move(kept));
}

/// Makes the request take its room from a container when the message is there.
inline void let_grow(transport::request& r, cohort::detail::growing_room& room) noexcept {
  r.room = &room;
  r.make_room = [](transport::request& self, std::uint64_t bytes) noexcept {
    auto& mine = *static_cast<cohort::detail::growing_room*>(self.room);
    if (!mine.grow(mine, bytes)) return false;
    self.pieces = &mine.piece;
    self.piece_count = bytes > 0 ? 1 : 0;
    return true;
  };
}

template <transport::message_transport Transport>
task<received> receive_within(call& c, end what) {
  const transport::channel<Transport> ch(c);
  transport::request r = request_for(ch, what, false);
  r.pieces = &what.bytes;
  let_grow(r, what.room);
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  co_return outcome(c.home(), r.header, what.element_bytes);
}

template <transport::message_transport Transport>
operation<received> receive_in_frame([[maybe_unused]] cohort::detail::ticket t, end what) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request r = request_for(ch, what, false);
  r.pieces = &what.bytes;
  if (what.room.grow != nullptr) let_grow(r, what.room);
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  co_return outcome(c.home(), r.header, what.element_bytes);
}

template <transport::message_transport Transport>
operation<received> receive(cohort::detail::ticket&& t, const end& what) {
  if constexpr (transport::sharing_transport<Transport>) {
    const group& g = *t.home;
    if (what.peer >= 0 && !what.any_tag && what.room.grow == nullptr && !t.chosen.stop.stop_possible()) {
      auto& transport = static_cast<Transport&>(g.engine());
      std::uint64_t came = 0;
      if (transport.receive_now(g.world_rank(what.peer), header_of(g, t.signature, what), what.bytes, came)) {
        received result;
        result.source = what.peer;
        result.tag = what.tag;
        result.count = static_cast<std::size_t>(came) / what.element_bytes;
        return operation<received>::completed(result);
      }
    }
  }
  return receive_in_frame<Transport>(std::move(t), what);
}

template <transport::message_transport Transport, class Result>
operation<Result> look([[maybe_unused]] cohort::detail::ticket t, end what, bool immediate) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request r = request_for(ch, what, false);
  r.probing = true;
  r.immediate = immediate;
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  if (r.header.source < 0) co_return Result{};
  received found = outcome(c.home(), r.header, 1);
  found.count = static_cast<std::size_t>(r.header.call.count);
  co_return Result{found};
}

template <transport::message_transport Transport>
operation<received> exchange([[maybe_unused]] cohort::detail::ticket t, end outgoing, end incoming,
                             std::uint16_t incoming_type) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request both[2] = {request_for(ch, incoming, false), request_for(ch, outgoing, true)};
  both[0].header.call.type = incoming_type;
  both[0].pieces = &incoming.bytes;
  both[1].pieces = &outgoing.bytes;
  transport::transfer_scope scope(c);
  scope.hold(both, 2);
  scope.start(ch.transport(), 0);
  scope.start(ch.transport(), 1);
  co_await scope.done();
  co_return outcome(c.home(), both[0].header, incoming.element_bytes);
}

}  // namespace cohort::messages
