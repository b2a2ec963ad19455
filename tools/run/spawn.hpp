// SPDX-License-Identifier: BSL-1.0
// Starts one rank: a child in a process group of its own that dies with this process. The supervisor calls it N times.
#pragma once

#include "../unique_fd.hpp"

#include <sched.h>

#include <sys/resource.h>
#include <sys/types.h>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace cohort::tool {

/// How this process was started, before it changed itself; every rank is started the same way.
struct inherited_state {
  sigset_t mask;
  struct sigaction pipe_signal;
  struct rlimit files;
};

struct spawn_request {
  std::vector<std::string> program;
  std::vector<std::string> environment;  ///< "NAME=value"
  int input = -1;                        ///< becomes descriptor 0; likewise the next two
  int output = -1;
  int errors = -1;
  int status = -1;  ///< becomes descriptor `status_number`
  int status_number = -1;
  std::optional<cpu_set_t> processors{};  ///< on which the rank may run; nothing: as this process
  int guard = -1;                         ///< the group's number is written here before the program starts
};

struct spawned {
  pid_t pid = -1;
  unique_fd pidfd;       ///< readable when the process has ended; empty where the system has none (Linux < 5.3)
  int error = 0;         ///< errno of the step that failed; 0: the program runs
  std::string failed{};  ///< that step, in words
};

spawned spawn(const spawn_request& request, const inherited_state& inherited);

/// "cannot start './nope': No such file or directory", with a hint where one helps.
std::string cannot_start_text(const std::string& program, const spawned& result);

}  // namespace cohort::tool
