// SPDX-License-Identifier: BSL-1.0
// The larger data of data_parallel_training: 70 000 pictures of clothes, 28 x 28 pixels, in the IDX format of MNIST.
#pragma once

#include "dataset.hpp"

#include <string>

namespace training {

/// Where Debian's package dataset-fashion-mnist puts them.
inline constexpr const char* default_fashion_mnist_directory = "/usr/share/datasets/fashion-mnist";

/// Needs:  the four files `{train,t10k}-{images-idx3,labels-idx1}-ubyte`, each plain or with `.gz`
/// Errors: data_error naming file, what was found and what was expected, or the package to install
[[nodiscard]] split_dataset read_fashion_mnist(const std::string& directory);

}  // namespace training
