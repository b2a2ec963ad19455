// SPDX-License-Identifier: BSL-1.0
// The model of examples/gpu_data_parallel_training.cu on memory of the host, number by number as its kernels compute it:
// for one rank and for several whose gradients are added up, it learns what the model in plain C++ learns.
#include "../../examples/training/digits.hpp"
#include "../../examples/training/gpu_replica.hpp"
#include "../../examples/training/mlp.hpp"

#include "support.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace training;

struct host_memory {
  template <class T>
  class buffer {
   public:
    buffer() = default;
    explicit buffer(std::size_t n) : all_(n, T(77)) {}  // as a device's, it begins with anything
    [[nodiscard]] T* data() const noexcept { return const_cast<T*>(all_.data()); }
    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

   private:
    std::vector<T> all_{};
  };
  template <class T>
  static void copy(std::span<const T> from, buffer<T>& to) {
    std::copy(from.begin(), from.end(), to.data());
  }
};
constexpr auto run = [](std::size_t count, const auto& element) {
  for (std::size_t i = 0; i < count; ++i) element(i);
};

void learns_the_same(int ranks, std::size_t batch) {
  const split_dataset data = read_digits(default_digits_directory());
  const std::vector<std::size_t> widths{data.train.features, 24, 16, data.train.classes};
  mlp plain(widths);
  plain.initialise(1);
  std::vector<gpu::replica<host_memory>> all;
  for (int r = 0; r < ranks; ++r) {
    all.emplace_back(data, widths, batch, r, ranks);
    float* to = all.back().parameters().data();
    for (std::size_t k = 0; k < plain.layers(); ++k) {
      to = std::copy(plain.parameters(k).begin(), plain.parameters(k).end(), to);
    }
  }
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto order = permutation(data.train.size(), 2 + static_cast<std::uint64_t>(epoch));
    double loss = 0;
    const std::span<const std::uint32_t> rows(order);
    for (std::size_t first = 0; first < rows.size(); first += batch) {
      const auto now = rows.subspan(first, std::min(batch, rows.size() - first));
      loss += plain.forward(data.train, now);
      for (std::size_t k = plain.layers(); k-- > 0;) {
        plain.backward(k);
        plain.step(k, 1.0f / static_cast<float>(now.size()), 0.02f, 0.9f);
      }
    }
    const auto test_order = permutation(data.test.size(), 0);
    const auto correct = static_cast<double>(plain.count_correct(data.test, test_order));

    for (auto& r : all) r.begin_epoch(order);
    for (std::size_t step = 0; step < all[0].steps(); ++step) {
      for (auto& r : all) r.find_gradient(run);
      for (std::size_t i = 0; i < all[0].gradient().size(); ++i) {
        float sum = 0;
        for (auto& r : all) sum += r.gradient().data()[i];
        for (auto& r : all) r.gradient().data()[i] = sum;
      }
      for (auto& r : all) r.descend(run, 0.02f, 0.9f);
    }
    double found_loss = 0;
    double found_correct = 0;
    for (auto& r : all) {
      r.try_test(run);
      found_loss += static_cast<double>(r.totals().data()[0]);
      found_correct += static_cast<double>(r.totals().data()[1]);
    }
    EXPECT(std::abs(found_loss - loss) < 1e-3 * loss);
    EXPECT(std::abs(found_correct - correct) <= 2);
    EXPECT(epoch == 0 || correct > 0.8 * static_cast<double>(data.test.size()));
  }
  double farthest = 0;
  for (auto& r : all) {
    const float* found = r.parameters().data();
    for (std::size_t k = 0; k < plain.layers(); ++k) {
      for (const float p : plain.parameters(k)) {
        farthest = std::max(farthest, static_cast<double>(std::abs(p - *found++)));
      }
    }
  }
  if (!EXPECT(farthest < 1e-3)) std::printf("  %d ranks: the farthest parameter is off by %.3g\n", ranks, farthest);
}

}  // namespace

int main() {
  learns_the_same(1, 32);
  learns_the_same(3, 32);
  learns_the_same(8, 5);  // fewer images than ranks
  return gpu_test::conclude("training_on_host");
}
