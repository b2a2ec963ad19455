// SPDX-License-Identifier: BSL-1.0
// Starts the built `cohort` tool as a user would and observes it from outside: its output, its exit code, and that no
// process of its run is left. The paths of the tool and of launcher_rank come from COHORT_TOOL and COHORT_TEST_RANK.
#pragma once

#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace launcher_test {

using words = std::vector<std::string>;
using variables = std::vector<std::pair<std::string, std::string>>;

// Guards against hangs; far above what anything here takes, on a loaded machine and under a sanitizer too.
inline constexpr std::chrono::seconds patience{60};

inline std::string path_from(const char* variable) {
  const char* path = std::getenv(variable);
  REQUIRE_MESSAGE(path != nullptr, std::string(variable) << " is not set; the tests of the launcher need it");
  return path;
}
inline std::string tool() { return path_from("COHORT_TOOL"); }
inline std::string rank_program() { return path_from("COHORT_TEST_RANK"); }

inline words operator+(words left, const words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// `cohort run -n ranks options... -- launcher_rank actions...`
inline words run_words(int ranks, const words& options, const words& actions) {
  return words{"run", "-n", std::to_string(ranks)} + options + words{"--", rank_program()} + actions;
}

inline std::string unique_name() {
  static std::atomic<int> next{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return std::to_string(::getpid()) + "-" + std::to_string(now) + "-" + std::to_string(next++);
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// /proc/PID/NAME; empty when there is no such process. Not by a stream: a process may end between the opening of its
/// file and the reading, and std::filebuf throws at that.
inline std::string read_process_file(pid_t pid, const std::string& name) {
  std::string text(4096, '\0');
  std::FILE* const file = std::fopen(("/proc/" + std::to_string(pid) + "/" + name).c_str(), "r");
  text.resize(file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file));
  if (file != nullptr) std::fclose(file);
  return text;
}

/// 'R', 'S', 'T', ...; 'X' when there is no such process.
inline char state_of(pid_t pid) {
  const std::string text = read_process_file(pid, "stat");
  const std::size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? 'X' : text[end + 2];
}
inline bool is_gone(pid_t pid) {
  const char state = state_of(pid);
  return state == 'X' || state == 'Z';
}

inline bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::usleep(5000);  // what is waited for happens in another process, which tells nobody
  }
  return true;
}

/// A directory that goes away with the object.
class scratch {
 public:
  scratch() : path_(std::filesystem::temp_directory_path() / ("cohort-launcher-" + unique_name())) {
    std::filesystem::create_directories(path_);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

enum class wiring { pipes, terminal };

struct setup {
  variables environment{};               ///< set for the tool
  words unset{};                         ///< removed from its environment
  wiring how = wiring::pipes;            ///< terminal: output and errors arrive together, in `out`
  int output = -1;                       ///< a descriptor to use as its standard output instead of a pipe
  int input = -1;                        ///< a descriptor to use as its standard input instead of /dev/null
  std::function<void()> before_start{};  ///< runs in the child before exec
};

struct outcome {
  int code = -1;  ///< as a shell reports it
  std::string out;
  std::string err;
};

class running_tool {
 public:
  explicit running_tool(const words& arguments, const setup& how = {}) : token_("COHORT_TEST_TOKEN=" + unique_name()) {
    const std::string program = tool();
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    if (how.how == wiring::pipes) {
      REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
      REQUIRE(::pipe2(err, O_CLOEXEC) == 0);
      pid_ = ::fork();
    } else {
      winsize size{24, 100, 0, 0};
      pid_ = ::forkpty(&out[0], nullptr, nullptr, &size);
    }
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) become_tool(program, arguments, how, out[1], err[1]);
    for (const int end : {out[1], err[1]}) {
      if (end >= 0) ::close(end);
    }
    out_ = out[0];
    err_ = err[0];
  }
  running_tool(const running_tool&) = delete;
  running_tool& operator=(const running_tool&) = delete;
  ~running_tool() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const int fd : {out_, err_}) {
      if (fd >= 0) ::close(fd);
    }
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& out() const { return got_.out; }
  [[nodiscard]] const std::string& err() const { return got_.err; }
  void send(int number) const { REQUIRE(::kill(pid_, number) == 0); }
  void type(const std::string& keys) const {
    REQUIRE(::write(out_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  /// Reads until `text` has been printed.
  void wait_for(const std::string& text) {
    const auto printed = [&] {
      return got_.out.find(text) != std::string::npos || got_.err.find(text) != std::string::npos;
    };
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!printed() && std::chrono::steady_clock::now() < until && read_some()) {
    }
    INFO("stdout: " << got_.out << "\nstderr: " << got_.err);
    REQUIRE_MESSAGE(printed(), "the tool has not printed: " << text);
  }

  /// Waits for the end of the tool; then nothing of the run may be left, its ranks' children and the guard included.
  outcome finish() {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (read_some()) {
      REQUIRE_MESSAGE(std::chrono::steady_clock::now() < until, "the tool does not end; stderr: " << got_.err);
    }
    int status = 0;
    REQUIRE(eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }));
    ended_ = true;
    got_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // A tool that ends by itself has waited for every one of them; one that was killed cannot.
    const bool clean = WIFEXITED(status) ? processes().empty() : eventually([&] { return processes().empty(); });
    CHECK_MESSAGE(clean, "processes of the run are left behind");
    return got_;
  }

