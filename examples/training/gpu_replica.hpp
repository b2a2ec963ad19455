// SPDX-License-Identifier: BSL-1.0
// What one rank keeps of the model and of the data on its GPU, and the order in which the kernels of gpu_elements.hpp make
// a step of it. `Memory` says where buffers are and `Run` how the numbers of a kind are computed: the device in the
// program, the host in its test.
#pragma once

#include "dataset.hpp"
#include "gpu_elements.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace training::gpu {

/// Images and labels, and the order in which an epoch goes through them.
template <class Memory>
struct images {
  typename Memory::template buffer<float> pixels;
  typename Memory::template buffer<std::uint8_t> labels;
  typename Memory::template buffer<std::uint32_t> order;

  explicit images(const dataset& data) : pixels(data.pixels.size()), labels(data.size()), order(data.size()) {
    Memory::copy(std::span<const float>(data.pixels), pixels);
    Memory::copy(std::span<const std::uint8_t>(data.labels), labels);
  }
};

template <class Memory>
class replica {
 public:
  template <class T>
  using buffer = typename Memory::template buffer<T>;

  /// `widths`: pixels of an image, hidden layers, classes; `batch`: of all ranks together.
  replica(const split_dataset& data, std::span<const std::size_t> widths, std::size_t batch, int rank, int ranks)
      : train_(data.train), test_(data.test), batch_(batch), rank_(rank), ranks_(ranks) {
    const std::size_t rows = std::max(most_rows(batch), most_rows(data.test.size()));
    std::size_t count = 0;
    for (std::size_t k = 0; k + 1 < widths.size(); ++k) count += (widths[k] + 1) * widths[k + 1];
    parameters_ = buffer<float>(count);
    gradient_ = buffer<float>(count);
    velocity_ = buffer<float>(count);
    loss_ = buffer<float>(rows);
    correct_ = buffer<float>(rows);
    totals_ = buffer<float>(2);
    step_ = buffer<std::uint32_t>(2);  // of training, of the test
    Memory::copy(std::span<const float>(std::vector<float>(count)), velocity_);
    std::size_t at = 0;
    for (std::size_t k = 0; k + 1 < widths.size(); ++k) {
      activations_.emplace_back(rows * widths[k + 1]);
      deltas_.emplace_back(rows * widths[k + 1]);
      layers_.push_back({widths[k], widths[k + 1], parameters_.data() + at, gradient_.data() + at,
                         activations_.back().data(), deltas_.back().data()});
      at += (widths[k] + 1) * widths[k + 1];
    }
    // Every row of the test is tried in one step, in its own order.
    Memory::copy(std::span<const std::uint32_t>(permutation(data.test.size(), 0)), test_.order);
  }

  [[nodiscard]] buffer<float>& parameters() noexcept { return parameters_; }
  [[nodiscard]] buffer<float>& gradient() noexcept { return gradient_; }
  /// The loss of the epoch so far, and how many images of the test were named rightly: of this rank.
  [[nodiscard]] buffer<float>& totals() noexcept { return totals_; }
  [[nodiscard]] std::size_t steps() const { return (train_.order.size() + batch_ - 1) / batch_; }

  void begin_epoch(std::span<const std::uint32_t> order) {
    constexpr std::uint32_t from_start[2] = {0, 0};
    constexpr float none[2] = {0, 0};
    Memory::copy(order, train_.order);
    Memory::copy(std::span<const std::uint32_t>(from_start), step_);
    Memory::copy(std::span<const float>(none), totals_);
  }
  /// The gradient of this rank's part of the next batch.
  template <class Run>
  void find_gradient(const Run& run) {
    const samples s = part_of(train_, batch_, 0);
    const std::size_t rows = most_rows(batch_);
    const layer_input image{train_.pixels.data(), nullptr, layers_[0].inputs};
    infer(run, s, rows, image);
    run(rows, row_loss{s, layers_.back(), train_.labels.data(), loss_.data(), correct_.data()});
    for (std::size_t k = layers_.size(); k-- > 0;) {
      const layer& l = layers_[k];
      run((l.inputs + 1) * l.outputs, parameter_gradient{s, input_of(k, image), l});
      if (k > 0) run(rows * l.inputs, delta_below{s, l, layers_[k - 1]});
    }
  }
  /// The step of all ranks together, when the gradient is the sum of theirs.
  template <class Run>
  void descend(const Run& run, float learning_rate, float momentum) {
    const samples s = part_of(train_, batch_, 0);
    run(parameters_.size(),
        descent{s, parameters_.data(), velocity_.data(), gradient_.data(), learning_rate, momentum});
    run(1, end_of_step{loss_.data(), most_rows(batch_), totals_.data(), step_.data()});
  }
  /// Tries this rank's share of the test.
  template <class Run>
  void try_test(const Run& run) {
    const samples s = part_of(test_, test_.order.size(), 1);
    const std::size_t rows = most_rows(test_.order.size());
    infer(run, s, rows, {test_.pixels.data(), nullptr, layers_[0].inputs});
    run(rows, row_loss{s, layers_.back(), test_.labels.data(), loss_.data(), correct_.data()});
    run(1, end_of_step{correct_.data(), rows, totals_.data() + 1, step_.data() + 1});
  }

 private:
  /// The most that a rank has of so many: a launch is for as many, whatever the step.
  [[nodiscard]] std::size_t most_rows(std::size_t of) const {
    return std::min(of, of / static_cast<std::size_t>(ranks_) + 1);
  }
  [[nodiscard]] samples part_of(const images<Memory>& of, std::size_t batch, std::size_t which) const {
    return {of.order.data(),
            of.order.size(),
            batch,
            step_.data() + which,
            static_cast<std::size_t>(rank_),
            static_cast<std::size_t>(ranks_)};
  }
  [[nodiscard]] layer_input input_of(std::size_t k, const layer_input& image) const {
    return k == 0 ? image : layer_input{nullptr, layers_[k - 1].activation, layers_[k].inputs};
  }
  template <class Run>
  void infer(const Run& run, const samples& s, std::size_t rows, const layer_input& image) {
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      run(rows * layers_[k].outputs, unit_output{s, input_of(k, image), layers_[k], k + 1 == layers_.size()});
    }
  }

  images<Memory> train_;
  images<Memory> test_;
  std::size_t batch_;
  int rank_;
  int ranks_;
  std::vector<layer> layers_{};
  std::vector<buffer<float>> activations_{};
  std::vector<buffer<float>> deltas_{};
  buffer<float> parameters_{};
  buffer<float> gradient_{};
  buffer<float> velocity_{};
  buffer<float> loss_{};
  buffer<float> correct_{};
  buffer<float> totals_{};
  buffer<std::uint32_t> step_{};
};

}  // namespace training::gpu
