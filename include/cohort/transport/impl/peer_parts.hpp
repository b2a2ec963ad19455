// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/peer_connection.hpp: long messages between two ranks of one host. Their sender writes them into the
// stream part by part while the receiver takes them out, so that both copy at once. A sender that does something else
// meanwhile is not waited for: the receiver then reads the rest out of its memory.
//
// Who has what is decided by a number that both see, the message's cursor: the sender adds a part to it before it writes that
// part, the receiver puts "the rest" in its place, each only if nobody has changed it. Parts are written whole, so the
// stream is never left in the middle of one.
#pragma once

#include <cohort/transport/peer_connection.hpp>
#include <cohort/transport/shm/share_cursor.hpp>

namespace cohort::transport {

/// What a cursor says: of which message, and how many of its bytes the sender has taken upon itself.
struct part_cursor {
  static constexpr unsigned position_bits = share_cursor::bits;
  static constexpr std::uint64_t rest = (std::uint64_t{1} << position_bits) - 1;  ///< the receiver has what was left
  /// What is in the place of a message that its sender has given up: of one that never has this cursor.
  [[nodiscard]] static constexpr std::uint64_t revoked(std::uint64_t ticket) noexcept { return word(ticket ^ 1, 0); }

  [[nodiscard]] static constexpr std::uint64_t word(std::uint64_t ticket, std::uint64_t position) noexcept {
    return ticket << position_bits | position;
  }
  [[nodiscard]] static constexpr bool is_of(std::uint64_t ticket, std::uint64_t word) noexcept {
    return (word & ~rest) == ticket << position_bits;
  }
  [[nodiscard]] static constexpr std::size_t number(std::uint64_t ticket) noexcept {
    return static_cast<std::size_t>(ticket % byte_stream::cursors);
  }
};

// --- the sender ----------------------------------------------------------------------------------------------

/// A cursor for a message that has its ticket; false when there is none free.
inline bool peer_connection::take_cursor(const request& r) noexcept {
  const std::size_t number = part_cursor::number(r.ticket);
  byte_stream::cursor* const cursor = stream_->outgoing_cursor(number);
  const std::uint64_t bit = std::uint64_t{1} << number;
  if (cursor == nullptr || (cursors_used_ & bit) != 0 || r.header.bytes >= part_cursor::rest) return false;
  cursors_used_ |= bit;
  // The stream publishes them with the offer.
  cursor->taken_on.store(part_cursor::word(r.ticket, 0), std::memory_order_relaxed);
  cursor->put.store(part_cursor::word(r.ticket, 0), std::memory_order_relaxed);
  return true;
}

inline void peer_connection::give_cursor_back(std::uint64_t ticket) noexcept {
  if ((ticket & shared_ticket) != 0) cursors_used_ &= ~(std::uint64_t{1} << part_cursor::number(ticket));
}

/// The memory of a send is about to be its owner's again. The receiver may be reading it: it finds out before it uses that.
inline void peer_connection::revoke(std::uint64_t ticket) noexcept {
  if ((ticket & shared_ticket) == 0) return;
  stream_->outgoing_cursor(part_cursor::number(ticket))->taken_on.store(part_cursor::revoked(ticket));
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before whatever the owner writes there
  give_cursor_back(ticket);
}

/// It has been asked for.
inline void peer_connection::send_in_parts(request& r) {
  in_parts_.emplace_back(r.ticket, &r);
  outgoing o;
  o.in_parts = true;
  o.source = &r;
  o.total = static_cast<std::size_t>(r.header.bytes);
  enqueue(std::move(o));
}

/// The next part of the first in the queue, if there is room for one. False: not now.
inline bool peer_connection::send_part(boost::system::error_code& failure) {
  outgoing& o = queue_[head_];
  if (o.source == nullptr) {
    ++head_;
    return true;
  }
  request& r = *o.source;
  const std::size_t needed = room_needed();
  const std::size_t room = stream_->room(needed);
  if (room < needed) return false;
  const std::size_t part = std::min(o.total - o.sent, room - frame::size);
  std::uint64_t mine = part_cursor::word(r.ticket, o.sent);
  std::atomic<std::uint64_t>& cursor = stream_->outgoing_cursor(part_cursor::number(r.ticket))->taken_on;
  if (!cursor.compare_exchange_strong(mine, part_cursor::word(r.ticket, o.sent + part), std::memory_order_acq_rel)) {
    ++head_;  // the receiver has the rest, and says so when it has read it
    return true;
  }
  frame f;
  f.kind = frame_kind::data;
  f.ticket = r.ticket;
  f.header = r.header;
  f.header.bytes = part;
  o.header = f.encode();
  out_pieces_.clear();
  out_pieces_.push_back({reinterpret_cast<std::byte*>(o.header.data()), o.header.size()});
  const places bytes = range_of({r.pieces, r.piece_count}, o.sent, part);
  out_pieces_.insert(out_pieces_.end(), bytes.begin(), bytes.end());
  if (stream_->send(out_pieces_, failure) < frame::size + part) {
    if (!failure) failure = error_of(boost::system::errc::io_error);
    return false;
  }
  o.sent += part;
  if (o.sent < o.total) return true;
  ++head_;
  (void)take(in_parts_, r.ticket);
  give_cursor_back(r.ticket);
  r.place = nullptr;
  owner_->on_sent(r);
  return true;
}

/// Nothing more of it is sent.
inline void peer_connection::stop_parts(const request& r) noexcept {
  for (std::size_t i = head_; i < queue_.size(); ++i) {
    if (queue_[i].source == &r && queue_[i].in_parts) queue_[i].source = nullptr;
  }
  std::erase_if(puts_, [&r](const putting& p) { return p.source == &r; });
}

// --- the receiver --------------------------------------------------------------------------------------------

/// A sender uses a cursor again when it is done with the message before, of which nothing comes behind this offer.
inline void peer_connection::forget_dropped(std::uint64_t next) {
  if ((next & shared_ticket) == 0) return;
  std::erase_if(offered_, [next](const offered& o) {
    return o.comes_in_vain() && part_cursor::number(o.ticket) == part_cursor::number(next);
  });
}

/// Whether the sender of an offered message had given it up, and its memory may have been something else, when that was read.
///
/// Needs: the message has a cursor
inline bool peer_connection::is_revoked(std::uint64_t ticket) const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);  // behind what the kernel has read for this rank
  const std::atomic<std::uint64_t>& cursor = stream_->incoming_cursor(part_cursor::number(ticket))->taken_on;
  return !part_cursor::is_of(ticket, cursor.load(std::memory_order_acquire));
}

