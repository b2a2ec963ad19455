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
  // The others must not go on as if this rank had the object.
  c.engine().report_mismatch(c.home(), c.sequence(), c.engine().rank(), errc::limit_exceeded,
                             "rank " + std::to_string(rank) + " has an object of " + std::to_string(bytes) +
                                 " bytes; codec_limits::bytes of rank " + std::to_string(c.home().rank()) + " allows " +
                                 std::to_string(limits.bytes) + ": give the call larger limits, on every rank");
  throw c.failure();
}

}  // namespace cohort::messages
