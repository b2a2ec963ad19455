// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/peer_connection.hpp: what comes, into the caller's memory where it has been asked for.
#pragma once

#include <cohort/detail/for_scope.hpp>
#include <cohort/transport/peer_connection.hpp>

namespace cohort::transport {

inline void peer_connection::grant(request& receive, std::uint64_t ticket) {
  receive.place = this;
  receive.ticket = ticket;
  // What is used piece by piece cannot be taken over in the middle of one.
  if (receive.piece_filled == nullptr && owner_->copies_with_senders()) {
    if (const offered* const o = offer_under(ticket)) {
      const copying how = copies_.next(o->header.bytes);
      if (how == copying::through_ring && ask_for_parts(receive, ticket)) return;
      if (how == copying::by_both && share(receive, ticket)) return;
    }
  }
  if (take_offered(receive, ticket) || ask_for_parts(receive, ticket)) return;
  envelope how;
  if ((ticket & striped_ticket) != 0) how.bytes = stripe_set::unit_of(receive);
  if (how.bytes > 0) {
    stripes().expect(receive, ticket);
  } else {
    granted_.emplace_back(ticket, &receive);
  }
  enqueue_frame(frame_kind::grant, how, ticket);
}

/// Result: how many pieces have been filled and used
inline std::size_t peer_connection::read_piece_by_piece(const request& receive, std::span<const piece> from,
                                                        std::span<const piece> into) {
  places part;
  std::size_t at = 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    part.clear();
    for (std::size_t left = into[i].bytes; left > 0;) {
      const std::size_t n = std::min(left, from[at].bytes - used);
      part.push_back({from[at].data + used, n});
      left -= n;
      used += n;
      if (used == from[at].bytes) {
        ++at;
        used = 0;
      }
    }
    if (!stream_->read_peer(part, into.subspan(i, 1)) || is_revoked(receive.ticket)) return i;
    receive.piece_filled(receive, i, 0, into[i].data, into[i].bytes);
  }
  return into.size();
}

/// Copies an offered message out of its sender's memory; false if it must be sent after all.
inline bool peer_connection::take_offered(request& receive, std::uint64_t ticket) {
  const auto at =
      std::find_if(offered_.begin(), offered_.end(), [ticket](const offered& o) { return o.ticket == ticket; });
  if (at == offered_.end()) return false;
  if ((ticket & shared_ticket) == 0) {
    // Nothing would tell that the sender has given it up meanwhile.
    offered_.erase(at);
    return false;
  }
  // The receive may have more room than the message needs, never less: that was checked.
  const places into = range_of({receive.pieces, receive.piece_count}, 0, at->header.bytes);
  // Of several in one reading, what is between two counts as well, as it does of those that are asked for.
  const auto before = reading_ && follows_whole_ ? last_whole_ : std::chrono::steady_clock::now();
  const bool in_one_go = receive.piece_filled == nullptr;
  const std::size_t used = in_one_go ? 0 : read_piece_by_piece(receive, at->where, into);
  const bool whole = in_one_go ? stream_->read_peer(at->where, into) : used == into.size();
  if (is_revoked(ticket)) {
    forget_revoked(static_cast<std::size_t>(at - offered_.begin()));
    return true;
  }
  if (whole && in_one_go) {
    last_whole_ = std::chrono::steady_clock::now();
    follows_whole_ = true;
    if (at->header.bytes > 0) note_offered(copying::single_copy, at->header.bytes, before);
  } else if (!whole) {
    if (used == 0) return false;
    // What has been used cannot come again.
    lose(error_of(boost::system::errc::io_error), "reading the rest of a message out of its sender's memory");
    return true;
  }
  offered_.erase(at);
  enqueue_frame(frame_kind::taken, envelope{}, ticket);
  receive.place = nullptr;
  if (open()) owner_->on_received(*this, receive);
  return true;
}

inline void peer_connection::claim(const early_message& message, request& receive) {
  receive.place = this;
  if (early_ != &message) return;  // the rest was lost with the connection
  early_ = nullptr;
  target_ = &receive;
  scatter_into(receive, 0, message.payload.data(), message.arrived);
}

