// SPDX-License-Identifier: BSL-1.0
// How a run ends: exit codes, who is blamed, what the other ranks go through, signals to the tool.
#include "launcher_support.hpp"

using namespace launcher_test;

namespace {

std::string number(int value) { return std::to_string(value); }

// Long enough that no test would wait for it: what is tested has to happen before.
const words never_settle{"--settle", "600"};
const words never_kill{"--grace", "600"};

}  // namespace

TEST_CASE("launcher: 0 when every rank ends with 0, and not a word about it") {
  const outcome result = run_tool(run_words(4, {}, {}));
  CHECK(result.code == 0);
  CHECK(result.out + result.err == "");
}

TEST_CASE("launcher: the exit code is that of the failing rank") {
  for (const int code : {1, 3, 77, 255}) {
    CHECK(run_tool(run_words(2, {}, {"1:exit=" + number(code)})).code == code);
  }
}

TEST_CASE("launcher: a rank that dies of a signal counts as 128 + signal") {
  for (const int deadly : {SIGSEGV, SIGABRT, SIGKILL, SIGTERM}) {
    setup how;
    how.before_start = [] {
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_CORE, &none);
    };
    CHECK(run_tool(run_words(2, {}, {"0:signal=" + number(deadly)}), how).code == 128 + deadly);
  }
}

TEST_CASE("launcher: the first failure is the root cause, later ones are listed as such") {
  const scratch directory;
  const words options = words{"--log-dir", directory.path()} + never_settle;
  // Ranks 0 and 3 end by themselves once rank 2 has failed: they see its end in the tool's report.
  const words actions{"2:err_lines=25", "2:exit=7", "await=" + (directory / "seen"), "0:exit=4", "3:signal=6"};
  running_tool running(run_words(4, options, actions));
  running.wait_for("cohort run: rank 2 failed: exit code 7; ranks 0, 1, 3 have 600 s to end before SIGTERM");
  std::ofstream(directory / "seen").put('\n');
  const outcome result = running.finish();
  CHECK(result.code == 7);
  CHECK(contains(result.err, "+-- cohort run: rank 2 failed first (root cause) ---"));
  CHECK(contains(line_with(result.err, "| rank 2 on "), ": exit code 7 after "));
  CHECK(number_after(line_with(result.err, "| rank 2 on "), "pid ") > 0);
  CHECK(contains(line_with(result.err, "| program: "), rank_program()));
  CHECK(contains(line_with(result.err, "| log: " + directory.path()), "/2/stderr.log"));
  CHECK(contains(result.err, "| its last 20 lines on stderr:\n|   complaint 5\n"));
  CHECK(contains(result.err, "|   complaint 24\n"));
  CHECK_FALSE(contains(result.err, "|   complaint 4\n"));
  CHECK(contains(result.err, "| failed later: rank 0: exit code 4\n"));
  CHECK(contains(result.err, "| failed later: rank 3: SIGABRT"));
  CHECK(contains(result.err, "| finished: rank 1: exit code 0\n"));
  CHECK_FALSE(contains(result.err, "| stopped:"));
  CHECK(lines_of(result.err).back().find_first_not_of("+-") == std::string::npos);
}

TEST_CASE("launcher: ranks that die while the tool is not looking are still blamed in the order of death") {
  // The tool sleeps (SIGSTOP) while first rank 3 and then the others die; a mere waitpid would blame rank 0.
  const scratch directory;
  running_tool running(run_words(4, never_settle,
                                 {"ids", "out=ready", "3:await=" + (directory / "first"), "3:exit=33",
                                  "await=" + (directory / "then"), "0:exit=10", "1:exit=11", "2:exit=12"}));
  std::vector<pid_t> pids;
  for (const int rank : {0, 1, 2, 3}) {
    running.wait_for("[" + number(rank) + "] ready");
    pids.push_back(number_after(line_with(running.out(), "[" + number(rank) + "] pid"), "pid "));
  }
  running.send(SIGSTOP);
  REQUIRE(eventually([&] { return state_of(running.pid()) == 'T'; }));
  std::ofstream(directory / "first").put('\n');
  REQUIRE(eventually([&] { return is_gone(pids[3]); }));
  std::ofstream(directory / "then").put('\n');
  REQUIRE(eventually([&] { return is_gone(pids[0]) && is_gone(pids[1]) && is_gone(pids[2]); }));
  running.send(SIGCONT);
  const outcome result = running.finish();
  CHECK(result.code == 33);
  CHECK(contains(result.err, "rank 3 failed first (root cause)"));
  CHECK(contains(result.err, "| failed later: rank 0: exit code 10\n"));
}

