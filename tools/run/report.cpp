// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include "environment.hpp"
#include "rank_list.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace cohort::tool {
namespace {

constexpr std::size_t block_width = 78;

double seconds_between(steady::time_point from, steady::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string rule(const std::string& title) {
  std::string line = title.empty() ? "+-" : "+-- " + title + " ";
  line.resize(std::max(line.size() + 2, block_width), '-');
  return line;
}

// Ranks of one fate share a line; a thousand stopped ranks are one range, not a thousand lines.
void add_fates(std::vector<std::string>& block, const std::string& what, const std::vector<rank_process>& ranks,
               bool (*of_this_kind)(const rank_process&)) {
  std::vector<std::pair<std::string, std::vector<int>>> by_ending;
  for (const rank_process& each : ranks) {
    if (!of_this_kind(each)) continue;
    const std::string ending = each.ended ? ending_text(each.wait_status) : "did not end after SIGKILL";
    const auto same = std::find_if(by_ending.begin(), by_ending.end(), [&](auto& one) { return one.first == ending; });
    if (same == by_ending.end()) {
      by_ending.push_back({ending, {each.rank}});
    } else {
      same->second.push_back(each.rank);
    }
  }
  for (const auto& [ending, which] : by_ending) {
    block.push_back("| " + what + ": " + named_ranks(which) + ": " + ending);
  }
}

}  // namespace

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

std::string named_ranks(const std::vector<int>& ranks) {
  if (ranks.empty()) return {};
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(ranks);
}

std::string log_directory(const run_options& options, const job& shared, int rank) {
  const std::string attempt =
      options.max_restarts > 0 ? "attempt_" + std::to_string(options.attempt) + "/" : std::string{};
  return options.log_dir + "/" + shared.run_id + "/" + attempt + std::to_string(rank);
}

std::vector<std::string> failure_block(const run_options& options, const job& shared,
                                       const std::vector<rank_process>& ranks, const rank_process& first,
                                       steady::time_point started) {
  std::vector<std::string> block;
  const std::string number = std::to_string(first.rank);
  block.push_back(rule("cohort run: rank " + number + " failed first (root cause)"));
  block.push_back("| rank " + number + " on " + shared.host + ", pid " + std::to_string(first.pid) + ": " +
                  ending_text(first.wait_status) + " after " + seconds_text(seconds_between(started, first.ended_at)));
  if (WIFSIGNALED(first.wait_status) && WTERMSIG(first.wait_status) == SIGKILL) {
    block.push_back("| cohort run did not send it: someone did, or the kernel for lack of memory (see dmesg)");
  }
  block.push_back("| program: " + shell_text(options.program));
  if (!options.log_dir.empty()) {
    block.push_back("| log: " + log_directory(options, shared, first.rank) + "/stderr.log");
  }
  const auto& tail = first.err.tail();
  block.push_back(tail.empty() ? "| it wrote nothing to stderr"
                               : "| its last " + std::to_string(tail.size()) + " lines on stderr:");
  if (tail.size() == 1) block.back() = "| its only line on stderr:";
  for (const std::string& line : tail) block.push_back("|   " + line);
  add_fates(block, "failed later", ranks, [](const rank_process& r) { return r.failed_later; });
  add_fates(block, "stopped", ranks, [](const rank_process& r) { return r.asked_to_stop; });
  add_fates(block, "finished", ranks,
            [](const rank_process& r) { return r.ended && !r.asked_to_stop && r.wait_status == 0; });
  block.push_back(rule({}));
  return block;
}

std::vector<std::string> state_lines(const std::vector<rank_process>& ranks, steady::time_point now) {
  std::vector<std::string> lines;
  for (const rank_process& each : ranks) {
    std::string line = "  rank " + std::to_string(each.rank) + "  pid " + std::to_string(each.pid) + "  ";
    line += each.ended ? ending_text(each.wait_status) : process_state(each.pid);
    line += each.joined ? ", joined" : ", has not joined";
    if (each.last_output != steady::time_point{}) {
      line += ", last output " + seconds_text(seconds_between(each.last_output, now)) + " ago";
    } else {
      line += ", no output";
    }
    lines.push_back(line);
  }
  return lines;
}

std::string joined_text(const std::vector<rank_process>& ranks) {
  std::vector<int> missing;
  for (const rank_process& each : ranks) {
    if (!each.joined) missing.push_back(each.rank);
  }
  const std::size_t joined = ranks.size() - missing.size();
  std::string text = std::to_string(joined) + "/" + std::to_string(ranks.size()) + " joined";
  if (!missing.empty()) text += ", waiting for " + ranks_text(missing);
  return text;
}

}  // namespace cohort::tool
