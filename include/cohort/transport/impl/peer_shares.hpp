// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/peer_connection.hpp: long messages between two ranks of one host that are copied once, by the kernel,
// by both ends at a time: the receiver reads shares of it out of the sender's memory, while the sender writes others into
// the receiver's. Who copies what is decided by the message's cursor (shm/share_cursor.hpp): either end takes its next
// share on by adding it to the number, so that one that does something else meanwhile is not waited for. Each copies one
// share a turn, of the first message that has one left: of several that are under way both ends copy at once.
#pragma once

#include <cohort/transport/peer_connection.hpp>
#include <cohort/transport/shm/share_cursor.hpp>

#include <sched.h>

namespace cohort::transport {

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
  shares_left_ = true;
  enqueue(frame_of_places(f, into));
  // One more is asked for while one is copied, so that the sender finds the next. Not all there are: how long these take decides
  // how the others are copied.
  constexpr std::ptrdiff_t asked_ahead = 2;
  const auto is_shared = [](const offered& each) { return each.receive != nullptr && each.how == copying::by_both; };
  while (open() && std::count_if(offered_.begin(), offered_.end(), is_shared) > asked_ahead && read_share()) {}
  return true;
}

/// Takes the next share of what comes on and reads it. False: there is none left.
inline bool peer_connection::read_share() {
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    offered& o = offered_[i];
    if (o.receive == nullptr || o.how != copying::by_both) continue;
    const share_cursor shares(o.header.bytes);
    std::atomic<std::uint64_t>& cursor = stream_->incoming_cursor(part_cursor::number(o.ticket))->taken_on;
    std::uint64_t known = cursor.load(std::memory_order_acquire);
    share_cursor::share next;
    do {
      // Of another ticket: the sender has given the message up.
      next = part_cursor::is_of(o.ticket, known) ? shares.from_front(known) : share_cursor::share{};
    } while (next.bytes > 0 && !cursor.compare_exchange_weak(known, next.word, std::memory_order_acq_rel));
    if (next.bytes == 0) continue;
    const places from = range_of(o.where, next.first, next.bytes);
    const places into = range_of({o.receive->pieces, o.receive->piece_count}, next.first, next.bytes);
    const bool read = stream_->read_peer(from, into);
    if (is_revoked(o.ticket)) {
      forget_revoked(i);
      return true;
    }
    if (!read) {
      lose(error_of(boost::system::errc::io_error), "reading a share of a message out of its sender's memory");
      return true;
    }
    o.come += next.bytes;
    (void)end_shares();
    return true;
  }
  return shares_left_ = false;
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
      const places into = range_of({o.receive->pieces, o.receive->piece_count}, 0, o.header.bytes);
      const bool read = stream_->read_peer(o.where, into);
      if (is_revoked(o.ticket)) {
        forget_revoked(i);
        return true;
      }
      if (!read) {
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
/// share on is in the middle of copying it: it is waited for, unless it is no more, or says nothing for as long as a rank may
/// that is not given up. One that was stopped there, and goes on after that, still copies this share.
inline void peer_connection::stop_sharing(const offered& o) noexcept {
  byte_stream::cursor& cursor = *stream_->incoming_cursor(part_cursor::number(o.ticket));
  std::uint64_t known = cursor.taken_on.load(std::memory_order_acquire);
  do {
    if (!part_cursor::is_of(o.ticket, known)) return;  // it has given the message up
  } while (!cursor.taken_on.compare_exchange_weak(known, part_cursor::word(o.ticket, part_cursor::rest),
                                                  std::memory_order_acq_rel));
  const std::uint64_t all_put = part_cursor::word(o.ticket, share_cursor(o.header.bytes).of_sender(known));
  constexpr unsigned looks = 256;
  const auto until = std::chrono::steady_clock::now() + longest_silence_;
  for (unsigned look = 1;; ++look) {
    const std::uint64_t put = cursor.put.load(std::memory_order_acquire);
    if (put == all_put || put == part_cursor::word(o.ticket, part_cursor::rest)) return;
    if (look % looks == 0 && (stream_->peer_is_gone() || std::chrono::steady_clock::now() >= until)) return;
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
  in_parts_.emplace_back(asked->ticket, asked);
  puts_.push_back({asked, std::move(into)});
  return open();
}

/// Takes the next share of what it sends on and writes it. False: there is none left.
inline bool peer_connection::put_share() {
  while (!puts_.empty()) {
    putting& p = puts_.front();
    const request& r = *p.source;
    const share_cursor shares(r.header.bytes);
    byte_stream::cursor& cursor = *stream_->outgoing_cursor(part_cursor::number(r.ticket));
    std::uint64_t known = cursor.taken_on.load(std::memory_order_acquire);
    const share_cursor::share next = shares.from_end(known);
    if (next.bytes == 0) {
      puts_.erase(puts_.begin());  // the receiver says so when it has everything
      continue;
    }
    // All that is needed is made before the share is taken on: from there on nothing is between it and the copy.
    const places from = range_of({r.pieces, r.piece_count}, next.first, next.bytes);
    const places into = range_of(p.into, next.first, next.bytes);
    if (!cursor.taken_on.compare_exchange_strong(known, next.word, std::memory_order_acq_rel)) continue;
    const bool put = stream_->write_peer(from, into);
    p.put += next.bytes;
    cursor.put.store(part_cursor::word(r.ticket, put ? p.put : part_cursor::rest), std::memory_order_release);
    if (!put) puts_.erase(puts_.begin());
    stream_->wake_peer();
    return true;
  }
  return false;
}

// --- either --------------------------------------------------------------------------------------------------

inline bool peer_connection::copy_share() {
  const bool read = shares_left_ && read_share();
  return (open() && put_share()) || read;
}

}  // namespace cohort::transport
