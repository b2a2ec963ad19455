// SPDX-License-Identifier: BSL-1.0
// What every subcommand does with its words: split off the program to start, parse the rest with CLI11, and explain a
// mistake in one line that says which option was meant.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cohort::tool {

struct split_words {
  std::vector<std::string> own;      ///< options of the subcommand itself
  std::vector<std::string> program;  ///< the program and its arguments, untouched
};

/// Cuts `words` where the options of `app` end: at "--", which is dropped, or at the first word that is neither an
/// option nor the value of one. What follows is never looked at: `cohort run prog -n 4` gives -n to prog.
split_words split_at_program(const CLI::App& app, const std::vector<std::string>& words);

/// Result: nothing when `words` were understood; else the exit code to end with (0 after --help, 2 after a mistake).
/// Needs:  CLI11 2.x; `_` in the name of a long option is read as `-`
std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words);

/// Gives the help of `app` its first line, such as "cohort run [options] PROGRAM".
void set_usage(CLI::App& app, const std::string& usage);

/// Prints "<name>: <text>" and the line that points to --help on stderr. Result: the exit code for a usage error.
int usage_error(const std::string& name, const std::string& text);

}  // namespace cohort::tool
