// SPDX-License-Identifier: BSL-1.0
// adds: work while data travels. An operation starts when it is called, co_await only waits; several may be in flight,
// and they may be awaited in any order, as long as every rank calls them in the same one.
#include <cohort/cohort.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

using gradient = std::vector<float>;

// What the backward pass of layer k would leave behind.
gradient backward(int rank, int k) { return gradient(50'000, static_cast<float>((rank + 1) * (k + 1))); }

cohort::task<int> overlap(cohort::communicator<cohort::cpu> world) {
  constexpr int layers = 6;
  std::array<gradient, layers> gradients;
  using reduction = decltype(world.all_reduce(gradients[0], cohort::average{}));
  std::vector<reduction> in_flight;
  for (int k = layers - 1; k >= 0; --k) {
    auto& grad = gradients[static_cast<std::size_t>(k)];
    grad = backward(world.rank(), k);                                // computed while those before it travel
    in_flight.push_back(world.all_reduce(grad, cohort::average{}));  // borrows grad until it is complete
  }
  auto everybody = world.barrier();
  double rank_sum = co_await world.all_reduce(static_cast<double>(world.rank()), cohort::sum{});

  for (auto& done : in_flight) co_await done;  // the later calls may well be complete before these

  std::vector<float> extra(1000, 1.0f);
  auto last = world.all_reduce(extra, cohort::sum{});
  co_await cohort::when_all(std::move(everybody), std::move(last));

  const double size = world.size();
  bool right = rank_sum == size * (size - 1) / 2 && extra.front() == static_cast<float>(world.size());
  for (std::size_t k = 0; k < layers; ++k) {
    const auto expected = static_cast<float>((size + 1) / 2 * static_cast<double>(k + 1));
    right = right && gradients[k] == gradient(50'000, expected);
  }
  std::printf("rank %d: %d gradients averaged while others were computed: %s\n", world.rank(), layers,
              right ? "all right" : "WRONG");
  co_return right ? 0 : 1;
}

int main() { return cohort::run(overlap); }
