// SPDX-License-Identifier: BSL-1.0
// Bodies of launch.hpp: how the variables of one launcher are read, checked, and held against those of the others.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/secret_file.hpp>
#include <cohort/impl/launch_sources.hpp>
#include <cohort/launch.hpp>
#include <cohort/uri.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cohort {
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

/// The three files that TLS needs, or none.
[[nodiscard]] inline tls_options tls_from_environment(const environment& env) {
  tls_options files;
  const std::pair<const char*, std::string*> all[] = {{tls_options::certificate_variable, &files.certificate},
                                                      {tls_options::key_variable, &files.key},
                                                      {tls_options::authority_variable, &files.authority}};
  const char* given = nullptr;
  for (const auto& [name, path] : all) {
    const std::optional<std::string> value = env.get(name);
    if (!value) continue;
    if (value->empty()) {
      throw error(errc::bad_environment, std::string(name) + " is empty: expected the path of a file in PEM form");
    }
    *path = *value;
    if (given == nullptr) given = name;
  }
  for (const auto& [name, path] : all) {
    if (given == nullptr || !path->empty()) continue;
    throw error(errc::bad_environment, std::string(given) + " is set but " + name +
                                           " is not; set it, or none of the three COHORT_TLS_ variables to talk "
                                           "without TLS");
  }
  return files;
}

inline void read_security(const environment& env, launch_info& info) {
  info.tls = tls_from_environment(env);
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
  // One launcher that starts another on each node is no contradiction.
  const std::optional<std::string> nodes = env.get("GROUP_WORLD_SIZE");
  for (const env_source& other : sources) {
    if (other.name == taken.name || !is_detected(other, env)) continue;
    if (nodes && env.get(other.world_size) == nodes) continue;
    if (other.place == refuse_slurm_batch) continue;  // it starts nobody
    const auto compare = [&](std::string_view mine, std::string_view theirs) {
      const std::optional<std::string> a = env.get(mine);
      const std::optional<std::string> b = env.get(theirs);
      if (!a || !b || *a == *b) return;
      info.warnings.push_back(std::string(mine) + "=" + detail::quoted(*a) + " but " + std::string(theirs) + "=" +
                              detail::quoted(*b) + "; the variables of " + std::string(taken.name) + " are taken");
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

COHORT_DECL launch_info launch_from_environment(const environment& env, std::string_view init,
                                                std::span<const env_source> sources) {
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
      if (source.place != nullptr) {
        source.place(env, info);
      } else {
        detail::read_ranks(source, env, info);
        detail::read_local_ranks(source, env, info);
      }
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

}  // namespace cohort
