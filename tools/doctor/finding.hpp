// SPDX-License-Identifier: BSL-1.0
// What the doctor has to say: findings, what ranks know of themselves, and the report that is made of both. All of it
// travels and is printed as JSON, by Boost.Describe.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace cohort::tool {

enum class severity { ok, warning, problem };
BOOST_DESCRIBE_ENUM(severity, ok, warning, problem)

struct finding {
  severity level = severity::ok;
  std::string about;       ///< one or two words: names, port, descriptors
  std::string text;        ///< what was found
  std::string advice;      ///< what to do about it; "" when there is nothing to do
  std::string line;        ///< for the shell, if that mends it
  std::vector<int> ranks;  ///< who found it; empty: it concerns the whole job
};
BOOST_DESCRIBE_STRUCT(finding, (), (level, about, text, advice, line, ranks))

struct network_interface {
  std::string name;
  std::string address;
  int mtu = 0;
  bool loopback = false;
  bool chosen = false;  ///< this is where the rank listens
};
BOOST_DESCRIBE_STRUCT(network_interface, (), (name, address, mtu, loopback, chosen))

struct version_of {
  std::string what;
  std::string found;
};
BOOST_DESCRIBE_STRUCT(version_of, (), (what, found))

/// What a rank can tell before it has met any other.
struct rank_record {
  int rank = 0;
  std::string host;     ///< its name
  std::string network;  ///< the same for ranks that are on one machine and in one network
  long pid = 0;
  std::string address;  ///< where it listens
  bool shared_memory = true;
  std::vector<int> cores;
  std::vector<network_interface> interfaces;
  std::vector<version_of> versions;
  std::vector<finding> findings;

  void add(finding f) {
    f.ranks = {rank};
    findings.push_back(std::move(f));
  }
};
BOOST_DESCRIBE_STRUCT(rank_record, (),
                      (rank, host, network, pid, address, shared_memory, cores, interfaces, versions, findings))

/// A message of 8 bytes there and back, in microseconds.
struct round_trip {
  int from = 0;
  int to = 0;
  double min = 0;
  double median = 0;
  double max = 0;
  bool shared_memory = false;
};
BOOST_DESCRIBE_STRUCT(round_trip, (), (from, to, min, median, max, shared_memory))

/// What a rank has found out about its connections to the others.
struct mesh_record {
  std::vector<finding> findings;
  std::vector<round_trip> round_trips;
};
BOOST_DESCRIBE_STRUCT(mesh_record, (), (findings, round_trips))

struct doctor_report {
  std::string version;
  std::string launcher;
  std::string meeting;  ///< where the ranks meet: an address, or a file
  int world_size = 1;
  severity verdict = severity::ok;
  std::vector<finding> findings;
  std::vector<rank_record> ranks;  ///< those that came
  std::vector<round_trip> round_trips_us;
  std::vector<std::string> exports;  ///< lines for the shell
};
BOOST_DESCRIBE_STRUCT(doctor_report, (),
                      (version, launcher, meeting, world_size, verdict, findings, ranks, round_trips_us, exports))

/// Findings that several ranks share are one; the worst come last, where the eye is when a page has scrolled by.
inline std::vector<finding> merged(const std::vector<finding>& all) {
  std::vector<finding> result;
  for (const finding& each : all) {
    const auto same = std::find_if(result.begin(), result.end(), [&each](const finding& other) {
      return other.level == each.level && other.about == each.about && other.text == each.text &&
             other.advice == each.advice;
    });
    if (same == result.end()) {
      const auto worse = std::find_if(result.begin(), result.end(),
                                      [&each](const finding& other) { return other.level > each.level; });
      result.insert(worse, each);
    } else {
      same->ranks.insert(same->ranks.end(), each.ranks.begin(), each.ranks.end());
      if (same->line.empty()) same->line = each.line;  // one of them may know what the others cannot
    }
  }
  for (finding& each : result) std::sort(each.ranks.begin(), each.ranks.end());
  return result;
}

inline severity worst_of(const std::vector<finding>& all) {
  severity worst = severity::ok;
  for (const finding& each : all) worst = std::max(worst, each.level);
  return worst;
}

}  // namespace cohort::tool
