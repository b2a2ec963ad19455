// SPDX-License-Identifier: BSL-1.0
#include "options.hpp"

#include "../arguments.hpp"
#include "../suggest.hpp"
#include "rank_list.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace cohort::tool {
namespace {

constexpr int most_ranks = 65536;
constexpr const char* this_command = "cohort run";

// The processors this process may use, which in a container or under taskset are fewer than the machine has.
int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int rank_count(const std::string& source, const std::string& text) {
  if (text == "auto" || text == "cpu") return usable_processors();
  const int count = parse_count(text, most_ranks);
  if (count >= 1) return count;
  throw std::invalid_argument(source + ": '" + text + "' is not a number of ranks, expected 1.." +
                              std::to_string(most_ranks) + ", cpu or auto");
}

template <class Kind>
Kind choice(const std::string& option, const std::string& text,
            const std::vector<std::pair<std::string, Kind>>& choices) {
  std::vector<std::string> names;
  std::string all;
  for (const auto& [each, kind] : choices) {
    if (each == text) return kind;
    names.push_back(each);
    all += (all.empty() ? "" : ", ") + each;
  }
  const std::string meant = nearest(text, names);
  throw std::invalid_argument(option + ": '" + text + "' is not one of " + all +
                              (meant.empty() ? std::string{} : "; did you mean " + meant + "?"));
}

std::pair<std::string, std::string> exported_variable(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string variable = text.substr(0, equals);
  if (variable.empty()) throw std::invalid_argument("-x: '" + text + "' names no variable, expected VAR or VAR=value");
  if (equals != std::string::npos) return {variable, text.substr(equals + 1)};
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) {
    throw std::invalid_argument("-x: " + variable + " is not set here; write -x " + variable + "=value");
  }
  return {variable, value};
}

void check_seconds(const std::string& option, double value, bool zero_allowed) {
  // A year; also keeps the conversion to nanoseconds in range.
  constexpr double most = 366.0 * 24 * 3600;
  if (std::isfinite(value) && value <= most && (value > 0 || (zero_allowed && value == 0))) return;
  throw std::invalid_argument(option + ": expected " + (zero_allowed ? "0" : "more than 0") +
                              " to 31622400 seconds, got " + std::to_string(value));
}

struct raw_options {
  std::string ranks, tag = "rank", status = "auto", shown, print_environment;
  std::string nodes, node_rank, port, bind = "none", signals, redirects, tee;
  std::vector<std::string> exported;
  double timeout = 0;
};