inline void peer_connection::return_credit(std::size_t bytes) {
  owed_ += cost_of(bytes);
  if (owed_ < window / 4) return;
  envelope e;
  e.bytes = static_cast<std::uint64_t>(owed_);
  owed_ = 0;
  enqueue_frame(frame_kind::credit, e, 0);
}

/// Something has come, and been looked at. In a burst the sender's stream may wait for any part of a message to be acknowledged,
/// not only for those with a header.
inline void peer_connection::note_read() noexcept {
  if (sender_awaits_reading_ && open()) stream_->acknowledge();
}

/// How much is missing of what has begun to come and goes through the staging.
inline std::size_t peer_connection::rest_to_stage() const noexcept {
  const std::uint64_t rest = payload_left_ > 0  ? payload_left_
                             : behind_left_ > 0 ? behind_left_
                                                : frame::size - header_filled_;
  return static_cast<std::size_t>(std::min<std::uint64_t>(rest, staged_at_once()));
}

/// Lists where the rest of a payload goes, as far as that is known.
inline peer_connection::landing peer_connection::place_payload() {
  landing l;
  if (payload_left_ == 0) return l;
  if (target_ == nullptr) {
    if (early_ == nullptr) return l;
    l.bytes = static_cast<std::size_t>(payload_left_);
    in_pieces_.push_back({early_->payload.data() + early_->arrived, l.bytes});
    return l;
  }
  const bool used_by_piece = target_->piece_filled != nullptr;
  const std::byte* taken = nullptr;  // where the first of these goes: pieces that are used one by one may share a place
  std::size_t skip = static_cast<std::size_t>(payload_done_);
  for (std::size_t i = 0; i < target_->piece_count && in_pieces_.size() < 60 && l.bytes < payload_left_; ++i) {
    const piece& p = target_->pieces[i];
    if (skip >= p.bytes) {
      skip -= p.bytes;
      continue;
    }
    if (used_by_piece && p.data == taken) break;
    if (taken == nullptr) {
      taken = p.data;
      l.index = i;
      l.skipped = skip;
    }
    const std::size_t part = std::min<std::size_t>(p.bytes - skip, static_cast<std::size_t>(payload_left_) - l.bytes);
    in_pieces_.push_back({p.data + skip, part});
    l.bytes += part;
    skip = 0;
  }
  return l;
}

inline void peer_connection::note_landed(const landing& there, std::size_t bytes) {
  payload_left_ -= bytes;
  payload_done_ += bytes;
  if (early_ != nullptr) early_->arrived += bytes;
  if (target_ != nullptr && target_->piece_filled != nullptr) {
    std::size_t filled = there.skipped + bytes;
    for (std::size_t i = there.index; filled > 0 && filled >= target_->pieces[i].bytes; ++i) {
      const piece& full = target_->pieces[i];
      target_->piece_filled(*target_, i, 0, full.data, full.bytes);
      filled -= full.bytes;
    }
  }
  if (payload_left_ == 0) finish_payload();
}

inline bool peer_connection::try_read() {
  // What is read before it is known where it goes ends in the midst of a message, mostly. The rest of that is read by itself
  // then, or nobody could take what comes behind it where it is asked for: each turn of the engine's would end like that.
  constexpr int attempts = 4;
  constexpr int attempts_at_rest = 2;  // of a header, and of what it announces
  bool moved = false;
  if (over_ || reading_) return false;
  const detail::for_scope now(reading_, true);
  follows_whole_ = false;
  const bool has_waited = rest_can_wait();
  for (int attempt = 0; open() && attempt < attempts + attempts_at_rest; ++attempt) {
    if (!has_waited && rest_can_wait()) break;
    const bool goes_on = attempt < attempts;
    if (!goes_on && between_frames()) break;
    in_pieces_.clear();
    const landing there = place_payload();
    // The next long one would be copied twice: it is read when it has been asked for.
    const bool alone =
        there.bytes > 0 && payload_done_ + payload_left_ >= long_message && !owner_->awaits_another(*this);
    if (!alone && (there.bytes == payload_left_ || in_pieces_.empty())) {
      const std::size_t staged = goes_on ? staged_at_once() : there.bytes > 0 ? 0 : rest_to_stage();
      if (staged > 0) in_pieces_.push_back({staging_.data(), staged});
    }
    boost::system::error_code failure;
    const std::size_t got = stream_->receive(in_pieces_, failure);
    if (failure) return end_first(failure, "receiving");
    if (got == 0) return moved;
    moved = true;
    const std::size_t landed = std::min(got, there.bytes);
    if (landed > 0) note_landed(there, landed);
    if (got > landed && open() && !consume(staging_.data(), got - landed)) return true;
    note_read();
    if (alone && between_frames()) return true;
    std::size_t asked = 0;
    for (const piece& p : in_pieces_) asked += p.bytes;
    if (got < asked) return true;
  }
  return moved;
}

