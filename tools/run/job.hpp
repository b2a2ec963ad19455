// SPDX-License-Identifier: BSL-1.0
// What all ranks of one run share: its name, its secret, the port where they meet. Made once, before anything starts.
#pragma once

#include "../unique_fd.hpp"
#include "options.hpp"

#include <string>

namespace cohort::tool {

struct job {
  std::string run_id;  ///< 64 random bits in hexadecimal, or what every node was given
  std::string secret;  ///< ranks prove with it that they belong together: 32 random bytes, or what every node was given
  std::string host;    ///< name of this machine
  int master_port = 0;      ///< where rank 0 will listen
  unique_fd port_holder;    ///< keeps that port from others; to be closed just before the ranks start
  unique_fd status_number;  ///< keeps a descriptor number free that every rank can use for COHORT_STATUS_FD
};

/// Errors: std::system_error when the system gives no random numbers, port or descriptor.
job make_job(const run_options& options);

}  // namespace cohort::tool