TEST_CASE("launcher: ranks that do not end by themselves are stopped, and are not blamed for it") {
  const scratch directory;
  running_tool running(run_words(4, words{"--settle", "0.1"} + never_kill,
                                 {"ids", "2:exit_42_on=15", "3:exit=0", "out=up", "0,2:hang",
                                  "await=" + (directory / "now"), "exit=9"}));
  for (const char* rank : {"0", "1", "2"}) running.wait_for("[" + std::string(rank) + "] up");
  running.wait_for("[3] pid ");
  const int last = number_after(running.out(), "[3] pid ");
  REQUIRE(eventually([&] { return is_gone(last); }));
  std::ofstream(directory / "now").put('\n');
  const outcome result = running.finish();
  CHECK(result.code == 9);
  CHECK(contains(result.err, "cohort run: rank 1 failed: exit code 9; ranks 0, 2 have 0.1 s to end before SIGTERM\n"));
  CHECK(contains(result.err, "cohort run: sending SIGTERM to ranks 0, 2; SIGKILL follows after 600 s"));
  CHECK(contains(result.err, "| stopped: rank 0: SIGTERM (Terminated)\n"));
  CHECK(contains(result.err, "| stopped: rank 2: exit code 42\n"));
  CHECK(contains(result.err, "| finished: rank 3: exit code 0\n"));
  CHECK_FALSE(contains(result.err, "failed later"));
}

TEST_CASE("launcher: a rank that ignores SIGTERM is killed when its grace is over, and is still not blamed") {
  const scratch directory;
  const outcome result =
      run_tool(run_words(2, {"--settle", "0", "--grace", "0.2"},
                         {"0:ignore=15", "0:touch=" + (directory / "deaf"), "0:hang",
                          "await=" + (directory / "deaf"), "exit=3"}));
  CHECK(result.code == 3);
  CHECK(contains(result.err, "| stopped: rank 0: SIGKILL (Killed)\n"));
}

TEST_CASE("launcher: a stubborn rank gets SIGTERM, then SIGKILL") {
  running_tool running(run_words(2, {"--grace", "0.2"}, {"ignore=15", "out=deaf", "hang"}));
  running.wait_for("[0] deaf");
  running.wait_for("[1] deaf");
  running.send(SIGTERM);
  const outcome result = running.finish();
  CHECK(result.code == 128 + SIGTERM);
  CHECK(contains(result.err, "cohort run: sending SIGTERM to ranks 0, 1; SIGKILL follows after 0.2 s"));
  CHECK(contains(result.err, "cohort run: sending SIGKILL to ranks 0, 1\n"));
}

TEST_CASE("launcher: a stopped rank is ended, gently if it can be") {
  const auto end_stopped = [](const words& options, const words& actions) {
    running_tool running(run_words(1, options, actions + words{"ids", "signal=19", "hang"}));
    running.wait_for("[0] pid ");
    const int pid = number_after(running.out(), "pid ");
    REQUIRE(eventually([&] { return state_of(pid) == 'T'; }));
    running.send(SIGTERM);
    const outcome result = running.finish();
    CHECK(is_gone(pid));
    CHECK(result.code == 128 + SIGTERM);
    return result;
  };
  CHECK_FALSE(contains(end_stopped(never_kill, {}).err, "SIGKILL to"));
  CHECK(contains(end_stopped({"--grace", "0.2"}, {"ignore=15"}).err, "sending SIGKILL to rank 0\n"));
}

TEST_CASE("launcher: --timeout tells what each rank does, ends all, and gives 124") {
  const outcome result = run_tool(run_words(
      3, words{"--timeout", "4"} + never_kill, {"0:exit=0", "1:joined", "1:out=alive", "2:signal=19", "hang"}));
  CHECK(result.code == 124);
  CHECK(contains(result.err, "cohort run: not finished after 4 s (--timeout); the ranks:\n"));
  CHECK(contains(line_with(result.err, "  rank 0  pid "), "exit code 0, has not joined, no output"));
  CHECK(contains(line_with(result.err, "  rank 1  pid "), "sleeping, joined, last output "));
  CHECK(contains(line_with(result.err, "  rank 2  pid "), "stopped by a signal, has not joined, no output"));
}

TEST_CASE("launcher: a run that ends in time is not disturbed by --timeout") {
  CHECK(run_tool(run_words(2, {"--timeout", "600"}, {"out=x"})).code == 0);
}

