// SPDX-License-Identifier: BSL-1.0
// That nothing of a run outlives it: neither ranks nor what they started, and not even when the tool is killed. That
// no process of a run is left is checked by `finish` in every other test of the launcher, too.
#include "launcher_support.hpp"

#include <sys/mman.h>

using namespace launcher_test;

namespace {

const words never_kill{"--grace", "600"};

std::vector<pid_t> numbers_after(const std::string& text, const std::string& label) {
  std::vector<pid_t> found;
  for (std::size_t at = text.find(label); at != std::string::npos; at = text.find(label, at + 1)) {
    found.push_back(std::atoi(text.c_str() + at + label.size()));
  }
  return found;
}

bool all_gone(const std::vector<pid_t>& pids) {
  for (const pid_t each : pids) {
    if (!is_gone(each)) return false;
  }
  return true;
}

pid_t guard_of(const running_tool& running) {
  std::vector<pid_t> guards;
  for (const pid_t each : running.processes()) {
    if (read_process_file(each, "comm") == "cohort-guard\n") guards.push_back(each);
  }
  REQUIRE(guards.size() == 1);
  return guards[0];
}

void wait_for_both(running_tool& running, const std::string& text) {
  running.wait_for("[0] " + text);
  running.wait_for("[1] " + text);
}

}  // namespace

TEST_CASE("launcher: killing the tool with SIGKILL kills the ranks and everything they started") {
  running_tool running(run_words(2, {}, {"ids", "ignore=15", "spawn_stubborn", "spawn_silent", "out=up", "hang"}));
  wait_for_both(running, "up");
  std::vector<pid_t> pids = numbers_after(running.out(), "] pid ");
  for (const pid_t child : numbers_after(running.out(), "child ")) pids.push_back(child);
  REQUIRE(pids.size() == 6);
  for (const pid_t each : pids) REQUIRE_FALSE(is_gone(each));
  // The tool, 2 ranks with 2 children each, and the guard.
  REQUIRE(running.processes().size() == 8);
  running.send(SIGKILL);
  CHECK(eventually([&] { return all_gone(pids); }));
  CHECK(running.finish().code == 128 + SIGKILL);
}

TEST_CASE("launcher: killing the tool kills ranks that are stopped") {
  running_tool running(run_words(2, {}, {"ids", "signal=19"}));
  wait_for_both(running, "pid ");
  const std::vector<pid_t> pids = numbers_after(running.out(), "] pid ");
  REQUIRE(eventually([&] { return state_of(pids[0]) == 'T' && state_of(pids[1]) == 'T'; }));
  running.send(SIGKILL);
  CHECK(eventually([&] { return all_gone(pids); }));
  running.finish();
}

TEST_CASE("launcher: killing the tool while it starts ranks leaves nothing") {
  const scratch directory;
  for (int started = 0; started < 16; ++started) {
    // Each rank tells in a file that it runs; the tool is killed when some do and others are still to come.
    const std::string mark = directory / std::to_string(started);
    running_tool running(run_words(16, {}, {std::to_string(started) + ":touch=" + mark, "hang"}));
    REQUIRE(eventually([&] { return std::filesystem::exists(mark); }));
    running.send(SIGKILL);
    CHECK(running.finish().code == 128 + SIGKILL);
  }
}

TEST_CASE("launcher: processes that a rank leaves behind are ended with the run, and do not change its exit code") {
  running_tool running(run_words(2, words{"--settle", "0.1"} + never_kill, {"spawn"}));
  const outcome result = running.finish();
  CHECK(result.code == 0);
  CHECK(all_gone(numbers_after(result.out, "child ")));
  CHECK(contains(result.err, "cohort run: sending SIGTERM to what ranks 0, 1 left behind;"));
}

TEST_CASE("launcher: a child of a rank that ends soon after it gets the time to do so") {
  const outcome result = run_tool(words{"run", "-n", "2", "--settle", "600", "--", "/bin/sh", "-c",
                                        "(sleep 0.2; echo cleaned up) & exit 0"});
  CHECK(result.code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "[0] cleaned up\n"));
  CHECK(contains(result.out, "[1] cleaned up\n"));
}

TEST_CASE("launcher: processes in groups of their own are ended with the run, too") {
  SUBCASE("after a rank that ended well") {
    const outcome result = run_tool(run_words(2, words{"--settle", "0.1"} + never_kill, {"spawn_group"}));
    CHECK(result.code == 0);
    const std::vector<pid_t> children = numbers_after(result.out, "child ");
    CHECK(children.size() == 2);
    CHECK(all_gone(children));
    CHECK(contains(result.err, "cohort run: sending SIGTERM to what was left behind in process groups "));
  }
  SUBCASE("after a rank that failed") {
    const outcome result =
        run_tool(run_words(2, words{"--settle", "0.1"} + never_kill, {"0:spawn_group", "0:exit=4", "hang"}));
    CHECK(result.code == 4);
    CHECK(all_gone(numbers_after(result.out, "child ")));
  }
  SUBCASE("by the signal that ended the ranks") {
    running_tool running(run_words(2, never_kill, {"spawn_group", "out=up", "hang"}));
    wait_for_both(running, "up");
    running.send(SIGINT);
    const outcome result = running.finish();
    CHECK(result.code == 128 + SIGINT);
    CHECK(all_gone(numbers_after(result.out, "child ")));
  }
  SUBCASE("by SIGKILL when they ignore the others") {
    running_tool running(run_words(1, {"--grace", "0.2"}, {"ignore=15", "spawn_group", "out=up", "hang"}));
    running.wait_for("[0] up");
    running.send(SIGTERM);
    const outcome result = running.finish();
    CHECK(result.code == 128 + SIGTERM);
    CHECK(all_gone(numbers_after(result.out, "child ")));
  }
  SUBCASE("when a later rank cannot be started") {
    const scratch directory;
    setup how;
    how.before_start = [] {
      const rlimit few{24, 24};  // enough for some ranks, not for sixteen
      ::setrlimit(RLIMIT_NOFILE, &few);
    };
    CHECK(run_tool(run_words(16, {}, {"spawn_group", "hang"}), how).code == 126);
  }
}

