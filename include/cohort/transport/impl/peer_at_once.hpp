// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/peer_connection.hpp: what comes without being asked for, taken where it is awaited; and whether it had better be
// offered.
#pragma once

#include <cohort/transport/peer_connection.hpp>

namespace cohort::transport {

inline void peer_connection::note_taken(std::size_t bytes, std::uint64_t& came) {
  came = bytes;
  last_was_long_ = bytes >= long_message;
  return_credit(bytes);
}

template <class Memory>
[[gnu::always_inline]] inline bool peer_connection::take_in_place(Memory& memory, const envelope& expected,
                                                                  const piece& into, std::uint64_t& came) {
  const std::span<const std::byte> there = memory.front();
  const auto* const header = reinterpret_cast<const unsigned char*>(there.data());
  if (there.size() < frame::size || !frame::is_message_for(header, expected, into.bytes)) return false;
  const auto bytes = static_cast<std::size_t>(frame::message_bytes(header));
  // Read once more, and checked once more: the sender may write there meanwhile.
  if (bytes > into.bytes || bytes > there.size() - frame::size) return false;
  memory.take(frame::size, {into.data, bytes});
  note_taken(bytes, came);
  return true;
}

/// What has been taken of a message whose rest does not come soon goes where it would have gone anyway.
template <class Memory, class RestComes>
[[gnu::noinline]] bool peer_connection::take_in_parts(Memory& memory, const envelope& expected, const piece& into,
                                                      std::uint64_t& came, const RestComes& rest_comes) {
  std::span<const std::byte> there = memory.front();
  unsigned char header[frame::size];
  if (there.size() < frame::size) return false;
  std::memcpy(header, there.data(), frame::size);  // the sender may write there meanwhile
  if (!frame::is_message_for(header, expected, into.bytes)) return false;
  const auto bytes = static_cast<std::size_t>(frame::message_bytes(header));
  if (bytes > into.bytes || bytes > eager_limit_) return false;
  note_first(bytes);
  std::size_t seen = frame::size;
  std::size_t here = 0;
  do {
    there = memory.front();
    const std::size_t part = std::min(there.size() - seen, bytes - here);
    memory.take(seen, {into.data + here, part});
    seen = 0;
    here += part;
  } while (here < bytes && rest_comes(bytes - here));
  if (here == bytes) {
    note_early(bytes);
    note_taken(bytes, came);
    return true;
  }
  if (consume(reinterpret_cast<const std::byte*>(header), frame::size)) (void)consume(into.data, here);
  return false;
}

inline peer_connection::first_message peer_connection::receive_first(const envelope& expected, const piece& into,
                                                                     std::uint64_t& came) {
  constexpr int looks_for_more = 40;
  if (!between_frames() || over_) return first_message::another;
  // What may be shorter than its room goes there when its length is known: nothing behind it is written to.
  const bool straight = !expected.tagged && into.bytes >= least_straight;
  const piece room[2] = {{staging_.data(), straight ? frame::size : staged_at_once()}, into};
  boost::system::error_code failure;
  const std::size_t got = stream_->receive({room, straight ? 2u : 1u}, failure);
  if (got == 0 && !failure) return first_message::none;
  const auto* const header = reinterpret_cast<const unsigned char*>(staging_.data());
  const bool awaited = got >= frame::size && frame::is_message_for(header, expected, into.bytes);
  const std::size_t bytes = awaited ? static_cast<std::size_t>(frame::message_bytes(header)) : 0;
  const std::size_t staged = std::min(got, room[0].bytes);
  const std::size_t copied = straight || !awaited ? 0 : std::min(bytes, staged - frame::size);
  if (copied > 0) std::memcpy(into.data, staging_.data() + frame::size, copied);
  std::size_t here = got - staged + copied;
  for (int looks = 0; here < bytes && looks < looks_for_more && !failure; ++looks) {
    const piece rest{into.data + here, bytes - here};
    const std::size_t more = stream_->receive({&rest, 1}, failure);
    if (more > 0) looks = 0;
    here += more;
  }
  if (failure) {
    end_first(failure, "receiving");
    return first_message::another;
  }
  const bool taken = awaited && here == bytes;
  std::size_t used = 0;
  if (taken) {
    sender_awaits_reading_ = frame::says_awaits_reading(header);
    note_taken(bytes, came);
    used = frame::size + copied;
  }
  if (staged > used && open()) consume(staging_.data() + used, staged - used);
  if (!taken && here > copied && open()) consume(into.data + copied, here - copied);
  note_read();
  return taken ? first_message::taken : first_message::another;
}

/// Whether it is to be found out how such messages are to come.
inline bool peer_connection::may_be_offered(std::uint64_t bytes) const noexcept {
  return bytes > early_choice::never_offered && bytes <= eager_limit_ && same_host_ && copies_.may_be_once();
}

/// One that a receive awaits begins to come, without having been asked for.
inline void peer_connection::note_first(std::uint64_t bytes) {
  early_since_ = may_be_offered(bytes) ? early_choice::clock::now() : early_choice::clock::time_point{};
}

/// All of it is there.
inline void peer_connection::note_early(std::uint64_t bytes) {
  if (early_since_ == early_choice::clock::time_point{}) return;
  const auto since = std::exchange(early_since_, {});
  stream_->want_offers(coming_.came(bytes, since, early_choice::clock::now()));
}

/// One that was offered has come, at `last_whole_`.
inline void peer_connection::note_offered(copying how, std::uint64_t bytes,
                                          std::chrono::steady_clock::time_point since) {
  copies_.took(how, bytes, last_whole_ - since);
  if (may_be_offered(bytes)) stream_->want_offers(coming_.came(bytes, since, last_whole_));
}

}  // namespace cohort::transport
