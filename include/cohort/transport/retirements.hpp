// SPDX-License-Identifier: BSL-1.0
// Which ranks have destroyed their parts of communicators, as far as they have told this one, and which this one has destroyed
// itself. What is long ago is forgotten: then a rank that still waits there is told at its deadline. Used by tcp.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace cohort::transport {

class retirements {
 public:
  /// Another rank has said so. Of no use where this rank has destroyed its part too.
  void note(std::uint64_t context, int world_rank) {
    if (own(context) || (of_.size() >= most && !of_.contains(context))) return;
    std::vector<int>& ranks = of_[context];
    if (std::find(ranks.begin(), ranks.end(), world_rank) == ranks.end()) ranks.push_back(world_rank);
  }
  /// `failed`: then the others learn why, which is not that it is gone.
  void note_own(std::uint64_t context, bool failed) {
    of_.erase(context);
    if (!own_.emplace(context, failed).second) return;
    in_order_.push_back(context);
    if (in_order_.size() <= most) return;
    own_.erase(in_order_.front());
    in_order_.pop_front();
  }

  [[nodiscard]] bool own(std::uint64_t context) const { return own_.contains(context); }
  /// Needs: `own`
  [[nodiscard]] bool had_failed(std::uint64_t context) const { return own_.at(context); }
  [[nodiscard]] bool has(std::uint64_t context, int world_rank) const {
    if (of_.empty()) return false;
    const auto at = of_.find(context);
    return at != of_.end() && std::find(at->second.begin(), at->second.end(), world_rank) != at->second.end();
  }

 private:
  static constexpr std::size_t most = 4096;

  std::unordered_map<std::uint64_t, std::vector<int>> of_{};
  std::unordered_map<std::uint64_t, bool> own_{};
  std::deque<std::uint64_t> in_order_{};  // the same, the oldest first
};

}  // namespace cohort::transport
