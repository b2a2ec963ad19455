// SPDX-License-Identifier: BSL-1.0
// How a run ends: settle (the ranks end by themselves), terminate (SIGTERM), kill (SIGKILL), and the last word.
#include "supervisor.hpp"

#include "../command.hpp"
#include "report.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

namespace cohort::tool {
namespace {

// A killed process is gone at once, unless it waits for a device that does not answer.
constexpr std::chrono::seconds patience_after_kill{10};
// For a reader of our output that has stopped reading, when we were told to end or the time is over.
constexpr std::chrono::seconds patience_for_reader{2};

steady::time_point in_seconds(double seconds) {
  return steady::now() + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(seconds));
}

bool still_runs(const rank_process& each) { return !each.ended; }
bool left_processes(const rank_process& each) { return each.ended && !each.group_gone; }

}  // namespace

std::vector<int> supervisor::ranks_where(bool (*condition)(const rank_process&)) const {
  std::vector<int> found;
  for (const rank_process& each : ranks_) {
    if (condition(each)) found.push_back(each.rank);
  }
  return found;
}

// Whom a signal to all groups would reach, in words.
std::string supervisor::targets() const {
  if (!left_groups_.empty()) {
    std::string text = "what was left behind in process group" + std::string(left_groups_.size() == 1 ? " " : "s ");
    for (const pid_t each : left_groups_) text += (each == left_groups_.front() ? "" : ", ") + std::to_string(each);
    return text;
  }
  const std::vector<int> running = ranks_where(still_runs);
  const std::vector<int> left = ranks_where(left_processes);
  if (left.empty()) return named_ranks(running);
  const std::string behind = "what " + named_ranks(left) + " left behind";
  return running.empty() ? behind : named_ranks(running) + " and " + behind;
}

// Also continues what is stopped: a stopped process would not see the signal before it is killed.
void supervisor::signal_group(pid_t group, int number) {
  ::kill(-group, number);
  if (number != SIGKILL) ::kill(-group, SIGCONT);
}

void supervisor::signal_groups(int number) {
  told_groups_ = number;
  for (rank_process& each : ranks_) {
    if (each.group_gone) continue;
    if (!each.ended) each.asked_to_stop = true;
    signal_group(each.pid, number);
  }
  for (const pid_t each : left_groups_) signal_group(each, number);
}

void supervisor::begin_settling() {
  phase_ = phase::settling;
  deadline_ = in_seconds(options_.settle);
  const std::vector<int> running = ranks_where(still_runs);
  if (cause_ != cause::failure || running.empty()) return;
  const rank_process& first = ranks_[static_cast<std::size_t>(first_failed_)];
  console_.note("rank " + std::to_string(first.rank) + " failed: " + ending_text(first.wait_status) + "; " +
                named_ranks(running) + (running.size() == 1 ? " has " : " have ") + seconds_text(options_.settle) +
                " to end before SIGTERM");
}

void supervisor::terminate(int number) {
  notice_gone_groups();
  if (nothing_left()) return;
  phase_ = phase::terminating;
  deadline_ = in_seconds(options_.grace);
  time_out_.reset();
  console_.note("sending " + signal_name(number) + " to " + targets() + "; SIGKILL follows after " +
                seconds_text(options_.grace) + ", or at Ctrl-C");
  signal_groups(number);
  show_status();
}

void supervisor::kill_all() {
  notice_gone_groups();
  if (nothing_left()) return;
  console_.note("sending SIGKILL to " + targets());
  phase_ = phase::killing;
  deadline_ = steady::now() + patience_after_kill;
  signal_groups(SIGKILL);
}

void supervisor::on_deadline() {
  switch (phase_) {
    case phase::settling: terminate(SIGTERM); break;
    case phase::terminating: kill_all(); break;
    case phase::killing:
      console_.note(targets() + " did not end after SIGKILL; leaving without");
      phase_ = phase::given_up;
      break;
    case phase::running:
    case phase::given_up: break;
  }
}

void supervisor::on_signal(int number) {
  if (number == SIGUSR1 || number == SIGUSR2) {
    // For the program alone: what it started may not expect it, and would die.
    for (const rank_process& each : ranks_) {
      if (!each.ended) ::kill(each.pid, number);
    }
    return;
  }
  interrupted_ = true;
  if (!ending_signal_) ending_signal_ = number;
  if (phase_ == phase::killing || phase_ == phase::given_up) return;
  if (cause_ == cause::none) {
    cause_ = cause::signal;
    terminate(number);
  } else if (phase_ == phase::settling) {
    terminate(number);
  } else if (number == SIGINT) {
    kill_all();
  } else {
    // Schedulers may send SIGTERM twice; only a person at the keyboard means "now" by that.
    signal_groups(number);
  }
}

void supervisor::time_out() {
  time_out_.reset();
  if (cause_ == cause::none) cause_ = cause::time_out;
  // What failed before stays the root cause, and those who are still settling get no more time for it.
  if (cause_ != cause::time_out && cause_ != cause::failure) return;
  std::string text = "not finished after " + seconds_text(*options_.timeout) + " (--timeout); the ranks:";
  for (const std::string& line : state_lines(ranks_, steady::now())) text += "\n" + line;
  console_.note(text);
  terminate(SIGTERM);
}

int supervisor::conclude() {
  for (rank_process& each : ranks_) {
    for (const stream s : {stream::out, stream::err}) read_to_end(each, s);
  }
  phase_ = phase::given_up;  // a signal from here on only ends the wait for our reader
  console_.set_status({});
  int code = 0;
  switch (cause_) {
    case cause::none: break;
    case cause::failure: {
      const rank_process& first = ranks_[static_cast<std::size_t>(first_failed_)];
      console_.block(failure_block(options_, job_, ranks_, first, started_));
      code = ending_code(first.wait_status);
      break;
    }
    case cause::time_out: code = exit_code::timed_out; break;
    case cause::signal: code = exit_code::signal_base + *ending_signal_; break;
    case cause::closed_output: code = exit_code::signal_base + SIGPIPE; break;
  }
  flush_console();
  return code;
}

void supervisor::flush_console() {
  std::optional<steady::time_point> until;
  const steady::time_point soon = steady::now() + patience_for_reader;
  if (ending_signal_) {
    until = soon;
  } else if (ends_by_ && cause_ != cause::none) {
    until = std::max(soon, *ends_by_);
  }
  interrupted_ = false;
  while (!interrupted_ && (!until || steady::now() < *until)) {
    for (const stream s : {stream::out, stream::err}) watch_console(s);
    if (!watched_[0] && !watched_[1]) return;
    for (const ready_source& ready : poller_.wait(until)) handle(ready);
  }
}

}  // namespace cohort::tool
