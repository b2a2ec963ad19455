// SPDX-License-Identifier: BSL-1.0
// The default data of data_parallel_training: 1797 handwritten digits of 8 x 8 pixels, from data/digits.csv.
#pragma once

#include "dataset.hpp"

#include <string>

namespace training {

/// Result: four fifths of the rows to train with, one fifth to test with, the same rows on every call
/// Errors: data_error naming file, line, what was found and what was expected
[[nodiscard]] split_dataset read_digits(const std::string& directory);

/// Where digits.csv is when no --data-dir is given: beside this source file, or else below the current directory.
[[nodiscard]] std::string default_digits_directory();

}  // namespace training