TEST_CASE("launcher: what made a session of its own, as a daemon does, is left alone") {
  const scratch directory;
  // Without the environment of the run, by which `finish` knows its processes.
  const std::string daemon = "setsid env -i sh -c 'echo $$ > " + (directory / "making") + "; mv " +
                             (directory / "making") + " " + (directory / "daemon") +
                             "; exec sleep 600' < /dev/null > /dev/null 2>&1 &";
  const std::string wait = "until [ -e " + (directory / "daemon") + " ]; do sleep 0.01; done";
  const outcome result = run_tool({"run", "-n", "1", "--settle", "600", "--", "sh", "-c", daemon + "\n" + wait});
  CHECK(result.code == 0);
  CHECK(result.err == "");
  const pid_t pid = std::atoi(read_file(directory / "daemon").c_str());
  REQUIRE(pid > 0);
  CHECK_FALSE(is_gone(pid));
  ::kill(pid, SIGKILL);
  CHECK(eventually([&] { return is_gone(pid); }));
}

TEST_CASE("launcher: children that it had before it became the tool are left alone") {
  const scratch directory;
  setup how;
  pid_t* const earlier =
      static_cast<pid_t*>(::mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(earlier != MAP_FAILED);
  how.before_start = [earlier] {
    const pid_t child = ::fork();
    if (child != 0) {
      *earlier = child;
      return;
    }
    ::setpgid(0, 0);
    ::close_range(0, ~0U, 0);
    ::clearenv();
    ::execl("/bin/sleep", "sleep", "600", nullptr);
    ::_exit(1);
  };
  running_tool running(run_words(1, {"--settle", "600"}, {"await=" + (directory / "end")}), how);
  REQUIRE(eventually([&] { return *earlier > 0 && read_process_file(*earlier, "comm") == "sleep\n"; }));
  std::ofstream(directory / "end").put('\n');
  const outcome result = running.finish();
  CHECK(result.code == 0);
  CHECK(result.err == "");
  CHECK_FALSE(is_gone(*earlier));
  ::kill(*earlier, SIGKILL);
  CHECK(eventually([&] { return is_gone(*earlier); }));
  ::munmap(earlier, sizeof(pid_t));
}

TEST_CASE("launcher: children of ranks get SIGTERM with them, and SIGKILL when they ignore it") {
  running_tool running(run_words(2, {"--grace", "1"}, {"spawn_stubborn", "out=up", "hang"}));
  wait_for_both(running, "up");
  const std::vector<pid_t> children = numbers_after(running.out(), "child ");
  REQUIRE(children.size() == 2);
  running.send(SIGTERM);
  const outcome result = running.finish();
  CHECK(result.code == 128 + SIGTERM);
  CHECK(contains(result.err, "cohort run: sending SIGKILL to what ranks 0, 1 left behind\n"));
  CHECK(all_gone(children));
}

TEST_CASE("launcher: a rank that failed takes its children along") {
  running_tool running(run_words(2, words{"--settle", "0.1"} + never_kill, {"0:spawn", "0:exit=4", "hang"}));
  const outcome result = running.finish();
  CHECK(result.code == 4);
  CHECK(all_gone(numbers_after(result.out, "child ")));
}

TEST_CASE("launcher: when a later rank cannot be started, the earlier ones are ended") {
  const scratch directory;
  setup how;
  how.before_start = [] {
    const rlimit few{24, 24};  // enough for some ranks, not for sixteen
    ::setrlimit(RLIMIT_NOFILE, &few);
  };
  running_tool running(run_words(16, {}, {"spawn_stubborn", "hang"}), how);
  const outcome result = running.finish();
  CHECK(result.code == 126);
  CHECK(contains(result.err, "Too many open files"));
  CHECK(lines_of(result.err).size() == 1);
}

TEST_CASE("launcher: the guard of the ranks' children ignores signals that are meant to end the tool") {
  running_tool running(run_words(1, never_kill, {"spawn_silent", "out=up", "hang"}));
  running.wait_for("[0] up");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) REQUIRE(::kill(guard_of(running), number) == 0);
  running.send(SIGKILL);
  CHECK(running.finish().code == 128 + SIGKILL);
}

TEST_CASE("launcher: without their guard the ranks still die with the tool") {
  running_tool running(run_words(2, {}, {"ids", "ignore=15", "out=up", "hang"}));
  wait_for_both(running, "up");
  const std::vector<pid_t> pids = numbers_after(running.out(), "] pid ");
  const pid_t guard = guard_of(running);
  REQUIRE(::kill(guard, SIGKILL) == 0);
  REQUIRE(eventually([&] { return is_gone(guard); }));
  for (const pid_t each : pids) REQUIRE_FALSE(is_gone(each));
  running.send(SIGKILL);
  CHECK(eventually([&] { return all_gone(pids); }));
  running.finish();
}
