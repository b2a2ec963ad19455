// SPDX-License-Identifier: BSL-1.0
// The name of this host, for messages and for telling hosts apart.
#pragma once

#include <unistd.h>

#include <string>

namespace cohort::detail {

[[nodiscard]] inline std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  return name;
}

}  // namespace cohort::detail
