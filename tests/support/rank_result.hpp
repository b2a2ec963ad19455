// SPDX-License-Identifier: BSL-1.0
// How a rank of run_ranks (processes.hpp) ended, what it printed, and both as text for a failing test.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace harness {

/// How one rank ended.
struct rank_result {
  int rank = -1;
  int exit_code = -1;                  ///< -1: a signal ended it
  int signal = 0;                      ///< 0: it exited
  bool left_stopped = false;           ///< it was stopped when all others had ended, and was killed for that
  std::string out{};                   ///< all that it wrote to its standard output
  std::string err{};                   ///< all that it wrote to its standard error
  std::chrono::nanoseconds elapsed{};  ///< from its fork to its end
  [[nodiscard]] bool ok() const { return exit_code == 0; }
};

/// The ranks did not do what the test is about: some were alive at the deadline, or a line that a signal_rule waits for
/// never came. The text holds the state and the output of every rank.
struct ranks_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Result: one line about how a rank ended, and below it what it printed.
[[nodiscard]] inline std::string describe(const rank_result& r, std::string_view state = {}) {
  std::string text = "rank " + std::to_string(r.rank) + ": ";
  if (!state.empty()) {
    text += state;
  } else if (r.signal != 0) {
    text += std::string("ended by ") + ::strsignal(r.signal) + (r.left_stopped ? " because it was left stopped" : "");
  } else {
    text += "exit code " + std::to_string(r.exit_code);
  }
  text +=
      " after " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(r.elapsed).count()) + " ms\n";
  for (const auto& [name, output] : {std::pair<const char*, const std::string&>{"out", r.out}, {"err", r.err}}) {
    for (std::size_t at = 0; at < output.size();) {
      const std::size_t end = std::min(output.find('\n', at), output.size());
      text += std::string("  ") + name + "| " + output.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }
  return text;
}

[[nodiscard]] inline std::string describe(const std::vector<rank_result>& results) {
  std::string text;
  for (const rank_result& each : results) text += describe(each);
  return text;
}

}  // namespace harness
