// SPDX-License-Identifier: BSL-1.0
// The first cause of a failure, in the form in which ranks tell it to each other. Made where something goes
// wrong, judged once for the whole world, and turned into a cohort::error on every rank that it concerns.
#pragma once

#include <cohort/error.hpp>
#include <cohort/transport/signature.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

/// A context number that no communicator has: the fault concerns every communicator that its culprit is in.
inline constexpr std::uint64_t every_context = ~std::uint64_t{0};

struct fault {
  errc code = errc::aborted;
  int culprit = -1;   ///< world rank at fault, -1: none or several
  int reporter = -1;  ///< world rank that noticed
  std::uint64_t context = every_context;
  std::int64_t sequence = -1;  ///< of the operation in which it was noticed
  std::string text{};          ///< what happened, without the name of the failed operation
};

/// What one rank has done on one communicator: carried by heartbeats, compared when something hangs.
struct arrival {
  std::uint64_t context = 0;
  std::int64_t entered = -1;    ///< number of the last collective called
  std::int64_t completed = -1;  ///< all collectives up to this number are complete
  /// The last ones called, in order: the one at the end is number `entered`.
  std::vector<signature> calls{};
  std::uint32_t members = 0;  ///< ranks in the communicator
  bool retired = false;       ///< this rank has destroyed it
  friend bool operator==(const arrival&, const arrival&) = default;
};

/// How many calls a heartbeat tells of: ranks that have drifted further apart are compared by their messages only.
inline constexpr std::size_t most_calls_told = 16;

/// One rank as the judge of a failure sees it.
struct standing {
  int rank = -1;
  bool left = false;  ///< it has said goodbye
  std::string host{};
  long pid = 0;
  std::map<std::uint64_t, arrival> arrivals{};  ///< by communicator

  void note(arrival a) {
    const std::uint64_t context = a.context;
    arrivals.insert_or_assign(context, std::move(a));
  }
};

}  // namespace cohort::transport
