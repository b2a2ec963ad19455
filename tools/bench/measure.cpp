// SPDX-License-Identifier: BSL-1.0
#include "measure.hpp"

#include "explain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace cohort::tool {
namespace {

using steady = std::chrono::steady_clock;

// Shorter than this, and the clock and the unequal way out of the barrier would be measured too.
constexpr double shortest_sample = 20e-6;
constexpr int fewest_samples = 10;
constexpr int most_samples = 20000;

double seconds_since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

double time_batch(world_type& world, const workload& work, int calls) {
  world.barrier().wait();
  const auto start = steady::now();
  for (int c = 0; c < calls; ++c) work.call(c);
  return seconds_since(start);
}

double of_slowest(world_type& world, double value) { return world.all_reduce(value, max{}).wait(); }

/// Warms up, and finds how many calls a sample needs; every rank finds the same.
int calls_per_sample(world_type& world, const workload& work, double& seconds_per_call) {
  constexpr double warm_up = 0.02;
  constexpr int most_calls = 1 << 20;
  const auto start = steady::now();
  for (int calls = 1;; calls *= 2) {
    const double taken = of_slowest(world, time_batch(world, work, calls));
    seconds_per_call = taken / calls;
    const bool warm = of_slowest(world, seconds_since(start)) > warm_up;
    if ((taken >= shortest_sample && warm) || calls >= most_calls) break;
  }
  const double needed = std::ceil(shortest_sample / std::max(seconds_per_call, 1e-9));
  return std::max(1, static_cast<int>(std::min<double>(needed, most_calls)));
}

int number_of_samples(const bench_options& options, double seconds_per_sample) {
  if (options.samples) return *options.samples;
  const double wanted = options.seconds / std::max(seconds_per_sample, 1e-9);
  return static_cast<int>(std::clamp<double>(wanted, fewest_samples, most_samples));
}

double bus_factor(const bench_options& options, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (options.kind.value_or(operation_kind::send)) {
    case operation_kind::all_reduce: return 2 * others;
    case operation_kind::all_gather:
    case operation_kind::all_gather_v:
    case operation_kind::reduce_scatter:
    case operation_kind::reduce_scatter_v:
    case operation_kind::all_to_all:
    case operation_kind::all_to_all_v:
    case operation_kind::gather:
    case operation_kind::gather_v:
    case operation_kind::scatter:
    case operation_kind::scatter_v: return others;
    default: return 1;
  }
}

}  // namespace

bench_row measure_cell(world_type& world, const bench_options& options, const workload& work) {
  bench_row row;
  row.label = work.label;
  row.bytes = work.bytes;
  row.count = work.count;
  explanation chosen = explain(world, options, work);
  row.algorithm = std::move(chosen.algorithm);
  row.why = std::move(chosen.why);
  work.spoil();
  work.call(0);
  long wrong = work.wrong();

  double per_call = 0;
  row.calls_per_sample = calls_per_sample(world, work, per_call);
  row.samples = number_of_samples(options, per_call * row.calls_per_sample);
  row.samples = world.broadcast(row.samples, root{0}).wait();
  row.calls_per_sample = world.broadcast(row.calls_per_sample, root{0}).wait();
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(row.samples));
  for (int s = 0; s < row.samples; ++s) {
    if (s + 1 == row.samples) work.spoil();
    times.push_back(time_batch(world, work, row.calls_per_sample) * 1e6 / row.calls_per_sample / work.calls_in_one);
  }
  wrong += work.wrong();
  row.wrong = world.all_reduce(wrong, sum{}).wait();

  world.all_reduce(times, max{}).wait();
  std::sort(times.begin(), times.end());
  row.min = times.front();
  row.median = times[times.size() / 2];
  row.p99 = times[std::min(times.size() - 1, times.size() * 99 / 100)];
  row.algorithm_bandwidth = static_cast<double>(row.bytes) / row.median / 1e3;
  row.bus_bandwidth = row.algorithm_bandwidth * bus_factor(options, world.size());
  return row;
}

}  // namespace cohort::tool
