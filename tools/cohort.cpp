// SPDX-License-Identifier: BSL-1.0
// The `cohort` program: finds the subcommand that its first word names and hands it the others.
#include "arguments.hpp"
#include "command.hpp"
#include "suggest.hpp"

#include <cohort/version.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace cohort::tool {
namespace {

int version_command(const std::vector<std::string>& words) {
  if (!words.empty()) return usage_error("cohort", "version takes no arguments, got '" + words.front() + "'");
  std::printf("cohort %s\n", std::string(version_string).c_str());
  return 0;
}

// clang-format off
constexpr std::array commands{
#if COHORT_TOOL_BENCH
    command{"bench", "measure an operation between ranks: time, bandwidth, correctness", bench_command},
#endif
    command{"run", "start N processes of a program on this machine, watch them, and end them together", run_command},
    command{"tune", "measure what messages cost, and write it for the choice of algorithms", tune_command},
    command{"env", "tell which launcher started this process, and what a rank would make of it", env_command},
    command{"doctor", "tell what would keep the ranks of a job from connecting, or make them slow", doctor_command},
    command{"version", "print the version", version_command},
};
// clang-format on

std::string overview() {
  std::string text =
      "cohort: tools for programs that use the cohort library\n"
      "Usage: cohort COMMAND [options]\n\nCommands:\n";
  for (const command& each : commands) {
    std::string name(each.name);
    name.resize(std::max<std::size_t>(name.size(), 10), ' ');
    text += "  " + name + std::string(each.summary) + "\n";
  }
  return text +
         "\nOptions:\n  -h,--help    this text; 'cohort COMMAND --help' tells the options of a command\n"
         "  --version    the version\n";
}

int unknown_word(const std::string& word) {
  std::vector<std::string> known{"--help", "--version"};
  for (const command& each : commands) known.emplace_back(each.name);
  const std::string kind = word.rfind('-', 0) == 0 ? "option" : "command";
  const std::string meant = nearest(word, known);
  return usage_error("cohort", "unknown " + kind + " '" + word + "'" +
                                   (meant.empty() ? std::string{} : "; did you mean " + meant + "?"));
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(overview().c_str(), stderr);
    return exit_code::usage;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(overview().c_str(), stdout);
    return 0;
  }
  if (words[0] == "--version") return version_command(rest);
  for (const command& each : commands) {
    if (each.name == words[0]) return each.main(rest);
  }
  return unknown_word(words[0]);
}

}  // namespace
}  // namespace cohort::tool

int main(int argc, char** argv) {
  try {
    return cohort::tool::dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
    return 1;
  }
}
