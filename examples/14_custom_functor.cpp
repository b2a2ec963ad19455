// SPDX-License-Identifier: BSL-1.0
// adds: your own element type and your own functor. Any trivially copyable struct can be reduced by any T op(T, T);
// a functor that does not say that it is commutative is applied in the order of the ranks.
#include <cohort/cohort.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

struct statistics {
  double sum;
  double largest;
  std::uint64_t count;
};
struct merge {
  statistics operator()(const statistics& a, const statistics& b) const {
    return {a.sum + b.sum, std::max(a.largest, b.largest), a.count + b.count};
  }
};
template <>
inline constexpr bool cohort::is_commutative<merge, statistics> = true;  // allows the cheaper schedules

struct matrix {
  std::uint64_t a, b, c, d;
  friend bool operator==(const matrix&, const matrix&) = default;
};
struct multiply {  // the order matters
  matrix operator()(const matrix& l, const matrix& r) const {
    return {l.a * r.a + l.b * r.c, l.a * r.b + l.b * r.d, l.c * r.a + l.d * r.c, l.c * r.b + l.d * r.d};
  }
};
matrix matrix_of(int rank) { return {1, static_cast<std::uint64_t>(rank + 2), 1, 1}; }

cohort::task<int> combine(cohort::communicator<cohort::cpu> world) {
  const double measured = 10.0 + (world.rank() + 2) % world.size();
  const statistics mine{measured, measured, 1};
  const statistics all = co_await world.all_reduce(mine, merge{});
  std::printf("rank %d: %llu measurements, mean %g, largest %g\n", world.rank(),
              static_cast<unsigned long long>(all.count), all.sum / static_cast<double>(all.count), all.largest);

  const matrix factor = matrix_of(world.rank());
  const matrix product = co_await world.all_reduce(factor, multiply{});
  const std::array entries{product.a, product.b, product.c, product.d};
  std::printf("rank %d: product", world.rank());
  for (const std::uint64_t entry : entries) std::printf(" %llu", static_cast<unsigned long long>(entry));
  std::printf("\n");

  matrix in_order = matrix_of(0);
  for (int r = 1; r < world.size(); ++r) in_order = multiply{}(in_order, matrix_of(r));
  const double size = world.size();
  const bool merged = all.count == static_cast<std::uint64_t>(world.size()) && all.largest == 9.0 + size &&
                      all.sum == 10.0 * size + size * (size - 1) / 2;
  co_return merged && product == in_order ? 0 : 1;
}

int main() { return cohort::run(combine); }
