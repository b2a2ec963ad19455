// SPDX-License-Identifier: BSL-1.0
// What `cohort run` was asked to do: its options, checked, with their defaults filled in.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::tool {

enum class tag_kind { rank, host, none };
enum class status_kind { automatic, plain, off };

struct run_options {
  int ranks = 1;
  std::vector<std::string> program;  ///< its name, then its arguments
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  ///< 0: a free one
  tag_kind tag = tag_kind::rank;
  status_kind status = status_kind::automatic;
  std::vector<bool> shown;                                    ///< per rank: is its output printed?
  std::string log_dir;                                        ///< empty: none
  std::optional<double> timeout;                              ///< seconds for the whole run
  double settle = 2.0;                                        ///< seconds from the first failure to SIGTERM
  double grace = 30.0;                                        ///< seconds from SIGTERM to SIGKILL
  std::vector<std::pair<std::string, std::string>> exported;  ///< -x, in order; later ones win
  bool dry_run = false;
  std::optional<int> print_environment;  ///< the rank whose variables are asked for
};

/// Result: nothing when `words` were understood and `options` is filled; else the exit code to end with.
std::optional<int> parse_run_options(const std::vector<std::string>& words, run_options& options);

}  // namespace cohort::tool
