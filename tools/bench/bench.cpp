// SPDX-License-Identifier: BSL-1.0
// `cohort bench`: under a launcher it is a rank of the measurement; else it starts ranks of itself as `cohort run` does.
#include "../arguments.hpp"
#include "../command.hpp"
#include "../own_ranks.hpp"
#include "explain.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "report.hpp"
#include "workload.hpp"

#include <cohort/launch.hpp>
#include <cohort/run.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace cohort::tool {

std::vector<workload> make_workloads(world_type& world, const bench_options& options, std::size_t bytes) {
  switch (options.type) {
    case element_kind::float64: return workloads_of<double>(world, options, bytes);
    case element_kind::half: return workloads_of<half>(world, options, bytes);
    case element_kind::bfloat16: return workloads_of<bfloat16>(world, options, bytes);
    case element_kind::int8: return workloads_of<std::int8_t>(world, options, bytes);
    case element_kind::int16: return workloads_of<std::int16_t>(world, options, bytes);
    case element_kind::int32: return workloads_of<std::int32_t>(world, options, bytes);
    case element_kind::int64: return workloads_of<std::int64_t>(world, options, bytes);
    default: return workloads_of<float>(world, options, bytes);
  }
}

namespace {

constexpr const char* this_command = "cohort bench";

void check_against_world(const bench_options& options, int ranks) {
  if (options.ranks && *options.ranks != ranks) {
    throw std::invalid_argument("-n " + std::to_string(*options.ranks) + ": the launcher has started " +
                                std::to_string(ranks) + " ranks; leave -n out under a launcher");
  }
  if (options.root && *options.root >= ranks) {
    throw std::invalid_argument("--root " + std::to_string(*options.root) + ": expected 0.." +
                                std::to_string(ranks - 1));
  }
  if (!options.kind && ranks < 2) throw std::invalid_argument("p2p needs at least 2 ranks, and there is 1");
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int measure_all(world_type& world, const bench_options& options) {
  if (options.registered && world.calls().state()->window == nullptr) {
    const std::string what = "--registered: the ranks do not all share memory; leave it out";
    return world.rank() == 0 ? usage_error(this_command, what) : exit_code::usage;  // said once
  }
  const bool speaks = world.rank() == 0;
#ifndef __OPTIMIZE__
  if (speaks) std::fprintf(stderr, "%s: built without optimisation: these are not the library's times\n", this_command);
#endif
  const bool as_it_grows = speaks && options.format != format_kind::json;
  if (as_it_grows && options.explain && options.format == format_kind::table) {
    print(grounds_of_choice(world));
  }
  if (as_it_grows) print(bench_heading(options, world.size()));
  std::vector<bench_row> rows;
  long wrong = 0;
  for (const std::size_t bytes : sizes_of(options)) {
    for (const workload& each : make_workloads(world, options, bytes)) {
      const bench_row row = measure_cell(world, options, each);
      wrong += row.wrong;
      if (as_it_grows) print(bench_line(options, world.size(), row));
      rows.push_back(row);
    }
  }
  if (!speaks) return 0;
  if (options.format == format_kind::json) print(bench_json(options, world.size(), rows));
  if (options.plot) {
    const std::string trouble = draw_bench(options, bench_json(options, world.size(), rows));
    if (!trouble.empty()) throw std::runtime_error(trouble);
  }
  if (wrong == 0) return 0;
  std::fprintf(stderr, "%s: %ld elements were wrong\n", this_command, wrong);
  return 1;
}

int be_a_rank(const bench_options& options) {
  const launch_info place = launch_from_environment();
  try {
    check_against_world(options, place.world_size);
  } catch (const std::invalid_argument& mistake) {
    return place.rank == 0 ? usage_error(this_command, mistake.what()) : exit_code::usage;  // said once
  }
  if (options.transport != transport_kind::automatic) {
    ::setenv("COHORT_SHM", options.transport == transport_kind::tcp ? "0" : "1", 1);
  }
  return cohort::run([&options](world_type world) -> task<int> { co_return measure_all(world, options); });
}

int start_ranks(const bench_options& options, const std::vector<std::string>& words) {
  const int ranks = options.ranks.value_or(ranks_for_this_machine());
  check_against_world(options, ranks);
  std::vector<std::string> all{"bench"};
  all.insert(all.end(), words.begin(), words.end());
  return start_own_ranks(ranks, all);
}

}  // namespace

int bench_command(const std::vector<std::string>& words) {
  bench_options options;
  if (const std::optional<int> ended = parse_bench_options(words, options)) return *ended;
  try {
    return started_by_a_launcher() ? be_a_rank(options) : start_ranks(options, words);
  } catch (const std::invalid_argument& mistake) {
    return usage_error(this_command, mistake.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", this_command, error.what());
    return exit_code::cannot_execute;
  }
}

}  // namespace cohort::tool
