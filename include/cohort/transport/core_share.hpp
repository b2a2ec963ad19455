// SPDX-License-Identifier: BSL-1.0
// How many ranks are on the cores of a machine, and which of them is whose. Made by sharing_engine.hpp when the ranks have
// told each other where they are; decides how they wait (patience.hpp).
#pragma once

#include <cohort/detail/core_set.hpp>
#include <cohort/transport/shm/host_address.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace cohort::transport {

/// Ranks that may not share memory share the processors all the same.
[[nodiscard]] inline std::string_view machine_of(const host_address& a) noexcept {
  return std::string_view(a.host).substr(0, a.host.find(' '));
}

/// How many ranks there are on the cores that one of them may use, and on those that they may.
struct core_share {
  int ranks = 0;
  int cores = 1;
  int home = -1;                ///< a core for this rank, if all of them may use the same; they are dealt out in turn
  std::vector<bool> at_home{};  ///< of each rank, whether that core is for it too; empty where there is none

  [[nodiscard]] bool crowded() const noexcept { return ranks > cores; }

  /// Needs: `mine` is one of `all`, which are in the order of the ranks
  [[nodiscard]] static core_share of(const host_address& mine, const std::vector<host_address>& all) {
    core_share s;
    detail::core_set cores = mine.cores;
    bool same = true;
    std::vector<int> turns(all.size(), -1);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const host_address& a = all[r];
      if (machine_of(a) != machine_of(mine) || !a.cores.may_meet(mine.cores)) continue;
      turns[r] = s.ranks++;
      same = same && a.cores == mine.cores;
      cores.add(a.cores);
    }
    s.cores = std::max(1, cores.count());
    if (!same || cores.count() == 0) return s;
    const int own = turns[static_cast<std::size_t>(&mine - all.data())] % s.cores;
    s.home = cores.at(own);
    for (const int turn : turns) s.at_home.push_back(turn >= 0 && turn % s.cores == own);
    return s;
  }
};

}  // namespace cohort::transport
