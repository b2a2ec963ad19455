// SPDX-License-Identifier: BSL-1.0
// The place of a process in its job, and where it is read from: an environment, the process's own or a made-up one.
// What launch.hpp fills in.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/tls_options.hpp>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

/// Reads variables by name. The default reads the process's own; tests give a function instead.
///
/// Cost: looks a variable up each time it is asked; a variable that is set to "" is set
class environment {
 public:
  using lookup = std::function<std::optional<std::string>(const std::string& name)>;

  environment() = default;
  explicit environment(lookup f) : lookup_(std::move(f)) {}

  [[nodiscard]] std::optional<std::string> get(std::string_view name) const {
    if (name.empty()) return std::nullopt;
    const std::string terminated(name);
    if (lookup_) return lookup_(terminated);
    const char* const value = std::getenv(terminated.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  [[nodiscard]] bool has(std::string_view name) const { return get(name).has_value(); }
  /// Something that the processes which one launcher started on this host have in common, and no others: the number of
  /// the nearest process above this one that is called `name`. An environment that is made up has it as "above:NAME".
  [[nodiscard]] std::optional<std::string> process_above(std::string_view name) const;

 private:
  lookup lookup_{};
};

/// The place of this process in its job.
struct launch_info {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;         ///< among the ranks of this host; for picking a GPU or a core, never for addressing
  int local_world_size = 1;   ///< ranks on this host, as far as the launcher says
  std::string master_addr{};  ///< where rank 0 listens; "" when no address is needed
  std::uint16_t master_port = 0;
  bool address_comes_late = false;  ///< the name of rank 0 may be known only after this process has started
  std::string init_method{};        ///< "env://", "tcp://host:port" or "file:///path"
  std::string file_path{};          ///< the path of a file:// method, else ""
  std::string run_id{};             ///< tells jobs apart that meet at the same address
  std::uint32_t epoch = 0;          ///< how often the launcher has restarted the job
  std::string secret{};             ///< shared by the job's ranks; "" when there is none
  tls_options tls{};                ///< with which every connection between ranks is encrypted, if it names any files
  bool insecure_network = false;
  std::string source{};                 ///< which launcher's variables were taken
  std::vector<std::string> warnings{};  ///< contradictions that were decided by the order of the sources
};

}  // namespace cohort
