// SPDX-License-Identifier: BSL-1.0
#include "host_setup.hpp"

#include "left_groups.hpp"

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>

namespace cohort::tool {
namespace {

// Started by nohup, or in the background of a script, a signal is ignored on purpose: it stays so, for ranks as well.
bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void ensure_standard_descriptors() {
  for (const int fd : {0, 1, 2}) {
    // open gives the lowest free number, which is `fd`: those below it are open by now.
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) throw_errno("cannot open /dev/null");
  }
}

host_setup::host_setup(const std::vector<int>& signals) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  // Whoever ignores SIGCHLD never learns how a child ended; that too is inherited from a parent.
  if (::sigaction(SIGPIPE, &ignore, &inherited_.pipe_signal) != 0 || ::sigaction(SIGCHLD, &usual, nullptr) != 0) {
    throw_errno("cannot set up signals");
  }
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGCHLD);
  for (const int number : signals) {
    if (!is_ignored(number)) sigaddset(&handled, number);
  }
  if (::sigprocmask(SIG_BLOCK, &handled, &inherited_.mask) != 0) throw_errno("cannot block signals");
  signals_ = unique_fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw_errno("cannot make a signalfd");

  if (::getrlimit(RLIMIT_NOFILE, &inherited_.files) != 0) throw_errno("cannot read the limit of open files");
  struct rlimit more = inherited_.files;
  more.rlim_cur = more.rlim_max;
  // Without it a large run may fail later, and says so then.
  ::setrlimit(RLIMIT_NOFILE, &more);
  // What a rank leaves behind when it ends becomes our child, and so can be waited for.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  earlier_groups_ = groups_of_children();
}

std::vector<pid_t> host_setup::groups_left() const {
  std::vector<pid_t> groups = groups_of_children();
  std::erase_if(groups,
                [&](pid_t each) { return std::binary_search(earlier_groups_.begin(), earlier_groups_.end(), each); });
  return groups;
}

}  // namespace cohort::tool
