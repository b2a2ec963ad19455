// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: messages that are short enough to be copied, but longer than what MPI sends without asking their
// receiver. Each word of that costs the other rank a turn of MPI, and its core if ranks share some: so they are sent in parts,
// one behind the other, none of which MPI asks about.
#pragma once

#include <cohort/mpi/endpoint.hpp>
#include <cohort/transport/arrival.hpp>
#include <cohort/transport/places.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace cohort::transport {

COHORT_DECL void mpi_endpoint::send_in_parts(request& send) {
  const auto bytes = static_cast<std::size_t>(send.header.bytes);
  const mpi_packet p = mpi_packet::of(mpi_packet::kind::part, send.header);
  const std::size_t parts = (bytes + longest_part - 1) / longest_part;
  const std::size_t each = (bytes + parts - 1) / parts;
  const std::size_t before = outgoing_.size();
  for (std::size_t done = 0; done < bytes; done += each) {
    const std::size_t part = std::min(each, bytes - done);
    const places from = range_of({send.pieces, send.piece_count}, done, part);
    request* const owner = done + part == bytes ? &send : nullptr;
    const bool others_wait = outgoing_.size() > before;
    keep_outgoing(send_copy(send.peer, p, from.data(), from.size()), owner, owner != nullptr && others_wait);
  }
}

/// Whether another one went to that rank in the same turn, and such ones are not sent in parts.
COHORT_DECL bool mpi_endpoint::follows_another(const request& send) noexcept {
  const bool does = parted_to_ == send.peer && parted_in_ == turns_;
  parted_to_ = send.peer;
  parted_in_ = turns_;
  return does && detail::follow_each_other;
}

/// Whether so many bytes may be the next ones of such a message from there.
COHORT_DECL bool mpi_endpoint::continues(const envelope& header, std::size_t bytes) const noexcept {
  if (bytes == 0 || header.bytes > eager_limit) return false;
  const coming& c = coming_[static_cast<std::size_t>(header.source)];
  if (c.come == 0) return bytes < header.bytes;
  return header.bytes == c.header.bytes && header.context == c.header.context && header.sequence == c.header.sequence &&
         bytes <= header.bytes - c.come;
}

/// The first part decides where all go: into the buffer of the receive, if there is one by then.
COHORT_DECL void mpi_endpoint::on_part(const envelope& header, const std::byte* data, std::size_t bytes) {
  coming& c = coming_[static_cast<std::size_t>(header.source)];
  if (c.come == 0) {
    c.header = header;
    c.receive = match_arrival(*this, matcher_, header);
    if (c.receive != nullptr) {
      c.receive->place = &coming_;
    } else if (!nobody_asks(header.context)) {
      c.kept = scratch().take(static_cast<std::size_t>(header.bytes));
    }
  }
  if (c.receive != nullptr) {
    put(*c.receive, c.come, data, bytes);
  } else if (c.kept.data() != nullptr) {
    std::memcpy(c.kept.data() + c.come, data, bytes);
  }
  c.come += bytes;
  if (c.come < header.bytes) return;
  coming all = std::exchange(c, {});
  if (all.kept.data() != nullptr) {
    on_eager(header, all.kept.data(), &all.kept);
    return scratch().give_back(std::move(all.kept));
  }
  return_credit(header.source, static_cast<std::size_t>(header.bytes));
  if (all.receive == nullptr) return;
  all.receive->place = nullptr;
  complete(*all.receive);
}

}  // namespace cohort::transport
