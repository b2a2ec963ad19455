// SPDX-License-Identifier: BSL-1.0
#include "own_ranks.hpp"

#include "command.hpp"

#include <cohort/launch.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <stdexcept>

namespace cohort::tool {
namespace {

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) {
    throw std::runtime_error("cannot find the program to start as ranks: /proc/self/exe cannot be read");
  }
  return std::string(path, static_cast<std::size_t>(length));
}

}  // namespace

bool started_by_a_launcher() {
  const environment env;
  return std::any_of(std::begin(env_sources), std::end(env_sources),
                     [&](const env_source& source) { return is_detected(source, env); });
}

int ranks_for_this_machine() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(2, CPU_COUNT(&set)) : 2;
}

int start_own_ranks(int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> run{"-n", std::to_string(ranks), "--tag", "none", "--status", "off", "--", own_program()};
  run.insert(run.end(), words.begin(), words.end());
  return run_command(run);
}

}  // namespace cohort::tool
