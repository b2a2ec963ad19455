// SPDX-License-Identifier: BSL-1.0
// Part of a message, as pieces of memory. Used where messages travel in parts: peer_connection.hpp, mpi/impl/parts.hpp.
#pragma once

#include <cohort/detail/frame_pool.hpp>
#include <cohort/transport/piece.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort::transport {

using places = std::vector<piece, detail::pool_allocator<piece>>;

/// Bytes [first, first + bytes) of what these pieces are one after the other.
[[nodiscard]] inline places range_of(std::span<const piece> pieces, std::uint64_t first, std::uint64_t bytes) {
  places range;
  for (const piece& p : pieces) {
    if (bytes == 0) break;
    if (first >= p.bytes) {
      first -= p.bytes;
      continue;
    }
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(p.bytes - first, bytes));
    range.push_back({p.data + first, part});
    bytes -= part;
    first = 0;
  }
  return range;
}

}  // namespace cohort::transport
