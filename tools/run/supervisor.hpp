// SPDX-License-Identifier: BSL-1.0
// Starts the ranks, watches them, and brings all of them to an end when one fails, when time is up, or when asked to.
// Everything happens on one thread, in one loop around `poller`.
#pragma once

#include "console.hpp"
#include "guard.hpp"
#include "host_setup.hpp"
#include "job.hpp"
#include "options.hpp"
#include "poller.hpp"
#include "rank_process.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace cohort::tool {

class supervisor {
 public:
  /// `time_out`: when the whole run is to end, of which this may be one attempt of several.
  supervisor(const run_options& options, job shared, host_setup& host, std::optional<steady::time_point> time_out);

  /// Result: the exit code of `cohort run`. Completes: when no process of the run is left, but for those that made a
  /// session of their own.
  int run();
  [[nodiscard]] const std::string& run_id() const noexcept { return job_.run_id; }
  [[nodiscard]] const std::string& secret() const noexcept { return job_.secret; }
  /// Whether a rank failed, so that another attempt may go better.
  [[nodiscard]] bool failed() const noexcept { return cause_ == cause::failure; }
  /// The first signal by which this process was told to end, after the first failure too: it forbids another attempt.
  [[nodiscard]] std::optional<int> ending_signal() const noexcept { return ending_signal_; }

 private:
  // Each phase ends by itself when nothing is left to wait for, else at its deadline, which starts the next.
  enum class phase { running, settling, terminating, killing, given_up };
  enum class cause { none, failure, time_out, signal, closed_output };

  bool start_all();
  bool start(int place);
  void kill_and_collect();

  void watch();
  void handle(const ready_source& ready);
  bool is_shown(const rank_process& process, stream from) const;
  void read_output(rank_process& process, stream from, std::size_t most);
  void read_signals();
  void on_signal(int number);
  void read_to_end(rank_process& process, stream from);
  void collect(rank_process& process);
  void on_ended(rank_process& process, int wait_status);
  void collect_orphans();
  void notice_gone_groups();
  void notice_left_groups();
  void check_console();

  void begin_settling();
  void terminate(int number);
  void kill_all();
  void on_deadline();
  void time_out();
  void signal_groups(int number);
  static void signal_group(pid_t group, int number);
  std::string targets() const;

  int conclude();
  void flush_console();
  void show_status();
  void watch_console(stream s);
  void pause_or_resume(stream s);
  rank_stream& stream_of(rank_process& process, stream s) { return s == stream::out ? process.out : process.err; }
  bool all_ended() const;
  bool groups_gone() const;
  bool nothing_left() const;
  std::vector<int> ranks_where(bool (*condition)(const rank_process&)) const;
  std::optional<steady::time_point> next_deadline() const;

  const run_options& options_;
  job job_;
  host_setup& host_;
  console console_;
  poller poller_;
  std::optional<guard> guard_;
  std::vector<rank_process> ranks_;
  steady::time_point started_{};

  phase phase_ = phase::running;
  cause cause_ = cause::none;
  std::optional<int> ending_signal_;
  int first_failed_ = -1;
  int start_error_ = 0;
  bool children_changed_ = false;
  std::vector<pid_t> left_groups_;  // what is left outside the ranks' groups, looked for when these are gone
  std::optional<int> told_groups_;  // the last signal that all groups were sent
  bool interrupted_ = false;        // a signal to end has come
  std::optional<steady::time_point> deadline_;       // of the phase
  std::optional<steady::time_point> time_out_;       // of the whole run, until it has passed or all are told to end
  const std::optional<steady::time_point> ends_by_;  // the same, for good

  std::string status_shown_;
  std::array<bool, 2> paused_{};
  std::array<bool, 2> watched_{};  // is the console's stream in the poller, waiting to take more?
  bool log_error_told_ = false;
  bool output_error_told_ = false;
};

}  // namespace cohort::tool