void declare(CLI::App& app, run_options& options, raw_options& raw) {
  app.add_option("-n,--nproc,--nproc-per-node", raw.ranks,
                 "how many ranks: a number, cpu or auto (the processors this\nprocess may use, the default); "
                 "also read from COHORT_NPROC\nand PET_NPROC_PER_NODE")
      ->option_text("N|cpu|auto");
  app.add_option("--nnodes", raw.nodes,
                 "how many nodes; cohort run is started once on each; default 1;\nalso PET_NNODES")
      ->option_text("N");
  app.add_option("--node-rank", raw.node_rank, "which of them this is, 0 to N-1; also PET_NODE_RANK")->option_text("K");
  app.add_option("--master-addr", options.master_addr,
                 "address of node 0; default 127.0.0.1, needed with several\nnodes; also PET_MASTER_ADDR")
      ->option_text("HOST");
  app.add_option("--master-port", options.master_port,
                 "port of rank 0; default: one that is free, 29500 with several\nnodes; also PET_MASTER_PORT")
      ->check(CLI::Range(1, 65535))
      ->option_text("PORT");
  app.add_option("--rdzv-id,--run-id", options.run_id,
                 "a name that keeps two jobs at one address apart, the same on\nevery node; also PET_RDZV_ID")
      ->option_text("ID");
  app.add_option("--max-restarts", options.max_restarts,
                 "when a rank fails, start all ranks again, so many times;\ndefault 0; also PET_MAX_RESTARTS")
      ->check(CLI::Range(0, 1000000))
      ->option_text("K");
  app.add_option("--restart-delay", options.restart_delay, "wait so long before; default 0")->option_text("SECONDS");
  app.add_option("--bind", raw.bind, "bind each rank to its share of the processors: none (the\ndefault), core or numa")
      ->option_text("KIND");
  app.add_option("-x,--export", raw.exported, "set a variable for every rank; may be repeated")
      ->allow_extra_args(false)
      ->option_text("VAR[=VALUE]");
  app.add_option("--tag", raw.tag, "what stands before each line of output: rank (the default),\nhost or none")
      ->option_text("KIND");
  app.add_option("--ranks", raw.shown, "print the output of these ranks only, as in 0,4-7; log\nfiles keep all")
      ->option_text("LIST");
  app.add_option("--log-dir", options.log_dir, "keep all output in\nDIR/<run id>/<rank>/{stdout,stderr}.log")
      ->option_text("DIR");
  app.add_option(
         "-r,--redirects", raw.redirects,
         "what goes to the log files only: 0 nothing, 1 stdout, 2\nstderr, 3 both; for all ranks, or by rank of "
         "this node as in\n0:1,1:3")
      ->option_text("WHAT");
  app.add_option("-t,--tee", raw.tee,
                 "what goes to the log files and is printed, told likewise, also\nwhere -r has it; with neither, all")
      ->option_text("WHAT");
  app.add_option("--status", raw.status,
                 "how to show which ranks have joined: auto (a line that\nchanges, on a terminal only), plain "
                 "(a line each time) or\noff")
      ->option_text("KIND");
  app.add_option("--timeout", raw.timeout, "end everything after this long, all attempts together, with\nexit code 124")
      ->option_text("SECONDS");
  app.add_option("--signals", raw.signals,
                 "signals to pass on; default TERM,INT,HUP,QUIT,USR1,USR2, of\nwhich the last two end nothing")
      ->option_text("LIST");
  app.add_option("--settle", options.settle,
                 "after the first failure, let the others end by\nthemselves for this long; default 2")
      ->option_text("SECONDS");
  app.add_option("--grace", options.grace, "from SIGTERM to SIGKILL; default 30")->option_text("SECONDS");
  app.add_flag("--dry-run", options.dry_run, "print the command and the variables of each rank; start nothing");
  app.add_option("--print-env", raw.print_environment, "print the variables of one rank of this node; start nothing")
      ->option_text("RANK");
  set_usage(app, "cohort run [-n N] [options] [--] PROGRAM [ARGUMENTS...]");
  app.footer(
      "The exit code is 0 when every rank ended with 0, else that of the rank that failed first (128 + the signal\n"
      "that killed it); 124 after --timeout, 128 + signal when cohort run itself was told to end, unless a rank had\n"
      "failed before and no attempt was left; 126 or 127 when the program cannot be started, 2 for a mistake in the\n"
      "options.\n"
      "Rank 0 inherits standard input unless that is a terminal; the others read nothing.\n"
      "Several nodes need one COHORT_SECRET (or COHORT_SECRET_FILE), the same everywhere.\n"
      "A second Ctrl-C kills at once. SIGUSR1 and SIGUSR2 are passed on to every rank.");
}

// An option, else the first of these variables that is set.
std::optional<std::pair<std::string, std::string>> given(const CLI::App& app, const std::string& option,
                                                         const std::string& text, const char* variable) {
  if (app.count(option) > 0) return std::pair{option, text};
  if (const char* const value = std::getenv(variable)) return std::pair{std::string(variable), std::string(value)};
  return std::nullopt;
}

int number(const std::pair<std::string, std::string>& from, int low, int high) {
  const int value = parse_count(from.second, high);
  if (value >= low) return value;
  throw std::invalid_argument(from.first + ": '" + from.second + "' is not a number, expected " + std::to_string(low) +
                              ".." + std::to_string(high));
}

