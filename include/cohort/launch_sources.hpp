// SPDX-License-Identifier: BSL-1.0
// What the launchers of this world say, where it takes more than reading one integer: lists of hosts, sizes by node,
// and jobs that have no address. Pure functions of an environment; the table of them is in launch.hpp.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/launch_info.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::detail {

/// "node[03-05,9],login1" to "node03"; nothing if it is no such list.
[[nodiscard]] std::optional<std::string> first_host_of(std::string_view list);

/// Tasks on one node out of "2(x3),1": nodes 0 to 2 have 2, node 3 has 1. Nothing if it is no such list, or too short.
[[nodiscard]] std::optional<int> tasks_on_node(std::string_view list, int node);

/// A port that ranks of one job agree on without a word: below the range that systems hand out by themselves.
[[nodiscard]] std::uint16_t port_of_job(std::string_view id) noexcept;

/// torchrun's agent may keep a store of torch's own at MASTER_PORT, and says so: ours takes the port after it. In a pod the
/// name of rank 0 comes late.
void meet_as_torchrun(const environment& env, launch_info& info);

// Each tells whether its launcher has started this process.
[[nodiscard]] bool is_cohort(const environment& env);
[[nodiscard]] bool is_slurm_step(const environment& env);
[[nodiscard]] bool is_slurm_batch(const environment& env);
[[nodiscard]] bool is_pmix_job(const environment& env);
[[nodiscard]] bool is_kubernetes_job(const environment& env);

// Each reads what is special about its launcher.
void place_in_slurm_step(const environment& env, launch_info& info);
void refuse_slurm_batch(const environment& env, launch_info& info);
void place_in_pmix_job(const environment& env, launch_info& info);
void place_in_kubernetes_job(const environment& env, launch_info& info);
void meet_in_slurm_step(const environment& env, launch_info& info);
void meet_on_one_host(const environment& env, launch_info& info);
void meet_in_kubernetes_job(const environment& env, launch_info& info);

}  // namespace cohort::detail
