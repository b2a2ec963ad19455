// SPDX-License-Identifier: BSL-1.0
// Which ranks of a communicator are on one host: what the hierarchical schedules are made from. Built by a transport
// from what every rank knows of every other, so that it is the same on all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace cohort::collective {

/// Hosts are numbered in the order of their lowest ranks; a rank's place is its number among those of its host.
class host_table {
 public:
  /// Needs: `marks` has one number for each rank, equal for two of them if and only if they are on one host
  constexpr explicit host_table(std::span<const int> marks) : host_of_(marks.size()), place_of_(marks.size()) {
    std::vector<int> known;
    for (std::size_t r = 0; r < marks.size(); ++r) {
      const auto at = std::find(known.begin(), known.end(), marks[r]);
      const auto host = static_cast<std::size_t>(at - known.begin());
      if (at == known.end()) {
        known.push_back(marks[r]);
        ranks_.emplace_back();
      }
      host_of_[r] = static_cast<int>(host);
      place_of_[r] = static_cast<int>(ranks_[host].size());
      ranks_[host].push_back(static_cast<int>(r));
    }
    for (const std::vector<int>& here : ranks_) most_ = std::max(most_, static_cast<int>(here.size()));
  }

  [[nodiscard]] constexpr int ranks() const noexcept { return static_cast<int>(host_of_.size()); }
  [[nodiscard]] constexpr int hosts() const noexcept { return static_cast<int>(ranks_.size()); }
  /// The ranks of the host that has most of them.
  [[nodiscard]] constexpr int most() const noexcept { return most_; }
  /// Several hosts, and several ranks on at least one: otherwise there is no hierarchy.
  [[nodiscard]] constexpr bool has_two_levels() const noexcept { return hosts() > 1 && most_ > 1; }

  [[nodiscard]] constexpr int host_of(int rank) const noexcept { return host_of_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] constexpr int place_of(int rank) const noexcept { return place_of_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] constexpr int count(int host) const noexcept {
    return static_cast<int>(ranks_[static_cast<std::size_t>(host)].size());
  }
  [[nodiscard]] constexpr int rank_at(int host, int place) const noexcept {
    return ranks_[static_cast<std::size_t>(host)][static_cast<std::size_t>(place)];
  }
  /// Whether the two are on one host.
  [[nodiscard]] constexpr bool near(int a, int b) const noexcept { return host_of(a) == host_of(b); }

 private:
  std::vector<int> host_of_;
  std::vector<int> place_of_;
  std::vector<std::vector<int>> ranks_{};
  int most_ = 0;
};

}  // namespace cohort::collective
