// SPDX-License-Identifier: BSL-1.0
// Bodies of messages/objects.hpp that are no templates.
#pragma once

#include <cohort/error.hpp>
#include <cohort/messages/objects.hpp>

#include <cstdint>
#include <string>

namespace cohort::messages {

COHORT_DECL void check_size(const call& c, int rank, std::uint64_t bytes, const codec_limits& limits) {
  if (bytes <= limits.bytes) return;
  throw error(errc::limit_exceeded, std::string{name(c.signature().kind)} + ": rank " + std::to_string(rank) +
                                        " has an object of " + std::to_string(bytes) +
                                        " bytes; codec_limits::bytes allows " + std::to_string(limits.bytes) +
                                        ": give the call larger limits, on every rank");
}

}  // namespace cohort::messages
