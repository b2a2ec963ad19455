// SPDX-License-Identifier: BSL-1.0
// The fold's arithmetic, element by element and by vectors, run by the host on memory of the host: the functions that the
// kernels call, held against a fold written out in plain code. The same for 8-bit floats in blocks and for the phases of
// ranks that read each other's memory. Needs no device.
#include <cohort/gpu/adamw.cuh>
#include <cohort/gpu/fold.cuh>
#include <cohort/nccl/reduction_map.hpp>

#include "float8_rule.hpp"
#include "float8_warps.hpp"
#include "host_peers.hpp"
#include "support.hpp"
#include "values.hpp"

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

namespace {

using namespace gpu_test;

template <class T, class Op>
void compare(const char* name, const Op& op) {
  using cohort::detail::fold_width;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{fold_width<T>}, std::size_t{fold_width<T>} * 5}) {
      std::vector<std::vector<T>> in;
      for (int r = 0; r < ranks; ++r) in.push_back(values<T>(r, count));
      const std::vector<T> expected = folded_in_order<T>(in, op);
      // In slots behind each other, with the own ones elsewhere.
      const int own = ranks / 2;
      std::vector<T> slots;
      for (int r = 0; r < ranks; ++r) slots.insert(slots.end(), in[r].begin(), in[r].end());
      const auto from = cohort::fold_sources<T>::of_slots(slots.data(), count, ranks, in[own].data(), own);
      const cohort::detail::fold_arithmetic<T, Op> how{cohort::detail::make_applied<T>(op), ranks};
      std::vector<T> out(count);
      const cohort::detail::fold_element_at<T, Op> each{how, from, out.data(), 0};
      for (std::size_t i = 0; i < count; ++i) each(i);
      EXPECT(same(out, expected, name, ranks));
      if (count % fold_width<T> != 0 || fold_width<T> == 1) continue;
      alignas(16) T aligned[16 * 5];
      const bool fits = count <= sizeof aligned / sizeof(T) && cohort::detail::is_vector_aligned(slots.data()) &&
                        cohort::detail::is_vector_aligned(in[own].data());
      if (!fits) continue;
      const cohort::detail::fold_vector_at<T, Op> by_vector{how, from, aligned};
      for (std::size_t v = 0; v < count / fold_width<T>; ++v) by_vector(v);
      EXPECT(same(std::vector<T>(aligned, aligned + count), expected, name, ranks));
    }
  }
}

/// More elements than threads beside each other have at a time, whole and not.
template <class T, class Op>
void compare_elements(const char* name, const Op& op) {
  using some = cohort::detail::fold_elements_at<T, Op>;
  static_assert(some::each > 1);
  const std::size_t once = some::each * some::apart;
  for (const int ranks : {1, 2, 5, 7}) {
    for (const std::size_t count :
         {std::size_t{1}, some::apart + 1, once - 1, once, once + some::apart + 3, 2 * once}) {
      std::vector<std::vector<T>> in;
      cohort::fold_sources<T> from;
      from.ranks = ranks;
      for (int r = 0; r < ranks; ++r) in.push_back(values<T>(r, count + 1));
      for (int r = 0; r < ranks; ++r) from.listed[r] = in[r].data();
      std::vector<T> out(count + 2, value_of<T>(0, 7));
      const cohort::detail::fold_arithmetic<T, Op> how{cohort::detail::make_applied<T>(op), ranks};
      const some each{{how, from, out.data(), 1}, count};
      for (std::size_t i = 0; i < some::calls(count); ++i) each(i);
      std::vector<T> expected = folded_in_order<T>(in, op);
      expected.front() = value_of<T>(0, 7);  // what is around the elements stays
      expected.push_back(value_of<T>(0, 7));
      EXPECT(same(out, expected, name, ranks));
    }
  }
}

