// SPDX-License-Identifier: BSL-1.0
// What `cohort run` shows on a terminal (a pseudo terminal here): colours, the status line, Ctrl-C; and what it does
// not show elsewhere.
#include "launcher_support.hpp"

using namespace launcher_test;

namespace {

const std::string escape = "\x1b";
const std::string erase = "\r" + escape + "[2K";

setup on_terminal(const variables& environment = {}) {
  setup how;
  how.how = wiring::terminal;
  how.environment = environment;
  return how;
}

// What somebody sees who looks at the terminal at the end: erased lines are gone, colours are not text.
words seen(const std::string& text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, erase.size(), erase) == 0) {
      shown.erase(shown.rfind('\n') + 1);
      i += erase.size() - 1;
    } else if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else if (text[i] != '\r') {
      shown += text[i];
    }
  }
  return lines_of(shown);
}

}  // namespace

TEST_CASE("launcher: on a terminal each rank has its colour") {
  const outcome result = run_tool(run_words(2, {}, {"out=hello"}), on_terminal());
  CHECK(result.code == 0);
  CHECK(contains(result.out, escape + "[36m[0]" + escape + "[0m hello"));
  CHECK(contains(result.out, escape + "[33m[1]" + escape + "[0m hello"));
}

TEST_CASE("launcher: NO_COLOR, a dumb terminal and a pipe get no colours") {
  for (const variables& environment : {variables{{"NO_COLOR", "1"}}, variables{{"TERM", "dumb"}}}) {
    const words actions{"out=hello", "1:exit=1"};
    const outcome result = run_tool(run_words(2, {"--status", "off"}, actions), on_terminal(environment));
    CHECK(contains(result.out, "[1] hello"));
    CHECK_FALSE(contains(result.out, escape));
  }
  CHECK(contains(run_tool(run_words(1, {}, {"out=x"}), on_terminal({{"NO_COLOR", ""}})).out, escape + "[36m"));
  const outcome piped = run_tool(run_words(2, {}, {"out=hello", "joined", "1:exit=1"}));
  CHECK_FALSE(contains(piped.out + piped.err, escape));
}

TEST_CASE("launcher: the status line tells who has joined, and is gone afterwards") {
  const scratch directory;
  const words actions{"0,2:joined", "await=" + (directory / "more"), "1,3:joined", "await=" + (directory / "end"),
                      "out=bye"};
  running_tool running(run_words(4, {}, actions), on_terminal());
  running.wait_for("cohort run: 0/4 joined, waiting for 0-3");
  running.wait_for("cohort run: 2/4 joined, waiting for 1, 3");
  std::ofstream(directory / "more").put('\n');
  running.wait_for("cohort run: 3/4 joined, waiting for ");
  std::ofstream(directory / "end").put('\n');
  const outcome result = running.finish();
  CHECK(result.code == 0);
  words lines = seen(result.out);
  CHECK(lines.size() == 4);
  for (const std::string& line : lines) CHECK(line.substr(line.find(']')) == "] bye");
}

TEST_CASE("launcher: output stays whole above the status line") {
  running_tool running(run_words(2, {}, {"out=one", "err=two", "joined", "out=three"}), on_terminal());
  const outcome result = running.finish();
  words lines = seen(result.out);
  CHECK(lines.size() == 6);
  for (const std::string& line : lines) CHECK(line.rfind("[", 0) == 0);
}

TEST_CASE("launcher: a status line is never wider than the terminal") {
  const scratch directory;
  running_tool running(run_words(90, {}, {"0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46:joined",
                                          "await=" + (directory / "end")}),
                       on_terminal());
  running.wait_for("24/90 joined, waiting for 1, 3, 5");
  std::ofstream(directory / "end").put('\n');
  const std::string text = running.finish().out;
  for (std::size_t at = text.find("cohort run: "); at != std::string::npos; at = text.find("cohort run: ", at + 1)) {
    CHECK(text.find(erase, at) - at < 100);
  }
}

TEST_CASE("launcher: without a terminal there is no status line unless it is asked for") {
  const words actions{"joined"};
  CHECK(run_tool(run_words(2, {}, actions)).err == "");
  CHECK(run_tool(run_words(2, {"--status", "off"}, actions)).err == "");
  const words all{"joined", "out=x"};
  const outcome off = run_tool(run_words(2, {"--status", "off"}, all), on_terminal({{"NO_COLOR", "1"}}));
  CHECK_FALSE(contains(off.out, "joined"));
  CHECK_FALSE(contains(off.out, escape));
}

