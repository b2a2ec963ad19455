// SPDX-License-Identifier: BSL-1.0
// Who this process is in its job, from the variables that a launcher sets. The first step of `cohort::run`;
// what it returns says which store to open and whom to meet there.
#pragma once

#include <cohort/detail/secret_file.hpp>
#include <cohort/error.hpp>
#include <cohort/uri.hpp>

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
inline void leave_port_to_torchrun(const environment& env, launch_info& info) {
  if (env.get("TORCHELASTIC_USE_AGENT_STORE") != "True" || info.master_port == 0) return;
  info.master_port = static_cast<std::uint16_t>(info.master_port == 65535 ? 65534 : info.master_port + 1);
}

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

namespace detail {

[[nodiscard]] inline std::string required(const environment& env, std::string_view name, std::string_view because) {
  const std::optional<std::string> value = env.get(name);
  if (!value) {
    throw error(errc::bad_environment,
                std::string(because) + " but " + std::string(name) + " is not; set it or use `cohort run`");
  }
  return *value;
}

inline void read_ranks(const env_source& source, const environment& env, launch_info& info) {
  const std::string rank_name(source.rank);
  const std::string size_name(source.world_size);
  const std::string size = required(env, size_name, rank_name + " is set");
  const std::string rank = required(env, rank_name, size_name + " is set");
  info.world_size = static_cast<int>(parse_integer(size, size_name, 1, max_world_size));
  const std::optional<std::int64_t> value = whole_integer(rank);
  if (value && (*value < 0 || *value >= info.world_size)) {
    throw error(errc::bad_environment, rank_name + "=" + rank + ": expected 0.." + std::to_string(info.world_size - 1) +
                                           ", because " + size_name + "=" + size);
  }
  info.rank = static_cast<int>(parse_integer(rank, rank_name, 0, info.world_size - 1));
}

/// Neither variable: all ranks are taken to be on one host. Only the size: ranks fill host after host.
inline void read_local_ranks(const env_source& source, const environment& env, launch_info& info) {
  const std::optional<std::string> size = env.get(source.local_world_size);
  const std::optional<std::string> rank = env.get(source.local_rank);
  info.local_world_size = info.world_size;
  if (size) {
    info.local_world_size = static_cast<int>(parse_integer(*size, source.local_world_size, 1, info.world_size));
  }
  info.local_rank = info.rank % info.local_world_size;
  if (rank) info.local_rank = static_cast<int>(parse_integer(*rank, source.local_rank, 0, info.local_world_size - 1));
}

inline void read_address(std::string_view host_name, std::string_view port_name, const environment& env,
                         launch_info& info) {
  if (const std::optional<std::string> host = env.get(host_name)) info.master_addr = parse_host(*host, host_name);
  if (const std::optional<std::string> port = env.get(port_name)) info.master_port = parse_port(*port, port_name);
}

inline void read_security(const environment& env, launch_info& info) {
  if (const std::optional<std::string> flag = env.get("COHORT_INSECURE_NETWORK")) {
    info.insecure_network = parse_integer(*flag, "COHORT_INSECURE_NETWORK", 0, 1) == 1;
  }
  const std::optional<std::string> secret = env.get("COHORT_SECRET");
  const std::optional<std::string> file = env.get("COHORT_SECRET_FILE");
  if (!secret && !file) return;
  const char* const origin = secret ? "COHORT_SECRET" : "COHORT_SECRET_FILE";
  info.secret = secret ? *secret : read_secret_file(*file, origin);
  if (info.secret.size() < 16) {
    throw error(errc::bad_environment, std::string(origin) + " holds a secret of " +
                                           std::to_string(info.secret.size()) +
                                           " bytes: expected at least 16 random bytes");
  }
}

inline void warn_of_contradictions(const env_source& taken, const environment& env, std::span<const env_source> sources,
                                   launch_info& info) {
  for (const env_source& other : sources) {
    if (other.name == taken.name || !is_detected(other, env)) continue;
    const auto compare = [&](std::string_view mine, std::string_view theirs) {
      const std::optional<std::string> a = env.get(mine);
      const std::optional<std::string> b = env.get(theirs);
      if (!a || !b || *a == *b) return;
      info.warnings.push_back(std::string(mine) + "=" + quoted(*a) + " but " + std::string(theirs) + "=" + quoted(*b) +
                              "; the variables of " + std::string(taken.name) + " are taken");
    };
    compare(taken.rank, other.rank);
    compare(taken.world_size, other.world_size);
  }
}

inline void apply_init_method(const cohort::init_method& method, std::string_view origin, launch_info& info) {
  if (method.rank) {
    info.rank = info.local_rank = *method.rank;
    info.world_size = info.local_world_size = *method.world_size;
    info.source = std::string(origin);
  }
  info.init_method = "env://";
  if (method.kind == init_kind::tcp) {
    info.master_addr = method.where.host;
    info.master_port = method.where.port;
    info.init_method = "tcp://" + to_string(method.where);
  } else if (method.kind == init_kind::file) {
    info.file_path = method.path;
    info.init_method = "file://" + method.path;
  }
}

inline void require_address(std::string_view host_name, std::string_view port_name, const launch_info& info) {
  if (info.world_size == 1 || !info.file_path.empty()) return;
  const auto refuse = [&](std::string_view name, const char* what) {
    throw error(errc::bad_environment, std::string(name) + " is not set, but a world of " +
                                           std::to_string(info.world_size) + " needs " + what +
                                           "; set it, give COHORT_INIT=tcp://host:port, or use `cohort run`");
  };
  if (info.master_addr.empty()) refuse(host_name, "the host of rank 0");
  if (info.master_port == 0) refuse(port_name, "the port on which rank 0 listens, 1..65535");
}

}  // namespace detail