void check_nodes(const CLI::App& app, const raw_options& raw, run_options& options) {
  if (const auto nodes = given(app, "--nnodes", raw.nodes, "PET_NNODES")) {
    if (nodes->second.find(':') != std::string::npos) {
      throw std::invalid_argument(nodes->first + ": '" + nodes->second +
                                  "': a world does not grow or shrink while it runs; give one number of nodes");
    }
    options.nodes = number(*nodes, 1, most_ranks / options.ranks);
  }
  if (const auto rank = given(app, "--node-rank", raw.node_rank, "PET_NODE_RANK")) {
    options.node_rank = number(*rank, 0, options.nodes - 1);
  } else if (options.nodes > 1) {
    throw std::invalid_argument("--node-rank is missing: which of the " + std::to_string(options.nodes) +
                                " nodes is this, 0.." + std::to_string(options.nodes - 1) + "?");
  }
  const char* const address = std::getenv("PET_MASTER_ADDR");
  if (app.count("--master-addr") == 0 && address != nullptr) options.master_addr = address;
  if (app.count("--master-addr") == 0 && address == nullptr && options.nodes > 1) {
    throw std::invalid_argument("--master-addr is missing: the address of node 0, as the other nodes reach it");
  }
  if (const char* const port = std::getenv("PET_MASTER_PORT"); app.count("--master-port") == 0 && port != nullptr) {
    options.master_port = number({"PET_MASTER_PORT", port}, 1, 65535);
  }
  constexpr int usual_port = 29500;
  if (options.nodes > 1 && options.master_port == 0) options.master_port = usual_port;
  if (const char* const id = std::getenv("PET_RDZV_ID"); app.count("--rdzv-id") == 0 && id != nullptr)
    options.run_id = id;
  if (options.run_id.find('/') != std::string::npos || options.run_id == "." || options.run_id == "..") {
    throw std::invalid_argument("--rdzv-id: '" + options.run_id + "' would name another folder in --log-dir");
  }
  // Ids made up here would differ from node to node.
  if (options.nodes > 1 && options.run_id.empty()) options.run_id = "cohort";
  if (const char* const most = std::getenv("PET_MAX_RESTARTS"); app.count("--max-restarts") == 0 && most != nullptr) {
    options.max_restarts = number({"PET_MAX_RESTARTS", most}, 0, 1000000);
  }
  check_seconds("--restart-delay", options.restart_delay, true);
}

stream_set streams(const std::string& option, const std::string& text) {
  const int value = parse_count(text, 3);
  if (value < 0) {
    throw std::invalid_argument(option + ": '" + text + "' is not 0 (nothing), 1 (stdout), 2 (stderr) or 3 (both)");
  }
  return static_cast<stream_set>(value);
}

// "3" for all ranks, or "0:1,2:3" for some.
std::vector<stream_set> streams_by_rank(const std::string& option, const std::string& text, int ranks) {
  if (text.find(':') == std::string::npos) {
    return std::vector<stream_set>(static_cast<std::size_t>(ranks), streams(option, text));
  }
  std::vector<stream_set> all(static_cast<std::size_t>(ranks), 0);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const std::size_t colon = part.find(':');
    const int rank = colon == std::string::npos ? -1 : parse_count(part.substr(0, colon), ranks - 1);
    if (rank < 0) {
      throw std::invalid_argument(option + ": '" + part + "' is not RANK:STREAMS with a rank of this node, 0.." +
                                  std::to_string(ranks - 1) + ", as in 0:1,1:3");
    }
    all[static_cast<std::size_t>(rank)] = streams(option, part.substr(colon + 1));
    at = comma + 1;
  }
  return all;
}

void check_files(const CLI::App& app, const raw_options& raw, run_options& options) {
  const auto n = static_cast<std::size_t>(options.ranks);
  constexpr stream_set both = 3;
  const bool chosen = app.count("--redirects") > 0 || app.count("--tee") > 0;
  if (chosen && options.log_dir.empty()) {
    throw std::invalid_argument("--redirects and --tee need --log-dir, where the files are to be");
  }
  options.only_in_files.assign(n, 0);
  if (app.count("--redirects") > 0) {
    options.only_in_files = streams_by_rank("--redirects", raw.redirects, options.ranks);
  }
  options.in_files = chosen ? options.only_in_files : std::vector<stream_set>(n, both);
  if (app.count("--tee") == 0) return;
  const std::vector<stream_set> also = streams_by_rank("--tee", raw.tee, options.ranks);
  for (std::size_t i = 0; i < n; ++i) {
    options.in_files[i] = static_cast<stream_set>(options.in_files[i] | also[i]);
    // Asked for by both, it is printed, as torchrun does.
    options.only_in_files[i] = static_cast<stream_set>(options.only_in_files[i] & ~also[i]);
  }
}

