// SPDX-License-Identifier: BSL-1.0
#include "judge.hpp"

#include "examine.hpp"

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>
#include <cohort/uri.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace cohort::tool {
namespace {

std::string ranks_of(const std::vector<const rank_record*>& records) {
  std::vector<int> ranks;
  for (const rank_record* const each : records) ranks.push_back(each->rank);
  return detail::ranks_text(ranks);
}

void judge_versions(doctor_report& report) {
  std::vector<std::string> alike;
  for (std::size_t i = 0; i < report.ranks.front().versions.size(); ++i) {
    const std::string what = report.ranks.front().versions[i].what;
    std::map<std::string, std::vector<int>> by_version;
    for (const rank_record& each : report.ranks) {
      if (i < each.versions.size()) by_version[each.versions[i].found].push_back(each.rank);
    }
    if (by_version.size() == 1) {
      alike.push_back(what + " " + by_version.begin()->first);
      continue;
    }
    std::string text = what + " differs: ";
    for (auto at = by_version.begin(); at != by_version.end(); ++at) {
      text += (at == by_version.begin() ? "" : "; ") + at->first + " on " + detail::ranks_text(at->second);
    }
    const bool own = what == "cohort" || what == "protocol";
    report.findings.push_back({own ? severity::problem : severity::warning,
                               "versions",
                               text,
                               own ? "build all ranks with the same version"
                                   : "if the program uses it: install the same version everywhere, or set "
                                     "LD_LIBRARY_PATH the same on every rank",
                               {},
                               {}});
  }
  std::string text;
  for (const std::string& each : alike) text += (text.empty() ? "" : ", ") + each;
  report.findings.push_back(
      {severity::ok, "versions", text + (report.ranks.size() > 1 ? "; the same on all ranks" : ""), {}, {}, {}});
}

void judge_cores(const std::vector<const rank_record*>& ranks, doctor_report& report) {
  std::set<int> cores;
  for (const rank_record* const each : ranks) cores.insert(each->cores.begin(), each->cores.end());
  const std::string text = ranks.front()->host + ": " + std::to_string(ranks.size()) +
                           (ranks.size() == 1 ? " rank on " : " ranks on ") + std::to_string(cores.size()) +
                           (cores.size() == 1 ? " core" : " cores");
  if (ranks.size() <= cores.size()) {
    report.findings.push_back({severity::ok, "cores", text, {}, {}, {}});
  } else {
    report.findings.push_back(
        {severity::warning,
         "cores",
         text + ": a rank that waits takes the core of one that works",
         "start fewer, or give the container more; round trips take several times as long like this",
         {},
         {}});
  }
}

void judge_shared_memory(const std::vector<const rank_record*>& ranks, doctor_report& report) {
  if (ranks.size() < 2) return;
  std::vector<int> without;
  for (const rank_record* const each : ranks) {
    if (!each->shared_memory) without.push_back(each->rank);
  }
  const std::string& host = ranks.front()->host;
  if (without.empty()) {
    report.findings.push_back({severity::ok, "shared memory", host + ": on (COHORT_SHM)", {}, {}, {}});
  } else {
    report.findings.push_back({severity::warning,
                               "shared memory",
                               host + ": off on " + detail::ranks_text(without) + ", by COHORT_SHM=0; they use TCP",
                               "that is several times slower",
                               "unset COHORT_SHM",
                               {}});
  }
}

// Addresses that one host has for itself, told to ranks of another.
void judge_addresses(const std::vector<std::vector<const rank_record*>>& hosts, doctor_report& report) {
  std::map<int, std::string> by_mtu;
  for (const auto& ranks : hosts) {
    for (const network_interface& each : ranks.front()->interfaces) {
      if (each.chosen && !each.loopback && each.mtu > 0) {
        std::string& text = by_mtu[each.mtu];
        text += (text.empty() ? "" : ", ") + ranks.front()->host + " (" + each.name + ")";
      }
    }
    // A rank whose launcher has told it of the other hosts has said so itself.
    const bool known = worst_of(ranks.front()->findings) == severity::problem;
    if (hosts.size() < 2 || known || !is_loopback_address(ranks.front()->address)) continue;
    report.findings.push_back({severity::problem,
                               "address",
                               ranks_of(ranks) + ": listening on " + ranks.front()->address + ", which only " +
                                   ranks.front()->host + " can reach, and there are " + std::to_string(hosts.size()) +
                                   " hosts",
                               "leave COHORT_BIND_ADDRESS out: the address from which rank 0 is reached is taken then",
                               "unset COHORT_BIND_ADDRESS",
                               {}});
  }
  if (by_mtu.size() < 2) return;
  std::string text;
  for (const auto& [mtu, where] : by_mtu) text += (text.empty() ? "" : "; ") + std::to_string(mtu) + " on " + where;
  report.findings.push_back({severity::warning,
                             "mtu",
                             "the interfaces differ: " + text,
                             "give all of one network the same: long packets may be lost on the way",
                             {},
                             {}});
}

}  // namespace

