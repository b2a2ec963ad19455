// SPDX-License-Identifier: BSL-1.0
// The bodies of point-to-point operations: one request, or two that start together. Called by
// communicator/messages.hpp, calls the transport.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/messages/growing.hpp>
#include <cohort/operation.hpp>
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

/// Whose the bytes of a send are: the caller's, or the operation's own, which keeps them in its frame.
struct borrowed_bytes {
  void place_in(end&) const noexcept {}
};
struct owned_bytes {
  std::vector<std::byte> bytes;
  explicit owned_bytes(std::vector<std::byte> b) noexcept : bytes(std::move(b)) {}
  void place_in(end& e) noexcept { e.bytes = {bytes.data(), bytes.size()}; }
};

/// With a Result, the send tells what it sent as a receive does: no source, its tag, and the number of elements.
template <transport::message_transport Transport, class Result = void, class Bytes = borrowed_bytes>
operation<Result> send([[maybe_unused]] cohort::detail::ticket t, end what, Bytes kept = Bytes()) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  kept.place_in(what);
  transport::request r = request_for(ch, what, true);
  r.pieces = &what.bytes;
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  if constexpr (!std::is_void_v<Result>) {
    Result sent{};
    sent.tag = what.tag;
    sent.count = what.bytes.bytes / what.element_bytes;
    co_return sent;
  }
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
operation<received> receive([[maybe_unused]] cohort::detail::ticket t, end what) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  transport::request r = request_for(ch, what, false);
  r.pieces = &what.bytes;
  if (what.room.grow != nullptr) let_grow(r, what.room);
  transport::transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(ch.transport(), 0);
  co_await scope.done();
  co_return outcome(c.home(), r, what.element_bytes);
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
  received found = outcome(c.home(), r, 1);
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
  co_return outcome(c.home(), both[0], incoming.element_bytes);
}

}  // namespace cohort::messages
