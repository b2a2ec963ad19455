// SPDX-License-Identifier: BSL-1.0
// --bind: which processors a rank may run on.
#pragma once

#include "options.hpp"

#include <sched.h>

#include <optional>

namespace cohort::tool {

/// core: the processors of this process, dealt out in order, one at least; numa: those of one memory node, the nodes
/// dealt out in order. Nothing where nothing is to be bound, or the system does not tell.
std::optional<cpu_set_t> processors_for(bind_kind kind, int place, int ranks);

}  // namespace cohort::tool
