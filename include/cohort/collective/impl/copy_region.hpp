// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/copy_region.hpp.
#pragma once

#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/each_pair.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cohort::collective::detail {

COHORT_DECL void copy_region(const layout& from, region a, const layout& to, region b) {
  const transport::piece source = from.together(a.first, a.count);
  const transport::piece target = to.together(b.first, b.count);
  if (source.data != nullptr && target.data != nullptr) {  // as most are
    if (target.data != source.data) std::memmove(target.data, source.data, std::min(source.bytes, target.bytes));
    return;
  }
  each_pair(from, a, to, b, [](std::byte* into, const std::byte* data, std::size_t n) {
    if (into != data) std::memmove(into, data, n);
  });
}

}  // namespace cohort::collective::detail
