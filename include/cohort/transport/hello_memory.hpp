// SPDX-License-Identifier: BSL-1.0
// What a listener remembers of the hellos that it has judged, so that one who has listened in cannot send one of them
// again. Beside hello.hpp; every door of a job has one: the store's, and those of tcp_doorway.hpp.
#pragma once

#include <cohort/transport/hello.hpp>

#include <array>
#include <cstddef>
#include <set>

namespace cohort::transport {

/// Needs: hellos that are genuine: only who knows the secret can make it grow
/// Cost:  some 64 bytes a hello; past `most` none is accepted any more, rather than one forgotten
class hello_memory {
 public:
  static constexpr std::size_t usual_most = std::size_t{1} << 20;
  explicit hello_memory(std::size_t most = usual_most) noexcept : most_(most) {}

  /// Accepted when it comes for the first time. A listener lives for one epoch of one job, which the proof covers: what
  /// another listener has accepted is refused for its role, its target or its epoch.
  [[nodiscard]] hello_verdict judge(const hello& h) {
    if (nonces_.size() >= most_ || !nonces_.insert(h.nonce).second) return {hello_field::proof, 1, 1};
    return {};
  }

 private:
  std::size_t most_;
  std::set<std::array<unsigned char, 16>> nonces_{};
};

}  // namespace cohort::transport
