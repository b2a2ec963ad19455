// SPDX-License-Identifier: BSL-1.0
// Who this process is in its job, from the variables that a launcher sets. The first step of `cohort::run`;
// what it returns says which store to open and whom to meet there.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/launch_info.hpp>
#include <cohort/launch_sources.hpp>

#include <span>
#include <string_view>

namespace cohort {

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
  /// Reads ranks and sizes where the five names above do not suffice; null: they do.
  void (*place)(const environment&, launch_info&) = nullptr;
};

/// Every launcher that is understood, the strongest first. The first one detected decides, and none is mixed
/// with another: a half-set one is an error, not a reason to look further.
inline constexpr env_source env_sources[] = {
    {"COHORT_*", "COHORT_RANK", "COHORT_WORLD_SIZE", "COHORT_LOCAL_RANK", "COHORT_LOCAL_WORLD_SIZE",
     "COHORT_MASTER_ADDR", "COHORT_MASTER_PORT", "COHORT_RUN_ID", "COHORT_RESTART_COUNT", detail::is_cohort},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
     "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", nullptr, detail::meet_as_torchrun},
    // A user who exports RANK in a step means it; a step inside which mpirun started this process is not its launcher.
    {"Slurm step", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", "", "", "SLURM_JOB_ID",
     "SLURM_RESTART_COUNT", detail::is_slurm_step, detail::meet_in_slurm_step, detail::place_in_slurm_step},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "", "", "PMIX_NAMESPACE", "", nullptr, detail::meet_on_one_host},
    {"Hydra (MPICH, Intel MPI)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", "", "", "", nullptr,
     detail::meet_on_one_host},
    {"PMIx", "PMIX_RANK", "COHORT_WORLD_SIZE", "", "", "", "", "PMIX_NAMESPACE", "", detail::is_pmix_job, nullptr,
     detail::place_in_pmix_job},
    {"PALS", "PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "", "", "PALS_APID", "", nullptr,
     detail::meet_on_one_host},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", "", "", "FLUX_JOB_ID", ""},
    {"Kubernetes indexed job", "JOB_COMPLETION_INDEX", "COHORT_WORLD_SIZE", "", "", "", "", "", "",
     detail::is_kubernetes_job, detail::meet_in_kubernetes_job, detail::place_in_kubernetes_job},
    // Not a launcher: a batch script sees all variables of the job, and would wait for ranks that nobody starts.
    {"Slurm batch script", "SLURM_PROCID", "SLURM_NTASKS", "", "", "", "", "", "", detail::is_slurm_batch, nullptr,
     detail::refuse_slurm_batch},
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
