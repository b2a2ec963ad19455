// SPDX-License-Identifier: BSL-1.0
// Bodies of launch_sources.hpp.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/launch_sources.hpp>
#include <cohort/uri.hpp>

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace cohort {

COHORT_DECL std::optional<std::string> environment::process_above(std::string_view name) const {
  if (lookup_) return lookup_("above:" + std::string(name));
  constexpr int most_generations = 64;
  long pid = static_cast<long>(::getppid());
  for (int i = 0; i < most_generations && pid > 1; ++i) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    // "4711 (name of up to 15 letters) S 1 ...": the name may hold anything, so the last parenthesis counts.
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
    if (std::string_view(text).substr(open + 1, close - open - 1) == name.substr(0, 15)) return std::to_string(pid);
    const std::size_t parent = close + 4;
    if (parent >= text.size()) return std::nullopt;
    const std::size_t end = text.find(' ', parent);
    const std::optional<std::int64_t> above =
        detail::whole_integer(std::string_view(text).substr(parent, end - parent));
    if (!above) return std::nullopt;
    pid = static_cast<long>(*above);
  }
  return std::nullopt;
}

namespace detail {

// --- lists as Slurm writes them ----------------------------------------------------------------------------

COHORT_DECL std::optional<std::string> first_host_of(std::string_view list) {
  const std::size_t end = list.find_first_of(",[");
  std::string host(list.substr(0, end));
  if (end != std::string_view::npos && list[end] == '[') {
    const std::size_t close = list.find(']', end);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view numbers = list.substr(end + 1, close - end - 1);
    const std::string_view first = numbers.substr(0, numbers.find_first_of(",-"));
    if (first.empty() || first.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    host += first;
    // What stands behind the brackets belongs to the name: "rack[1-2]-node3".
    const std::string_view rest = list.substr(close + 1);
    const std::size_t comma = rest.find(',');
    if (rest.find('[') < comma) return std::nullopt;
    host += rest.substr(0, comma);
  }
  if (host.empty()) return std::nullopt;
  return host;
}

COHORT_DECL std::optional<int> tasks_on_node(std::string_view list, int node) {
  int before = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    std::int64_t nodes = 1;
    if (const std::size_t times = part.find("(x"); times != std::string_view::npos) {
      if (part.back() != ')') return std::nullopt;
      const auto repeated = whole_integer(part.substr(times + 2, part.size() - times - 3));
      if (!repeated || *repeated < 1 || *repeated > max_world_size) return std::nullopt;
      nodes = *repeated;
      part = part.substr(0, times);
    }
    const auto tasks = whole_integer(part);
    if (!tasks || *tasks < 1 || *tasks > max_world_size) return std::nullopt;
    if (node < before + static_cast<int>(nodes)) return static_cast<int>(*tasks);
    before += static_cast<int>(nodes);
    if (before > max_world_size) return std::nullopt;
  }
  return std::nullopt;
}

COHORT_DECL std::uint16_t port_of_job(std::string_view id) noexcept {
  // FNV-1a: the same number in every process, whatever compiled it.
  std::uint32_t hash = 2166136261U;
  for (const char each : id) hash = (hash ^ static_cast<unsigned char>(each)) * 16777619U;
  constexpr std::uint32_t first = 20000;
  constexpr std::uint32_t many = 12000;  // Linux gives 32768 and above to whoever asks for any port
  return static_cast<std::uint16_t>(first + hash % many);
}

COHORT_DECL void meet_as_torchrun(const environment& env, launch_info& info) {
  // In a pod, MASTER_ADDR is the name of a service, which name servers learn after its pods have started.
  info.address_comes_late = env.has("KUBERNETES_SERVICE_HOST");
  if (env.get("TORCHELASTIC_USE_AGENT_STORE") != "True" || info.master_port == 0) return;
  info.master_port = static_cast<std::uint16_t>(info.master_port == 65535 ? 65534 : info.master_port + 1);
}

// --- who has started this process --------------------------------------------------------------------------

COHORT_DECL bool is_cohort(const environment& env) {
  // The size alone belongs to launchers that do not tell it.
  return env.has("COHORT_RANK") ||
         (env.has("COHORT_WORLD_SIZE") && !env.has("PMIX_RANK") && !env.has("JOB_COMPLETION_INDEX"));
}
COHORT_DECL bool is_slurm_step(const environment& env) {
  // mpirun starts its daemons as a step, and what these start inherits the variables of the daemon.
  const bool in_mpirun = env.has("OMPI_COMM_WORLD_SIZE") || env.has("MPI_LOCALNRANKS");
  return env.has("SLURM_PROCID") && (env.has("SLURM_STEP_ID") || env.has("SLURM_STEPID")) && !in_mpirun;
}
COHORT_DECL bool is_slurm_batch(const environment& env) {
  if (!env.has("SLURM_JOB_ID") || env.has("SLURM_STEP_ID") || env.has("SLURM_STEPID")) return false;
  const std::optional<std::string> tasks = env.get("SLURM_NTASKS");
  return tasks && *tasks != "1";
}
COHORT_DECL bool is_pmix_job(const environment& env) { return env.has("PMIX_RANK"); }
COHORT_DECL bool is_kubernetes_job(const environment& env) { return env.has("JOB_COMPLETION_INDEX"); }

// --- ranks and sizes ---------------------------------------------------------------------------------------

[[nodiscard]] inline int number_from(const environment& env, std::string_view name, std::int64_t low, std::int64_t high,
                                     std::string_view because) {
  const std::optional<std::string> value = env.get(name);
  if (!value) throw error(errc::bad_environment, std::string(name) + " is not set, but " + std::string(because));
  return static_cast<int>(parse_integer(*value, name, low, high));
}

COHORT_DECL void place_in_slurm_step(const environment& env, launch_info& info) {
  // SLURM_NTASKS is that of the job, which may have more tasks than this step, and is not always set.
  const char* const size = env.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  info.world_size = number_from(env, size, 1, max_world_size,
                                "SLURM_PROCID and SLURM_STEP_ID are: start the program with srun --ntasks=N");
  info.rank = number_from(env, "SLURM_PROCID", 0, info.world_size - 1, "SLURM_STEP_ID is");
  const int node = env.has("SLURM_NODEID") ? number_from(env, "SLURM_NODEID", 0, max_world_size, "") : 0;
  const char* const by_node =
      env.has("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  info.local_world_size = info.world_size;
  if (const std::optional<std::string> list = env.get(by_node)) {
    const std::optional<int> here = tasks_on_node(*list, node);
    if (!here || *here > info.world_size) {
      throw error(errc::bad_environment, std::string(by_node) + "=" + detail::quoted(*list) +
                                             ": expected tasks by node, such as "
                                             "2(x3),1, with an entry for node " +
                                             std::to_string(node));
    }
    info.local_world_size = *here;
  }
  info.local_rank = info.rank % info.local_world_size;
  if (env.has("SLURM_LOCALID")) info.local_rank = number_from(env, "SLURM_LOCALID", 0, info.local_world_size - 1, "");
  const char* const step = env.has("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
  info.run_id = env.get("SLURM_JOB_ID").value_or("0") + "." + env.get(step).value_or("0");
}

COHORT_DECL void refuse_slurm_batch(const environment& env, launch_info&) {
  throw error(errc::bad_environment, "this process runs in the batch script of Slurm job " + *env.get("SLURM_JOB_ID") +
                                         ", not in a step, so that nobody starts its " +
                                         env.get("SLURM_NTASKS").value_or("?") +
                                         " tasks: start it with srun or `cohort run`");
}

COHORT_DECL void place_in_pmix_job(const environment& env, launch_info& info) {
  info.world_size = number_from(env, "COHORT_WORLD_SIZE", 1, max_world_size,
                                "PMIX_RANK is, and PMIx has no variable for the number of ranks: set it to that");
  info.rank = number_from(env, "PMIX_RANK", 0, info.world_size - 1, "");
  info.local_rank = info.rank;
  info.local_world_size = info.world_size;
}

COHORT_DECL void place_in_kubernetes_job(const environment& env, launch_info& info) {
  info.world_size =
      number_from(env, "COHORT_WORLD_SIZE", 1, max_world_size,
                  "JOB_COMPLETION_INDEX is, and Kubernetes does not tell the number of pods: set it to the "
                  "job's completions");
  info.rank = number_from(env, "JOB_COMPLETION_INDEX", 0, info.world_size - 1, "");
  info.local_rank = 0;
  info.local_world_size = 1;
}

// --- where to meet -----------------------------------------------------------------------------------------

COHORT_DECL void meet_in_slurm_step(const environment& env, launch_info& info) {
  info.master_port = port_of_job(info.run_id);
  if (info.local_world_size == info.world_size) {
    info.master_addr = "127.0.0.1";
    return;
  }
  const char* const name = env.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  const std::optional<std::string> list = env.get(name);
  if (!list) return;  // what is missing is said where the address is needed
  const std::optional<std::string> host = first_host_of(*list);
  if (!host)
    throw error(errc::bad_environment,
                std::string(name) + "=" + detail::quoted(*list) + ": expected a list of hosts, such as n[1-4]");
  info.master_addr = *host;
}

COHORT_DECL void meet_on_one_host(const environment& env, launch_info& info) {
  if (info.local_world_size != info.world_size) return;
  std::string id = info.run_id;
  if (id.empty()) id = env.process_above("hydra_pmi_proxy").value_or("");
  if (id.empty()) return;
  info.run_id = id;
  info.master_addr = "127.0.0.1";
  info.master_port = port_of_job(id);
}

COHORT_DECL void meet_in_kubernetes_job(const environment& env, launch_info& info) {
  constexpr std::uint16_t usual_port = 29500;
  info.master_port = usual_port;
  info.address_comes_late = true;
  // Pods are called after their job and their index.
  const std::string own = env.get("HOSTNAME").value_or("");
  const std::string ending = "-" + env.get("JOB_COMPLETION_INDEX").value_or("");
  if (!own.ends_with(ending)) return;
  info.master_addr = own.substr(0, own.size() - ending.size()) + "-0";
  if (const std::optional<std::string> service = env.get("COHORT_SERVICE")) info.master_addr += "." + *service;
}

}  // namespace detail
}  // namespace cohort
