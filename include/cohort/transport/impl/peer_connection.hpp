// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/peer_connection.hpp: what leaves, and the end of a connection. Every system call is tried first;
// waiting is the endpoint's business. peer_receiving.hpp has what comes.
#pragma once

#include <cohort/detail/copy_words.hpp>
#include <cohort/transport/peer_connection.hpp>

namespace cohort::transport {

[[nodiscard]] inline boost::system::error_code error_of(boost::system::errc::errc_t what) noexcept {
  return boost::system::errc::make_error_code(what);
}

inline void peer_connection::enqueue_frame(frame_kind kind, const envelope& header, std::uint64_t ticket) {
  frame f;
  f.kind = kind;
  f.ticket = ticket;
  f.header = header;
  outgoing o;
  o.header = f.encode();
  enqueue(std::move(o));
}

inline void peer_connection::send(request& r) {
  r.place = this;
  const std::size_t bytes = r.header.bytes;
  if (may_send_early(bytes, r.piece_count)) {
    credit_ -= cost_of(bytes);
    if (head_ == queue_.size() && r.piece_count <= 1) return send_at_once(r);
    outgoing o;
    frame::encode_message(o.header, r.header, false);
    o.source = &r;
    o.total = frame::size + bytes;
    enqueue(std::move(o));
    return;
  }
  r.ticket = next_ticket_++;
  if (goes_over_stripes(bytes)) r.ticket |= striped_ticket;
  const bool offers = same_host_ && bytes > 0 && r.piece_count <= most_places;
  if (offers && take_cursor(r)) r.ticket |= shared_ticket;
  if (!offers) return announce(r);
  announced_.emplace_back(r.ticket, &r);
  offer(r);
}

/// Sends its first bytes along where these may come unasked.
inline void peer_connection::announce(request& r) {
  const std::size_t first = eager_limit_;
  const bool begins =
      r.header.bytes > first && credit_ >= cost_of(first) && (r.ticket & striped_ticket) == 0 && !same_host_;
  if (begins) r.ticket |= begun_ticket;
  announced_.emplace_back(r.ticket, &r);
  if (!begins) return enqueue_frame(frame_kind::announce, r.header, r.ticket);
  credit_ -= cost_of(first);
  frame f;
  f.kind = frame_kind::announce;
  f.ticket = r.ticket;
  f.header = r.header;
  outgoing o;
  o.header = f.encode();
  o.source = &r;
  o.total = frame::size + first;
  o.begins = true;
  enqueue(std::move(o));
}

/// It has been asked for: what has not gone before.
inline void peer_connection::send_asked(request& r) {
  frame f;
  f.kind = frame_kind::data;
  f.ticket = r.ticket;
  f.header = r.header;
  outgoing o;
  o.gone_before = comes_along(r.ticket);
  f.header.bytes -= o.gone_before;
  o.header = f.encode();
  o.source = &r;
  o.total = frame::size + static_cast<std::size_t>(f.header.bytes);
  enqueue(std::move(o));
}

/// Whether the message that leaves now, with nothing in front of it, is part of a burst.
inline bool peer_connection::continues_burst(std::size_t bytes) noexcept {
  if (!gathers_bursts_) return false;
  const bool goes_on = bytes <= send_burst::longest_message && burst_.goes_on(owner_->times_looked());
  if (!goes_on) end_burst();
  return goes_on;
}

/// Gives a message with nothing in front of it to the stream. In a burst the stream may keep the next ones back, once this one
/// has told the receiver that it does.
///
/// Result: how many of its bytes the stream has taken; in `first` its header, should some be left
inline std::size_t peer_connection::write_first(short_message& first, const envelope& header, const piece& payload,
                                                boost::system::error_code& failure) {
  static_assert(sizeof first == frame::size + sizeof first.payload);
  const bool awaits_reading = continues_burst(payload.bytes);
  const std::size_t total = frame::size + payload.bytes;
  frame::encode_message(first.header, header, awaits_reading);
  piece parts[2] = {{reinterpret_cast<std::byte*>(&first), total}, payload};
  std::size_t count = 1;
  if (payload.bytes > sizeof first.payload) {
    parts[0].bytes = frame::size;
    count = 2;
  } else if (payload.bytes > 0) {
    std::memcpy(first.payload, payload.data, payload.bytes);
  }
  const std::size_t sent = stream_->send({parts, count}, failure);
  if (sent < total) {
    end_burst();
  } else if (awaits_reading && !in_burst_ && stream_->let_wait(true)) {
    in_burst_ = true;
    owner_->on_burst(*this);
  }
  return sent;
}

template <class Memory>
[[gnu::always_inline]] inline bool peer_connection::write_in_place(Memory& memory, const envelope& header,
                                                                   const piece& payload) noexcept {
  if (!queue_.empty() || credit_ < cost_of(payload.bytes)) return false;
  const std::size_t total = frame::size + payload.bytes;
  std::byte* const place = memory.place(total);
  if (place == nullptr) return false;
  frame::encode_message(reinterpret_cast<unsigned char*>(place), header, false);
  detail::copy_words(payload.data, place + frame::size, payload.bytes);
  memory.placed(total);
  credit_ -= cost_of(payload.bytes);
  return true;
}

inline bool peer_connection::send_now(const envelope& header, const piece& payload) {
  constexpr std::size_t most_copied = std::size_t{64} << 10;
  if (has_output() || payload.bytes > most_copied || !may_send_early(payload.bytes, 1)) return false;
  short_message first;  // filled as far as it is used
  boost::system::error_code failure;
  const std::size_t sent = write_first(first, header, payload, failure);
  if (failure || sent == 0) return false;
  credit_ -= cost_of(payload.bytes);
  if (sent == frame::size + payload.bytes) return true;
  const std::size_t gone = sent - std::min(sent, frame::size);
  outgoing rest;
  rest.header = first.header;
  rest.total = frame::size + payload.bytes - gone;
  rest.sent = sent - gone;
  rest.own.assign(payload.data + gone, payload.data + payload.bytes);
  queue_.push_back(std::move(rest));
  return true;
}

/// With nothing in front of it a message needs no place in the queue, unless the stream has no room for all of it.
inline void peer_connection::send_at_once(request& r) {
  const piece payload = r.piece_count == 1 ? r.pieces[0] : piece{};
  const std::size_t total = frame::size + payload.bytes;
  short_message first;  // filled as far as it is used
  boost::system::error_code failure;
  const std::size_t sent = write_first(first, r.header, payload, failure);
  if (sent == total) {
    r.place = nullptr;
    owner_->on_sent(r);
    return;
  }
  outgoing o;
  o.header = first.header;
  o.source = &r;
  o.total = total;
  o.sent = sent;
  queue_.push_back(std::move(o));
  if (failure) lose(failure, "sending");
}

inline void peer_connection::tell(std::span<const piece> what) {
  outgoing o;
  for (const piece& p : what) o.own.insert(o.own.end(), p.data, p.data + p.bytes);
  frame f;
  f.kind = frame_kind::notice;
  f.header.bytes = o.own.size();
  o.header = f.encode();
  o.total = frame::size + o.own.size();
  enqueue(std::move(o));
}

/// Tells the peer where the bytes lie, so that it can copy them itself.
inline void peer_connection::offer(request& r) {
  frame f;
  f.kind = frame_kind::offer;
  f.ticket = r.ticket;
  f.header = r.header;
  enqueue(frame_of_places(f, {r.pieces, r.piece_count}));
}

inline void peer_connection::gather(const outgoing& o) {
  std::size_t skip = o.sent;
  std::size_t left = o.total - o.sent;
  const auto add = [&](const void* data, std::size_t bytes) {
    if (skip >= bytes) {
      skip -= bytes;
      return;
    }
    const std::size_t part = std::min(bytes - skip, left);
    // A send never writes through its pieces.
    if (part > 0) out_pieces_.push_back({static_cast<std::byte*>(const_cast<void*>(data)) + skip, part});
    left -= part;
    skip = 0;
  };
  add(o.header.data(), o.header.size());
  if (o.source != nullptr) {
    skip += o.gone_before;
    for (std::size_t i = 0; i < o.source->piece_count; ++i) add(o.source->pieces[i].data, o.source->pieces[i].bytes);
  } else if (!o.own.empty()) {
    add(o.own.data(), o.own.size());
  }
}

inline bool peer_connection::try_write() {
  // Several short frames leave in one system call; a long one goes alone.
  constexpr std::size_t most_pieces = 48;
  bool moved = false;
  while (head_ < queue_.size() && open()) {
    boost::system::error_code failure;
    if (queue_[head_].in_parts) {
      const bool went_on = send_part(failure);
      if (failure) return end_first(failure, "sending");
      if (!went_on) return moved;
      moved = true;
      forget_sent();
      continue;
    }
    out_pieces_.clear();
    for (std::size_t i = head_; i < queue_.size() && !queue_[i].in_parts && out_pieces_.size() < most_pieces; ++i) {
      gather(queue_[i]);
    }
    std::size_t sent = stream_->send(out_pieces_, failure);
    if (failure) return end_first(failure, "sending");
    if (sent == 0) return moved;
    moved = true;
    std::size_t given = 0;
    for (const piece& p : out_pieces_) given += p.bytes;
    const bool partial = sent < given;
    while (sent > 0) {
      outgoing& o = queue_[head_];
      const std::size_t part = std::min(sent, o.total - o.sent);
      o.sent += part;
      sent -= part;
      if (o.sent < o.total) break;
      request* const done = o.begins ? nullptr : o.source;
      ++head_;
      if (done != nullptr) {
        done->place = nullptr;
        owner_->on_sent(*done);
      }
    }
    forget_sent();
    // A short count means that the socket is full: asking again would only say so.
    if (partial && out_pieces_.size() < 64) return true;
  }
  return moved;
}

inline void peer_connection::forget_sent() {
  if (head_ == queue_.size()) {
    queue_.clear();
    head_ = 0;
  } else if (head_ > 256 && head_ * 2 > queue_.size()) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
}

inline void peer_connection::withdraw(request& r) {
  if (stripes_ != nullptr) stripes_->withdraw(r);
  if (!r.sending) {
    if (target_ == &r) target_ = nullptr;
    if (const auto at = find(granted_, r.ticket); at != granted_.end() && at->second == &r) at->second = nullptr;
    for (offered& o : offered_) {
      if (o.receive != &r) continue;
      if (o.how == copying::by_both) stop_sharing(o);
      o.receive = nullptr;
      --awaiting_;
    }
  } else {
    if (const auto at = find(announced_, r.ticket); at != announced_.end() && at->second == &r) {
      announced_.erase(at);
      revoke(r.ticket);
    } else if (const auto asked = find(in_parts_, r.ticket); asked != in_parts_.end() && asked->second == &r) {
      in_parts_.erase(asked);
      revoke(r.ticket);
      stop_parts(r);
    }
    for (std::size_t i = head_; i < queue_.size(); ++i) {
      outgoing& o = queue_[i];
      if (o.source != &r) continue;
      // The frame must stay whole for those behind it: its bytes outlive the caller's buffer in a copy.
      for (const piece& p : range_of({r.pieces, r.piece_count}, o.gone_before, o.total - frame::size)) {
        o.own.insert(o.own.end(), p.data, p.data + p.bytes);
      }
      o.source = nullptr;
    }
  }
  r.place = nullptr;
}

inline bool peer_connection::lose(const boost::system::error_code& why, const char* what) {
  peer_connection_owner* const owner = owner_;
  if (owner == nullptr) return false;
  owner->on_lost(*this, why, what);
  return false;
}

/// The first stream ends behind the peer's goodbye; the rest of a message may still be on its way over the others.
inline bool peer_connection::end_first(const boost::system::error_code& why, const char* what) {
  if (!peer_has_left_ || stripes_ == nullptr || !stripes_->awaits()) return lose(why, what);
  over_ = true;
  queue_.clear();
  head_ = 0;
  return false;
}

inline void peer_connection::on_stripes_quiet() {
  if (over_) lose(error_of(boost::system::errc::not_connected), "receiving");
}

inline void peer_connection::close() noexcept {
  owner_ = nullptr;
  stream_->close();
  if (stripes_ != nullptr) stripes_->close();
}

}  // namespace cohort::transport

#include <cohort/transport/impl/peer_at_once.hpp>
#include <cohort/transport/impl/peer_parts.hpp>
#include <cohort/transport/impl/peer_receiving.hpp>
#include <cohort/transport/impl/peer_shares.hpp>
