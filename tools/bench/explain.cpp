// SPDX-License-Identifier: BSL-1.0
#include "explain.hpp"

#include <cohort/collective/cost_model.hpp>
#include <cohort/collective/hosts.hpp>
#include <cohort/collective/passage.hpp>
#include <cohort/tuning.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace cohort::tool {
namespace {

using collective::algorithm;

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  return text;
}

/// "circulant 12 us, ring 15 us": the fastest first.
std::string predictions(operation_kind kind, std::size_t bytes, int ranks, bool commutative,
                        const collective::link_costs& costs) {
  std::vector<std::pair<double, algorithm>> all;
  for (const collective::implementation& i : collective::implementations) {
    if (i.operation != kind || collective::needs_places(i.algorithm) || (i.needs_commutative && !commutative)) {
      continue;
    }
    all.emplace_back(collective::predicted_seconds(kind, i.algorithm, bytes, ranks, costs), i.algorithm);
  }
  std::sort(all.begin(), all.end());
  std::string text;
  for (const auto& [seconds, a] : all) {
    text += (text.empty() ? "" : ", ") + std::string(collective::to_string(a)) + " " + microseconds(seconds);
  }
  return text;
}

std::string row_that_applies(const collective::selection_table& table, operation_kind kind, std::size_t bytes,
                             int ranks, bool commutative, const collective::means& usable) {
  for (const collective::selection_row& row : table.rows()) {
    if (!row.applies(kind, bytes, ranks, commutative, usable)) continue;
    return "the table, from " + std::to_string(row.min_bytes) + " bytes and " + std::to_string(row.min_ranks) +
           (row.min_ranks == 1 ? " rank" : " ranks") + (row.needs_commutative ? ", functors that commute" : "") +
           (row.needs_crowd ? ", more ranks than cores" : "");
  }
  return "the table";
}

/// Whether what goes either way, through the window or not, is read by who takes it.
bool reads_memory(operation_kind kind, int ranks) {
  const auto ways = collective::passage_trials::order_of(kind, ranks);
  return std::find(ways.begin(), ways.end(), collective::passage::single_copy) != ways.end();
}

}  // namespace

explanation explain(const world_type& world, const bench_options& options, const workload& work) {
  if (!options.kind || *options.kind == operation_kind::exchange) return {};
  const operation_kind kind = *options.kind;
  const group& state = *world.calls().state();
  const algorithm chosen = reduces(options) ? world.calls().choose(kind, work.choice_bytes, work.commutative, true)
                                            : world.calls().choose(kind, work.choice_bytes);
  explanation result{std::string(collective::to_string(chosen)), {}};
  if (state.selection.override_of(kind) == chosen) {
    result.why = "an override";
  } else if (chosen == algorithm::shared_memory) {
    result.why = "all ranks share memory";
  } else if (chosen == algorithm::hierarchical) {
    result.why = "several ranks on each of " + std::to_string(state.hosts->hosts()) + " hosts";
  } else if (state.costs) {
    result.why = "the tuning: " + predictions(kind, work.choice_bytes, world.size(), work.commutative, *state.costs);
  } else {
    result.why = row_that_applies(state.selection, kind, work.choice_bytes, world.size(), work.commutative,
                                  {true, false, false, state.crowded});
  }
  if (state.window == nullptr || state.selection.override_of(kind)) return result;
  switch (collective::passage_of(kind, work.choice_bytes, world.size())) {
    case collective::passage::window: break;
    case collective::passage::messages:
      result.why += "; messages are copied fewer times than what goes through shared memory";
      break;
    case collective::passage::either:
      if (chosen != algorithm::shared_memory) break;
      result.why +=
          reads_memory(kind, world.size())
              ? "; but by reading each other's memory as long as that is found faster: both are tried every so often"
              : "; but by messages as long as they are found faster: both are tried every so often";
      break;
    case collective::passage::single_copy: break;  // one of either
  }
  return result;
}

std::string grounds_of_choice(const world_type& world) {
  const group& state = *world.calls().state();
  std::string text;
  if (state.window != nullptr) {
    text +=
        "# All ranks share memory, and work in it unless an override says otherwise; long blocks of a scatter or, of "
        "two "
        "ranks, a broadcast go by messages, and of an all_to_all or, of two ranks, an all_gather by reading each "
        "other's "
        "memory, as long as that is found faster.\n";
  }
  if (state.hosts != nullptr) {
    text += "# The ranks are on " + std::to_string(state.hosts->hosts()) + " hosts, at most " +
            std::to_string(state.hosts->most()) +
            " on one, and what has a hierarchical algorithm is carried out by it unless an override says otherwise.\n";
  }
  if (state.costs) {
    tuning costs;
    costs.costs = state.costs;
    text += "# The table follows from this tuning: " + to_string(costs) + "\n";
  }
  return text + "# For messages the first row that applies to an operation is taken:\n" + state.selection.to_string() +
         "\n";
}

}  // namespace cohort::tool
