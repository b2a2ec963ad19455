// SPDX-License-Identifier: BSL-1.0
// Who is to blame: pure functions from what every rank last did to one sentence that all ranks will report.
// Called by the in-process hub and by the monitor of a TCP world.
#pragma once

#include <cohort/transport/fault.hpp>
#include <cohort/transport/signature.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

[[nodiscard]] inline const arrival* find_arrival(const standing& who, std::uint64_t context) {
  const auto at = who.arrivals.find(context);
  return at == who.arrivals.end() ? nullptr : &at->second;
}

[[nodiscard]] inline std::string call_text(const arrival& a) {
  return (a.calls.empty() ? std::string{"something"} : describe(a.calls.back())) + " #" + std::to_string(a.entered);
}
[[nodiscard]] inline std::string last_call(const arrival* a) {
  return a == nullptr || a->entered < 0 ? "has not called anything yet" : "last called " + call_text(*a);
}
/// The same of a rank that can no longer be asked.
[[nodiscard]] inline std::string had_called(const arrival* a) {
  return a == nullptr || a->entered < 0 ? "had not called anything yet" : "had called " + call_text(*a);
}

/// Ranks of the world, which are those of the communicator only where that is the world itself.
[[nodiscard]] inline std::string place_of(const standing& who, std::uint64_t context = 0) {
  std::string text = (context == 0 ? "rank " : "world rank ") + std::to_string(who.rank);
  if (!who.host.empty()) {
    text += " (" + who.host + (who.pid != 0 ? ", pid " + std::to_string(who.pid) : std::string{}) + ")";
  }
  return text;
}

/// Completes the report of a deadline: lists the members that have not called the operation.
///
/// Needs: `world` holds a standing for every world rank; `members` are the world ranks of the communicator
[[nodiscard]] inline fault judge_timeout(fault report, const std::vector<standing>& world,
                                         const std::vector<int>& members) {
  std::string missing;
  int culprit = -1;
  int count = 0;
  for (const int member : members) {
    const standing& who = world[static_cast<std::size_t>(member)];
    const arrival* const at = find_arrival(who, report.context);
    if (at != nullptr && at->entered >= report.sequence) continue;
    missing += (missing.empty() ? "" : "; ") + place_of(who, report.context) +
               (who.left ? " has left the world and " : " ") + last_call(at);
    culprit = count++ == 0 ? member : -1;
  }
  report.culprit = culprit;
  if (missing.empty()) {
    report.text += "; every rank has called it: the time did not suffice for the data";
  } else {
    report.text += "; not arrived: " + missing;
  }
  return report;
}

/// Ranks that called different things under one number never agree: the fault that says so. Of several numbers the
/// lowest is told; the culprit is one of those who are fewer.
[[nodiscard]] inline std::optional<fault> judge_agreement(const std::vector<standing>& world, std::uint64_t context) {
  struct camp {
    signature call;
    std::vector<int> ranks;
  };
  std::map<std::int64_t, std::vector<camp>> calls;
  for (const standing& who : world) {
    const arrival* const a = find_arrival(who, context);
    if (a == nullptr) continue;
    std::int64_t number = a->entered - static_cast<std::int64_t>(a->calls.size());
    for (const signature& s : a->calls) {
      std::vector<camp>& camps = calls[++number];
      const auto mine = std::find_if(camps.begin(), camps.end(), [&s](const camp& c) { return c.call == s; });
      if (mine == camps.end()) {
        camps.push_back({s, {who.rank}});
      } else {
        mine->ranks.push_back(who.rank);
      }
    }
  }
  for (auto& [number, camps] : calls) {
    if (camps.size() < 2) continue;
    // By insertion, as there are few: std::stable_sort makes clang 19 warn inside the standard library of g++ 12.
    const auto more = [](const camp& a, const camp& b) { return a.ranks.size() > b.ranks.size(); };
    for (auto c = camps.begin(); c != camps.end(); ++c) {
      std::rotate(std::upper_bound(camps.begin(), c, *c, more), c, std::next(c));
    }
    fault f;
    f.code = errc::mismatch;
    f.context = context;
    f.sequence = number;
    f.culprit = camps.back().ranks.front();
    f.reporter = camps.front().ranks.front();
    f.text = describe_disagreement(f.culprit, camps.back().call, f.reporter, camps.front().call,
                                   context == 0 ? "" : "world ");
    return f;
  }
  return std::nullopt;
}

/// Whether it has left the world and was never in that communicator: what a rank did where it was stays on record.
///
/// Needs: it is a member, and some member has not destroyed the communicator yet
[[nodiscard]] inline bool never_formed(const standing& who, std::uint64_t context) {
  return who.left && find_arrival(who, context) == nullptr;
}

/// What became of a rank that will not call what has that number on that communicator.
[[nodiscard]] inline std::string departure_text(const standing& gone, std::uint64_t context, std::int64_t number) {
  const arrival* const theirs = find_arrival(gone, context);
  const bool came = theirs != nullptr && theirs->entered >= number;
  const bool failed = theirs != nullptr && theirs->completed < theirs->entered;
  return place_of(gone, context) + (came ? " gave up: it " : " exited early: it ") + last_call(theirs) +
         (failed ? ", which failed there," : "") +
         (gone.left ? " and left the world" : " and destroyed this communicator");
}

/// A rank that said goodbye, or destroyed that communicator, before it called what the one that waits is in there: nobody will
/// ever complete that.
[[nodiscard]] inline std::optional<fault> judge_departures_from(const std::vector<standing>& world,
                                                                const standing& waiting, const arrival& a) {
  if (waiting.left || a.completed >= a.entered) return std::nullopt;
  for (const standing& gone : world) {
    const arrival* const theirs = find_arrival(gone, a.context);
    // Who leaves has nothing in flight: what it called and did not complete has failed there.
    if (theirs == nullptr || theirs->completed >= a.entered || !(gone.left || theirs->retired)) continue;
    return fault{errc::peer_lost, gone.rank, waiting.rank,
                 a.context,       a.entered, departure_text(gone, a.context, a.entered)};
  }
  return std::nullopt;
}

/// The same on any communicator.
///
/// Needs: `judged(context)` is true for communicators whose failure has been told already
template <class Judged>
[[nodiscard]] std::optional<fault> judge_departures(const std::vector<standing>& world, Judged judged) {
  for (const standing& waiting : world) {
    for (const auto& [context, a] : waiting.arrivals) {
      if (judged(context)) continue;
      if (auto f = judge_departures_from(world, waiting, a)) return f;
    }
  }
  return std::nullopt;
}

/// The same on one communicator.
[[nodiscard]] inline std::optional<fault> judge_departures_on(const std::vector<standing>& world,
                                                              std::uint64_t context) {
  for (const standing& waiting : world) {
    const arrival* const a = find_arrival(waiting, context);
    if (a == nullptr) continue;
    if (auto f = judge_departures_from(world, waiting, *a)) return f;
  }
  return std::nullopt;
}

[[nodiscard]] inline std::optional<fault> judge_departures(const std::vector<standing>& world) {
  return judge_departures(world, [](std::uint64_t) { return false; });
}

}  // namespace cohort::transport
