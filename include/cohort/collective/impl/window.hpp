// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/window.hpp that are no templates.
#pragma once

#include <cohort/collective/window.hpp>

#include <cstddef>

namespace cohort::collective {

COHORT_DECL algorithm without_window(const call& c, std::size_t bytes, bool commutative) {
  const group& g = c.home();
  return g.selection.choose(c.signature().kind, bytes, g.size(), commutative && !g.ordered,
                            {false, false, false, false});
}

}  // namespace cohort::collective
