// SPDX-License-Identifier: BSL-1.0
// The child's side of run_ranks (processes.hpp): makes a forked process a rank with a launcher's environment, and runs
// its body.
#pragma once

#include "sanitizer.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// NOLINTNEXTLINE: the name is AddressSanitizer's; null where it is not linked
extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

namespace harness {

/// What a rank exits with when its body did not return a code: it threw, or it leaked (AddressSanitizer builds).
inline constexpr int exit_exception = 97;
inline constexpr int exit_leak = 98;

/// Variables to set over the launcher's; one without a value is unset.
using variables = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// Throws unless `condition` holds; in the body of a rank, where the assertions of a test framework reach nobody.
inline void expect(bool condition, std::string_view what, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  if (condition) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": expected " + std::string(what));
}

namespace detail {

/// Only what this run sets may tell a rank who it is: a test must give the same result under any launcher.
inline void clear_launcher_variables() {
  std::vector<std::string> names;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view name(*each, std::strcspn(*each, "="));
    const auto begins = [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
    const bool of_the_tests = begins("COHORT_TEST_") || name == "COHORT_TOOL" || name == "COHORT_EXAMPLES_DIR";
    const bool how_ranks_talk = name == "COHORT_SHM" || begins("COHORT_TLS_");  // a test may be run over each
    if (of_the_tests || how_ranks_talk) continue;
    for (const char* prefix : {"COHORT_", "OMPI_", "PMI", "SLURM_", "TORCHELASTIC_"}) {
      if (begins(prefix)) {
        names.emplace_back(name);
        break;
      }
    }
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

inline void set_variables(int rank, int n, int port, const variables& own) {
  clear_launcher_variables();
  const std::string r = std::to_string(rank);
  const std::string size = std::to_string(n);
  variables all{{"RANK", r},
                {"WORLD_SIZE", size},
                {"LOCAL_RANK", r},
                {"LOCAL_WORLD_SIZE", size},
                {"GROUP_RANK", "0"},
                {"MASTER_ADDR", "127.0.0.1"},
                {"MASTER_PORT", std::to_string(port)}};
  all.insert(all.end(), own.begin(), own.end());
  for (const auto& [name, value] : all) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
}

/// In the child: its place in the world, its streams, and handlers as a fresh program has them.
inline void become_rank(pid_t parent, int out, int err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(exit_exception);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) {
    ::_exit(exit_exception);
  }
  // A line that a signal_rule waits for must not stay in a buffer. glibc makes a stream that has been written to
  // line buffered only together with a new buffer.
  static char buffer[BUFSIZ];
  std::setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
#if !COHORT_TEST_SANITIZED
  for (const int each : {SIGINT, SIGILL, SIGFPE, SIGSEGV, SIGTERM, SIGABRT}) std::signal(each, SIG_DFL);
#endif
}

template <class Body>
[[noreturn]] void rank_main(Body& body, int rank) {
  int code = exit_exception;
  try {
    code = body(rank);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d threw: %s\n", rank, e.what());
  } catch (...) {
    std::fprintf(stderr, "rank %d threw something that is not a std::exception\n", rank);
  }
  std::fflush(nullptr);
  // _exit, because the parent's atexit handlers and destructors are not this process's business; the leak check of
  // AddressSanitizer is one of them.
  if (code == 0 && __lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0) {
    code = exit_leak;
  }
  ::_exit(code);
}

}  // namespace detail
}  // namespace harness
