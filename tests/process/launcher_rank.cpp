// SPDX-License-Identifier: BSL-1.0
// The program that the tests of `cohort run` start as ranks. It does what its arguments say, in their order: each is
// `[RANKS:]ACTION[=VALUE]`, and RANKS, such as 0,2, restricts it to these ranks. It ends with 0 after the last one.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <string>

namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "(unset)" : value;
}

void put(int fd, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t now = ::write(fd, text.data() + sent, text.size() - sent);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) ::_exit(99);
    sent += static_cast<std::size_t>(now);
  }
}

void say(const std::string& text) { put(1, text + "\n"); }

[[noreturn]] void hang() {
  while (true) ::pause();
}

void report_signal(int number) {
  char text[] = "got 00\n";
  text[4] = static_cast<char>('0' + number / 10);
  text[5] = static_cast<char>('0' + number % 10);
  [[maybe_unused]] const ssize_t written = ::write(1, text, sizeof text - 1);
}

void exit_on_signal(int) { ::_exit(42); }

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

// A sanitizer catches some signals and turns them into an exit code; an ignored signal stays ignored.
void send_to_self(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  if (action.sa_handler != SIG_IGN) ::signal(number, SIG_DFL);
  ::kill(::getpid(), number);
}

struct child_kind {
  bool stubborn = false;   ///< ignores SIGTERM
  bool silent = false;     ///< closes its standard streams
  bool own_group = false;  ///< leaves the process group of the rank, as timeout(1) and a shell's jobs do
};

void spawn(const child_kind& kind) {
  // Before the fork, so that the child is deaf from its first moment on.
  struct sigaction before {};
  ::sigaction(SIGTERM, nullptr, &before);
  if (kind.stubborn) handle(SIGTERM, SIG_IGN);
  const pid_t child = ::fork();
  if (child == 0) {
    if (kind.silent) {
      for (const int fd : {0, 1, 2}) ::close(fd);
    }
    hang();
  }
  if (kind.own_group) ::setpgid(child, child);
  ::sigaction(SIGTERM, &before, nullptr);
  say("child " + std::to_string(child));
}

// Files are how a test and its ranks wait for each other; nothing is asserted about how long that takes.
void await_file(const std::string& path) {
  const timespec pause{0, 5'000'000};
  while (::access(path.c_str(), F_OK) != 0) ::nanosleep(&pause, nullptr);
}

void list_descriptors() {
  std::string text = "open:";
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) text += " " + std::to_string(fd);
  }
  say(text);
}

// As a program that knows nothing of cohort would: without SO_REUSEADDR.
void listen_at_master_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(variable("MASTER_PORT"))));
  const bool good =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(fd, 4) == 0;
  say(good ? "listening" : std::string("cannot listen: ") + std::strerror(errno));
}

void copy_input() {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(0, buffer, sizeof buffer)) > 0) put(1, std::string(buffer, static_cast<std::size_t>(got)));
  say("end of input");
}

void print_lines(long count) {
  for (long i = 0; i < count; ++i) say("line " + std::to_string(i) + " of rank " + variable("RANK") + " end");
}

void write_status(const std::string& text) { put(std::stoi(variable("COHORT_STATUS_FD")), text); }

using action = std::function<void(const std::string&)>;

const std::map<std::string, action>& actions() {
  static const std::map<std::string, action> all{
      {"out", say},
      {"err", [](const std::string& text) { put(2, text + "\n"); }},
      {"part", [](const std::string& text) { put(1, text); }},
      {"fill", [](const std::string& count) { say(std::string(std::stoul(count), 'x')); }},
      {"lines", [](const std::string& count) { print_lines(std::stol(count)); }},
      {"err_lines",
       [](const std::string& count) {
         for (int i = 0; i < std::stoi(count); ++i) put(2, "complaint " + std::to_string(i) + "\n");
       }},
      {"flood", [](const std::string&) { print_lines(1'000'000'000); }},
      {"env", [](const std::string& name) { say(name + "=" + variable(name)); }},
      {"ids",
       [](const std::string&) {
         say("pid " + std::to_string(::getpid()) + " parent " + std::to_string(::getppid()) + " group " +
             std::to_string(::getpgrp()));
       }},
      {"pid_to_stderr", [](const std::string&) { put(2, "pid " + std::to_string(::getpid()) + "\n"); }},
      {"descriptors", [](const std::string&) { list_descriptors(); }},
      {"cat", [](const std::string&) { copy_input(); }},
      {"listen", [](const std::string&) { listen_at_master_port(); }},
      {"exit", [](const std::string& code) { std::exit(std::stoi(code)); }},
      {"signal", [](const std::string& number) { send_to_self(std::stoi(number)); }},
      {"ignore", [](const std::string& number) { handle(std::stoi(number), SIG_IGN); }},
      {"report", [](const std::string& number) { handle(std::stoi(number), report_signal); }},
      {"exit_42_on", [](const std::string& number) { handle(std::stoi(number), exit_on_signal); }},
      {"hang", [](const std::string&) { hang(); }},
      {"touch", [](const std::string& path) { std::ofstream(path) << ::getpid() << '\n'; }},
      {"await", await_file},
      {"joined",
       [](const std::string&) { write_status("joined " + variable("RANK") + " " + variable("WORLD_SIZE") + "\n"); }},
      {"status", [](const std::string& text) { write_status(text + "\n"); }},
      {"garbage", [](const std::string& count) { write_status(std::string(std::stoul(count), '\xff')); }},
      {"spawn", [](const std::string&) { spawn({}); }},
      {"spawn_group", [](const std::string&) { spawn({.own_group = true}); }},
      {"spawn_stubborn", [](const std::string&) { spawn({.stubborn = true}); }},
      {"spawn_silent", [](const std::string&) { spawn({.stubborn = true, .silent = true}); }},
  };
  return all;
}

bool is_for_this_rank(const std::string& ranks) {
  return ("," + ranks + ",").find("," + variable("RANK") + ",") != std::string::npos;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    const std::size_t colon = text.find(':');
    const bool restricted = colon != std::string::npos && text.find_first_not_of("0123456789,") == colon;
    if (restricted && !is_for_this_rank(text.substr(0, colon))) continue;
    if (restricted) text.erase(0, colon + 1);
    const std::size_t equals = text.find('=');
    const auto found = actions().find(text.substr(0, equals));
    if (found == actions().end()) {
      std::fprintf(stderr, "launcher_rank: unknown action '%s'\n", text.c_str());
      return 97;
    }
    found->second(equals == std::string::npos ? std::string{} : text.substr(equals + 1));
  }
  return 0;
}
