// SPDX-License-Identifier: BSL-1.0
// `cohort doctor`: what would keep a job from starting, or make it slow. Every rank looks at its own host, tells the
// others at the store at which a world meets, and tries to connect to all of them; rank 0 prints.
#include "../arguments.hpp"
#include "../command.hpp"
#include "examine.hpp"
#include "judge.hpp"
#include "mesh.hpp"
#include "port_holder.hpp"
#include "report.hpp"

#include <cohort/detail/printable.hpp>
#include <cohort/transport/tcp_open_store.hpp>
#include <cohort/version.hpp>

#include <boost/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>

namespace cohort::tool {
namespace {

namespace json = boost::json;

constexpr const char* this_command = "cohort doctor";

struct doctor_options {
  bool as_json = false;
  double wait = 30;
  int rank = 0;
  int world_size = 1;
  std::string master_addr;
  int master_port = 29500;
};

std::optional<int> parse(const std::vector<std::string>& words, doctor_options& options) {
  CLI::App app("Tell what would keep the ranks of a job from connecting, or make them slow.", this_command);
  app.add_flag("--json", options.as_json, "for programs");
  app.add_option("--wait", options.wait, "how long to wait for ranks that have not come; default 30")
      ->check(CLI::PositiveNumber)
      ->option_text("SECONDS");
  auto* const rank = app.add_option("--rank", options.rank, "without a launcher: which rank this is")
                         ->check(CLI::NonNegativeNumber)
                         ->option_text("R");
  auto* const size = app.add_option("--world-size", options.world_size, "without a launcher: how many there are")
                         ->check(CLI::PositiveNumber)
                         ->option_text("N");
  auto* const address =
      app.add_option("--master-addr", options.master_addr, "the address of rank 0's host, as the others reach it")
          ->option_text("HOST");
  auto* const port = app.add_option("--master-port", options.master_port, "where rank 0 listens; default 29500")
                         ->check(CLI::Range(1, 65535))
                         ->option_text("PORT");
  rank->needs(size);
  size->needs(rank);
  set_usage(app, "cohort doctor [options]");
  app.footer(
      "Start it as the program will be started: cohort run -n 4 --tag none -- cohort doctor, mpirun -n 4 cohort "
      "doctor,\n"
      "srun cohort doctor. Without a launcher, once for each rank, on its host:\n"
      "cohort doctor --rank 1 --world-size 2 --master-addr node0\n"
      "The exit code is 0 when there is no problem, 1 when there is one; warnings do not count.");
  if (const std::optional<int> ended = parse_words(app, words)) return ended;
  if (app.count("--rank") > 0 && options.rank >= options.world_size) {
    return usage_error(this_command, "--rank: '" + std::to_string(options.rank) + "' is not below --world-size " +
                                         std::to_string(options.world_size));
  }
  if (options.world_size > 1 && address->count() == 0) {
    return usage_error(this_command, "--master-addr is missing: the address of rank 0's host, as the others reach it");
  }
  // From here on as if a launcher had said so.
  const auto set = [](const char* variable, const std::string& value) { ::setenv(variable, value.c_str(), 1); };
  if (rank->count() > 0) set("COHORT_RANK", std::to_string(options.rank));
  if (size->count() > 0) set("COHORT_WORLD_SIZE", std::to_string(options.world_size));
  if (address->count() > 0) set("COHORT_MASTER_ADDR", options.master_addr);
  if (port->count() > 0 || size->count() > 0) set("COHORT_MASTER_PORT", std::to_string(options.master_port));
  return std::nullopt;
}

doctor_report empty_report(const launch_info& info) {
  doctor_report report;
  report.version = version_string;
  report.launcher = info.source;
  report.world_size = info.world_size;
  if (!info.file_path.empty()) {
    report.meeting = info.file_path;
  } else if (info.world_size > 1) {
    report.meeting = info.master_addr + " port " + std::to_string(info.master_port);
  }
  return report;
}

int print(const doctor_report& report, bool as_json) {
  std::fputs((as_json ? json_of(report) : text_of(report)).c_str(), stdout);
  std::fflush(stdout);
  return report.verdict == severity::problem ? 1 : 0;
}

/// What this rank can say when it cannot meet the others.
int alone(const connect_options& o, rank_record mine, bool as_json) {
  doctor_report report = empty_report(o.launch);
  report.ranks.push_back(std::move(mine));
  judge_records(o.launch, report);
  conclude(o.launch, report);
  return print(report, as_json);
}

std::string bytes_of(const auto& told) { return json::serialize(json::value_from(told)); }

template <class T>
T told_by(const std::string& bytes) {
  return json::value_to<T>(json::parse(bytes));
}

/// Rank 0 says on stderr for whom it waits, when that takes a while.
std::vector<int> wait_for_all(meeting& m, std::string_view what, deadline until) {
  constexpr std::chrono::seconds first_word{3};
  const deadline soon = std::min(until, deadline_after(first_word));
  std::vector<int> missing = m.missing(what, soon);
  if (missing.empty() || soon == until) return missing;
  std::fprintf(stderr, "cohort doctor: %d of %d ranks have come, waiting for %s\n",
               m.size() - static_cast<int>(missing.size()), m.size(), detail::ranks_text(missing).c_str());
  return m.missing(what, until);
}

class consultation {
 public:
  consultation(const connect_options& o, const doctor_options& options, meeting m, rank_record mine)
      : o_(o), options_(options), meeting_(std::move(m)), mine_(std::move(mine)), report_(empty_report(o.launch)) {}

