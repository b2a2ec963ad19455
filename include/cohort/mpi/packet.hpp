// SPDX-License-Identifier: BSL-1.0
// What ranks tell each other on the control communicator: the header of a message, short messages whole, and what one
// rank has to say about another. Every rank of an MPI job runs on one kind of machine, so a header travels as it is.
#pragma once

#include <cohort/transport/fault.hpp>
#include <cohort/transport/request.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::transport {

/// Begins every message on the control communicator.
struct mpi_packet {
  enum class kind : std::uint8_t {
    eager = 1,  ///< a message, its bytes behind the header
    announce,   ///< a long message, which waits to be asked for
    grant,      ///< the receiver of an announced message listens under tag `other`
    revoke,     ///< what was granted is not sent any more
    follows,    ///< a long message whose bytes follow under tag `other`, which is the sender's: impl/transfers.hpp
    recall,     ///< the sender of that one takes its buffer back: the receiver has MPI put the bytes somewhere else
    unwanted,   ///< nobody will ask for that one any more
    fault,      ///< a communicator has failed: the text is behind the header
    query,      ///< how far is this communicator there? `ticket` says what for
    standing,   ///< the answer
    retired,    ///< the sender has destroyed the communicator; `other`: impl/giving_back.hpp
    left,       ///< the sender has no communicator any more
    comm_wanted,
    comm_granted,
    comm_go,
    comm_made,  ///< see impl/communicators.hpp
    credit,     ///< `other` bytes of what short messages may take are free again
    part,       ///< of a message like an eager one, the next bytes behind the header: impl/parts.hpp
    gone,       ///< nothing comes after this; `other`: nothing is pending there: impl/giving_back.hpp
  };
  static constexpr std::uint8_t last = static_cast<std::uint8_t>(kind::gone);

  std::uint8_t what = 0;
  std::uint8_t tagged = 0;
  std::uint16_t unused = 0;
  std::uint32_t sequence = 0;
  std::uint64_t context = 0;
  std::uint64_t bytes =
      0;  ///< of the message; of an eager one and of texts they follow the header, of one in parts some of them
  std::uint64_t call_bits = 0;
  std::uint64_t call_count = 0;
  std::uint64_t ticket = 0;
  std::uint64_t other = 0;
  std::uint64_t spare = 0;

  [[nodiscard]] static mpi_packet of(kind k) noexcept {
    mpi_packet p;
    p.what = static_cast<std::uint8_t>(k);
    return p;
  }
  [[nodiscard]] static mpi_packet of(kind k, const envelope& e) noexcept {
    mpi_packet p = of(k);
    p.tagged = e.tagged ? 1 : 0;
    p.sequence = e.sequence;
    p.context = e.context;
    p.bytes = e.bytes;
    p.call_bits = e.call.packed();
    p.call_count = e.call.count;
    return p;
  }
  [[nodiscard]] envelope header(int source) const noexcept {
    envelope e;
    e.context = context;
    e.sequence = sequence;
    e.tagged = tagged != 0;
    e.source = source;
    e.bytes = bytes;
    e.call = signature::unpack(call_bits, call_count);
    return e;
  }
};
static_assert(sizeof(mpi_packet) == 64);

/// The text is behind the packet.
[[nodiscard]] inline mpi_packet packet_of(const fault& f) noexcept {
  mpi_packet p = mpi_packet::of(mpi_packet::kind::fault);
  p.context = f.context;
  p.sequence = static_cast<std::uint32_t>(f.code);
  p.call_count = static_cast<std::uint64_t>(f.sequence);
  p.ticket = static_cast<std::uint64_t>(static_cast<std::int64_t>(f.culprit));
  p.other = static_cast<std::uint64_t>(static_cast<std::int64_t>(f.reporter));
  return p;
}
[[nodiscard]] inline fault fault_of(const mpi_packet& p, std::string_view text) {
  fault f;
  f.context = p.context;
  f.code = static_cast<errc>(p.sequence);
  f.sequence = static_cast<std::int64_t>(p.call_count);
  f.culprit = static_cast<int>(static_cast<std::int64_t>(p.ticket));
  f.reporter = static_cast<int>(static_cast<std::int64_t>(p.other));
  f.text = text;
  return f;
}

/// How far a rank is, and who it is: behind `standing` and `retired`.
struct mpi_standing {
  std::int64_t entered = -1;
  std::int64_t completed = -1;
  std::array<std::uint64_t, most_calls_told> call_bits{};  ///< of the last ones, in their order
  std::array<std::uint64_t, most_calls_told> call_counts{};
  std::uint32_t calls = 0;
  std::uint32_t members = 0;
  std::int64_t pid = 0;
  std::array<char, 64> host{};

  [[nodiscard]] static mpi_standing of(const arrival& a, std::int64_t pid, std::string_view host) noexcept {
    mpi_standing s;
    s.entered = a.entered;
    s.completed = a.completed;
    for (const signature& call : a.calls) {
      s.call_bits[s.calls] = call.packed();
      s.call_counts[s.calls++] = call.count;
    }
    s.members = a.members;
    s.pid = pid;
    std::memcpy(s.host.data(), host.data(), host.size() < s.host.size() ? host.size() : s.host.size() - 1);
    return s;
  }
  /// Nothing if these are not the bytes of one.
  [[nodiscard]] static std::optional<mpi_standing> read(const std::byte* data, std::size_t bytes) noexcept {
    mpi_standing s;
    if (bytes != sizeof s) return std::nullopt;
    std::memcpy(&s, data, sizeof s);
    if (s.calls > most_calls_told || static_cast<std::int64_t>(s.calls) > s.entered + 1) return std::nullopt;
    s.host.back() = '\0';
    return s;
  }
  [[nodiscard]] standing as_seen(int rank, std::uint64_t context, bool retired) const {
    standing who;
    who.rank = rank;
    who.host = host.data();
    who.pid = static_cast<long>(pid);
    arrival a;
    a.context = context;
    a.entered = entered;
    a.completed = completed;
    a.members = members;
    a.retired = retired;
    for (std::uint32_t i = 0; i < calls; ++i) a.calls.push_back(signature::unpack(call_bits[i], call_counts[i]));
    who.note(std::move(a));
    return who;
  }
};

}  // namespace cohort::transport