/// The place of this process, from an explicit method, else COHORT_INIT, else the first launcher detected.
///
/// Result: rank 0 of 1 from the source "single process" when no launcher's variables are set. Without a local size all
///         ranks count as being on one host; without a local rank they fill host after host
/// Needs:  `init` is "", env://, tcp://host:port or file:///path; ?rank=R&world_size=N stands above every variable
/// Order:  rank and sizes come from one source; the address from `init`, else COHORT_INIT, else COHORT_MASTER_ADDR and
///         COHORT_MASTER_PORT, else that source
/// Errors: bad_environment naming the variable: half set, no integer, out of range, an address that is missing
[[nodiscard]] inline launch_info launch_from_environment(const environment& env, std::string_view init = {},
                                                         std::span<const env_source> sources = env_sources) {
  std::string origin = "init_method";
  std::string text(init);
  if (text.empty()) {
    origin = "COHORT_INIT";
    text = env.get(origin).value_or("env://");
  }
  const cohort::init_method method = parse_init_method(text, origin);

  launch_info info;
  info.source = "single process";
  std::string_view host_name = "COHORT_MASTER_ADDR";
  std::string_view port_name = "COHORT_MASTER_PORT";
  for (const env_source& source : sources) {
    if (!is_detected(source, env)) continue;
    info.source = std::string(source.name);
    info.run_id = env.get(source.run_id).value_or("");
    if (const std::optional<std::string> count = env.get(source.restart_count)) {
      info.epoch = static_cast<std::uint32_t>(detail::parse_integer(*count, source.restart_count, 0, UINT32_MAX));
    }
    if (!method.rank) {
      detail::read_ranks(source, env, info);
      detail::read_local_ranks(source, env, info);
      detail::warn_of_contradictions(source, env, sources, info);
    }
    if (!source.master_addr.empty()) {
      host_name = source.master_addr;
      port_name = source.master_port;
      if (method.kind == init_kind::env) detail::read_address(host_name, port_name, env, info);
    }
    if (source.complete != nullptr) source.complete(env, info);
    break;
  }
  if (method.kind == init_kind::env) detail::read_address("COHORT_MASTER_ADDR", "COHORT_MASTER_PORT", env, info);
  if (const std::optional<std::string> id = env.get("COHORT_RUN_ID")) info.run_id = *id;
  detail::read_security(env, info);
  detail::apply_init_method(method, origin, info);
  detail::require_address(host_name, port_name, info);
  return info;
}

/// The place of this process, from its own environment.
[[nodiscard]] inline launch_info launch_from_environment() { return launch_from_environment(environment{}); }

}  // namespace cohort
