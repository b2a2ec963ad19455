// SPDX-License-Identifier: BSL-1.0
// Two regions of layouts side by side. Used by round_plan.hpp and copy_region.hpp.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/collective/short_vector.hpp>

#include <algorithm>
#include <cstddef>

namespace cohort::collective::detail {

/// Calls f(to, from, bytes) for what two regions of one size have in the same place; their runs may be cut differently.
template <class F>
void each_pair(const layout& from, region a, const layout& to, region b, F f) {
  short_vector<transport::piece> target;
  to.each_piece(b.first, b.count, [&](std::byte* data, std::size_t n) { target.push_back({data, n}); });
  auto at = target.begin();
  std::size_t used = 0;
  from.each_piece(a.first, a.count, [&](std::byte* data, std::size_t n) {
    while (n > 0 && at != target.end()) {
      const std::size_t part = std::min(n, at->bytes - used);
      f(at->data + used, data, part);
      data += part;
      n -= part;
      used += part;
      if (used == at->bytes) {
        ++at;
        used = 0;
      }
    }
  });
}

}  // namespace cohort::collective::detail