std::vector<std::vector<const rank_record*>> hosts_of(const std::vector<rank_record>& ranks) {
  std::vector<std::vector<const rank_record*>> hosts;
  for (const rank_record& each : ranks) {
    const auto same = std::find_if(hosts.begin(), hosts.end(), [&each](const auto& host) {
      return host.front()->network == each.network && host.front()->host == each.host;
    });
    if (same == hosts.end()) {
      hosts.push_back({&each});
    } else {
      same->push_back(&each);
    }
  }
  return hosts;
}

void judge_records(const launch_info& info, doctor_report& report) {
  const std::vector<std::vector<const rank_record*>> hosts = hosts_of(report.ranks);
  for (const rank_record& each : report.ranks) {
    report.findings.insert(report.findings.end(), each.findings.begin(), each.findings.end());
  }
  for (const auto& ranks : hosts) {
    judge_cores(ranks, report);
    judge_shared_memory(ranks, report);
  }
  judge_addresses(hosts, report);
  judge_versions(report);
  if (info.world_size > 1 && info.secret.empty() && info.insecure_network && hosts.size() > 1) {
    report.findings.push_back({severity::warning,
                               "secret",
                               "none, as COHORT_INSECURE_NETWORK=1 allows: whoever reaches "
                               "the ranks can join them",
                               "give every rank the same",
                               "export COHORT_SECRET=$(openssl rand -hex 32)",
                               {}});
  }
}

void judge_meshes(const std::vector<mesh_record>& meshes, doctor_report& report) {
  bool whole = !meshes.empty();
  for (const mesh_record& each : meshes) {
    report.findings.insert(report.findings.end(), each.findings.begin(), each.findings.end());
    report.round_trips_us.insert(report.round_trips_us.end(), each.round_trips.begin(), each.round_trips.end());
    whole = whole && worst_of(each.findings) != severity::problem;
  }
  if (!whole) return;
  const auto shared = std::count_if(report.round_trips_us.begin(), report.round_trips_us.end(),
                                    [](const round_trip& each) { return each.shared_memory; });
  const auto all = static_cast<std::ptrdiff_t>(report.round_trips_us.size());
  const auto pairs = [](std::ptrdiff_t n, const char* how) {
    return n == 0 ? std::string{} : std::to_string(n) + (n == 1 ? " pair by " : " pairs by ") + how;
  };
  const std::string near = pairs(shared, "shared memory");
  const std::string far = pairs(all - shared, "TCP");
  report.findings.push_back(
      {severity::ok,
       "mesh",
       "every rank is connected to every other: " + near + (near.empty() || far.empty() ? "" : ", ") + far,
       {},
       {},
       {}});
}

finding missing_ranks(const launch_info& info, const std::vector<int>& missing, std::chrono::nanoseconds waited) {
  const auto here = info.world_size - static_cast<int>(missing.size());
  std::string advice =
      "is it started, with the same MASTER_ADDR and MASTER_PORT, run id and secret? On its host, it says "
      "itself what it waits for";
  if (is_loopback_address(info.master_addr)) {
    advice += "; " + info.master_addr + " is each host itself, so ranks on other hosts cannot come here";
  }
  return {severity::problem,
          "ranks",
          std::to_string(here) + " of " + std::to_string(info.world_size) + " came within " +
              detail::duration_text(waited) + ", missing " + detail::ranks_text(missing),
          advice,
          {},
          {}};
}

void conclude(const launch_info& info, doctor_report& report) {
  report.findings = merged(report.findings);
  report.verdict = worst_of(report.findings);
  for (const finding& each : report.findings) {
    if (each.line.empty()) continue;
    if (std::find(report.exports.begin(), report.exports.end(), each.line) == report.exports.end()) {
      report.exports.push_back(each.line);
    }
  }
  if (!report.exports.empty() || !info.file_path.empty()) return;
  std::string address = info.master_addr;
  std::string port = std::to_string(info.master_port);
  if (info.world_size == 1) {
    address = report.ranks.empty() ? "" : outward_address(report.ranks.front().interfaces);
    port = "29500";
  }
  if (!address.empty())
    report.exports.push_back("export COHORT_MASTER_ADDR=" + address + " COHORT_MASTER_PORT=" + port);
}

}  // namespace cohort::tool