/// Nothing more comes of a message that its sender has given up. Its communicator has failed there: its receive ends with the
/// word of that.
inline void peer_connection::forget_revoked(std::size_t index) noexcept {
  const auto at = offered_.begin() + static_cast<std::ptrdiff_t>(index);
  if (at->receive != nullptr) --awaiting_;
  offered_.erase(at);
}

/// Asks for an offered message; false if it has no cursor.
inline bool peer_connection::ask_for_parts(request& receive, std::uint64_t ticket) {
  if ((ticket & shared_ticket) == 0) return false;
  for (offered& o : offered_) {
    if (o.ticket != ticket || o.header.bytes == 0) continue;
    o.how = copying::through_ring;
    o.receive = &receive;
    ++awaiting_;
    o.asked_for = last_news_ = std::chrono::steady_clock::now();
    enqueue_frame(frame_kind::grant, envelope{}, ticket);
    return true;
  }
  return false;
}

/// The header of a part has come.
inline bool peer_connection::begin_part(const frame& f) {
  const offered* const o = offer_under(f.ticket);
  if (o == nullptr || o->how != copying::through_ring || f.header.bytes == 0 ||
      f.header.bytes > o->header.bytes - o->come) {
    return lose(error_of(boost::system::errc::message_size), "reading a part of a message that has no such part");
  }
  part_of_ = f.ticket;
  target_ = o->receive;
  payload_left_ = f.header.bytes;
  payload_done_ = o->come;
  return true;
}

inline void peer_connection::end_part() {
  const std::uint64_t ticket = std::exchange(part_of_, 0);
  target_ = nullptr;
  last_news_ = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    if (offered_[i].ticket != ticket) continue;
    offered_[i].come = payload_done_;
    if (offered_[i].come == offered_[i].header.bytes) come_whole(i, copying::through_ring);
    return;
  }
}

/// All bytes of it are in place.
inline void peer_connection::come_whole(std::size_t index, copying how) {
  const offered& o = offered_[index];
  request* const receive = o.receive;
  // Several that were asked for come one after the other.
  const auto before = std::exchange(last_whole_, std::chrono::steady_clock::now());
  note_offered(how, o.header.bytes, std::max(o.asked_for, before));
  offered_.erase(offered_.begin() + static_cast<std::ptrdiff_t>(index));
  if (receive == nullptr) return;
  --awaiting_;
  receive->place = nullptr;
  if (open()) owner_->on_received(*this, *receive);
}

inline bool peer_connection::read_overdue(bool all) {
  if (awaiting_ == 0) return false;
  if (end_shares()) return true;
  if (!between_frames()) return false;
  // As long as it would take to read it: no more than twice what is the least in either case.
  const auto patience_with = [](std::uint64_t bytes) { return std::chrono::nanoseconds{2000 + bytes / 8}; };
  const auto silence = std::chrono::steady_clock::now() - last_news_;
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    const offered& o = offered_[i];
    if (o.receive == nullptr || o.how != copying::through_ring || o.receive->piece_filled != nullptr) continue;
    if (all || silence >= patience_with(o.header.bytes - o.come)) return read_rest(i);
  }
  return false;
}

/// One byte tells whether this process may read the peer's memory.
inline bool peer_connection::can_read(const piece& there, const piece& here) noexcept {
  const piece first_there{there.data, 1};
  const piece first_here{here.data, 1};
  return stream_->read_peer({&first_there, 1}, {&first_here, 1});
}

/// Takes over what the sender has not begun. False: it has gone on, or the kernel does not let this process read.
inline bool peer_connection::read_rest(std::size_t index) {
  const offered& o = offered_[index];
  last_news_ = std::chrono::steady_clock::now();
  const std::uint64_t left = o.header.bytes - o.come;
  const places from = range_of(o.where, o.come, left);
  const places into = range_of({o.receive->pieces, o.receive->piece_count}, o.come, left);
  // What has been taken over cannot be given back.
  if (!can_read(from.front(), into.front())) return false;
  std::uint64_t known = part_cursor::word(o.ticket, o.come);
  std::atomic<std::uint64_t>& cursor = stream_->incoming_cursor(part_cursor::number(o.ticket))->taken_on;
  if (!cursor.compare_exchange_strong(known, part_cursor::word(o.ticket, part_cursor::rest),
                                      std::memory_order_acq_rel)) {
    return false;
  }
  const bool read = stream_->read_peer(from, into);
  if (is_revoked(o.ticket)) {
    forget_revoked(index);
    return true;
  }
  if (!read) {
    lose(error_of(boost::system::errc::io_error), "reading the rest of a message out of its sender's memory");
    return true;
  }
  enqueue_frame(frame_kind::taken, envelope{}, o.ticket);
  if (open()) come_whole(index, copying::through_ring);
  return true;
}

}  // namespace cohort::transport
