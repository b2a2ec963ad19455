// SPDX-License-Identifier: BSL-1.0
#include "spawn.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cstring>

namespace cohort::tool {
namespace {

enum class step : int { prepare, guard, execute };

struct child_failure {
  int error;
  step at;
};

[[noreturn]] void fail_in_child(int report, step at) {
  const child_failure failure{errno, at};
  // Nothing is left to do when the parent cannot be told: it sees the pipe close and the exit code.
  [[maybe_unused]] const ssize_t written = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void become_rank(const spawn_request& request, const inherited_state& inherited, pid_t parent, int report,
                              char** arguments, char** environment) {
  // The order matters: the parent can die at any point, and from prctl on the kernel takes care of that; before it,
  // getppid tells.
  const bool tied = ::setpgid(0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  if (!tied) fail_in_child(report, step::prepare);
  if (::getppid() != parent) ::_exit(1);
  const pid_t group = ::getpid();
  if (::write(request.guard, &group, sizeof group) != sizeof group) fail_in_child(report, step::guard);

  const bool connected = ::dup2(request.input, 0) >= 0 && ::dup2(request.output, 1) >= 0 &&
                         ::dup2(request.errors, 2) >= 0 && ::dup2(request.status, request.status_number) >= 0;
  const bool restored = ::sigaction(SIGPIPE, &inherited.pipe_signal, nullptr) == 0 &&
                        ::setrlimit(RLIMIT_NOFILE, &inherited.files) == 0 &&
                        ::sigprocmask(SIG_SETMASK, &inherited.mask, nullptr) == 0;
  const bool bound =
      !request.processors || ::sched_setaffinity(0, sizeof *request.processors, &*request.processors) == 0;
  if (!connected || !restored || !bound) fail_in_child(report, step::prepare);
  ::environ = environment;
  ::execvp(arguments[0], arguments);
  fail_in_child(report, step::execute);
}

unique_fd open_pidfd(pid_t pid) { return unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace

spawned spawn(const spawn_request& request, const inherited_state& inherited) {
  spawned result;
  pipe_ends report = make_pipe();
  std::vector<char*> arguments = pointers(request.program);
  std::vector<char*> environment = pointers(request.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    result.error = errno;
    result.failed = "fork";
    return result;
  }
  if (pid == 0) become_rank(request, inherited, parent, report.write.get(), arguments.data(), environment.data());

  // exec closes the child's end: an end of file here means that the program runs.
  report.write.reset();
  child_failure failure{};
  ssize_t got = 0;
  do {
    got = ::read(report.read.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof failure) {
    ::waitpid(pid, nullptr, 0);
    result.error = failure.error;
    result.failed = failure.at == step::execute ? "exec" : failure.at == step::guard ? "guard" : "prepare";
    return result;
  }
  result.pid = pid;
  result.pidfd = open_pidfd(pid);
  return result;
}

std::string cannot_start_text(const std::string& program, const spawned& result) {
  std::string text = "cannot start '" + program + "': " + std::strerror(result.error);
  if (result.failed != "exec") return text + " (" + result.failed + ")";
  if (result.error != ENOENT) return text;
  const bool has_path = program.find('/') != std::string::npos;
  struct stat unused {};
  if (has_path && ::stat(program.c_str(), &unused) == 0) {
    text += " (the file is there, but not the interpreter or loader that it names)";
  } else if (!has_path && ::access(("./" + program).c_str(), X_OK) == 0) {
    text += " (not in PATH; did you mean ./" + program + "?)";
  }
  return text;
}

}  // namespace cohort::tool
