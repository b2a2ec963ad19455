// SPDX-License-Identifier: BSL-1.0
// What a message costs, in four numbers: the model from which cost_model.hpp predicts what an algorithm takes.
#pragma once

namespace cohort::collective {

/// Seconds. The defaults are those of TCP over the loopback of one machine.
struct link_costs {
  double latency = 3e-6;     ///< from the call of a send to the data at the receiver, for a few bytes
  double overhead = 1.5e-6;  ///< between two messages of one rank, sent one after the other without waiting
  double byte = 0.2e-9;      ///< a byte of a long message, both ways at once
  double combine = 0.1e-9;   ///< a byte that is combined with another by a functor such as sum
  friend constexpr bool operator==(const link_costs&, const link_costs&) = default;
};

}  // namespace cohort::collective
