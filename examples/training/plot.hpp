// SPDX-License-Identifier: BSL-1.0
// The chart that `data_parallel_training --plot` writes: the loss of every epoch.
#pragma once

#include "png.hpp"

#include <span>
#include <string>

namespace training {

/// Result: a line through (1, loss[0]), (2, loss[1]), ...; the vertical axis is logarithmic when the losses span more
///         than a factor of ten; a loss that is not finite leaves a gap
[[nodiscard]] picture plot_loss(std::span<const double> loss, const std::string& title);

}  // namespace training
