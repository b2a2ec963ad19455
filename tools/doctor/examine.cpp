// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <cohort/detail/host_name.hpp>

#include <unistd.h>

#include <fstream>

namespace cohort::tool {
namespace {

// One boot of one machine, and one of its networks: what has an address of its own.
std::string own_network() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char text[64] = {};
  const ssize_t length = ::readlink("/proc/self/ns/net", text, sizeof text - 1);
  return boot + " " + std::string(text, length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace

rank_record examine(const connect_options& o, deadline until) {
  rank_record mine;
  mine.rank = o.launch.rank;
  mine.host = detail::host_name();
  mine.network = own_network();
  mine.pid = static_cast<long>(::getpid());
  mine.shared_memory = o.shared_memory;
  for (const std::string& each : o.launch.warnings) {
    mine.add({severity::warning, "launcher", each, "unset the variables of the launcher that is not meant", {}, {}});
  }
  examine_network(o, until, mine);
  examine_names(o, until, mine);
  examine_limits(o, mine);
  examine_versions(mine);
  return mine;
}

}  // namespace cohort::tool
