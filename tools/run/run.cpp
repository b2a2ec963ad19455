// SPDX-License-Identifier: BSL-1.0
// `cohort run`: reads its options, then either tells what it would do or does it.
#include "../command.hpp"
#include "environment.hpp"
#include "host_setup.hpp"
#include "job.hpp"
#include "options.hpp"
#include "report.hpp"
#include "supervisor.hpp"

#include <poll.h>

#include <sys/signalfd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>

namespace cohort::tool {
namespace {

steady::duration duration_of(double seconds) {
  return std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(seconds));
}

/// Result: the signal that came and means the end; nothing when the time is over.
std::optional<int> rest(const host_setup& host, steady::time_point until) {
  for (;;) {
    signalfd_siginfo info{};
    while (::read(host.signals(), &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number != SIGCHLD && number != SIGUSR1 && number != SIGUSR2) return number;
    }
    const auto left = until - steady::now();
    if (left <= left.zero()) return std::nullopt;
    pollfd readable{host.signals(), POLLIN, 0};
    const auto some = std::min<steady::duration>(left, std::chrono::hours{1});  // what poll takes ends after 24 days
    ::poll(&readable, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(some).count()));
  }
}

// All ranks together: one that is started again alone would find nobody who is where it is.
int run_attempts(run_options& options, job shared) {
  host_setup host(options.signals);
  std::optional<steady::time_point> time_out;
  if (options.timeout) time_out = steady::now() + duration_of(*options.timeout);
  for (;;) {
    supervisor attempt(options, std::move(shared), host, time_out);
    const int code = attempt.run();
    if (code == 0 || !attempt.failed() || options.attempt >= options.max_restarts) return code;
    if (const std::optional<int> signal = attempt.ending_signal()) return exit_code::signal_base + *signal;
    const steady::time_point next = steady::now() + duration_of(options.restart_delay);
    if (time_out && next >= *time_out) {
      std::fprintf(stderr, "cohort run: --timeout (%s) is over before another attempt can start; not starting again\n",
                   seconds_text(*options.timeout).c_str());
      return exit_code::timed_out;
    }
    if (const std::optional<int> signal = rest(host, next)) return exit_code::signal_base + *signal;
    ++options.attempt;
    std::fprintf(stderr, "cohort run: starting all ranks again (restart %d of %d)\n", options.attempt,
                 options.max_restarts);
    const std::string id = attempt.run_id();
    const std::string secret = attempt.secret();
    shared = make_job(options);
    shared.run_id = id;
    shared.secret = secret;
  }
}

}  // namespace

int run_command(const std::vector<std::string>& words) {
  run_options options;
  if (const std::optional<int> ended = parse_run_options(words, options)) return *ended;
  try {
    ensure_standard_descriptors();
    job shared = make_job(options);
    if (options.print_environment) {
      std::fputs(variables_text(options, shared, *options.print_environment, "").c_str(), stdout);
      return 0;
    }
    if (options.dry_run) {
      std::fputs(plan_text(options, shared).c_str(), stdout);
      return 0;
    }
    return run_attempts(options, std::move(shared));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort run: %s\n", error.what());
    return exit_code::cannot_execute;
  }
}

}  // namespace cohort::tool