  int run() {
    meeting_.tell("record", bytes_of(mine_));
    missing_ = agree_on_missing();
    hear_records();
    if (missing_.empty()) connect_all();
    return conclude_together();
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds wait() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options_.wait));
  }
  [[nodiscard]] bool is_first() const { return meeting_.rank() == 0; }
  static constexpr std::chrono::seconds step{60};  // what takes all ranks a moment

  std::vector<int> agree_on_missing() {
    if (is_first()) {
      const std::vector<int> missing = wait_for_all(meeting_, "record", deadline_after(wait()));
      meeting_.decide("missing", bytes_of(missing));
      return missing;
    }
    return told_by<std::vector<int>>(meeting_.decided("missing", deadline_after(wait() + step)));
  }
  void hear_records() {
    for (const auto& told : meeting_.hear("record", deadline_after(std::chrono::seconds{0}))) {
      if (told) report_.ranks.push_back(told_by<rank_record>(*told));
    }
  }
  void connect_all() {
    mesh_record found;
    found.findings = knock_at_all_doors(mine_, meeting_);
    for (finding& each : read_next_memory(report_.ranks, meeting_)) found.findings.push_back(std::move(each));
    meeting_.tell("knocked", bytes_of(found));
    // A world of which two ranks cannot connect tells less than what is known by now.
    bool whole = true;
    for (const auto& told : meeting_.hear("knocked", deadline_after(step))) {
      whole = whole && told && worst_of(told_by<mesh_record>(*told).findings) != severity::problem;
    }
    if (whole) {
      mesh_record played = play_ping_pong(o_, meeting_);
      played.findings.insert(played.findings.begin(), found.findings.begin(), found.findings.end());
      found = std::move(played);
    }
    meeting_.tell("mesh", bytes_of(found));
    if (!is_first()) return;
    std::vector<mesh_record> meshes;
    std::vector<int> silent;
    const auto told = meeting_.hear("mesh", deadline_after(step));
    for (std::size_t r = 0; r < told.size(); ++r) {
      if (told[r]) {
        meshes.push_back(told_by<mesh_record>(*told[r]));
      } else {
        silent.push_back(static_cast<int>(r));
      }
    }
    if (!silent.empty()) {
      mesh_record lost;
      lost.findings.push_back({severity::problem,
                               "ranks",
                               "lost on the way: " + detail::ranks_text(silent),
                               "did the process end, or the host?",
                               {},
                               {}});
      meshes.push_back(std::move(lost));
    }
    meshes_ = std::move(meshes);
  }
  // Everybody ends with the same code, and after rank 0 has printed.
  int conclude_together() {
    if (!is_first()) {
      const int code = std::stoi(meeting_.decided("verdict", deadline_after(2 * step)));
      meeting_.tell("understood", "1");
      return code;
    }
    judge_records(o_.launch, report_);
    judge_meshes(meshes_, report_);
    if (!missing_.empty()) report_.findings.push_back(missing_ranks(o_.launch, missing_, wait()));
    conclude(o_.launch, report_);
    const int code = print(report_, options_.as_json);
    meeting_.decide("verdict", std::to_string(code));
    meeting_.tell("understood", "1");
    // The store is served here: it stays until the others have read it, those that are there.
    std::vector<int> present;
    for (const rank_record& each : report_.ranks) present.push_back(each.rank);
    meeting_.wait_for("understood", present, deadline_after(std::chrono::seconds{5}));
    return code;
  }

