// SPDX-License-Identifier: BSL-1.0
// What ranks leave behind outside their own process groups: the jobs of a shell, timeout(1), a program that calls
// setpgid. Orphans of the run are children of this process (see host_setup), which is how they are found.
#pragma once

#include <sys/types.h>

#include <vector>

namespace cohort::tool {

/// The process groups, other than this process's own, of its children that run in its session. A child that made a
/// session of its own (setsid, as a daemon does) means to outlive those who started it, and is not among them.
///
/// Result: sorted; empty where there is no /proc
std::vector<pid_t> groups_of_children();

}  // namespace cohort::tool
