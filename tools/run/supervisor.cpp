// SPDX-License-Identifier: BSL-1.0
// The loop of the supervisor and what it does with each thing that is ready. Starting is in supervisor_start.cpp, the
// phases of an ending in supervisor_end.cpp.
#include "supervisor.hpp"

#include "../command.hpp"
#include "report.hpp"

#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace cohort::tool {
namespace {

constexpr std::size_t read_at_once = 64 * 1024;
// More than any pipe holds: what a rank wrote before it ended is read to its end, and yet a process that it left
// behind cannot keep the tool reading for ever.
constexpr std::size_t read_at_end = 4 * 1024 * 1024;
// Kept for a console that does not take it; beyond that the ranks have to wait, as they would without the tool.
constexpr std::size_t pause_above = 1024 * 1024;
constexpr std::size_t resume_below = 256 * 1024;

}  // namespace

supervisor::supervisor(const run_options& options, job shared, host_setup& host,
                       std::optional<steady::time_point> time_out)
    : options_(options),
      job_(std::move(shared)),
      host_(host),
      console_(options, job_.host),
      time_out_(time_out),
      ends_by_(time_out) {
  poller_.add(host_.signals(), source::signals, 0);
}

int supervisor::run() {
  guard_.emplace();
  try {
    if (!start_all()) {
      kill_and_collect();
      flush_console();
      return start_error_ == ENOENT ? exit_code::not_found : exit_code::cannot_execute;
    }
    if (!options_.log_dir.empty()) console_.note("logs in " + options_.log_dir + "/" + job_.run_id);
    watch();
  } catch (...) {
    kill_and_collect();
    throw;
  }
  return conclude();
}

void supervisor::watch() {
  show_status();
  while (!nothing_left() && phase_ != phase::given_up) {
    children_changed_ = false;
    for (const ready_source& ready : poller_.wait(next_deadline())) handle(ready);
    if (children_changed_) {
      collect_orphans();
      notice_gone_groups();
    }
    // Every rank is done, but not everything that they started.
    if (phase_ == phase::running && all_ended() && !nothing_left()) begin_settling();
    const steady::time_point now = steady::now();
    if (time_out_ && now >= *time_out_) time_out();
    if (deadline_ && now >= *deadline_) on_deadline();
    check_console();
    for (const stream s : {stream::out, stream::err}) pause_or_resume(s);
    console_.refresh();
  }
}

void supervisor::handle(const ready_source& ready) {
  rank_process& process = ranks_[static_cast<std::size_t>(ready.rank)];
  switch (ready.kind) {
    case source::process: collect(process); break;
    case source::out: read_output(process, stream::out, read_at_once); break;
    case source::err: read_output(process, stream::err, read_at_once); break;
    case source::status:
      if (!process.status) break;
      read_status(process, options_.world_size());
      show_status();
      break;
    case source::signals: read_signals(); break;
    case source::console_out: console_.to(stream::out).flush(); break;
    case source::console_err: console_.to(stream::err).flush(); break;
  }
}

bool supervisor::is_shown(const rank_process& process, stream from) const {
  const auto place = static_cast<std::size_t>(process.place);
  const unsigned bit = from == stream::out ? 1U : 2U;
  return options_.shown[place] && (options_.only_in_files[place] & bit) == 0;
}

void supervisor::read_output(rank_process& process, stream from, std::size_t most) {
  rank_stream& pipe = stream_of(process, from);
  const bool shown = is_shown(process, from);
  const bool any = pipe.read_some(most, [&](std::string_view line, bool cut) {
    if (shown) console_.rank_line(from, process.place, line, cut);
  });
  if (any) process.last_output = steady::now();
  if (pipe.log_error() != 0 && !log_error_told_) {
    log_error_told_ = true;
    console_.note("cannot write " + log_directory(options_, job_, process.rank) + ": " +
                  std::strerror(pipe.log_error()) + "; logs are incomplete from here on");
  }
}

void supervisor::read_to_end(rank_process& process, stream from) {
  read_output(process, from, read_at_end);
  const bool shown = is_shown(process, from);
  stream_of(process, from).close([&](std::string_view line, bool cut) {
    if (shown) console_.rank_line(from, process.place, line, cut);
  });
}

void supervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(host_.signals(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      children_changed_ = true;
    } else {
      on_signal(number);
    }
  }
}

void supervisor::collect(rank_process& process) {
  int status = 0;
  if (process.ended || ::waitpid(process.pid, &status, WNOHANG) != process.pid) return;
  on_ended(process, status);
}

