// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: when a communicator of MPI's may be given back. MPI uses what tells it from others again for
// the next one: a message that nobody has received there would be taken for one of that. So it is kept, to the end of MPI,
// unless all its ranks have said that nothing of theirs is pending on it.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace cohort::transport {

/// How many of MPI's own collectives have been begun here and have ended; a number that no other rank has if not all have.
/// Where all ranks say the same, every message of each has been received.
COHORT_DECL std::uint64_t mpi_endpoint::natives_of(std::uint64_t context) const noexcept {
  const auto line = natives_.find(context);
  if (line == natives_.end()) return 0;
  const auto of_this_rank = std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(rank());
  return line->second.begun == line->second.ended ? line->second.begun : of_this_rank;
}

/// Once all members have destroyed their parts of a communicator. Not before: MPI's may be in its making elsewhere.
COHORT_DECL void mpi_endpoint::settle_retirements(std::uint64_t context, std::size_t members) {
  const auto at = retired_.find(context);
  if (at == retired_.end() || !at->second.own || at->second.of.size() + 1 < members) return;
  const bool even = std::all_of(at->second.of.begin(), at->second.of.end(),
                                [&](const retirement& r) { return r.natives == at->second.natives; });
  retired_.erase(at);
  if (context == 0) natives_of_world_even_ = even;
  const auto line = natives_.find(context);
  if (line == natives_.end()) return;
  if (even && context != 0 && line->second.comm != MPI_COMM_NULL && !detail::mpi_has_ended()) {
    MPI_Comm_free(&line->second.comm);
  }
  natives_.erase(line);
}

/// Whether nothing is pending anywhere on the two communicators of the world. Once all have left, nobody says anything but
/// answers; who does not wait for that any more says so.
COHORT_DECL bool mpi_endpoint::end_quietly(clock::time_point deadline) {
  const auto drive = [&](auto done) {
    drive_until([&] { return broken_ || done() || clock::now() >= deadline; });
    return !broken_ && done();
  };
  const bool quiet =
      wait_until_all_left(deadline) && drive([this] {
        return transfers_.empty() && outgoing_.empty() && held_.empty() && !comm_in_making_ && comms_wanted_.empty();
      });
  if (broken_) return false;
  mpi_packet p = mpi_packet::of(mpi_packet::kind::gone);
  p.other = quiet && natives_of_world_even_ ? 1 : 0;
  for (int r = 0; r < size(); ++r) {
    // By MPI, whatever else is in memory: it is what comes by MPI that has an end here.
    if (r != rank()) keep_outgoing(send_copy(r, p, nullptr, 0), nullptr);
  }
  const bool all_gone = drive([&] { return outgoing_.empty() && (p.other == 0 || ranks_gone_ + 1 == size()); });
  return all_gone && p.other != 0 && gone_quietly_ == ranks_gone_;
}

}  // namespace cohort::transport