  const connect_options& o_;
  const doctor_options& options_;
  meeting meeting_;
  rank_record mine_;
  doctor_report report_;
  std::vector<int> missing_{};
  std::vector<mesh_record> meshes_{};
};

/// Why there is no store to meet at.
finding no_meeting(const launch_info& info, const error& e) {
  if (e.condition() == errc::address_in_use) {
    const std::string holder = holder_of_port(info.master_port);
    return {severity::problem,
            "port",
            "rank 0 cannot listen at " + info.master_addr + " port " + std::to_string(info.master_port) +
                ": it is taken" + (holder.empty() ? "" : ", by " + holder),
            "end what holds it, or give every rank another port",
            "export COHORT_MASTER_PORT=" + std::to_string(info.master_port < 65535 ? info.master_port + 1 : 29500),
            {info.rank}};
  }
  if (e.condition() == errc::insecure_network) {
    return {severity::problem,
            "secret",
            e.what(),
            "give every rank the same secret",
            "export COHORT_SECRET=$(openssl rand -hex 32)  # once, and the same value for every rank",
            {info.rank}};
  }
  if (e.condition() == errc::tls_failed) {
    return {
        severity::problem,
        "tls",
        e.what(),
        "give every rank a certificate, its key and the authority that has signed all of them, or none of the three",
        {},
        {info.rank}};
  }
  std::string advice = "is rank 0 started, and does a firewall let connections to that port through?";
  if (is_loopback_address(info.master_addr)) {
    advice += " " + info.master_addr + " is each host itself: if rank 0 is on another, give its address";
  }
  return {severity::problem, "meeting", e.what(), info.rank == 0 ? "is it an address of this host?" : advice, {},
          {info.rank}};
}

}  // namespace

int doctor_command(const std::vector<std::string>& words) {
  doctor_options options;
  if (const std::optional<int> ended = parse(words, options)) return *ended;
  connect_options o;
  try {
    o = options_from_environment();
  } catch (const error& e) {
    doctor_report report = empty_report({});
    report.launcher = "none that is complete";
    report.findings.push_back({severity::problem, "launcher", e.what(), "cohort env shows what decides", {}, {}});
    conclude(launch_info{}, report);
    return print(report, options.as_json);
  }
  const deadline until =
      deadline_after(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options.wait)));
  o.join_timeout =
      std::max<std::chrono::nanoseconds>(std::chrono::seconds{30}, until - std::chrono::steady_clock::now());
  o.timeout = std::chrono::seconds{60};
  rank_record mine = examine(o, std::min(until, deadline_after(std::chrono::seconds{10})));
  if (o.launch.world_size == 1) return alone(o, std::move(mine), options.as_json);
  std::optional<opened_store> store;
  try {
    store.emplace(open_store(o.launch, until));
  } catch (const error& e) {
    mine.findings.push_back(no_meeting(o.launch, e));
    return alone(o, std::move(mine), options.as_json);
  }
  try {
    return consultation(o, options, meeting(store->table, o.launch), mine).run();
  } catch (const std::exception& e) {
    mine.add({severity::problem, "meeting", e.what(), "did rank 0 end? What it says tells more", {}, {}});
    return alone(o, std::move(mine), options.as_json);
  }
}

}  // namespace cohort::tool