void supervisor::on_ended(rank_process& process, int wait_status) {
  process.ended = true;
  process.wait_status = wait_status;
  process.ended_at = steady::now();
  children_changed_ = true;
  if (process.pidfd) poller_.remove(process.pidfd.get());
  process.pidfd.reset();
  // Its last words come before what is said about its end.
  for (const stream s : {stream::out, stream::err}) read_output(process, s, read_at_end);

  const bool failed_by_itself = wait_status != 0 && !process.asked_to_stop;
  if (failed_by_itself && cause_ == cause::none) {
    cause_ = cause::failure;
    first_failed_ = process.place;
    begin_settling();
  } else if (failed_by_itself) {
    process.failed_later = true;
  }
  show_status();
}

void supervisor::collect_orphans() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(),
                                   [&](const rank_process& each) { return !each.ended && each.pid == info.si_pid; });
    // A rank's own descriptor tells of its end, in the order of death, which waitid does not know.
    if (rank != ranks_.end() && rank->pidfd) return;
    int status = 0;
    ::waitpid(info.si_pid, &status, 0);
    if (rank != ranks_.end()) on_ended(*rank, status);
  }
}

void supervisor::notice_gone_groups() {
  for (rank_process& each : ranks_) {
    if (!each.ended || each.group_gone) continue;
    // Any member left is our child by now (see host_setup), and holds the group's number until we collect it.
    siginfo_t info{};
    const int found = ::waitid(P_PGID, static_cast<id_t>(each.pid), &info, WEXITED | WNOHANG | WNOWAIT);
    if (found == 0 || errno != ECHILD) continue;
    each.group_gone = true;
    guard_->forget(each.pid);
  }
  notice_left_groups();
}

// A process group of its own keeps nothing in the run: a shell makes one for each job, and timeout(1) for itself.
void supervisor::notice_left_groups() {
  if (!groups_gone()) return;
  std::vector<pid_t> found = host_.groups_left();
  for (const pid_t each : found) {
    // It becomes our child, and so is found, only when those above it are gone: by the signal that it has missed.
    const bool known = std::find(left_groups_.begin(), left_groups_.end(), each) != left_groups_.end();
    if (!known && told_groups_) signal_group(each, *told_groups_);
  }
  left_groups_ = std::move(found);
}

void supervisor::check_console() {
  const int error = console_.to(stream::out).error();
  if (error == EPIPE && cause_ == cause::none) {
    cause_ = cause::closed_output;
    terminate(SIGTERM);
  } else if (error != 0 && error != EPIPE && !output_error_told_) {
    output_error_told_ = true;
    console_.note(std::string("cannot write standard output: ") + std::strerror(error) + "; it is lost from here on");
  }
}

void supervisor::watch_console(stream s) {
  const std::size_t which = s == stream::out ? 0 : 1;
  const sink& to = console_.to(s);
  if ((to.pending() > 0) == watched_[which]) return;
  watched_[which] = !watched_[which];
  if (watched_[which]) {
    poller_.add(to.fd(), which == 0 ? source::console_out : source::console_err, 0, true);
  } else {
    poller_.remove(to.fd());
  }
}

void supervisor::pause_or_resume(stream s) {
  watch_console(s);
  const std::size_t which = s == stream::out ? 0 : 1;
  const sink& to = console_.to(s);
  const bool pause = to.pending() > (paused_[which] ? resume_below : pause_above);
  if (pause == paused_[which]) return;
  paused_[which] = pause;
  for (rank_process& each : ranks_) {
    rank_stream& pipe = stream_of(each, s);
    if (!pipe.open()) continue;
    if (pause) {
      poller_.remove(pipe.fd());
    } else {
      poller_.add(pipe.fd(), which == 0 ? source::out : source::err, each.place);
    }
  }
}

void supervisor::show_status() {
  const auto is_joined = [](const rank_process& each) { return each.joined; };
  const bool any = std::any_of(ranks_.begin(), ranks_.end(), is_joined);
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), is_joined);
  const bool some_ended = std::any_of(ranks_.begin(), ranks_.end(), [](const rank_process& r) { return r.ended; });
  const std::string text = joined_text(ranks_);
  if (options_.status == status_kind::automatic) {
    console_.set_status(all || some_ended || cause_ != cause::none ? std::string{} : "cohort run: " + text);
  } else if (options_.status == status_kind::plain && any && text != status_shown_) {
    status_shown_ = text;
    console_.note(text);
  }
}

bool supervisor::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const rank_process& each) { return each.ended; });
}

bool supervisor::groups_gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const rank_process& each) { return each.group_gone; });
}

bool supervisor::nothing_left() const { return groups_gone() && left_groups_.empty(); }

std::optional<steady::time_point> supervisor::next_deadline() const {
  if (!deadline_ || !time_out_) return deadline_ ? deadline_ : time_out_;
  return std::min(*deadline_, *time_out_);
}

}  // namespace cohort::tool
