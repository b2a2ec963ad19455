// SPDX-License-Identifier: BSL-1.0
// A run of bytes of a message: what requests are made of, and what layouts cut buffers into.
#pragma once

#include <cstddef>

namespace cohort::transport {

/// A send never writes through it.
struct piece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

[[nodiscard]] inline bool overlap(const piece& a, const piece& b) noexcept {
  return a.data < b.data + b.bytes && b.data < a.data + a.bytes;
}

}  // namespace cohort::transport