TEST_CASE("launcher: a signal to the tool is passed on, and is its exit code") {
  for (const int number_sent : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    running_tool running(run_words(2, never_kill, {"exit_42_on=" + number(number_sent), "out=up", "hang"}));
    running.wait_for("[0] up");
    running.wait_for("[1] up");
    running.send(number_sent);
    const outcome result = running.finish();
    CHECK(result.code == 128 + number_sent);
    CHECK_FALSE(contains(result.err, "root cause"));
  }
}

TEST_CASE("launcher: the second Ctrl-C kills at once") {
  running_tool running(run_words(2, never_kill, {"report=2", "ignore=15", "out=up", "hang"}));
  running.wait_for("[0] up");
  running.wait_for("[1] up");
  running.send(SIGINT);
  running.wait_for("[0] got 02");
  running.wait_for("[1] got 02");
  running.send(SIGINT);
  const outcome result = running.finish();
  CHECK(result.code == 130);
  CHECK(contains(result.err, "cohort run: sending SIGKILL to ranks 0, 1\n"));
}

TEST_CASE("launcher: Ctrl-C after a failure cuts the waiting short, and the failure remains the exit code") {
  running_tool running(run_words(2, never_settle + never_kill, {"0:ignore=2", "0:ignore=15", "0:out=up", "0:hang",
                                                                "1:exit=6"}));
  running.wait_for("[0] up");
  running.wait_for("rank 1 failed");
  running.send(SIGINT);
  running.wait_for("sending SIGINT to rank 0;");
  running.send(SIGINT);
  CHECK(running.finish().code == 6);
}

TEST_CASE("launcher: a second SIGTERM is passed on, and does not kill") {
  running_tool running(run_words(1, never_kill, {"report=15", "out=up", "hang"}));
  running.wait_for("[0] up");
  running.send(SIGTERM);
  running.wait_for("got 15");
  running.send(SIGTERM);
  running.wait_for("got 15\n[0] got 15");
  running.send(SIGINT);
  CHECK(running.finish().code == 143);
}

TEST_CASE("launcher: SIGUSR1 and SIGUSR2 reach every rank and end nothing") {
  const scratch directory;
  running_tool running(run_words(2, {}, {"report=10", "report=12", "out=up", "await=" + (directory / "end")}));
  for (const char* rank : {"0", "1"}) running.wait_for("[" + std::string(rank) + "] up");
  for (const auto& [sent, shown] : {std::pair{SIGUSR1, "got 10"}, std::pair{SIGUSR2, "got 12"}}) {
    running.send(sent);
    for (const char* rank : {"0", "1"}) running.wait_for("[" + std::string(rank) + "] " + shown);
  }
  std::ofstream(directory / "end").put('\n');
  CHECK(running.finish().code == 0);
}

TEST_CASE("launcher: signals that were ignored when it started stay ignored, as nohup wants it") {
  const scratch directory;
  setup how;
  how.before_start = [] { ::signal(SIGHUP, SIG_IGN); };
  running_tool running(run_words(1, {}, {"out=up", "await=" + (directory / "end"), "signal=1", "out=survived"}), how);
  running.wait_for("[0] up");
  running.send(SIGHUP);
  std::ofstream(directory / "end").put('\n');
  const outcome result = running.finish();
  CHECK(result.code == 0);
  CHECK(contains(result.out, "survived"));
}

TEST_CASE("launcher: a program that cannot be started is one clear line") {
  const outcome missing = run_tool({"run", "-n", "3", "./nope"});
  CHECK(missing.code == 127);
  CHECK(missing.err == "cohort run: cannot start './nope': No such file or directory\n");
  CHECK(run_tool({"run", "-n", "2", "no-such-program-anywhere"}).code == 127);

  const scratch directory;
  std::ofstream(directory / "data").put('\n');
  const outcome data = run_tool({"run", "-n", "2", directory / "data"});
  CHECK(data.code == 126);
  CHECK(data.err == "cohort run: cannot start '" + (directory / "data") + "': Permission denied\n");
  CHECK(run_tool({"run", "-n", "2", directory.path()}).code == 126);

  std::ofstream(directory / "my-script") << "#!/no/such/interpreter\n";
  std::filesystem::permissions(directory / "my-script", std::filesystem::perms::owner_all);
  const outcome script = run_tool({"run", "-n", "2", directory / "my-script"});
  CHECK(script.code == 127);
  CHECK(contains(script.err, "(the file is there, but not the interpreter or loader that it names)"));

  setup inside;
  inside.before_start = [path = directory.path()] { [[maybe_unused]] const int moved = ::chdir(path.c_str()); };
  CHECK(contains(run_tool({"run", "-n", "2", "my-script"}, inside).err, "(not in PATH; did you mean ./my-script?)"));
}