  /// Every process that has the environment of this run.
  [[nodiscard]] std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (read_file("/proc/" + name + "/environ").find(token_) != std::string::npos) found.push_back(std::stoi(name));
    }
    return found;
  }

 private:
  [[noreturn]] void become_tool(const std::string& program, const words& arguments, const setup& how, int out,
                                int err) const {
    if (how.how == wiring::pipes) {
      const int input = how.input >= 0 ? how.input : ::open("/dev/null", O_RDONLY);
      ::dup2(input, 0);
      ::dup2(how.output >= 0 ? how.output : out, 1);
      ::dup2(err, 2);
    }
    ::close_range(3, ~0U, 0);
    for (const char* name : {"NO_COLOR", "OMP_NUM_THREADS", "COHORT_NPROC", "PET_NPROC_PER_NODE"}) ::unsetenv(name);
    ::setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : how.environment) ::setenv(name.c_str(), value.c_str(), 1);
    for (const std::string& name : how.unset) ::unsetenv(name.c_str());
    const std::size_t equals = token_.find('=');
    ::setenv(token_.substr(0, equals).c_str(), token_.substr(equals + 1).c_str(), 1);
    if (how.before_start) how.before_start();
    std::vector<char*> pointers{const_cast<char*>(program.c_str())};
    for (const std::string& word : arguments) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    ::_exit(96);
  }

  /// Result: false when both streams are at their end.
  bool read_some() {
    pollfd open[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
    if (out_ < 0 && err_ < 0) return false;
    if (::poll(open, 2, 100) <= 0) return true;
    take(open[0], out_, got_.out);
    take(open[1], err_, got_.err);
    return true;
  }

  static void take(const pollfd& ready, int& fd, std::string& text) {
    if (fd < 0 || ready.revents == 0) return;
    char buffer[65536];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      ::close(fd);  // a terminal whose last user has gone gives EIO
      fd = -1;
    }
  }

  std::string token_;
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  bool ended_ = false;
  outcome got_;
};

inline outcome run_tool(const words& arguments, const setup& how = {}) {
  running_tool running(arguments, how);
  return running.finish();
}

inline words lines_of(const std::string& text) {
  words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

using harness::contains;

/// The first line that contains `part`, or "".
inline std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text)) {
    if (contains(line, part)) return line;
  }
  return {};
}

/// The number after the first occurrence of `label`.
inline int number_after(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  REQUIRE_MESSAGE(at != std::string::npos, "not found: " << label << " in " << text);
  return std::atoi(text.c_str() + at + label.size());
}

}  // namespace launcher_test
