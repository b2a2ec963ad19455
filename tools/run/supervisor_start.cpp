// SPDX-License-Identifier: BSL-1.0
// How the supervisor starts its ranks: all of them, or none is left.
#include "supervisor.hpp"

#include "binding.hpp"
#include "environment.hpp"
#include "report.hpp"
#include "spawn.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

namespace cohort::tool {
namespace {

unique_fd open_log(const std::string& directory, const char* name) {
  const std::string path = directory + "/" + name;
  unique_fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw_errno("cannot create " + path);
  return file;
}

struct rank_logs {
  unique_fd out;
  unique_fd err;
};

rank_logs open_logs(const run_options& options, const job& shared, int place) {
  const stream_set kept = options.in_files[static_cast<std::size_t>(place)];
  if (options.log_dir.empty() || kept == 0) return {};
  const std::string directory = log_directory(options, shared, options.world_rank(place));
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) throw std::system_error(failed, "cannot create " + directory);
  rank_logs logs;
  if ((kept & 1U) != 0) logs.out = open_log(directory, "stdout.log");
  if ((kept & 2U) != 0) logs.err = open_log(directory, "stderr.log");
  return logs;
}

// One terminal cannot be read by N processes, and from outside its foreground group nobody may.
unique_fd open_input(int rank) {
  const bool inherits = rank == 0 && ::isatty(STDIN_FILENO) == 0;
  unique_fd input(inherits ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : ::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input) throw_errno("cannot open the standard input of rank " + std::to_string(rank));
  return input;
}

// The pipe's own name stands beside its number: a program between this one and a rank may close the pipe, and the rank
// would write into whatever it has opened at that number itself.
std::string status_text(int number, const unique_fd& pipe) {
  struct stat found {};
  if (::fstat(pipe.get(), &found) != 0) throw_errno("cannot look at a pipe");
  return std::to_string(number) + ":" + std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
}

}  // namespace

bool supervisor::start_all() {
  ranks_.reserve(static_cast<std::size_t>(options_.ranks));
  started_ = steady::now();
  job_.port_holder.reset();
  for (int place = 0; place < options_.ranks; ++place) {
    if (!start(place)) return false;
  }
  return true;
}

bool supervisor::start(int place) {
  const int rank = options_.world_rank(place);
  rank_logs logs = open_logs(options_, job_, place);
  pipe_ends out = make_pipe();
  pipe_ends err = make_pipe();
  pipe_ends status = make_pipe();
  const unique_fd input = open_input(rank);

  spawn_request request;
  request.program = options_.program;
  request.environment =
      with_inherited(rank_variables(options_, job_, place, status_text(job_.status_number.get(), status.write)));
  request.input = input.get();
  request.output = out.write.get();
  request.errors = err.write.get();
  request.status = status.write.get();
  request.status_number = job_.status_number.get();
  request.guard = guard_->registry();
  request.processors = processors_for(options_.bind, place, options_.ranks);
  spawned result = spawn(request, host_.inherited());
  if (result.error != 0) {
    start_error_ = result.error;
    console_.note(cannot_start_text(options_.program.front(), result));
    return false;
  }

  rank_process& process = ranks_.emplace_back();
  process.place = place;
  process.rank = rank;
  process.pid = result.pid;
  process.pidfd = std::move(result.pidfd);
  // Watched first: should ranks end while others are still being started, they do so in this order.
  if (process.pidfd) poller_.add(process.pidfd.get(), source::process, place);
  process.out = rank_stream(std::move(out.read), std::move(logs.out), false);
  process.err = rank_stream(std::move(err.read), std::move(logs.err), true);
  process.status = std::move(status.read);
  set_nonblocking(process.status.get());
  poller_.add(process.out.fd(), source::out, place);
  poller_.add(process.err.fd(), source::err, place);
  poller_.add(process.status.get(), source::status, place);
  return true;
}

// For the two ways out on which nobody waits for anything: a rank that cannot be started, and an error of our own.
void supervisor::kill_and_collect() {
  for (const rank_process& each : ranks_) {
    if (!each.group_gone) ::kill(-each.pid, SIGKILL);
  }
  // The whole group: what the ranks started is our child as soon as they are gone.
  for (const rank_process& each : ranks_) {
    while (!each.group_gone && (::waitpid(-each.pid, nullptr, 0) > 0 || errno == EINTR)) {}
  }
  for (std::vector<pid_t> left = host_.groups_left(); !left.empty(); left = host_.groups_left()) {
    for (const pid_t each : left) {
      ::kill(-each, SIGKILL);
      while (::waitpid(-each, nullptr, 0) > 0 || errno == EINTR) {}
    }
  }
}

}  // namespace cohort::tool
