// SPDX-License-Identifier: BSL-1.0
#include "binding.hpp"

#include "rank_list.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace cohort::tool {
namespace {

// The processors of a memory node, as the kernel lists them: "0-3,8-11".
std::vector<int> processors_of_node(int node) {
  std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::string list;
  if (!(file >> list)) return {};
  try {
    const std::vector<bool> listed = parse_ranks(list, CPU_SETSIZE);
    std::vector<int> all;
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (listed[i]) all.push_back(static_cast<int>(i));
    }
    return all;
  } catch (const std::invalid_argument&) {
    return {};
  }
}

// Which of `n` shares the rank gets, and which part of it: [first, last) of `size` things dealt out to `ranks`.
struct share {
  std::size_t first;
  std::size_t last;
};
share share_of(std::size_t size, int place, int ranks) {
  const auto p = static_cast<std::size_t>(place);
  const auto n = static_cast<std::size_t>(ranks);
  if (n >= size) return {p % size, p % size + 1};
  return {p * size / n, (p + 1) * size / n};
}

}  // namespace

std::optional<cpu_set_t> processors_for(bind_kind kind, int place, int ranks) {
  if (kind == bind_kind::none) return std::nullopt;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  std::vector<std::vector<int>> places;
  if (kind == bind_kind::numa) {
    for (int node = 0; node < 1024; ++node) {
      std::vector<int> here = processors_of_node(node);
      here.erase(std::remove_if(here.begin(), here.end(), [&](int cpu) { return !CPU_ISSET(cpu, &allowed); }),
                 here.end());
      if (!here.empty()) places.push_back(std::move(here));
    }
  } else {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) places.push_back({cpu});
    }
  }
  if (places.empty()) return std::nullopt;
  // Ranks of one memory node share all of it; cores are dealt out.
  const auto nodes = static_cast<int>(places.size());
  const share mine =
      kind == bind_kind::numa && ranks >= nodes
          ? share{static_cast<std::size_t>(place * nodes / ranks), static_cast<std::size_t>(place * nodes / ranks) + 1}
          : share_of(places.size(), place, ranks);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t i = mine.first; i < mine.last; ++i) {
    for (const int cpu : places[i]) CPU_SET(cpu, &set);
  }
  return set;
}

}  // namespace cohort::tool
