// SPDX-License-Identifier: BSL-1.0
// adds: the forms of all_reduce: in place, from one buffer to another, and one value in, one value out; other element
// types and other functors. The first two are the examples of the PyTorch documentation.
#include <cohort/cohort.hpp>

#include <array>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <functional>

cohort::task<int> combine(cohort::communicator<cohort::cpu> world) {
  const int rank = world.rank();
  const int size = world.size();

  // Two ranks: [1, 2] and [3, 4] become [4, 6].
  std::array<std::int64_t, 2> numbers{1 + 2 * rank, 2 + 2 * rank};
  co_await world.all_reduce(numbers, cohort::sum{});
  std::printf("rank %d: sum [%lld, %lld]\n", rank, static_cast<long long>(numbers[0]),
              static_cast<long long>(numbers[1]));

  // Two ranks: [1+1i, 2+2i] and [3+3i, 4+4i] become [4+4i, 6+6i]; std::plus<> is sum.
  using complex = std::complex<float>;
  const auto first = static_cast<float>(1 + 2 * rank);
  const std::array<complex, 2> in{complex{first, first}, complex{first + 1, first + 1}};
  std::array<complex, 2> out{};
  co_await world.all_reduce(in, out, std::plus<>{});
  std::printf("rank %d: sum [%g%+gi, %g%+gi]\n", rank, out[0].real(), out[0].imag(), out[1].real(), out[1].imag());

  const double mean = co_await world.all_reduce(static_cast<double>(rank), cohort::average{});
  const int largest = co_await world.all_reduce(rank * rank, cohort::max{});
  const unsigned present = co_await world.all_reduce(1u << rank % 32, cohort::bit_or{});
  std::printf("rank %d: average rank %g, largest square %d, present %#x\n", rank, mean, largest, present);

  const std::array<std::int64_t, 2> expected{size * size, size * size + size};
  const auto total = static_cast<float>(size * size);
  const bool sums = numbers == expected && out[0] == complex{total, total};
  const unsigned everyone = size >= 32 ? ~0u : (1u << size) - 1;
  const bool values = mean == (size - 1) / 2.0 && largest == (size - 1) * (size - 1) && present == everyone;
  co_return sums && values ? 0 : 1;
}

int main() { return cohort::run(combine); }
