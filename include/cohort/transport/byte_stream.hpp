// SPDX-License-Identifier: BSL-1.0
// The bytes between two ranks, in order, without waiting: a socket, or memory that both see. Used by
// peer_connection.hpp, which makes messages of them.
#pragma once

#include <cohort/transport/piece.hpp>

#include <boost/system/error_code.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::transport {

class byte_stream {
 public:
  byte_stream() = default;
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;
  virtual ~byte_stream() = default;

  /// Takes as many of these bytes as it has room for, from the front; 0 when it has none.
  virtual std::size_t send(std::span<const piece> from, boost::system::error_code& failure) = 0;
  /// Fills these pieces with what has come, from the front; 0 when nothing has. The end of the stream is a failure.
  virtual std::size_t receive(std::span<const piece> into, boost::system::error_code& failure) = 0;
  virtual void close() noexcept = 0;

  /// Whether what is short may wait at this end until the other one has acknowledged what went before, from now on; what
  /// waits leaves when it no longer may. False where this stream cannot do so, and it does not.
  virtual bool let_wait(bool) noexcept { return false; }
  /// Tells the other end at once that what came has been read: more may wait there for it.
  virtual void acknowledge() noexcept {}

  /// Messages longer than this are announced first, so that they cost the receiver no memory.
  [[nodiscard]] virtual std::size_t eager_limit() const noexcept = 0;
  /// Whether the longest of those that need not be announced are wanted offered all the same: said to the other end, and by it.
  virtual void want_offers(bool) noexcept {}
  [[nodiscard]] virtual bool wants_offers() const noexcept { return false; }
  /// Whether both ends are on one host: then a long message may be offered by its addresses.
  [[nodiscard]] virtual bool same_host() const noexcept { return false; }
  /// Reads the peer's memory into that of this process; false where this process may not, whatever the peer may.
  virtual bool read_peer(std::span<const piece>, std::span<const piece>) noexcept { return false; }

  /// The other way round.
  virtual bool write_peer(std::span<const piece>, std::span<const piece>) noexcept { return false; }
  /// The peer's process has no memory any more: nothing is read from it or written by it.
  [[nodiscard]] virtual bool peer_is_gone() const noexcept { return false; }

  /// Numbers that both ends see and may change, for each direction: how far a long message has been taken on, and how much
  /// of it its sender has put where it goes.
  static constexpr std::size_t cursors = 64;
  struct cursor {
    std::atomic<std::uint64_t> taken_on{0};
    std::atomic<std::uint64_t> put{0};
  };
  /// Null where the ends share no memory.
  [[nodiscard]] virtual cursor* outgoing_cursor(std::size_t) noexcept { return nullptr; }
  [[nodiscard]] virtual cursor* incoming_cursor(std::size_t) noexcept { return nullptr; }
  /// Wakes the peer up, if it sleeps: a cursor has changed.
  virtual void wake_peer() noexcept {}
  /// How many bytes `send` would take now, where there are cursors. If fewer than that, whoever makes room wakes this
  /// rank up.
  [[nodiscard]] virtual std::size_t room(std::size_t) noexcept { return 0; }
};

}  // namespace cohort::transport
