// SPDX-License-Identifier: BSL-1.0
#include "guard.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <vector>

namespace cohort::tool {
namespace {

constexpr pid_t dismissed = 0;

// Messages: a positive number is a group to watch, a negative one a group to forget, 0 the end.
[[noreturn]] void stand_guard(int messages) {
  // Neither Ctrl-C nor a signal to the group of `cohort run` shall reach this process, and it shall hold nothing but
  // its end of the pipe: not the port of rank 0, for one.
  ::setsid();
  sigset_t every;
  sigfillset(&every);
  ::sigprocmask(SIG_SETMASK, &every, nullptr);
  ::prctl(PR_SET_NAME, "cohort-guard");
  ::dup2(messages, 0);
  ::close_range(1, ~0U, 0);

  std::vector<pid_t> groups;
  while (true) {
    pid_t message = 0;
    const ssize_t got = ::read(0, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof message) break;
    if (message == dismissed) ::_exit(0);
    if (message > 0) {
      groups.push_back(message);
    } else {
      std::erase(groups, -message);
    }
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace

guard::guard() {
  pipe_ends pipe = make_pipe();
  pipe_ends ready = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("cannot fork");
  if (pid_ == 0) stand_guard(pipe.read.get());
  registry_ = std::move(pipe.write);
  // An end of file: the guard has closed everything that it inherited.
  ready.write.reset();
  char none = 0;
  while (::read(ready.read.get(), &none, 1) < 0 && errno == EINTR) {}
}

guard::~guard() {
  send(dismissed);
  registry_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

void guard::forget(pid_t group) noexcept { send(-group); }

void guard::send(pid_t message) noexcept {
  // Fails only when the guard was killed; the ranks are then as safe as the kernel alone makes them.
  [[maybe_unused]] const ssize_t written = ::write(registry_.get(), &message, sizeof message);
}

}  // namespace cohort::tool
