// SPDX-License-Identifier: BSL-1.0
// What a tuning means for a world that has just been joined. Used by connect of every backend that has messages.
#pragma once

#include <cohort/collective/fit.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/tuning.hpp>

namespace cohort::detail {

inline void use_tuning(group& world, const tuning& chosen) {
  world.selection.override_with(chosen.algorithms);
  world.costs = chosen.costs;
  if (chosen.costs) world.selection = collective::fitted(world.selection, world.size(), *chosen.costs);
}

}  // namespace cohort::detail
