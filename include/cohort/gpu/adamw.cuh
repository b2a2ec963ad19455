// SPDX-License-Identifier: BSL-1.0
// AdamW in one pass over memory: master weights and moments in float, the gradient scaled by a clip coefficient that stays
// on the device, and the weights written in the type of the model too. And sharded over ranks: reduce_scatter, step,
// all_gather, without a wait of the host, so that a graph can hold it.
#pragma once

#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/fused_fold.cuh>

#include <cmath>
#include <cstddef>
#include <string>

namespace cohort {

struct adamw_settings {
  float rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float decay = 0.01f;
  float largest_norm = 1.0f;  ///< the gradient is scaled down to this norm; infinity: never
};

/// What a step needs to know of the steps before and of the norm. On the device; all zero before the first step.
struct adamw_state {
  float beta1_power;  ///< beta1 ^ steps, 0 before the first
  float beta2_power;
  float clip;  ///< what the gradient is multiplied by
  int steps;
};

namespace detail {

static __global__ void begin_adamw_kernel(adamw_state* state, const float* squared_norm, adamw_settings s) {
  const adamw_state before = *state;
  adamw_state now;
  now.steps = before.steps + 1;
  now.beta1_power = before.steps == 0 ? s.beta1 : before.beta1_power * s.beta1;
  now.beta2_power = before.steps == 0 ? s.beta2 : before.beta2_power * s.beta2;
  const float norm = squared_norm == nullptr ? 0.0f : sqrtf(*squared_norm);
  // A norm that is no number clips nothing away: the NaN reaches the weights and is seen.
  now.clip = norm > s.largest_norm ? s.largest_norm / norm : 1.0f;
  *state = now;
}

/// One weight. On the host too, for the tests.
template <class Low>
COHORT_HOST_DEVICE inline void adamw_element(float& weight, float& first, float& second, float gradient, Low& low,
                                             const adamw_state& state, const adamw_settings& s) {
  const float g = gradient * state.clip;
  first = s.beta1 * first + (1.0f - s.beta1) * g;
  second = s.beta2 * second + (1.0f - s.beta2) * g * g;
  const float m = first / (1.0f - state.beta1_power);
  const float v = second / (1.0f - state.beta2_power);
  weight -= s.rate * (m / (sqrtf(v) + s.epsilon) + s.decay * weight);
  low = convert_element<Low>(weight);
}

template <int Width, class Low>
__global__ void __launch_bounds__(fused_threads)
    adamw_kernel(float* weight, float* first, float* second, const float* gradient, Low* low, std::size_t count,
                 const adamw_state* state, adamw_settings s) {
  struct alignas(Width == 1 ? 4 : 16) floats {
    float lane[Width];
  };
  struct alignas(Width * sizeof(Low) > 16 ? 16 : Width * sizeof(Low)) lows {
    Low lane[Width];
  };
  const adamw_state now = *state;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * fused_threads;
  const std::size_t begin = static_cast<std::size_t>(blockIdx.x) * fused_threads + threadIdx.x;
  const std::size_t vectors = count / Width;
  for (std::size_t v = begin; v < vectors; v += step) {
    floats w = reinterpret_cast<const floats*>(weight)[v];
    floats a = reinterpret_cast<const floats*>(first)[v];
    floats b = reinterpret_cast<const floats*>(second)[v];
    const floats g = reinterpret_cast<const floats*>(gradient)[v];
    lows l;
#pragma unroll
    for (int k = 0; k < Width; ++k) adamw_element(w.lane[k], a.lane[k], b.lane[k], g.lane[k], l.lane[k], now, s);
    reinterpret_cast<floats*>(weight)[v] = w;
    reinterpret_cast<floats*>(first)[v] = a;
    reinterpret_cast<floats*>(second)[v] = b;
    reinterpret_cast<lows*>(low)[v] = l;
  }
  const std::size_t rest = vectors * Width + begin;
  if (rest < count) adamw_element(weight[rest], first[rest], second[rest], gradient[rest], low[rest], now, s);
}

}  // namespace detail

/// The buffers of a step, all of one size.
template <class Low>
struct adamw_buffers {
  device_span<float> weight;
  device_span<float> first;  ///< moments; zero before the first step
  device_span<float> second;
  device_span<const float> gradient;
  device_span<Low> low;  ///< the weights in the type of the model, written only
};

/// Counts the step and computes the clip coefficient, on the device.
///
/// Lifetime: as everything on a stream
inline void begin_adamw(device_span<adamw_state> state, device_span<const float> squared_norm, const adamw_settings& s,
                        cudaStream_t on_stream) {
  if (state.size() != 1 || squared_norm.size() > 1) {
    throw error(errc::invalid_argument, "begin_adamw: state has " + std::to_string(state.size()) +
                                            " elements and squared_norm has " + std::to_string(squared_norm.size()) +
                                            ": expected 1, and 1 or none");
  }
  detail::begin_adamw_kernel<<<1, 1, 0, on_stream>>>(state.data(), squared_norm.empty() ? nullptr : squared_norm.data(),
                                                     s);
  detail::check_cuda(cudaGetLastError(), "begin_adamw's kernel");
}

/// One step of AdamW for these weights, after begin_adamw on the same stream.
///
/// Shapes: all buffers of one size
/// Errors: invalid_argument (sizes), or what CUDA says
/// Cost:   one pass: 16 bytes read and 12 + sizeof(Low) written for each weight
/// Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019
template <class Low>
void launch_adamw(const adamw_buffers<Low>& b, device_span<const adamw_state> state, const adamw_settings& s,
                  cudaStream_t on_stream) {
  const std::size_t n = b.weight.size();
  if (b.first.size() != n || b.second.size() != n || b.gradient.size() != n || b.low.size() != n || state.size() != 1) {
    throw error(errc::invalid_argument,
                "launch_adamw: weight has " + std::to_string(n) + " elements, first " + std::to_string(b.first.size()) +
                    ", second " + std::to_string(b.second.size()) + ", gradient " + std::to_string(b.gradient.size()) +
                    ", low " + std::to_string(b.low.size()) + ": expected one size for all, and one state");
  }
  if (n == 0) return;
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  const bool vectors = aligned(b.weight.data()) && aligned(b.first.data()) && aligned(b.second.data()) &&
                       aligned(b.gradient.data()) && aligned(b.low.data());
  const auto launch = [&](auto width) {
    constexpr int w = decltype(width)::value;
    // As many blocks as the work has: nothing is summed here, so their number decides no bits.
    const std::size_t needed = (n / w + detail::fused_threads) / detail::fused_threads;
    const auto blocks = static_cast<unsigned>(std::min<std::size_t>(needed, std::size_t{1} << 20));
    detail::adamw_kernel<w><<<blocks, detail::fused_threads, 0, on_stream>>>(
        b.weight.data(), b.first.data(), b.second.data(), b.gradient.data(), b.low.data(), n, state.data(), s);
  };
  if (vectors) launch(std::integral_constant<int, 4>{});
  else launch(std::integral_constant<int, 1>{});
  detail::check_cuda(cudaGetLastError(), "AdamW's kernel");
}

}  // namespace cohort
