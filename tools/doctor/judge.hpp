// SPDX-License-Identifier: BSL-1.0
// What no rank can see alone: who is missing, what differs between ranks and hosts. Called where the records of all
// ranks have come together.
#pragma once

#include "finding.hpp"

#include <cohort/launch_info.hpp>

#include <chrono>
#include <vector>

namespace cohort::tool {

/// The ranks of one host, by the first of them.
[[nodiscard]] std::vector<std::vector<const rank_record*>> hosts_of(const std::vector<rank_record>& ranks);

/// Adds the findings about `ranks` together, and those of each of them.
void judge_records(const launch_info& info, doctor_report& report);

/// Adds what the ranks have found out about their connections.
void judge_meshes(const std::vector<mesh_record>& meshes, doctor_report& report);

/// Who did not come within `waited`.
[[nodiscard]] finding missing_ranks(const launch_info& info, const std::vector<int>& missing,
                                    std::chrono::nanoseconds waited);

/// Sums up: merges the findings, sets the verdict and the lines for the shell.
void conclude(const launch_info& info, doctor_report& report);

}  // namespace cohort::tool