inline bool peer_connection::consume(const std::byte* data, std::size_t bytes) {
  while (bytes > 0 && open()) {
    if (behind_left_ > 0) {
      const std::size_t part = std::min(behind_left_, bytes);
      behind_.insert(behind_.end(), data, data + part);
      data += part;
      bytes -= part;
      behind_left_ -= part;
      if (behind_left_ == 0 && !use_behind()) return false;
      continue;
    }
    if (payload_left_ > 0) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, bytes));
      land(data, part);
      data += part;
      bytes -= part;
      payload_left_ -= part;
      if (payload_left_ == 0) finish_payload();
      continue;
    }
    const std::size_t part = std::min(bytes, frame::size - header_filled_);
    std::memcpy(header_bytes_ + header_filled_, data, part);
    header_filled_ += part;
    data += part;
    bytes -= part;
    if (header_filled_ < frame::size) break;
    header_filled_ = 0;
    if (!begin_frame(header_bytes_)) return false;
  }
  return open();
}

inline bool peer_connection::begin_frame(const unsigned char* bytes) {
  frame f;
  if (!frame::decode(bytes, f)) {
    return lose(error_of(boost::system::errc::invalid_argument), "reading a frame that no rank of this version sends");
  }
  f.header.source = peer_;
  sender_awaits_reading_ = f.awaits_reading;
  target_ = nullptr;
  early_ = nullptr;
  payload_done_ = 0;
  payload_is_early_ = false;
  payload_goes_on_ = false;
  early_since_ = {};
  switch (f.kind) {
    case frame_kind::message:
      if (f.header.bytes > eager_limit_) {
        return lose(error_of(boost::system::errc::message_size), "reading a message longer than its window");
      }
      payload_left_ = f.header.bytes;
      payload_is_early_ = true;
      owner_->on_message(*this, f.header);
      if (payload_left_ == 0 && open()) finish_payload();
      if (target_ != nullptr && target_->piece_filled == nullptr) note_first(f.header.bytes);
      return open();
    case frame_kind::announce:
      payload_left_ = comes_along(f.ticket);
      if (payload_left_ > 0 && (same_host_ || f.header.bytes <= payload_left_)) {
        return lose(error_of(boost::system::errc::message_size),
                    "reading the first bytes of a message that has no others");
      }
      payload_is_early_ = payload_goes_on_ = payload_left_ > 0;
      owner_->on_announce(*this, f.header, f.ticket);
      return open();
    case frame_kind::offer:
      if (!same_host_) {
        return lose(error_of(boost::system::errc::invalid_argument),
                    "reading an offer of memory that is not on this host");
      }
      offer_ = f;
      behind_.clear();
      behind_left_ = f.places * 2 * sizeof(std::uint64_t);
      comes_behind_ = f.kind;
      return true;
    case frame_kind::share:
      if (!same_host_) {
        return lose(error_of(boost::system::errc::invalid_argument),
                    "reading places in memory that is not on this host");
      }
      share_asked_ = f;
      behind_.clear();
      behind_left_ = f.places * 2 * sizeof(std::uint64_t);
      comes_behind_ = f.kind;
      return true;
    case frame_kind::notice:
      if (f.header.bytes == 0 || f.header.bytes > longest_notice) {
        return lose(error_of(boost::system::errc::message_size), "reading a notice of a length that none has");
      }
      behind_.clear();
      behind_left_ = static_cast<std::size_t>(f.header.bytes);
      comes_behind_ = f.kind;
      return true;
    case frame_kind::taken: {
      request* r = take(announced_, f.ticket);
      if (r == nullptr) r = take(in_parts_, f.ticket);
      if (r == nullptr) return true;
      give_cursor_back(f.ticket);
      stop_parts(*r);
      r->place = nullptr;
      owner_->on_sent(*r);
      return open();
    }
    case frame_kind::grant: {
      request* const asked = take(announced_, f.ticket);
      // The operation behind an unknown ticket was withdrawn: its communicator has failed on both sides.
      if (asked == nullptr) return true;
      request& r = *asked;
      if ((f.ticket & shared_ticket) != 0) {
        send_in_parts(r);
        return open();
      }
      if ((f.ticket & striped_ticket) != 0 && f.header.bytes > 0) {
        if (!can_be_cut(r.header.bytes, f.header.bytes)) {
          return lose(error_of(boost::system::errc::invalid_argument), "reading a grant of chunks that cannot be cut");
        }
        stripes_->send(r, f.ticket, f.header.bytes);
        if (open()) owner_->on_output(*this);
        return open();
      }
      send_asked(r);
      return open();
    }
    case frame_kind::data: {
      if ((f.ticket & shared_ticket) != 0) return begin_part(f);
      const auto at = find(granted_, f.ticket);
      payload_left_ = f.header.bytes;
      if (at != granted_.end()) {
        target_ = at->second;
        granted_.erase(at);
        payload_done_ = comes_along(f.ticket);
        if (target_ != nullptr && f.header.bytes + payload_done_ != target_->header.bytes) {
          return lose(error_of(boost::system::errc::message_size), "reading data of another length than announced");
        }
      }
      if (payload_left_ == 0) finish_payload();
      return open();
    }
    case frame_kind::credit:
      credit_ = std::min(credit_ + static_cast<std::int64_t>(std::min<std::uint64_t>(f.header.bytes, window)), window);
      return true;
    case frame_kind::goodbye:
      peer_has_left_ = true;
      owner_->on_goodbye(*this);
      return open();
  }
  return true;
}