template <class T, class Op>
void compare_scan(const T& start, const Op& op) {
  std::vector<std::vector<T>> in = {{start}};
  for (int r = 0; r < 3; ++r) in.push_back(values<T>(r, 1));
  cohort::fold_sources<T> from;
  from.ranks = 3;
  for (int r = 0; r < 3; ++r) from.listed[r] = in[r + 1].data();
  std::vector<T> out(1);
  const cohort::detail::fold_from_at<T, Op> each{{cohort::detail::make_applied<T>(op), 3}, from, start, out.data()};
  each(0);
  EXPECT(same(out, folded_in_order<T>(in, op), "scan", 3));
}

/// Steps of AdamW on one weight, against the formulas in double.
void adamw() {
  const cohort::adamw_settings s;
  for (const float start : {0.0f, 1.0f, -3.5f}) {
    float weight = start;
    float first = 0;
    float second = 0;
    cohort::bfloat16 low{};
    cohort::adamw_state state{0, 0, 0.5f, 0};
    double w = start;
    double m = 0;
    double v = 0;
    for (int t = 1; t <= 20; ++t) {
      const float gradient = 0.25f * static_cast<float>(t % 5 - 1);
      state.steps = t;
      state.beta1_power = t == 1 ? s.beta1 : state.beta1_power * s.beta1;
      state.beta2_power = t == 1 ? s.beta2 : state.beta2_power * s.beta2;
      cohort::detail::adamw_element(weight, first, second, gradient, low, state, s);
      const double g = 0.5 * gradient;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      w -= 1e-3 * (m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8) + 0.01 * w);
      EXPECT(std::abs(weight - w) < 1e-5);
      EXPECT(same_bits(low, cohort::bfloat16(weight)));
    }
  }
}

}  // namespace

int main() {
  compare<float>("sum", cohort::sum{});
  compare<float>("plus", std::plus<>{});
  compare<double>("max", cohort::max{});
  compare<float>("min", cohort::min{});
  compare<float>("average", cohort::average{});
  compare<float>("premultiplied_sum", cohort::premultiplied_sum{0.25f});
  compare<std::int16_t>("int16 sum", cohort::sum{});
  compare<std::uint8_t>("xor", cohort::bit_xor{});
  compare<cohort::half>("half sum", cohort::folded{cohort::sum{}});
  compare<cohort::bfloat16>("bfloat16 average", cohort::average{});
  compare<std::complex<float>>("complex product", cohort::product{});
  compare<affine>("affine", compose{});
  compare<float>("keep the first", first_of{});
  compare_elements<float>("elements: float sum", cohort::sum{});
  compare_elements<cohort::bfloat16>("elements: bfloat16 average", cohort::average{});
  compare_elements<std::uint8_t>("elements: xor", cohort::bit_xor{});
  compare_elements<float>("elements: keep the first", first_of{});
  compare_scan<float>(0.0f, cohort::sum{});
  compare_scan<affine>(affine{1, 0, 7}, compose{});
  adamw();
  float8_rule<cohort::float8_blocks<>>();
  float8_rule<cohort::float8_blocks<cohort::float8_e5m2, 32>>();
  float8_rule<cohort::float8_blocks<cohort::float8_e4m3, 256>>();
  float8_warps<32, 64, 128, 256>();
  peer_reductions<float>("phases: float", largest_magnitude{});
  peer_reductions<affine>("phases: affine", compose{});
  peer_moves();
  quantised_peers<cohort::float8_blocks<>, float>(cohort::sum{}, false);
  quantised_peers<cohort::float8_blocks<>, cohort::bfloat16>(cohort::average{}, true);
  quantised_peers<cohort::float8_blocks<cohort::float8_e5m2, 32>, float>(cohort::average{}, true);
  quantised_peers<cohort::float8_blocks<cohort::float8_e4m3, 256>, cohort::half>(cohort::sum{}, false);
  quantised_peers<cohort::float8_blocks<cohort::float8_e4m3, 256>, float>(cohort::sum{}, false);
  return conclude("fold_on_host");
}
