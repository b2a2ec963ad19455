// SPDX-License-Identifier: BSL-1.0
// What a rank finds when it starts: its variables, its descriptors, its standard input.
#include "launcher_support.hpp"

#include <algorithm>
#include <set>

using namespace launcher_test;

namespace {

// "NAME=value" lines of one rank, as it printed them itself.
std::string value_of(const outcome& result, int rank, const std::string& name) {
  const std::string start = "[" + std::to_string(rank) + "] " + name + "=";
  for (const std::string& line : lines_of(result.out)) {
    if (line.rfind(start, 0) == 0) return line.substr(start.size());
  }
  return "(not printed)";
}

words print_all(const words& names) {
  words actions;
  for (const std::string& name : names) actions.push_back("env=" + name);
  return actions;
}

}  // namespace

TEST_CASE("launcher: every rank gets torchrun's variables and cohort's own") {
  const words names{"RANK",           "LOCAL_RANK",       "GROUP_RANK",      "ROLE_RANK",
                    "WORLD_SIZE",     "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR",
                    "MASTER_PORT",    "COHORT_RUN_ID",    "COHORT_SECRET",   "COHORT_RESTART_COUNT",
                    "OMP_NUM_THREADS", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                    "TORCHELASTIC_MAX_RESTARTS", "COHORT_STATUS_FD"};
  const outcome result = run_tool(run_words(3, {}, print_all(names)));
  CHECK(result.code == 0);
  CHECK(result.err == "");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string own = std::to_string(rank);
    for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) CHECK(value_of(result, rank, name) == own);
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"}) {
      CHECK(value_of(result, rank, name) == "3");
    }
    for (const char* name :
         {"GROUP_RANK", "COHORT_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"}) {
      CHECK(value_of(result, rank, name) == "0");
    }
    CHECK(value_of(result, rank, "MASTER_ADDR") == "127.0.0.1");
    CHECK(value_of(result, rank, "OMP_NUM_THREADS") == "1");
    CHECK(value_of(result, rank, "TORCHELASTIC_RUN_ID") == value_of(result, rank, "COHORT_RUN_ID"));
    for (const char* shared : {"MASTER_PORT", "COHORT_RUN_ID", "COHORT_SECRET"}) {
      CHECK(value_of(result, rank, shared) == value_of(result, 0, shared));
    }
  }
  const std::string hexadecimal = "0123456789abcdef";
  const std::string secret = value_of(result, 0, "COHORT_SECRET");
  const std::string run_id = value_of(result, 0, "COHORT_RUN_ID");
  CHECK(secret.size() == 64);
  CHECK(run_id.size() == 16);
  CHECK((secret + run_id).find_first_not_of(hexadecimal) == std::string::npos);
}

TEST_CASE("launcher: no two runs share a secret or a run id") {
  std::set<std::string> seen;
  for (int i = 0; i < 4; ++i) {
    const outcome result = run_tool(run_words(1, {}, print_all({"COHORT_SECRET", "COHORT_RUN_ID"})));
    seen.insert(value_of(result, 0, "COHORT_SECRET"));
    seen.insert(value_of(result, 0, "COHORT_RUN_ID"));
  }
  CHECK(seen.size() == 8);
}

TEST_CASE("launcher: OMP_NUM_THREADS is left alone when it is set, and for one rank") {
  const words print = print_all({"OMP_NUM_THREADS"});
  setup set;
  set.environment = {{"OMP_NUM_THREADS", "7"}};
  CHECK(value_of(run_tool(run_words(2, {}, print), set), 1, "OMP_NUM_THREADS") == "7");
  CHECK(value_of(run_tool(run_words(1, {}, print)), 0, "OMP_NUM_THREADS") == "(unset)");
  CHECK(value_of(run_tool(run_words(2, {"-x", "OMP_NUM_THREADS=3"}, print)), 1, "OMP_NUM_THREADS") == "3");
}

TEST_CASE("launcher: variables of an outer launcher do not reach the ranks, others do") {
  setup how;
  how.environment = {{"RANK", "9"},        {"WORLD_SIZE", "99"}, {"MASTER_PORT", "1"}, {"COHORT_RANK", "9"},
                     {"COHORT_SECRET", ""}, {"TORCHELASTIC_USE_AGENT_STORE", "True"},  {"COLOUR", "green"}};
  const outcome result =
      run_tool(run_words(2, {}, print_all({"RANK", "WORLD_SIZE", "MASTER_PORT", "COHORT_RANK", "COHORT_SECRET",
                                           "TORCHELASTIC_USE_AGENT_STORE", "COLOUR"})),
               how);
  CHECK(value_of(result, 1, "RANK") == "1");
  CHECK(value_of(result, 1, "WORLD_SIZE") == "2");
  CHECK(value_of(result, 1, "MASTER_PORT") != "1");
  CHECK(value_of(result, 1, "COHORT_RANK") == "(unset)");
  CHECK(value_of(result, 1, "COHORT_SECRET").size() == 64);
  CHECK(value_of(result, 1, "TORCHELASTIC_USE_AGENT_STORE") == "(unset)");
  CHECK(value_of(result, 1, "COLOUR") == "green");
}

