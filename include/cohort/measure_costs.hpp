// SPDX-License-Identifier: BSL-1.0
// Measures what messages cost between the ranks of a communicator: the numbers of which `cohort tune` makes a tuning.
// A program may do it itself and give the result to `use_costs`.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/collective/fit.hpp>
#include <cohort/collective/link_costs.hpp>
#include <cohort/communicator.hpp>
#include <cohort/detail/fold.hpp>
#include <cohort/ops.hpp>
#include <cohort/task.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace cohort {

namespace detail {

inline constexpr int cost_samples = 9;

[[nodiscard]] inline double median_of(std::array<double, cost_samples>& samples) noexcept {
  std::sort(samples.begin(), samples.end());
  return samples[cost_samples / 2];
}

/// Seconds since; on a clock that never steps back.
[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One exchange with both neighbours on the ring of all ranks, of that many bytes, in seconds.
template <backend Backend>
task<double> time_exchange(const communicator<Backend>& comm, std::size_t bytes, int calls) {
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  const std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  std::array<double, cost_samples> samples{};
  for (double& sample : samples) {
    co_await comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) co_await comm.exchange(out, to{next}, in, from{before});
    sample = seconds_since(start) / calls;
  }
  co_return median_of(samples);
}

/// The time from one message to the next when a rank sends many without waiting.
template <backend Backend>
task<double> time_burst(const communicator<Backend>& comm) {
  constexpr int messages = 64;
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  const std::array<std::byte, 8> out{};
  std::array<std::array<std::byte, 8>, messages> in{};
  std::array<double, cost_samples> samples{};
  for (double& sample : samples) {
    co_await comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    std::vector<operation<received>> arriving;
    std::vector<operation<>> leaving;
    for (auto& each : in) arriving.push_back(comm.recv(std::span(each), from{before}));
    for (int i = 0; i < messages; ++i) leaving.push_back(comm.send(std::span(out), to{next}));
    for (auto& each : leaving) co_await each;
    for (auto& each : arriving) co_await each;
    sample = seconds_since(start) / messages;
  }
  co_return median_of(samples);
}

/// A byte of float that is added to another, beyond the level of cache that one core has for itself.
[[nodiscard]] inline double time_combining() {
  constexpr std::size_t count = std::size_t{1} << 18;
  std::vector<float> a(count, 1.0f);
  std::vector<float> b(count, 2.0f);
  const sum plus;
  const reducer add = make_reducer<float>(plus);
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(a.data()),
                                reinterpret_cast<const std::byte*>(b.data())};
  std::array<double, cost_samples> samples{};
  for (double& sample : samples) {
    const auto start = std::chrono::steady_clock::now();
    add.fold_many(add.op, reinterpret_cast<std::byte*>(a.data()), sources, 2, count);
    sample = seconds_since(start) / (count * sizeof(float));
  }
  return median_of(samples);
}

}  // namespace detail

/// Measures the messages between the ranks: those that are sent where memory is not shared, or all of them in a world
/// that was joined with COHORT_SHM=0.
///
/// Result:    the same on every rank: the worst that any of them measured
/// Needs:     every rank calls it; at least two
/// Completes: after some hundredths of a second
/// Errors:    invalid_argument in a world of one; as exchange and all_reduce
/// Lifetime:  `comm` must outlive the task
template <backend Backend>
task<collective::link_costs> measure_costs(const communicator<Backend>& comm) {
  if (comm.size() < 2) {
    throw error(errc::invalid_argument, "measure_costs: there is one rank, and no message to measure: expected two");
  }
  constexpr std::size_t large = std::size_t{1} << 20;
  static_cast<void>(co_await detail::time_exchange(comm, large, 2));  // buffers and connections are made
  collective::link_costs costs;
  costs.latency = co_await detail::time_exchange(comm, 8, 32);
  costs.overhead = co_await detail::time_burst(comm);
  const double whole = co_await detail::time_exchange(comm, large, 4);
  costs.byte = std::max(0.0, whole - costs.latency) / static_cast<double>(large);
  costs.combine = detail::time_combining();
  std::array<double, 4> worst{costs.latency, costs.overhead, costs.byte, costs.combine};
  co_await comm.all_reduce(std::span(worst), max{});
  co_return collective::link_costs{worst[0], std::min(worst[0], worst[1]), worst[2], worst[3]};
}

/// From now on the algorithms of this communicator, and of groups that are made of it, are those that the model says
/// are fastest at these costs. To be called alike on every rank.
template <backend Backend>
void use_costs(const communicator<Backend>& comm, const collective::link_costs& costs) {
  group& state = *comm.calls().state();
  state.costs = costs;
  state.selection = collective::fitted(state.selection, comm.size(), costs);
}

}  // namespace cohort
