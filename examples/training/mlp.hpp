// SPDX-License-Identifier: BSL-1.0
// A multilayer perceptron with back-propagation in plain C++: tanh units, a softmax at the end, and stochastic gradient
// descent with momentum. It knows nothing of ranks: data_parallel_training.cpp adds up the gradients that it leaves in
// `gradient(k)`. Why tanh: sums over more or fewer ranks round differently, and the kink of a rectified linear unit
// makes a visible difference of an invisible one; a smooth unit keeps the training the same on any number of ranks.
#pragma once

#include "dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace training {

class mlp {
 public:
  /// widths: pixels of an image, hidden layers, classes. Every weight is zero until `initialise`.
  explicit mlp(std::span<const std::size_t> widths);

  /// A normal distribution of variance 1 / inputs for the weights, zero for the biases.
  void initialise(std::uint64_t seed);

  [[nodiscard]] std::size_t layers() const noexcept { return layers_.size(); }
  [[nodiscard]] std::size_t parameter_count() const noexcept;

  /// Weights (a row of `outputs` for each input) and then biases of layer k, in one piece, and their gradient.
  [[nodiscard]] std::span<float> parameters(std::size_t k) { return layers_[k].parameters; }
  [[nodiscard]] std::span<float> gradient(std::size_t k) { return layers_[k].gradient; }

  /// Result: the sum over the samples of their cross-entropy; the activations stay for `backward`
  double forward(const dataset& data, std::span<const std::uint32_t> samples);

  /// The sum over the samples of `forward` of the gradient of layer k; all zero when there were none.
  /// Order: after `forward`, from the last layer to the first
  void backward(std::size_t k);

  /// One descent step of layer k with its gradient times `scale`.
  void step(std::size_t k, float scale, float learning_rate, float momentum);

  /// How many of the samples get the highest output at their label.
  [[nodiscard]] std::size_t count_correct(const dataset& data, std::span<const std::uint32_t> samples);

 private:
  struct layer {
    std::size_t inputs;
    std::size_t outputs;
    std::vector<float> parameters;
    std::vector<float> gradient;
    std::vector<float> velocity;
    std::vector<float> activation{};  // of its outputs, one row for each sample
    std::vector<float> delta{};       // of the loss by its outputs before the nonlinearity, in the same shape
  };

  void infer(const dataset& data, std::span<const std::uint32_t> samples);

  std::vector<layer> layers_{};
  std::vector<float> input_{};
  std::size_t rows_ = 0;
};

}  // namespace training