TEST_CASE("launcher: -x sets a variable, exports one, and wins over what cohort run would set") {
  setup how;
  how.environment = {{"SHAPE", "round"}};
  const words options{"-x", "COLOUR=deep blue", "-x", "SHAPE", "-xEMPTY=", "-x", "GROUP_RANK=5"};
  const outcome result = run_tool(run_words(2, options, print_all({"COLOUR", "SHAPE", "EMPTY", "GROUP_RANK"})), how);
  for (const int rank : {0, 1}) {
    CHECK(value_of(result, rank, "COLOUR") == "deep blue");
    CHECK(value_of(result, rank, "SHAPE") == "round");
    CHECK(value_of(result, rank, "EMPTY") == "");
    CHECK(value_of(result, rank, "GROUP_RANK") == "5");
  }
}

TEST_CASE("launcher: --master-addr and --master-port are passed on") {
  const outcome result = run_tool(run_words(2, {"--master-addr", "node7", "--master-port", "31000"},
                                            print_all({"MASTER_ADDR", "MASTER_PORT"})));
  CHECK(value_of(result, 1, "MASTER_ADDR") == "node7");
  CHECK(value_of(result, 1, "MASTER_PORT") == "31000");
}

TEST_CASE("launcher: rank 0 can listen at the port at once, without SO_REUSEADDR") {
  for (int i = 0; i < 5; ++i) {
    const outcome result = run_tool(run_words(2, {}, {"0:listen"}));
    CHECK(result.out == "[0] listening\n");
  }
}

TEST_CASE("launcher: two runs at the same time have different ports") {
  const scratch directory;
  const words actions{"env=MASTER_PORT", "listen", "touch=" + (directory / "one"), "await=" + (directory / "end")};
  running_tool first(run_words(1, {}, actions));
  first.wait_for("listening");
  const outcome second = run_tool(run_words(1, {}, {"env=MASTER_PORT", "listen"}));
  CHECK(contains(second.out, "[0] listening\n"));
  std::ofstream(directory / "end").put('\n');
  const outcome result = first.finish();
  CHECK(value_of(result, 0, "MASTER_PORT") != value_of(second, 0, "MASTER_PORT"));
}

TEST_CASE("launcher: a rank has its standard streams and the status pipe, and no other descriptor") {
  const outcome result = run_tool(run_words(3, {}, {"env=COHORT_STATUS_FD", "descriptors"}));
  for (int rank = 0; rank < 3; ++rank) {
    const std::string pipe = value_of(result, rank, "COHORT_STATUS_FD");  // number:device:inode
    CHECK(std::count(pipe.begin(), pipe.end(), ':') == 2);
    const std::string status = pipe.substr(0, pipe.find(':'));
    CHECK(contains(result.out, "[" + std::to_string(rank) + "] open: 0 1 2 " + status + "\n"));
  }
}

TEST_CASE("launcher: a rank has the limit of open files that the user has") {
  setup how;
  how.before_start = [] {
    const rlimit limit{77, 88};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  const outcome result = run_tool({"run", "-n", "1", "--", "/bin/sh", "-c", "ulimit -Sn; ulimit -Hn"}, how);
  CHECK(result.out == "[0] 77\n[0] 88\n");
}

TEST_CASE("launcher: each rank leads a process group of its own and is a child of the tool") {
  running_tool running(run_words(2, {}, {"ids"}));
  const outcome result = running.finish();
  for (const int rank : {0, 1}) {
    const std::string line = line_with(result.out, "[" + std::to_string(rank) + "] pid ");
    CHECK(number_after(line, "parent ") == running.pid());
    CHECK(number_after(line, "group ") == number_after(line, "pid "));
  }
}

TEST_CASE("launcher: rank 0 reads the standard input of the tool, the others read nothing") {
  int input[2];
  REQUIRE(::pipe2(input, O_CLOEXEC) == 0);
  const std::string text = "three\nlines\nhere\n";
  REQUIRE(::write(input[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(input[1]);
  setup how;
  how.input = input[0];
  const outcome result = run_tool(run_words(2, {"--tag", "rank"}, {"cat"}), how);
  ::close(input[0]);
  words of_first;  // the line of the other may stand between any two of these
  for (const std::string& line : lines_of(result.out)) {
    if (line.starts_with("[0] ")) of_first.push_back(line);
  }
  CHECK(of_first == words{"[0] three", "[0] lines", "[0] here", "[0] end of input"});
  CHECK(contains(result.out, "[1] end of input\n"));
  CHECK_FALSE(contains(result.out, "[1] three"));
}

TEST_CASE("launcher: a rank has default signal handling, whatever the tool does for itself") {
  // SIGPIPE ends a rank as it would without the launcher: the tool itself ignores it.
  const outcome result = run_tool(run_words(1, {}, {"signal=" + std::to_string(SIGPIPE)}));
  CHECK(result.code == 128 + SIGPIPE);
}
