// SPDX-License-Identifier: BSL-1.0
// The bodies of point-to-point operations: one request, or two that start together. Called by
// communicator/messages.hpp, calls the transport.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/messages/growing.hpp>
#include <cohort/operation.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort::messages {

/// One end of a message: where its bytes are, and whom it goes to or comes from.
struct end {
  transport::piece bytes{};
  std::size_t element_bytes = 1;
  int peer = -1;  ///< rank of the communicator; -1: any source
  int tag = 0;
  bool any_tag = false;
  cohort::detail::growing_room room{};  ///< of a receive whose buffer grows
};

[[nodiscard]] inline transport::envelope header_of(const group& g, const transport::signature& s, const end& e) {
  transport::envelope header;
  header.context = g.context();
  header.sequence = static_cast<std::uint32_t>(e.tag);
  header.tagged = true;
  header.source = g.world_rank(g.rank());
  header.bytes = e.bytes.bytes;
  header.call = s;
  header.call.kind = operation_kind::send;
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

/// Whose the bytes of a send are: the caller's, or the operation's own, which keeps them in its frame.
struct borrowed_bytes {
  void place_in(end&) const noexcept {}
};
struct owned_bytes {
  std::vector<std::byte> bytes;
  explicit owned_bytes(std::vector<std::byte> b) noexcept : bytes(std::move(b)) {}
  void place_in(end& e) noexcept { e.bytes = {bytes.data(), bytes.size()}; }
};

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
  kept.place_in(what);
  transport::request r = request_for(ch, what, true);
  r.pieces = &what.bytes;
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  if constexpr (!std::is_void_v<Result>) co_return sent(what);
}

/// Result is void or `received`. A short message that can leave at once has left when this returns, and needs no frame.
template <transport::message_transport Transport, class Result = void, class Bytes = borrowed_bytes>
operation<Result> send(cohort::detail::ticket t, end what, Bytes kept = Bytes()) {
  if constexpr (transport::prompt_transport<Transport>) {
    const group& g = *t.home;
    kept.place_in(what);
    auto& transport = static_cast<Transport&>(g.engine());
    if (transport.send_now(g.world_rank(what.peer), header_of(g, t.signature, what), what.bytes)) {
      if constexpr (std::is_void_v<Result>) return operation<>::completed({});
      else return operation<Result>::completed(sent(what));
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

/// A short message of one rank that is here, or comes within a moment, is received when this returns, without a frame.
template <transport::message_transport Transport>
operation<received> receive(cohort::detail::ticket t, const end& what) {
  if constexpr (transport::prompt_transport<Transport>) {
    const group& g = *t.home;
    if (what.peer >= 0 && !what.any_tag && what.room.grow == nullptr && !t.chosen.stop.stop_possible()) {
      auto& transport = static_cast<Transport&>(g.engine());
      transport::envelope came;
      if (transport.receive_now(g.world_rank(what.peer), header_of(g, t.signature, what), what.bytes, came)) {
        return operation<received>::completed(outcome(g, came, what.element_bytes));
      }
    }
  }
  return receive_in_frame<Transport>(std::move(t), what);
}

/// A look at the message that a receive would get. Result is received, or a std::optional of it for a look that does
/// not wait.
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
  co_return outcome(c.home(), both[0].header, incoming.element_bytes);
}

}  // namespace cohort::messages