TEST_CASE("launcher: --status plain prints a line each time") {
  const scratch directory;
  const words actions{"1:joined", "await=" + (directory / "more"), "0:joined", "await=" + (directory / "end")};
  running_tool running(run_words(2, {"--status", "plain"}, actions));
  running.wait_for("cohort run: 1/2 joined, waiting for 0\n");
  std::ofstream(directory / "more").put('\n');
  running.wait_for("cohort run: 2/2 joined\n");
  std::ofstream(directory / "end").put('\n');
  CHECK(lines_of(running.finish().err).size() == 2);
}

TEST_CASE("launcher: garbage in the status pipe is ignored, and a true report after it counts") {
  const scratch directory;
  running_tool running(run_words(3, {"--status", "plain"},
                                 {"0:status=joined 1 3", "0:status=joined 0 4", "0:status=joined", "0:status=left 0 3",
                                  "0:status=joined 0 3 ", "1:garbage=1000000", "1:status=", "1:joined", "1:joined",
                                  "2:garbage=5", "2:joined", "0,1,2:touch=" + (directory / "written"),
                                  "0:out=reported", "2:out=reported", "await=" + (directory / "end")}));
  running.wait_for("cohort run: 1/3 joined, waiting for 0, 2\n");
  running.wait_for("[0] reported");
  running.wait_for("[2] reported");
  std::ofstream(directory / "end").put('\n');
  const outcome result = running.finish();
  CHECK(result.code == 0);
  CHECK(line_with(result.err, "2/3 joined") == "");
}

TEST_CASE("launcher: a rank that closes its status pipe, or fills it, disturbs nobody") {
  const outcome result = run_tool(run_words(2, {}, {"0:garbage=10000000", "out=done"}));
  CHECK(result.code == 0);
  CHECK(lines_of(result.out).size() == 2);
  const words close_it{"/bin/sh", "-c", "eval \"exec ${COHORT_STATUS_FD%%:*}>&-\"; echo x"};
  const outcome closed = run_tool(words{"run", "-n", "2", "--"} + close_it);
  CHECK(closed.code == 0);
  CHECK(lines_of(closed.out).size() == 2);
}

TEST_CASE("launcher: a rank tells its status to the pipe, and to nothing that has taken its number") {
  const std::string program = path_from("COHORT_EXAMPLES_DIR") + "/04_all_reduce";
  const outcome plain = run_tool({"run", "-n", "2", "--status", "plain", "--", program});
  CHECK_MESSAGE(plain.code == 0, plain.err);
  CHECK(contains(plain.err, "cohort run: 2/2 joined\n"));
  // As below a parent that closes what it does not know, and leaves the variable: then a file or a pipe gets the number.
  const scratch directory;
  const std::string file = directory / "data.";
  const std::string to_file = "eval \"exec ${COHORT_STATUS_FD%%:*}>" + file + "$RANK\"; exec " + program;
  const std::string to_pipe = "eval \"exec ${COHORT_STATUS_FD%%:*}>&1\"; exec " + program;
  for (const std::string& script : {to_file, to_pipe}) {
    const outcome taken = run_tool({"run", "-n", "2", "--status", "plain", "--", "sh", "-c", script});
    CHECK_MESSAGE(taken.code == 0, taken.err);
    CHECK_FALSE(contains(taken.out + taken.err, "joined"));
  }
  for (const char* rank : {"0", "1"}) {
    CHECK(std::filesystem::exists(file + rank));
    CHECK(read_file(file + rank) == "");
  }
}

TEST_CASE("launcher: Ctrl-C on the terminal reaches each rank once, and ends the run with 130") {
  running_tool running(run_words(2, {"--grace", "600", "--status", "off"}, {"report=2", "out=up", "hang"}),
                       on_terminal({{"NO_COLOR", "1"}}));
  running.wait_for("[0] up");
  running.wait_for("[1] up");
  running.type("\x03");
  running.wait_for("[0] got 02");
  running.wait_for("[1] got 02");
  running.type("\x03");
  const outcome result = running.finish();
  CHECK(result.code == 130);
  CHECK(result.out.find("[0] got 02") == result.out.rfind("[0] got 02"));
  CHECK(contains(result.out, "sending SIGKILL to ranks 0, 1"));
}

TEST_CASE("launcher: on a terminal no rank reads what is typed") {
  const outcome result = run_tool(run_words(2, {"--status", "off"}, {"cat"}), on_terminal({{"NO_COLOR", "1"}}));
  CHECK(contains(result.out, "[0] end of input"));
  CHECK(contains(result.out, "[1] end of input"));
}

TEST_CASE("launcher: the report of a failure is in colour on a terminal, its text the same") {
  const outcome result = run_tool(run_words(1, {"--status", "off"}, {"err=woe", "exit=3"}), on_terminal());
  CHECK(result.code == 3);
  CHECK(contains(result.out, escape + "[1;31m+-- cohort run: rank 0 failed first (root cause) ---"));
  CHECK(contains(result.out, "|   woe"));
}
