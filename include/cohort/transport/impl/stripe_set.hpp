// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/stripe_set.hpp. Every system call is tried first; waiting is the endpoint's business.
#pragma once

#include <cohort/transport/stripe_set.hpp>

#include <cstring>

namespace cohort::transport {

// --- what goes

inline void stripe_set::send(request& r, std::uint64_t ticket, std::uint64_t unit) {
  going_.push_back({&r, chunk_cutter(ticket, r.header.bytes, unit, std::max(wanted_, lanes_.size())), 0});
  spread();
}

/// One chunk to each stream in turn: the first could take a whole message into its buffers.
inline void stripe_set::spread() {
  for (bool moved = true; moved && open_;) {
    moved = false;
    for (std::size_t i = 0; i < lanes_.size(); ++i) moved = write(i, 1) || moved;
  }
}

inline bool stripe_set::has_output(std::size_t stream) const noexcept {
  if (!is_open(stream)) return false;
  const lane& l = lanes_[stream];
  return l.writing || (!l.said_goodbye && (leaving_ || any_uncut()));
}

inline bool stripe_set::take_chunk(lane& l) {
  if (l.said_goodbye) return false;
  const auto next = std::find_if(going_.begin(), going_.end(), [](const going& g) { return !g.cutter.done(); });
  if (next != going_.end()) {
    l.out = next->cutter.next();
    l.source = next->source;
    ++next->under_way;
  } else if (leaving_) {
    l.out = chunk{};
    l.source = nullptr;
    l.said_goodbye = true;
  } else {
    return false;
  }
  l.out_header = l.out.encode();
  l.sent = 0;
  l.writing = true;
  return true;
}

inline void stripe_set::gather(const lane& l) {
  pieces_.clear();
  // A send never writes through its pieces.
  auto* const header = reinterpret_cast<std::byte*>(const_cast<unsigned char*>(l.out_header.data()));
  if (l.sent < chunk::header_bytes) pieces_.push_back({header + l.sent, chunk::header_bytes - l.sent});
  const std::size_t done = l.sent - std::min(l.sent, chunk::header_bytes);
  if (l.source == nullptr) {
    if (l.own.size() > done) pieces_.push_back({const_cast<std::byte*>(l.own.data()) + done, l.own.size() - done});
    return;
  }
  const std::span<const piece> from(l.source->pieces, l.source->piece_count);
  each_part(from, l.out.offset + done, l.out.bytes - done, [&](std::size_t i, std::size_t at, std::size_t bytes) {
    pieces_.push_back({from[i].data + at, bytes});
    return pieces_.size() < most_pieces;
  });
}

inline bool stripe_set::write(std::size_t stream, std::size_t most_chunks) {
  bool moved = false;
  while (is_open(stream)) {
    lane& l = lanes_[stream];
    if (!l.writing && (most_chunks-- == 0 || !take_chunk(l))) return moved;
    gather(l);
    boost::system::error_code failure;
    const std::size_t sent = l.stream->send(pieces_, failure);
    if (failure) {
      end_lane(l, failure, "sending over one of its stripes");
      return moved;
    }
    if (sent == 0) return moved;
    moved = true;
    l.sent += sent;
    if (l.sent == chunk::header_bytes + l.out.bytes) {
      chunk_sent(l);
      continue;
    }
    std::size_t given = 0;
    for (const piece& p : pieces_) given += p.bytes;
    // A short count means that the socket is full: asking again would only say so.
    if (sent < given) return true;
  }
  return moved;
}

inline void stripe_set::chunk_sent(lane& l) {
  l.writing = false;
  request* const source = std::exchange(l.source, nullptr);
  if (source == nullptr) {
    l.own = {};
    return;
  }
  const auto at =
      std::find_if(going_.begin(), going_.end(), [&l](const going& g) { return g.cutter.ticket() == l.out.ticket; });
  if (--at->under_way > 0 || !at->cutter.done()) return;
  going_.erase(at);
  owner_->on_striped_send(*source);
}

// --- what comes

inline std::uint64_t stripe_set::unit_of(const request& receive) noexcept {
  if (receive.piece_filled == nullptr) return 1;
  const std::uint64_t unit = common_unit({receive.pieces, receive.piece_count});
  return can_be_cut(receive.header.bytes, unit) ? unit : 0;
}

inline void stripe_set::expect(request& r, std::uint64_t ticket) {
  coming_.push_back({&r, ticket, chunk_ledger(r.header.bytes, unit_of(r))});
}

inline stripe_set::coming* stripe_set::find_coming(std::uint64_t ticket) noexcept {
  const auto at =
      std::find_if(coming_.begin(), coming_.end(), [ticket](const coming& c) { return c.ticket == ticket; });
  return at == coming_.end() ? nullptr : &*at;
}

/// Sets where the next bytes of a stream go: the rest of its chunk, and the header behind it.
///
/// Result: how many of them are of the chunk
inline std::size_t stripe_set::aim(lane& l) {
  pieces_.clear();
  std::size_t direct = 0;
  const auto left = static_cast<std::size_t>(l.in.bytes) - l.arrived;
  if (left > 0) {
    // Messages go from the list only when they are complete.
    const coming& c = *find_coming(l.in.ticket);
    if (is_held(c)) {
      pieces_.push_back({l.held.data() + l.arrived, left});
      direct = left;
    } else {
      const std::span<const piece> into(c.receive->pieces, c.receive->piece_count);
      each_part(into, l.in.offset + l.arrived, left, [&](std::size_t i, std::size_t at, std::size_t bytes) {
        pieces_.push_back({into[i].data + at, bytes});
        direct += bytes;
        return pieces_.size() < most_pieces;
      });
    }
  }
  if (direct == left) {
    pieces_.push_back(
        {reinterpret_cast<std::byte*>(l.in_header) + l.header_filled, chunk::header_bytes - l.header_filled});
  }
  return direct;
}

inline bool stripe_set::try_read(std::size_t stream) {
  bool moved = false;
  for (std::size_t attempt = 0; attempt < 2 * chunks_a_turn && is_open(stream); ++attempt) {
    lane& l = lanes_[stream];
    const std::size_t direct = aim(l);
    std::size_t asked = 0;
    for (const piece& p : pieces_) asked += p.bytes;
    boost::system::error_code failure;
    const std::size_t got = l.stream->receive(pieces_, failure);
    if (failure) {
      end_lane(l, failure, "receiving over one of its stripes");
      return moved;
    }
    if (got == 0) return moved;
    moved = true;
    const std::size_t landed = std::min(got, direct);
    l.arrived += landed;
    l.header_filled += got - landed;
    if (landed > 0 && l.arrived == l.in.bytes) finish_chunk(l);
    if (is_open(stream) && l.header_filled == chunk::header_bytes && !begin_chunk(l)) return true;
    if (got < asked) return true;
  }
  return moved;
}

inline bool stripe_set::begin_chunk(lane& l) {
  const auto refuse = [this](const char* what) {
    return lose(boost::system::errc::make_error_code(boost::system::errc::invalid_argument), what);
  };
  l.header_filled = 0;
  const chunk c = chunk::decode(l.in_header);
  if (l.peer_said_goodbye) return refuse("reading a stripe that had ended");
  if (c.is_goodbye()) {
    l.peer_said_goodbye = true;
    return true;
  }
  coming* const message = find_coming(c.ticket);
  if (message == nullptr) return refuse("reading a chunk of a message that was not asked for");
  if (!message->ledger.begin(c)) return refuse("reading a chunk that is no part of its message, or came before");
  // It may be withdrawn while it arrives.
  if (l.held.data() == nullptr && is_held(*message)) l.held = detail::byte_buffer(longest_chunk);
  l.in = c;
  l.arrived = 0;
  return true;
}

inline void stripe_set::finish_chunk(lane& l) {
  coming& c = *find_coming(l.in.ticket);
  if (c.receive != nullptr && c.receive->piece_filled != nullptr) {
    const request& r = *c.receive;
    const std::byte* from = l.held.data();
    each_part({r.pieces, r.piece_count}, l.in.offset, l.in.bytes,
              [&](std::size_t i, std::size_t at, std::size_t bytes) {
                r.piece_filled(r, i, at, from, bytes);
                from += bytes;
                return true;
              });
  }
  c.ledger.end(l.in);
  l.in = chunk{};
  l.arrived = 0;
  if (!c.ledger.complete()) return;
  request* const receive = c.receive;
  coming_.erase(coming_.begin() + (&c - coming_.data()));
  if (receive != nullptr) owner_->on_striped_receive(*receive);
  if (open_ && !awaits()) owner_->on_stripes_quiet();
}

inline void stripe_set::withdraw(request& r) {
  if (!r.sending) {
    for (coming& c : coming_) {
      if (c.receive != &r) continue;
      c.receive = nullptr;
      // What is still to come of a chunk is read and forgotten.
      for (lane& l : lanes_) {
        if (l.in.ticket == c.ticket && l.held.data() == nullptr) l.held = detail::byte_buffer(longest_chunk);
      }
    }
    return;
  }
  std::erase_if(going_, [&r](const going& g) { return g.source == &r; });
  for (lane& l : lanes_) {
    if (l.source != &r) continue;
    l.own.reserve(static_cast<std::size_t>(l.out.bytes));
    const std::span<const piece> from(r.pieces, r.piece_count);
    each_part(from, l.out.offset, l.out.bytes, [&](std::size_t i, std::size_t at, std::size_t bytes) {
      l.own.insert(l.own.end(), from[i].data + at, from[i].data + at + bytes);
      return true;
    });
    l.source = nullptr;
  }
}

// --- streams

inline void stripe_set::open(std::size_t stream, std::unique_ptr<byte_stream> over) {
  if (lanes_.size() <= stream) lanes_.resize(stream + 1);
  lanes_[stream].stream = std::move(over);
  spread();
}

inline void stripe_set::say_goodbye() {
  leaving_ = true;
  spread();
}

inline void stripe_set::close() noexcept {
  open_ = false;
  for (const lane& l : lanes_) {
    if (l.stream != nullptr) l.stream->close();
  }
}

/// In good order behind the peer's goodbye, if nothing is waited for; else the connection is lost with it.
inline void stripe_set::end_lane(lane& l, const boost::system::error_code& why, const char* what) {
  if (!l.peer_said_goodbye) {
    lose(why, what);
    return;
  }
  l.stream->close();
  l.ended = true;
  if (std::any_of(lanes_.begin(), lanes_.end(), [](const lane& other) { return other.carries(); })) return;
  if (awaits()) {
    lose(why, what);
  } else {
    owner_->on_stripes_quiet();
  }
}

}  // namespace cohort::transport
