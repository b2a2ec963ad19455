// SPDX-License-Identifier: BSL-1.0
// What a subcommand of the `cohort` program is: a name, a line for the help, and a function. The table of them is in
// cohort.cpp; each lives in files of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {

struct command {
  std::string_view name;
  std::string_view summary;
  int (*main)(const std::vector<std::string>& words);  ///< the words after the name; returns the exit code
};

int run_command(const std::vector<std::string>& words);
int bench_command(const std::vector<std::string>& words);
int tune_command(const std::vector<std::string>& words);
int env_command(const std::vector<std::string>& words);
int doctor_command(const std::vector<std::string>& words);

/// Exit codes that do not come from a rank; the numbers are those of shells and coreutils.
namespace exit_code {
inline constexpr int usage = 2;
inline constexpr int timed_out = 124;
inline constexpr int cannot_execute = 126;
inline constexpr int not_found = 127;
inline constexpr int signal_base = 128;
}  // namespace exit_code

}  // namespace cohort::tool
