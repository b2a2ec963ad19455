// SPDX-License-Identifier: BSL-1.0
// What a rank finds out about its host before it meets the others. Each function adds what it has found to the record.
#pragma once

#include "finding.hpp"

#include <cohort/connect.hpp>
#include <cohort/store.hpp>

#include <string>
#include <vector>

namespace cohort::tool {

/// Whether the launcher says that the ranks are on several hosts. Without a launcher nobody can tell before they meet.
[[nodiscard]] bool on_several_hosts(const launch_info& info);

/// The address at which other hosts reach this one: of the default route, else of the first interface; "" if there is
/// no network.
[[nodiscard]] std::string outward_address(const std::vector<network_interface>& interfaces);

/// Interfaces, and the address on which this rank listens.
void examine_network(const connect_options& o, deadline until, rank_record& mine);

/// What the names of this host and of rank 0's resolve to. Needs: the interfaces
void examine_names(const connect_options& o, deadline until, rank_record& mine);

/// Descriptors, memory, what may be locked of it, cores.
void examine_limits(const connect_options& o, rank_record& mine);

/// Of cohort, and of the libraries that programs use beside it, as far as this process can load them.
void examine_versions(rank_record& mine);

/// All of the above, and who this rank is.
[[nodiscard]] rank_record examine(const connect_options& o, deadline until);

}  // namespace cohort::tool
