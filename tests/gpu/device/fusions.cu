// SPDX-License-Identifier: BSL-1.0
// What is fused into a fold, and AdamW, on a device against plain code: prologues, epilogues, casts, the squared norm, the
// clip coefficient, and a sharded step in a world of one, eager and captured; and an all_reduce of 8-bit floats there.
#include <cohort/gpu/quantised_fold.cuh>
#include <cohort/nccl/quantised_all_reduce.hpp>
#include <cohort/nccl/sharded_adamw.cuh>
#include <cohort/nccl/transform_reduce.cuh>
#include <cohort/store/memory_store.hpp>

#include "../float8_oracle.hpp"
#include "../support.hpp"
#include "../values.hpp"

#include <cmath>
#include <vector>

namespace {

using namespace gpu_test;
using cohort::device_buffer;
using cohort::device_span;

template <class T>
std::vector<std::remove_const_t<T>> on_host(device_span<T> where, cudaStream_t s) {
  std::vector<std::remove_const_t<T>> host(where.size());
  cohort::copy_to_host(where, std::span(host), s);
  cohort::detail::check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
  return host;
}
bool near(double found, double expected, double relative) {
  if (std::abs(found - expected) <= relative * (std::abs(expected) + 1e-6)) return true;
  std::printf("  found %.9g, expected %.9g\n", found, expected);
  return false;
}

/// bfloat16 in, float out, scaled; with the norm, twice, for the same bits.
void fold_with_norm() {
  const cohort::stream s;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const std::size_t count : {1, 7, 8, 9, 1000, 300007}) {
      std::vector<std::vector<cohort::bfloat16>> in;
      std::vector<device_buffer<cohort::bfloat16>> memory;
      cohort::fold_sources<cohort::bfloat16> from;
      from.ranks = ranks;
      for (int r = 0; r < ranks; ++r) {
        in.push_back(values<cohort::bfloat16>(r, count));
        memory.emplace_back(count);
        cohort::copy_to_device<cohort::bfloat16>(in.back(), memory.back().device_view(), s.get());
        from.listed[r] = memory.back().data();
      }
      device_buffer<float> out(count);
      device_buffer<float> norm(1 + cohort::squared_norm_parts);
      float first_norm = 0;
      for (int again = 0; again < 2; ++again) {
        cohort::launch_fused_fold<float>(from, out.data(), count, cohort::sum{}, cohort::unchanged{},
                                         cohort::times{0.25f}, cohort::squared_norm{norm.data(), norm.data() + 1},
                                         s.get());
        std::vector<float> expected(count);
        double squares = 0;
        for (std::size_t i = 0; i < count; ++i) {
          float total = static_cast<float>(in[0][i]);
          for (int r = 1; r < ranks; ++r) total += static_cast<float>(in[static_cast<std::size_t>(r)][i]);
          expected[i] = total * 0.25f;
          squares += static_cast<double>(expected[i]) * expected[i];
        }
        EXPECT(same(on_host(out.device_view(), s.get()), expected, "fused fold", ranks));
        const float found = on_host(norm.device_view().first(1), s.get())[0];
        EXPECT(near(found, squares, 1e-4));
        if (again == 0) first_norm = found;
        EXPECT(same_bits(found, first_norm));
      }
    }
  }
}