/// All of what belongs to the last header is here.
inline bool peer_connection::use_behind() {
  if (comes_behind_ == frame_kind::offer) {
    keep_places();
  } else if (comes_behind_ == frame_kind::share) {
    return begin_shares();
  } else if (!owner_->on_notice(*this, behind_) && open()) {
    return lose(error_of(boost::system::errc::invalid_argument), "reading a notice, which nobody can have sent");
  }
  return open();
}

inline void peer_connection::keep_places() {
  places where = come_places(offer_.header.bytes);
  if (where.empty()) {
    lose(error_of(boost::system::errc::invalid_argument), "reading an offer whose parts are not the message");
    return;
  }
  forget_dropped(offer_.ticket);
  offered_.push_back({offer_.ticket, offer_.header, std::move(where)});
  owner_->on_announce(*this, offer_.header, offer_.ticket);
}

inline void peer_connection::land(const std::byte* data, std::size_t bytes) {
  if (target_ != nullptr) {
    scatter_into(*target_, static_cast<std::size_t>(payload_done_), data, bytes);
  } else if (early_ != nullptr) {
    std::memcpy(early_->payload.data() + early_->arrived, data, bytes);
    early_->arrived += bytes;
  }
  payload_done_ += bytes;
}

inline void peer_connection::finish_payload() {
  if (part_of_ != 0) return end_part();
  const std::size_t bytes = static_cast<std::size_t>(payload_done_);
  last_was_long_ = bytes >= long_message;
  request* const receive = std::exchange(target_, nullptr);
  early_message* const early = std::exchange(early_, nullptr);
  // What stays in the list of early messages keeps its share of the window until it is asked for.
  const bool consumed = receive != nullptr || early == nullptr;
  if (payload_is_early_ && consumed) return_credit(bytes);
  if (receive != nullptr && !payload_goes_on_ && open()) {
    note_early(bytes);
    receive->place = nullptr;
    owner_->on_received(*this, *receive);
  }
}

}  // namespace cohort::transport
