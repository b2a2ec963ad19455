// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/peer_connection.hpp: long messages between two ranks of one host that are copied once, by the kernel,
// by both ends at a time: the receiver reads shares of it out of the sender's memory, while the sender writes others into
// the receiver's. Who copies what is decided by the message's cursor, as in peer_parts.hpp: either end takes the next
// share on by adding it to the number, so that one that does something else meanwhile is not waited for.
#pragma once

#include <cohort/transport/peer_connection.hpp>

#include <sched.h>

namespace cohort::transport {

/// How much of what is left is taken on at a time: halves, so that both end together, in whole pages.
[[nodiscard]] inline std::uint64_t share_of(std::uint64_t left) noexcept {
  constexpr std::uint64_t least = std::uint64_t{32} << 10;
  constexpr std::uint64_t most = std::uint64_t{512} << 10;
  constexpr std::uint64_t page = 4096;
  return std::min(left, std::clamp(left / 2, least, most) / page * page);
}

/// A frame behind which the addresses and sizes of these pieces stand, which are some.
inline peer_connection::outgoing peer_connection::frame_of_places(frame f, std::span<const piece> pieces) {
  constexpr std::size_t place_bytes = 2 * sizeof(std::uint64_t);
  outgoing o;
  o.own.resize(pieces.size() * place_bytes);
  for (const piece& p : pieces) {
    if (p.bytes == 0) continue;
    auto* const at = reinterpret_cast<unsigned char*>(o.own.data()) + f.places++ * place_bytes;
    detail::put_little(at, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p.data)));
    detail::put_little(at + sizeof(std::uint64_t), static_cast<std::uint64_t>(p.bytes));
  }
  o.header = f.encode();
  o.own.resize(f.places * place_bytes);
  o.total = frame::size + o.own.size();
  return o;
}

/// The places that have come behind a frame; fewer or more bytes than the message has: none.
inline places peer_connection::come_places(std::uint64_t message_bytes) const {
  places all;
  const auto* const b = reinterpret_cast<const unsigned char*>(behind_.data());
  std::uint64_t total = 0;
  for (std::size_t at = 0; at < behind_.size(); at += 2 * sizeof(std::uint64_t)) {
    const auto address = detail::get_little<std::uint64_t>(b + at);
    const auto bytes = detail::get_little<std::uint64_t>(b + at + sizeof(std::uint64_t));
    // Only ever handed to the kernel, together with the peer's process number.
    all.push_back(
        {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)), static_cast<std::size_t>(bytes)});
    total += std::min(bytes, message_bytes);
  }
  if (total != message_bytes) all.clear();
  return all;
}

// --- the receiver --------------------------------------------------------------------------------------------

/// Asks the sender of an offered message to write into this end's memory, and reads meanwhile. False if it has no cursor, or
/// this process may not read.
inline bool peer_connection::share(request& receive, std::uint64_t ticket) {
  if ((ticket & shared_ticket) == 0 || receive.piece_count > most_places || !senders_may_write_) return false;
  offered* const o = offer_under(ticket);
  if (o == nullptr || o->header.bytes == 0) return false;
  const places into = range_of({receive.pieces, receive.piece_count}, 0, o->header.bytes);
  if (!has_read_ && !can_read(o->where.front(), into.front())) return false;
  has_read_ = true;
  o->how = copying::by_both;
  o->receive = &receive;
  ++awaiting_;
  o->asked_for = std::chrono::steady_clock::now();
  frame f;
  f.kind = frame_kind::share;
  f.ticket = ticket;
  f.header.bytes = o->header.bytes;
  enqueue(frame_of_places(f, into));
  if (open()) read_shares(ticket);
  return true;
}

/// Takes shares on and reads them until there are none left.
inline void peer_connection::read_shares(std::uint64_t ticket) {
  byte_stream::cursor& cursor = *stream_->incoming_cursor(part_cursor::number(ticket));
  for (offered* o = offer_under(ticket); o != nullptr && o->receive != nullptr;) {
    std::uint64_t known = cursor.taken_on.load(std::memory_order_acquire);
    const std::uint64_t position = known & part_cursor::rest;
    // Another ticket: the sender has given the message up.
    if (known != part_cursor::word(ticket, position) || position >= o->header.bytes) break;
    const std::uint64_t bytes = share_of(o->header.bytes - position);
    const places from = range_of(o->where, position, bytes);
    const places into = range_of({o->receive->pieces, o->receive->piece_count}, position, bytes);
    if (!cursor.taken_on.compare_exchange_strong(known, part_cursor::word(ticket, position + bytes),
                                                 std::memory_order_acq_rel)) {
      continue;
    }
    if (!stream_->read_peer(from, into)) {
      lose(error_of(boost::system::errc::io_error), "reading a share of a message out of its sender's memory");
      return;
    }
    o->come += bytes;
  }
  (void)end_shares();
}

