// SPDX-License-Identifier: BSL-1.0
// Who this process is in its job, from the variables that a launcher sets. The first step of `cohort::run`;
// what it returns says which store to open and whom to meet there.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
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
  std::string init_method{};  ///< "env://", "tcp://host:port" or "file:///path"
  std::string file_path{};    ///< the path of a file:// method, else ""
  std::string run_id{};       ///< tells jobs apart that meet at the same address
  std::uint32_t epoch = 0;    ///< how often the launcher has restarted the job
  std::string secret{};       ///< shared by the job's ranks; "" when there is none
  bool insecure_network = false;
  std::string source{};                 ///< which launcher's variables were taken
  std::vector<std::string> warnings{};  ///< contradictions that were decided by the order of the sources
};

/// The variables of one launcher. A name of "" means that this launcher has no such variable.
struct env_source {
  std::string_view name;
  std::string_view rank;
  std::string_view world_size;
  std::string_view local_rank;
  std::string_view local_world_size;
  std::string_view master_addr;
  std::string_view master_port;
  std::string_view run_id;
  std::string_view restart_count;
  /// Whether this launcher has started the process; null: its rank or its world size is set.
  bool (*detect)(const environment&) = nullptr;
  /// Fills in what needs more than reading one integer (an address out of a list of hosts); null: nothing.
  /// It is called before the address is checked.
  void (*complete)(const environment&, launch_info&) = nullptr;
};

namespace detail {

/// torchrun's agent may keep a store of torch's own at MASTER_PORT, and says so; ours takes the port after it.
void leave_port_to_torchrun(const environment& env, launch_info& info);

}  // namespace detail

/// Every launcher that is understood, the strongest first. The first one detected decides, and none is mixed
/// with another: a half-set one is an error, not a reason to look further.
inline constexpr env_source env_sources[] = {
    {"COHORT_*", "COHORT_RANK", "COHORT_WORLD_SIZE", "COHORT_LOCAL_RANK", "COHORT_LOCAL_WORLD_SIZE",
     "COHORT_MASTER_ADDR", "COHORT_MASTER_PORT", "COHORT_RUN_ID", "COHORT_RESTART_COUNT"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
     "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", nullptr, detail::leave_port_to_torchrun},
};

[[nodiscard]] inline bool is_detected(const env_source& source, const environment& env) {
  return source.detect != nullptr ? source.detect(env) : env.has(source.rank) || env.has(source.world_size);
}

/// The place of this process, from an explicit method, else COHORT_INIT, else the first launcher detected.
///
/// Result: rank 0 of 1 from the source "single process" when no launcher's variables are set. Without a local size all
///         ranks count as being on one host; without a local rank they fill host after host
/// Needs:  `init` is "", env://, tcp://host:port or file:///path; ?rank=R&world_size=N stands above every variable
/// Order:  rank and sizes come from one source; the address from `init`, else COHORT_INIT, else COHORT_MASTER_ADDR and
///         COHORT_MASTER_PORT, else that source
/// Errors: bad_environment naming the variable: half set, no integer, out of range, an address that is missing
[[nodiscard]] launch_info launch_from_environment(const environment& env, std::string_view init = {},
                                                  std::span<const env_source> sources = env_sources);

/// The place of this process, from its own environment.
[[nodiscard]] inline launch_info launch_from_environment() { return launch_from_environment(environment{}); }

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/launch.hpp>
#endif