void sharded_steps() {
  cohort::memory_store meeting;
  cohort::nccl_options o;
  o.on_device = cohort::device{0};
  const auto world = cohort::connect<cohort::nccl>(meeting, 0, 1, o);
  const cohort::stream s;
  const cohort::on here{s};
  const std::size_t n = 10007;
  std::vector<cohort::bfloat16> start = values<cohort::bfloat16>(1, n);
  const std::vector<cohort::bfloat16> gradient = values<cohort::bfloat16>(2, n);
  device_buffer<cohort::bfloat16> weights(n);
  device_buffer<cohort::bfloat16> gradients(n);
  cohort::copy_to_device<cohort::bfloat16>(start, weights.device_view(), s.get());
  cohort::copy_to_device<cohort::bfloat16>(gradient, gradients.device_view(), s.get());
  cohort::adamw_settings settings;
  settings.largest_norm = 2.0f;
  cohort::sharded_adamw<cohort::bfloat16> optimiser(world, std::as_const(weights).device_view(), settings, here);
  const auto step = [&] { (void)optimiser.step(std::as_const(gradients).device_view(), weights.device_view(), here); };
  step();
  step();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cohort::detail::check_cuda(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  step();
  cohort::detail::check_cuda(cudaStreamEndCapture(s.get(), &graph), "cudaStreamEndCapture");
  cohort::detail::check_cuda(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 3; ++i) cohort::detail::check_cuda(cudaGraphLaunch(ready, s.get()), "cudaGraphLaunch");
  const std::vector<float> found = on_host(optimiser.master(), s.get());
  // Five steps in plain code.
  double squares = 0;
  for (const cohort::bfloat16 g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(squares);
  const double clip = norm > 2.0 ? 2.0 / norm : 1.0;
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double w = static_cast<float>(start[i]);
    double m = 0;
    double v = 0;
    for (int t = 1; t <= 5; ++t) {
      const double g = static_cast<float>(gradient[i]) * clip;
      m = 0.9f * m + (1 - 0.9f) * g;
      v = 0.999f * v + (1 - 0.999f) * g * g;
      w -= 1e-3f * (m / (1 - std::pow(0.9f, t)) / (std::sqrt(v / (1 - std::pow(0.999f, t))) + 1e-8f) + 0.01f * w);
    }
    worst = std::max(worst, std::abs(found[i] - w));
  }
  if (!EXPECT(worst < 1e-4)) std::printf("  largest difference %.3g\n", worst);
  const std::vector<cohort::bfloat16> low = on_host(weights.device_view(), s.get());
  bool rounded = true;
  for (std::size_t i = 0; i < n; ++i) rounded = rounded && same_bits(low[i], cohort::bfloat16(found[i]));
  EXPECT(rounded);
  static_cast<void>(cudaGraphExecDestroy(ready));
  static_cast<void>(cudaGraphDestroy(graph));
}

struct square {
  COHORT_HOST_DEVICE double operator()(float x) const { return static_cast<double>(x) * x; }
};

void one_number() {
  cohort::memory_store meeting;
  cohort::nccl_options o;
  o.on_device = cohort::device{0};
  const auto world = cohort::connect<cohort::nccl>(meeting, 0, 1, o);
  const cohort::stream s;
  for (const std::size_t n : {0, 1, 1000, 1 << 20}) {
    const std::vector<float> host = values<float>(3, n);
    device_buffer<float> in(n);
    device_buffer<double> result(1);
    cohort::copy_to_device<float>(host, in.device_view(), s.get());
    (void)cohort::transform_reduce(world, std::as_const(in).device_view(), result.device_view(), square{},
                                   cohort::sum{}, cohort::on{s});
    double expected = 0;
    for (const float x : host) expected += static_cast<double>(x) * x;
    EXPECT(on_host(result.device_view(), s.get())[0] == expected);  // quarters: exact in any order
  }
}

/// In one chunk and in several, and captured.
void eight_bits() {
  cohort::memory_store meeting;
  cohort::nccl_options o;
  o.on_device = cohort::device{0};
  const auto world = cohort::connect<cohort::nccl>(meeting, 0, 1, o);
  const cohort::stream s;
  const cohort::on here{s};
  using blocks = cohort::float8_blocks<>;
  const std::vector<float> start = float8_values(0, 100003);
  const std::vector<float> expected = float8_summed<blocks>({start}, 1.0f);
  device_buffer<float> v(start.size());
  const auto step = [&] { (void)cohort::quantised_all_reduce(world, v.device_view(), cohort::sum{}, blocks{}, here); };
  for (const std::size_t chunk : {std::size_t{1} << 22, std::size_t{8192}}) {
    world.set_fold_sizes(1 << 20, chunk);
    cohort::copy_to_device<float>(start, v.device_view(), s.get());
    step();
    EXPECT(same(on_host(v.device_view(), s.get()), expected, "quantised_all_reduce", 1));
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cohort::detail::check_cuda(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  step();
  cohort::detail::check_cuda(cudaStreamEndCapture(s.get(), &graph), "cudaStreamEndCapture");
  cohort::detail::check_cuda(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  cohort::copy_to_device<float>(start, v.device_view(), s.get());
  for (int i = 0; i < 2; ++i) cohort::detail::check_cuda(cudaGraphLaunch(ready, s.get()), "cudaGraphLaunch");
  EXPECT(same(on_host(v.device_view(), s.get()), expected, "quantised_all_reduce in a graph", 1));
  static_cast<void>(cudaGraphExecDestroy(ready));
  static_cast<void>(cudaGraphDestroy(graph));
}

}  // namespace

int main() {
  skip_without_device("device/fusions");
  fold_with_norm();
  sharded_steps();
  one_number();
  eight_bits();
  return conclude("device/fusions");
}
