// SPDX-License-Identifier: BSL-1.0
// What the readers of digits.hpp and fashion_mnist.hpp give to the model of mlp.hpp, and the pseudo-random numbers
// that both use: ones that are the same on every machine, which std::shuffle and std::normal_distribution are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace training {

struct dataset {
  std::size_t features = 0;          ///< pixels of one image
  std::size_t classes = 0;
  std::vector<float> pixels{};       ///< size() * features, each from 0 to 1
  std::vector<std::uint8_t> labels{};

  [[nodiscard]] std::size_t size() const noexcept { return labels.size(); }
  [[nodiscard]] std::span<const float> image(std::size_t i) const {
    return std::span<const float>(pixels).subspan(i * features, features);
  }
};

struct split_dataset {
  dataset train;
  dataset test;
};

/// A data file that is missing or is not what it should be; the text names file, place, found and expected.
struct data_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SplitMix64.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, 1).
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Uniform in 0 .. bound-1; the bias of the remainder is below 2^-40 for every bound used here.
  std::size_t below(std::size_t bound) noexcept { return static_cast<std::size_t>(next() % bound); }

 private:
  std::uint64_t state_;
};

/// A permutation of 0 .. n-1 that depends on n and seed alone, so that every rank computes the same one.
[[nodiscard]] inline std::vector<std::uint32_t> permutation(std::size_t n, std::uint64_t seed) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  random_numbers random(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// The part of `samples` that is this rank's: contiguous, and as even as it can be; empty for some ranks when there
/// are fewer samples than ranks.
[[nodiscard]] inline std::span<const std::uint32_t> shard(std::span<const std::uint32_t> samples, int rank, int size) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t first = samples.size() * static_cast<std::size_t>(rank) / ranks;
  const std::size_t last = samples.size() * (static_cast<std::size_t>(rank) + 1) / ranks;
  return samples.subspan(first, last - first);
}

}  // namespace training
