// SPDX-License-Identifier: BSL-1.0
// Whether the ranks reach each other, and how fast: every rank knocks at the door of every other by itself, so that all
// pairs that cannot be connected are named; then a world is made as programs make it, and each pair of its ranks plays
// ping-pong.
#pragma once

#include "finding.hpp"
#include "meeting.hpp"

#include <cohort/connect.hpp>

#include <vector>

namespace cohort::tool {

/// Connects to every other rank, each of which answers with who it is.
///
/// Result: a problem for each rank that cannot be reached
/// Needs:  all ranks call it
[[nodiscard]] std::vector<finding> knock_at_all_doors(const rank_record& mine, meeting& m);

/// Whether this rank may read the memory of the next one of its host, as long messages do.
///
/// Needs: all ranks call it; `records` are those of all ranks
[[nodiscard]] std::vector<finding> read_next_memory(const std::vector<rank_record>& records, meeting& m);

/// Joins a world and measures round trips, each pair once, by its lower rank.
///
/// Needs:  all ranks call it
/// Errors: those of connect and of its operations, as a problem
[[nodiscard]] mesh_record play_ping_pong(const connect_options& o, meeting& m);

}  // namespace cohort::tool