void check_signals(const CLI::App& app, const raw_options& raw, run_options& options) {
  const std::vector<std::pair<std::string, int>> known{{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                                                       {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
  if (app.count("--signals") == 0) {
    for (const auto& [text, signal] : known) options.signals.push_back(signal);
    return;
  }
  for (std::size_t at = 0; at <= raw.signals.size();) {
    const std::size_t comma = std::min(raw.signals.find(',', at), raw.signals.size());
    std::string part = raw.signals.substr(at, comma - at);
    if (part.rfind("SIG", 0) == 0) part.erase(0, 3);
    options.signals.push_back(choice<int>("--signals", part, known));
    at = comma + 1;
  }
}

void check(const CLI::App& app, const raw_options& raw, run_options& options) {
  const char* own = std::getenv("COHORT_NPROC");
  const char* torchrun = std::getenv("PET_NPROC_PER_NODE");
  if (app.count("--nproc") > 0) {
    options.ranks = rank_count("-n", raw.ranks);
  } else if (own != nullptr) {
    options.ranks = rank_count("COHORT_NPROC", own);
  } else if (torchrun != nullptr) {
    options.ranks = rank_count("PET_NPROC_PER_NODE", torchrun);
  } else {
    options.ranks = usable_processors();
  }
  check_nodes(app, raw, options);
  check_files(app, raw, options);
  check_signals(app, raw, options);
  options.bind = choice<bind_kind>("--bind", raw.bind,
                                   {{"none", bind_kind::none}, {"core", bind_kind::core}, {"numa", bind_kind::numa}});
  options.tag = choice<tag_kind>("--tag", raw.tag,
                                 {{"rank", tag_kind::rank}, {"host", tag_kind::host}, {"none", tag_kind::none}});
  options.status =
      choice<status_kind>("--status", raw.status,
                          {{"auto", status_kind::automatic}, {"plain", status_kind::plain}, {"off", status_kind::off}});
  try {
    options.shown = app.count("--ranks") > 0 ? parse_ranks(raw.shown, options.ranks)
                                             : std::vector<bool>(static_cast<std::size_t>(options.ranks), true);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--ranks: ") + error.what());
  }
  for (const std::string& each : raw.exported) options.exported.push_back(exported_variable(each));
  if (app.count("--timeout") > 0) {
    check_seconds("--timeout", raw.timeout, false);
    options.timeout = raw.timeout;
  }
  check_seconds("--settle", options.settle, true);
  check_seconds("--grace", options.grace, true);
  if (app.count("--print-env") > 0) {
    options.print_environment = parse_count(raw.print_environment, options.ranks - 1);
    if (*options.print_environment < 0) {
      throw std::invalid_argument("--print-env: '" + raw.print_environment + "' is not a rank, expected 0.." +
                                  std::to_string(options.ranks - 1));
    }
  }
  if (options.program.empty() && !options.print_environment) {
    throw std::invalid_argument("no program given; write for example: cohort run -n 4 ./train");
  }
}

}  // namespace

std::optional<int> parse_run_options(const std::vector<std::string>& words, run_options& options) {
  CLI::App app("Start N processes of a program on this machine, watch them, and end them together.", this_command);
  raw_options raw;
  declare(app, options, raw);
  split_words split = split_at_program(app, words);
  options.program = std::move(split.program);
  if (const std::optional<int> ended = parse_words(app, std::move(split.own))) return ended;
  try {
    check(app, raw, options);
  } catch (const std::invalid_argument& error) {
    return usage_error(this_command, error.what());
  }
  return std::nullopt;
}

}  // namespace cohort::tool
