// SPDX-License-Identifier: BSL-1.0
// `cohort env`: which launcher started this process, as far as its environment tells, and what a rank would make of it.
#include "arguments.hpp"
#include "command.hpp"

#include <cohort/error.hpp>
#include <cohort/launch.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {
namespace {

struct source_report {
  std::string name;
  bool detected = false;
  bool taken = false;
  std::vector<std::pair<std::string, std::string>> variables;  ///< of the launcher, those that are set
};

struct env_report {
  std::vector<source_report> sources;
  launch_info info;
  std::string problem;  ///< why there is no info
};

env_report report_of(const environment& env) {
  env_report report;
  bool taken = false;
  for (const env_source& each : env_sources) {
    source_report one;
    one.name = each.name;
    one.detected = is_detected(each, env);
    one.taken = one.detected && !taken;
    taken = taken || one.detected;
    for (const std::string_view name : {each.rank, each.world_size, each.local_rank, each.local_world_size,
                                        each.master_addr, each.master_port, each.run_id, each.restart_count}) {
      if (const std::optional<std::string> value = env.get(name)) one.variables.emplace_back(name, *value);
    }
    report.sources.push_back(std::move(one));
  }
  try {
    report.info = launch_from_environment(env);
  } catch (const error& e) {
    report.problem = e.what();
  }
  return report;
}

void print_text(const env_report& report) {
  std::size_t width = 0;
  for (const source_report& each : report.sources) width = std::max(width, each.name.size());
  std::printf("Launchers in the order in which they are asked; the first that is here decides:\n");
  for (const source_report& each : report.sources) {
    std::string line = each.taken ? "* " : "  ";
    line += each.name + std::string(width - each.name.size() + 2, ' ');
    line += each.detected ? (each.taken ? "taken    " : "here too ") : "-        ";
    for (const auto& [name, value] : each.variables) line += " " + name + "=" + value;
    std::printf("%s\n", line.c_str());
  }
  if (!report.problem.empty()) {
    std::printf("\nA rank could not start: %s\n", report.problem.c_str());
    return;
  }
  const launch_info& i = report.info;
  std::printf("\n%s: rank %d of %d, on this host %d of %d", i.source.c_str(), i.rank, i.world_size, i.local_rank,
              i.local_world_size);
  if (!i.file_path.empty()) {
    std::printf(", meeting at the file %s", i.file_path.c_str());
  } else if (!i.master_addr.empty()) {
    std::printf(", meeting at %s port %d", i.master_addr.c_str(), int{i.master_port});
  }
  std::printf("%s%s%s%s%s\n", i.run_id.empty() ? "" : ", job ", i.run_id.c_str(),
              i.secret.empty() ? "" : ", with a secret", i.tls.asked_for() ? ", with TLS" : "",
              i.insecure_network ? ", on an insecure network" : "");
  for (const std::string& each : i.warnings) std::printf("warning: %s\n", each.c_str());
}

void print_json(const env_report& report) {
  namespace json = boost::json;
  json::array sources;
  for (const source_report& each : report.sources) {
    json::object variables;
    for (const auto& [name, value] : each.variables) variables[name] = value;
    sources.push_back(json::object{
        {"name", each.name}, {"detected", each.detected}, {"taken", each.taken}, {"variables", std::move(variables)}});
  }
  json::object all{{"sources", std::move(sources)}};
  if (!report.problem.empty()) {
    all["error"] = report.problem;
  } else {
    const launch_info& i = report.info;
    all["source"] = i.source;
    all["rank"] = i.rank;
    all["world_size"] = i.world_size;
    all["local_rank"] = i.local_rank;
    all["local_world_size"] = i.local_world_size;
    all["master_addr"] = i.master_addr;
    all["master_port"] = i.master_port;
    all["run_id"] = i.run_id;
    all["has_secret"] = !i.secret.empty();
    all["has_tls"] = i.tls.asked_for();
    all["warnings"] = json::value_from(i.warnings);
  }
  std::printf("%s\n", json::serialize(all).c_str());
}

}  // namespace

int env_command(const std::vector<std::string>& words) {
  CLI::App app("Tell which launcher started this process, and what a rank would make of its variables.", "cohort env");
  bool as_json = false;
  app.add_flag("--json", as_json, "for programs");
  set_usage(app, "cohort env [--json]");
  app.footer(
      "The exit code is 0 when a rank could start here, 1 when it could not. mpirun -n 2 cohort env, for\n"
      "example, shows what mpirun sets. Secrets are not shown.");
  if (const std::optional<int> ended = parse_words(app, words)) return *ended;
  const env_report report = report_of(environment{});
  if (as_json) {
    print_json(report);
  } else {
    print_text(report);
  }
  return report.problem.empty() ? 0 : 1;
}

}  // namespace cohort::tool
