// SPDX-License-Identifier: BSL-1.0
// The multilayer perceptron of mlp.hpp one number at a time, as a GPU computes it: each struct is what one thread does for
// the i-th number of its kind. For the device and, in tests, for the host.
#pragma once

#include <cohort/gpu/header.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace training::gpu {

/// A rank's part of the batch that is next. How far the training has come lies on the device, so that a graph, which always
/// does the same, does the next step.
struct samples {
  const std::uint32_t* order;
  std::size_t count;
  std::size_t batch;
  const std::uint32_t* step;
  std::size_t rank;
  std::size_t ranks;

  [[nodiscard]] COHORT_HOST_DEVICE std::size_t batch_size() const {
    const std::size_t rest = count - *step * batch;
    return rest < batch ? rest : batch;
  }
  [[nodiscard]] COHORT_HOST_DEVICE std::size_t begin() const { return batch_size() * rank / ranks; }
  [[nodiscard]] COHORT_HOST_DEVICE std::size_t rows() const { return batch_size() * (rank + 1) / ranks - begin(); }
  [[nodiscard]] COHORT_HOST_DEVICE std::size_t operator[](std::size_t row) const {
    return order[*step * batch + begin() + row];
  }
};

/// What a layer reads: the pixels of the samples, or the activation of the layer below.
struct layer_input {
  const float* pixels;  // null: rows
  const float* rows;
  std::size_t width;

  [[nodiscard]] COHORT_HOST_DEVICE float at(const samples& s, std::size_t row, std::size_t i) const {
    return pixels != nullptr ? pixels[s[row] * width + i] : rows[row * width + i];
  }
};

/// Weights (a row of `outputs` for each input) and then biases, their gradient, and a row of numbers for each sample.
struct layer {
  std::size_t inputs;
  std::size_t outputs;
  float* parameters;
  float* gradient;
  float* activation;
  float* delta;  // of the loss by the outputs before the nonlinearity
};

/// i: row and output.
struct unit_output {
  samples s;
  layer_input in;
  layer l;
  bool is_last;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t row = i / l.outputs;
    const std::size_t j = i % l.outputs;
    if (row >= s.rows()) return;
    float sum = l.parameters[l.inputs * l.outputs + j];
    for (std::size_t k = 0; k < l.inputs; ++k) sum += in.at(s, row, k) * l.parameters[k * l.outputs + j];
    l.activation[i] = is_last ? sum : std::tanh(sum);
  }
};

/// i: row. The loss of a sample and its derivative by the outputs; or whether the highest output is at its label.
struct row_loss {
  samples s;
  layer last;
  const std::uint8_t* labels;
  float* loss;
  float* correct;

  COHORT_HOST_DEVICE void operator()(std::size_t row) const {
    const bool is_there = row < s.rows();
    loss[row] = 0;
    correct[row] = 0;
    if (!is_there) return;
    const float* const out = last.activation + row * last.outputs;
    std::size_t highest = 0;
    for (std::size_t j = 1; j < last.outputs; ++j) highest = out[j] > out[highest] ? j : highest;
    double total = 0;
    for (std::size_t j = 0; j < last.outputs; ++j) total += std::exp(static_cast<double>(out[j] - out[highest]));
    const double log_total = std::log(total) + static_cast<double>(out[highest]);
    const std::size_t label = labels[s[row]];
    for (std::size_t j = 0; j < last.outputs; ++j) {
      const auto probability = static_cast<float>(std::exp(static_cast<double>(out[j]) - log_total));
      last.delta[row * last.outputs + j] = probability - (j == label ? 1.0f : 0.0f);
    }
    loss[row] = static_cast<float>(log_total - static_cast<double>(out[label]));
    correct[row] = highest == label ? 1.0f : 0.0f;
  }
};

/// i: weight or bias; added up over the samples in their order.
struct parameter_gradient {
  samples s;
  layer_input in;
  layer l;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t k = i / l.outputs;
    const std::size_t j = i % l.outputs;
    float sum = 0;
    for (std::size_t row = 0; row < s.rows(); ++row) {
      sum += (k < l.inputs ? in.at(s, row, k) : 1.0f) * l.delta[row * l.outputs + j];
    }
    l.gradient[i] = sum;
  }
};

/// i: row and output of the layer below.
struct delta_below {
  samples s;
  layer l;
  layer below;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t row = i / l.inputs;
    const std::size_t k = i % l.inputs;
    if (row >= s.rows()) return;
    float error = 0;
    for (std::size_t j = 0; j < l.outputs; ++j) error += l.parameters[k * l.outputs + j] * l.delta[row * l.outputs + j];
    const float activation = below.activation[i];
    below.delta[i] = error * (1.0f - activation * activation);
  }
};

/// i: parameter. Descent with momentum, by the gradient of the whole batch.
struct descent {
  samples s;
  float* parameters;
  float* velocity;
  const float* gradient;
  float learning_rate;
  float momentum;

  COHORT_HOST_DEVICE void operator()(std::size_t i) const {
    velocity[i] = momentum * velocity[i] + gradient[i] / static_cast<float>(s.batch_size());
    parameters[i] -= learning_rate * velocity[i];
  }
};

/// One thread: the numbers of the rows to the totals of the epoch, in the order of the rows, and on to the next step.
struct end_of_step {
  const float* of_rows;
  std::size_t rows;
  float* total;
  std::uint32_t* step;

  COHORT_HOST_DEVICE void operator()(std::size_t) const {
    double sum = static_cast<double>(*total);
    for (std::size_t row = 0; row < rows; ++row) sum += static_cast<double>(of_rows[row]);
    *total = static_cast<float>(sum);
    *step += 1;
  }
};

}  // namespace training::gpu
