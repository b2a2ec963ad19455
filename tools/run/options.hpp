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
enum class bind_kind { none, core, numa };

/// Streams as torchrun counts them: 1 is standard output, 2 standard error, 3 both.
using stream_set = unsigned char;

struct run_options {
  int ranks = 1;  ///< on this node
  int nodes = 1;
  int node_rank = 0;
  std::string run_id;                ///< the same on every node; empty: one is made up
  std::vector<std::string> program;  ///< its name, then its arguments
  std::string master_addr = "127.0.0.1";
  int master_port = 0;   ///< 0: a free one
  int max_restarts = 0;  ///< of all ranks together
  double restart_delay = 0;
  int attempt = 0;  ///< how often they have been restarted
  bind_kind bind = bind_kind::none;
  std::vector<int> signals;               ///< that are passed on
  std::vector<stream_set> only_in_files;  ///< by rank of this node: not printed
  std::vector<stream_set> in_files;       ///< by rank of this node: kept in log files
  tag_kind tag = tag_kind::rank;
  status_kind status = status_kind::automatic;
  std::vector<bool> shown;                                    ///< per rank: is its output printed?
  std::string log_dir;                                        ///< empty: none
  std::optional<double> timeout;                              ///< seconds for the whole run
  double settle = 2.0;                                        ///< seconds from the first failure to SIGTERM
  double grace = 30.0;                                        ///< seconds from SIGTERM to SIGKILL
  std::vector<std::pair<std::string, std::string>> exported;  ///< -x, in order; later ones win
  bool dry_run = false;
  std::optional<int> print_environment;  ///< the rank of this node whose variables are asked for

  [[nodiscard]] int world_size() const noexcept { return nodes * ranks; }
  /// The rank in the world of a rank of this node.
  [[nodiscard]] int world_rank(int place) const noexcept { return node_rank * ranks + place; }
};

/// Result: nothing when `words` were understood and `options` is filled; else the exit code to end with.
std::optional<int> parse_run_options(const std::vector<std::string>& words, run_options& options);

}  // namespace cohort::tool