/// How far the shares are that the sender of a message has taken on.
inline peer_connection::put_shares peer_connection::put_of(const offered& o) const noexcept {
  if (o.receive == nullptr || o.how != copying::by_both) return put_shares::awaited;
  const std::uint64_t put =
      stream_->incoming_cursor(part_cursor::number(o.ticket))->put.load(std::memory_order_acquire);
  if (put == part_cursor::word(o.ticket, part_cursor::rest)) return put_shares::refused;
  const bool all = o.come <= o.header.bytes && put == part_cursor::word(o.ticket, o.header.bytes - o.come);
  return all ? put_shares::complete : put_shares::awaited;
}

/// Ends a message of which both ends have copied their shares. True if there was one.
inline bool peer_connection::end_shares() {
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    const offered& o = offered_[i];
    const put_shares put = put_of(o);
    if (put == put_shares::awaited) continue;
    if (put == put_shares::refused) {
      // What the sender had taken on is nowhere: this end reads everything again.
      senders_may_write_ = false;
      if (!stream_->read_peer(o.where, range_of({o.receive->pieces, o.receive->piece_count}, 0, o.header.bytes))) {
        lose(error_of(boost::system::errc::io_error), "reading a message out of its sender's memory");
        return true;
      }
    }
    enqueue_frame(frame_kind::taken, envelope{}, o.ticket);
    if (open()) come_whole(i, copying::by_both);
    return true;
  }
  return false;
}
/// Whether `end_shares` has something to do.
inline bool peer_connection::shares_have_come() const noexcept {
  return std::any_of(offered_.begin(), offered_.end(),
                     [this](const offered& o) { return put_of(o) != put_shares::awaited; });
}

/// The memory of a receive is about to be its owner's again: nobody may write to it after this. A sender that has taken a
/// share on is in the middle of copying it: it is waited for, unless it is no more.
inline void peer_connection::stop_sharing(const offered& o) noexcept {
  byte_stream::cursor& cursor = *stream_->incoming_cursor(part_cursor::number(o.ticket));
  std::uint64_t known = cursor.taken_on.load(std::memory_order_acquire);
  std::uint64_t position = 0;
  do {
    position = known & part_cursor::rest;
    if (known != part_cursor::word(o.ticket, position)) return;  // it has given the message up
  } while (!cursor.taken_on.compare_exchange_weak(known, part_cursor::word(o.ticket, part_cursor::rest),
                                                  std::memory_order_acq_rel));
  const std::uint64_t all_put = part_cursor::word(o.ticket, position - o.come);
  constexpr unsigned looks = 256;
  for (unsigned look = 1;; ++look) {
    const std::uint64_t put = cursor.put.load(std::memory_order_acquire);
    if (put == all_put || put == part_cursor::word(o.ticket, part_cursor::rest)) return;
    if (look % looks == 0 && stream_->peer_is_gone()) return;
    ::sched_yield();
  }
}

// --- the sender ----------------------------------------------------------------------------------------------

/// The receiver's places have come: what it has not taken on yet is written there.
inline bool peer_connection::begin_shares() {
  request* const asked = take(announced_, share_asked_.ticket);
  // The operation behind an unknown ticket was withdrawn: its communicator has failed on both sides.
  if (asked == nullptr) return open();
  places into = come_places(asked->header.bytes);
  if ((share_asked_.ticket & shared_ticket) == 0 || into.empty()) {
    return lose(error_of(boost::system::errc::invalid_argument), "reading places for a message that has other ones");
  }
  send_in_parts(*asked, std::move(into));
  return open();
}

/// Writes the next share of the first in the queue.
inline void peer_connection::send_share() {
  outgoing& o = queue_[head_];
  const std::uint64_t ticket = o.source->ticket;
  byte_stream::cursor& cursor = *stream_->outgoing_cursor(part_cursor::number(ticket));
  std::uint64_t known = cursor.taken_on.load(std::memory_order_acquire);
  const std::uint64_t position = known & part_cursor::rest;
  if (position >= o.total) {
    ++head_;  // the receiver says so when it has everything
    return;
  }
  const std::uint64_t bytes = share_of(o.total - position);
  // All that is needed is made before the share is taken on: from there on nothing is between it and the copy.
  const places from = range_of({o.source->pieces, o.source->piece_count}, position, bytes);
  const places into = range_of(o.into, position, bytes);
  if (!cursor.taken_on.compare_exchange_strong(known, part_cursor::word(ticket, position + bytes),
                                               std::memory_order_acq_rel)) {
    return;
  }
  const bool put = stream_->write_peer(from, into);
  o.sent += static_cast<std::size_t>(bytes);
  cursor.put.store(part_cursor::word(ticket, put ? o.sent : part_cursor::rest), std::memory_order_release);
  stream_->wake_peer();
  if (!put) ++head_;
}

}  // namespace cohort::transport
