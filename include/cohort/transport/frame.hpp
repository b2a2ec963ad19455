// SPDX-License-Identifier: BSL-1.0
// The header of every message between two ranks: 48 bytes with context, number and fingerprint. Pure: written
// and read by peer_connection.hpp, which checks every length before it believes it.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/transport/request.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace cohort::transport {

enum class frame_kind : std::uint8_t {
  message = 1,   ///< header and payload at once
  announce = 2,  ///< a long message waits at the sender under `ticket`; its first bytes may follow
  grant = 3,     ///< its receive is posted: send it
  data = 4,      ///< the payload that was announced under `ticket`, or the next part of it
  credit = 5,    ///< `bytes` of early-message space are free again
  goodbye = 6,   ///< the sender has left the world: it sends nothing more, and receives nothing
  offer = 7,     ///< as announce; `places` addresses and sizes follow, where the receiver may read it itself
  taken = 8,     ///< it has: the message under `ticket` is complete
  notice = 9,    ///< `bytes` for whoever owns the connection, which are no message
  share = 10,    ///< as grant; `places` follow, where the sender may write it itself while the receiver reads
};

struct frame {
  static constexpr std::size_t size = 48;
  using bytes_type = std::array<unsigned char, size>;

  frame_kind kind{};
  std::uint64_t ticket = 0;
  std::uint16_t places = 0;
  bool awaits_reading = false;  ///< of a message: more of them wait until the receiver acknowledges what it has read
  envelope header{};            ///< without `source`: the connection knows it

  [[nodiscard]] bytes_type encode() const noexcept {
    bytes_type b{};
    put(b.data(), first_word(kind, header, awaits_reading, places), header, ticket);
    return b;
  }
  /// The same of a message, into `b`.
  static void encode_message(bytes_type& b, const envelope& header, bool awaits_reading) noexcept {
    encode_message(b.data(), header, awaits_reading);
  }
  static void encode_message(unsigned char* b, const envelope& header, bool awaits_reading) noexcept {
    put(b, first_word(frame_kind::message, header, awaits_reading, 0), header, 0);
  }

  /// False for bytes that no rank of this version sends.
  [[nodiscard]] static bool decode(const unsigned char* b, frame& f) noexcept {
    f.kind = static_cast<frame_kind>(b[0]);
    f.places = detail::get_little<std::uint16_t>(b + 2);
    const bool kind_known = b[0] >= 1 && b[0] <= 10;
    const bool has_places = f.kind == frame_kind::offer || f.kind == frame_kind::share;
    if (!kind_known || b[1] > 3 || (f.places > 0) != has_places) return false;
    f.header.tagged = (b[1] & 1) != 0;
    f.awaits_reading = (b[1] & 2) != 0;
    if (f.awaits_reading && f.kind != frame_kind::message) return false;
    f.header.sequence = detail::get_little<std::uint32_t>(b + 4);
    f.header.context = detail::get_little<std::uint64_t>(b + 8);
    f.header.bytes = detail::get_little<std::uint64_t>(b + 16);
    f.ticket = detail::get_little<std::uint64_t>(b + 24);
    f.header.call =
        signature::unpack(detail::get_little<std::uint64_t>(b + 40), detail::get_little<std::uint64_t>(b + 32));
    return f.header.bytes <= (std::uint64_t{1} << 56);
  }

  // --- of a header that is looked at where it lies: for a message that somebody waits for, decoding is half of the work
  /// Whether it is that of a message which a receive that nobody has posted may take, with `room` bytes: what `decode` and
  /// `may_take` say together.
  [[nodiscard]] static bool is_message_for(const unsigned char* b, const envelope& expected,
                                           std::size_t room) noexcept {
    const auto word = [b](std::size_t at) { return detail::get_little<std::uint64_t>(b + at); };
    if ((word(0) & ~awaits_reading_bit) != first_word(frame_kind::message, expected, false, 0)) return false;
    if (word(8) != expected.context) return false;
    if (expected.tagged) return signature::unpack(word(40), 0).type == expected.call.type && word(16) <= room;
    return word(16) == room && word(32) == expected.call.count && word(40) == expected.call.packed();
  }
  [[nodiscard]] static std::uint64_t message_bytes(const unsigned char* b) noexcept {
    return detail::get_little<std::uint64_t>(b + 16);
  }
  [[nodiscard]] static bool says_awaits_reading(const unsigned char* b) noexcept { return (b[1] & 2) != 0; }

 private:
  static constexpr std::uint64_t awaits_reading_bit = std::uint64_t{1} << 9;

  // In one go: who reads all of it soon need not wait for four writes of parts.
  [[nodiscard]] static std::uint64_t first_word(frame_kind kind, const envelope& header, bool awaits_reading,
                                                std::uint16_t places) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} | std::uint64_t{header.tagged} << 8 |
           (awaits_reading ? awaits_reading_bit : 0) | std::uint64_t{places} << 16 |
           std::uint64_t{header.sequence} << 32;
  }
  static void put(unsigned char* b, std::uint64_t first, const envelope& header, std::uint64_t ticket) noexcept {
    detail::put_little(b + 0, first);
    detail::put_little(b + 8, header.context);
    detail::put_little(b + 16, header.bytes);
    detail::put_little(b + 24, ticket);
    detail::put_little(b + 32, header.call.count);
    detail::put_little(b + 40, header.call.packed());
  }
};

}  // namespace cohort::transport
