// SPDX-License-Identifier: BSL-1.0
#include "mlp.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace training {
namespace {

// Every inner loop is this one, over the outputs of one input: it needs no reordering of additions to be vectorised,
// and a dark pixel costs nothing.
void add_scaled(float* __restrict to, const float* __restrict row, float factor, std::size_t n) {
  if (factor == 0.0f) return;
  for (std::size_t j = 0; j < n; ++j) to[j] += factor * row[j];
}

float dot(const float* __restrict a, const float* __restrict b, std::size_t n) {
  float sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

// Turns logits into probabilities and returns the cross-entropy of `label`.
double softmax(std::span<float> row, std::size_t label) {
  const float highest = *std::max_element(row.begin(), row.end());
  double total = 0;
  for (const float logit : row) total += std::exp(static_cast<double>(logit - highest));
  const double log_total = std::log(total) + static_cast<double>(highest);
  const double loss = log_total - static_cast<double>(row[label]);
  for (float& value : row) value = static_cast<float>(std::exp(static_cast<double>(value) - log_total));
  return loss;
}

}  // namespace

mlp::mlp(std::span<const std::size_t> widths) {
  for (std::size_t k = 0; k + 1 < widths.size(); ++k) {
    const std::size_t size = (widths[k] + 1) * widths[k + 1];
    const std::vector<float> zeros(size);
    layers_.push_back({widths[k], widths[k + 1], zeros, zeros, zeros});
  }
}

std::size_t mlp::parameter_count() const noexcept {
  std::size_t count = 0;
  for (const layer& l : layers_) count += l.parameters.size();
  return count;
}

void mlp::initialise(std::uint64_t seed) {
  random_numbers random(seed);
  for (layer& l : layers_) {
    const double deviation = std::sqrt(1.0 / static_cast<double>(l.inputs));
    for (float& weight : std::span(l.parameters).first(l.inputs * l.outputs)) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
      weight = static_cast<float>(deviation * radius * std::cos(2 * std::numbers::pi * random.uniform()));
    }
  }
}

void mlp::infer(const dataset& data, std::span<const std::uint32_t> samples) {
  rows_ = samples.size();
  input_.clear();
  for (const std::uint32_t i : samples) {
    const std::span<const float> image = data.image(i);
    input_.insert(input_.end(), image.begin(), image.end());
  }
  const float* input = input_.data();
  for (layer& l : layers_) {
    const float* weights = l.parameters.data();
    const float* biases = weights + l.inputs * l.outputs;
    l.activation.resize(rows_ * l.outputs);
    for (std::size_t row = 0; row < rows_; ++row) {
      float* out = l.activation.data() + row * l.outputs;
      std::copy_n(biases, l.outputs, out);
      for (std::size_t i = 0; i < l.inputs; ++i) {
        add_scaled(out, weights + i * l.outputs, input[row * l.inputs + i], l.outputs);
      }
    }
    if (&l != &layers_.back()) {
      for (float& value : l.activation) value = std::tanh(value);
    }
    input = l.activation.data();
  }
}

double mlp::forward(const dataset& data, std::span<const std::uint32_t> samples) {
  infer(data, samples);
  layer& last = layers_.back();
  last.delta = last.activation;
  double loss = 0;
  for (std::size_t row = 0; row < rows_; ++row) {
    const std::span<float> delta = std::span(last.delta).subspan(row * last.outputs, last.outputs);
    const std::size_t label = data.labels[samples[row]];
    loss += softmax(delta, label);
    delta[label] -= 1.0f;
  }
  return loss;
}

void mlp::backward(std::size_t k) {
  layer& l = layers_[k];
  const float* input = k == 0 ? input_.data() : layers_[k - 1].activation.data();
  float* weights = l.gradient.data();
  float* biases = weights + l.inputs * l.outputs;
  std::fill(l.gradient.begin(), l.gradient.end(), 0.0f);
  for (std::size_t row = 0; row < rows_; ++row) {
    const float* delta = l.delta.data() + row * l.outputs;
    for (std::size_t i = 0; i < l.inputs; ++i) {
      add_scaled(weights + i * l.outputs, delta, input[row * l.inputs + i], l.outputs);
    }
    add_scaled(biases, delta, 1.0f, l.outputs);
  }
  if (k == 0) return;
  layer& below = layers_[k - 1];
  below.delta.resize(rows_ * l.inputs);
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::size_t i = 0; i < l.inputs; ++i) {
      const float activation = below.activation[row * l.inputs + i];
      const float* row_of_weights = l.parameters.data() + i * l.outputs;
      const float error = dot(row_of_weights, l.delta.data() + row * l.outputs, l.outputs);
      below.delta[row * l.inputs + i] = error * (1.0f - activation * activation);
    }
  }
}

void mlp::step(std::size_t k, float scale, float learning_rate, float momentum) {
  layer& l = layers_[k];
  for (std::size_t i = 0; i < l.parameters.size(); ++i) {
    l.velocity[i] = momentum * l.velocity[i] + scale * l.gradient[i];
    l.parameters[i] -= learning_rate * l.velocity[i];
  }
}

std::size_t mlp::count_correct(const dataset& data, std::span<const std::uint32_t> samples) {
  constexpr std::size_t block = 256;  // bounds the activations that are kept
  std::size_t correct = 0;
  for (; !samples.empty(); samples = samples.subspan(std::min(block, samples.size()))) {
    const std::span<const std::uint32_t> now = samples.first(std::min(block, samples.size()));
    infer(data, now);
    const layer& last = layers_.back();
    for (std::size_t row = 0; row < now.size(); ++row) {
      const auto outputs = std::span(last.activation).subspan(row * last.outputs, last.outputs);
      const auto highest = std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
      correct += static_cast<std::size_t>(highest) == data.labels[now[row]];
    }
  }
  return correct;
}

}  // namespace training
