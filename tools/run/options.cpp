// SPDX-License-Identifier: BSL-1.0
#include "options.hpp"

#include "../arguments.hpp"
#include "../suggest.hpp"
#include "rank_list.hpp"

#include <sched.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace cohort::tool {
namespace {

constexpr int most_ranks = 65536;
constexpr const char* name = "cohort run";

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
  std::vector<std::string> exported;
  double timeout = 0;
};

void declare(CLI::App& app, run_options& options, raw_options& raw) {
  app.add_option("-n,--nproc,--nproc-per-node", raw.ranks,
                 "how many ranks: a number, cpu or auto (the processors this\nprocess may use, the default); "
                 "also read from COHORT_NPROC\nand PET_NPROC_PER_NODE")
      ->option_text("N|cpu|auto");
  app.add_option("--master-addr", options.master_addr, "address of rank 0; default 127.0.0.1")->option_text("HOST");
  app.add_option("--master-port", options.master_port, "port of rank 0; default: one that is free")
      ->check(CLI::Range(1, 65535))
      ->option_text("PORT");
  app.add_option("-x,--export", raw.exported, "set a variable for every rank; may be repeated")
      ->allow_extra_args(false)
      ->option_text("VAR[=VALUE]");
  app.add_option("--tag", raw.tag, "what stands before each line of output: rank (the default),\nhost or none")
      ->option_text("KIND");
  app.add_option("--ranks", raw.shown, "print the output of these ranks only, as in 0,4-7; log\nfiles keep all")
      ->option_text("LIST");
  app.add_option("--log-dir", options.log_dir, "keep all output in\nDIR/<run id>/<rank>/{stdout,stderr}.log")
      ->option_text("DIR");
  app.add_option("--status", raw.status,
                 "how to show which ranks have joined: auto (a line that\nchanges, on a terminal only), plain "
                 "(a line each time) or\noff")
      ->option_text("KIND");
  app.add_option("--timeout", raw.timeout, "end everything after this long, with exit code 124")
      ->option_text("SECONDS");
  app.add_option("--settle", options.settle,
                 "after the first failure, let the others end by\nthemselves for this long; default 2")
      ->option_text("SECONDS");
  app.add_option("--grace", options.grace, "from SIGTERM to SIGKILL; default 30")->option_text("SECONDS");
  app.add_flag("--dry-run", options.dry_run, "print the command and the variables of each rank; start nothing");
  app.add_option("--print-env", raw.print_environment, "print the variables of one rank; start nothing")
      ->option_text("RANK");
  set_usage(app, "cohort run [-n N] [options] [--] PROGRAM [ARGUMENTS...]");
  app.footer(
      "The exit code is 0 when every rank ended with 0, else that of the rank that failed first (128 + the signal\n"
      "that killed it); 124 after --timeout, 128 + signal when cohort run itself was told to end, 126 or 127 when the\n"
      "program cannot be started, 2 for a mistake in the options.\n"
      "Rank 0 inherits standard input unless that is a terminal; the others read nothing.\n"
      "A second Ctrl-C kills at once. SIGUSR1 and SIGUSR2 are passed on to every rank.");
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
  options.tag = choice<tag_kind>("--tag", raw.tag,
                                 {{"rank", tag_kind::rank}, {"host", tag_kind::host}, {"none", tag_kind::none}});
  options.status = choice<status_kind>(
      "--status", raw.status,
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
  CLI::App app("Start N processes of a program on this machine, watch them, and end them together.", name);
  raw_options raw;
  declare(app, options, raw);
  split_words split = split_at_program(app, words);
  options.program = std::move(split.program);
  if (const std::optional<int> ended = parse_words(app, std::move(split.own))) return ended;
  try {
    check(app, raw, options);
  } catch (const std::invalid_argument& error) {
    return usage_error(name, error.what());
  }
  return std::nullopt;
}

}  // namespace cohort::tool
