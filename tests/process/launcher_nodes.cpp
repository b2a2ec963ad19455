// SPDX-License-Identifier: BSL-1.0
// `cohort run` once on each of several nodes, and again after a failure. The nodes are this machine twice, and two
// network namespaces with a cable between them where this user may make such.
#include "launcher_networks.hpp"
#include "launcher_support.hpp"

using namespace launcher_test;

namespace {

const std::string secret = "0123456789abcdef0123456789abcdef";

std::string example(const std::string& name) { return path_from("COHORT_EXAMPLES_DIR") + "/" + name; }

words on_node(int rank, const std::string& address, const std::string& port, const words& rest) {
  return words{
             "run",           "-n", "2", "--nnodes", "2", "--node-rank", std::to_string(rank), "--master-addr", address,
             "--master-port", port} +
         rest;
}

}  // namespace

TEST_CASE("launcher: on several nodes ranks are counted through, and what nodes must share comes from outside") {
  setup how;
  how.environment = {{"COHORT_SECRET", secret}};
  const words actions{"--",
                      rank_program(),
                      "env=RANK",
                      "env=LOCAL_RANK",
                      "env=GROUP_RANK",
                      "env=WORLD_SIZE",
                      "env=LOCAL_WORLD_SIZE",
                      "env=GROUP_WORLD_SIZE",
                      "env=COHORT_SECRET",
                      "env=COHORT_RUN_ID"};
  const outcome result = run_tool(on_node(1, "10.0.0.1", "4000", words{"--rdzv-id", "job-7"} + actions), how);
  CHECK(result.code == 0);
  for (const char* expected :
       {"[2] RANK=2", "[3] RANK=3", "[2] LOCAL_RANK=0", "[3] LOCAL_RANK=1", "[2] GROUP_RANK=1", "[2] WORLD_SIZE=4",
        "[3] LOCAL_WORLD_SIZE=2", "[3] GROUP_WORLD_SIZE=2", "[2] COHORT_RUN_ID=job-7"}) {
    CHECK_MESSAGE(!line_with(result.out, expected).empty(), expected << " in " << result.out);
  }
  CHECK(line_with(result.out, "[2] COHORT_SECRET=") == "[2] COHORT_SECRET=" + secret);
}

TEST_CASE("launcher: nodes by torchrun's variables") {
  setup how;
  how.environment = {{"COHORT_SECRET", secret},       {"PET_NNODES", "3"},         {"PET_NODE_RANK", "2"},
                     {"PET_MASTER_ADDR", "10.0.0.1"}, {"PET_MASTER_PORT", "4000"}, {"PET_RDZV_ID", "from-torch"}};
  const outcome result =
      run_tool(run_words(1, {}, {"env=RANK", "env=WORLD_SIZE", "env=MASTER_PORT", "env=COHORT_RUN_ID"}), how);
  CHECK(result.code == 0);
  for (const char* expected : {"RANK=2", "WORLD_SIZE=3", "MASTER_PORT=4000", "COHORT_RUN_ID=from-torch"}) {
    CHECK_MESSAGE(contains(result.out, expected), expected << " in " << result.out);
  }
}

TEST_CASE("launcher: what is missing for several nodes is said") {
  const auto refusal = [](const words& options) {
    return run_tool(words{"run", "-n", "2"} + options + words{"--", "true"});
  };
  const outcome no_rank = refusal({"--nnodes", "2", "--master-addr", "h"});
  CHECK(no_rank.code == 2);
  CHECK(contains(no_rank.err, "--node-rank is missing: which of the 2 nodes is this, 0..1?"));
  CHECK(contains(refusal({"--nnodes", "2", "--node-rank", "2", "--master-addr", "h"}).err,
                 "--node-rank: '2' is not a number, expected 0..1"));
  CHECK(contains(refusal({"--nnodes", "2", "--node-rank", "1"}).err, "--master-addr is missing"));
  CHECK(contains(refusal({"--nnodes", "1:4"}).err, "a world does not grow or shrink"));
  CHECK(contains(refusal({"--rdzv-id", "../x"}).err, "would name another folder"));
  setup bare;
  bare.unset = {"COHORT_SECRET", "COHORT_SECRET_FILE", "COHORT_INSECURE_NETWORK"};
  const outcome no_secret = run_tool(on_node(0, "127.0.0.1", "4000", {"--", "true"}), bare);
  CHECK(no_secret.code != 0);
  CHECK(contains(no_secret.err, "several nodes need one secret"));
}

TEST_CASE("launcher: a world over two nodes, which are one machine twice") {
  setup how;
  how.environment = {{"COHORT_SECRET", secret}};
  const std::string port = std::to_string(24000 + ::getpid() % 4000);
  running_tool second(on_node(1, "127.0.0.1", port, {"--", example("04_all_reduce")}), how);
  const outcome first = run_tool(on_node(0, "127.0.0.1", port, {"--", example("04_all_reduce")}), how);
  const outcome other = second.finish();
  CHECK_MESSAGE(first.code == 0, first.err);
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK(contains(first.out, "[1] rank 1: average rank 1.5"));
  CHECK(contains(other.out, "[3] rank 3: average rank 1.5"));
}

TEST_CASE("launcher: a world over two networks") {
  const two_networks networks;
  if (!networks.made()) {
    MESSAGE("skipped: no network namespaces can be made here (needs iproute2 and the right to)");
    return;
  }
  setup how[] = {networks.in(0), networks.in(1)};
  for (setup& each : how) each.environment = {{"COHORT_SECRET", secret}};
  running_tool second(on_node(1, "10.213.0.1", "29500", {"--", example("04_all_reduce")}), how[1]);
  const outcome first = run_tool(on_node(0, "10.213.0.1", "29500", {"--", example("04_all_reduce")}), how[0]);
  const outcome other = second.finish();
  CHECK_MESSAGE(first.code == 0, first.err);
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK(contains(other.out, "[3] rank 3: average rank 1.5"));
  // With another secret nobody gets in, and both sides end.
  how[1].environment = {{"COHORT_SECRET", "another secret of another job"}, {"COHORT_JOIN_TIMEOUT", "3"}};
  how[0].environment.emplace_back("COHORT_JOIN_TIMEOUT", "3");
  running_tool stranger(on_node(1, "10.213.0.1", "29501", {"--", example("04_all_reduce")}), how[1]);
  CHECK(run_tool(on_node(0, "10.213.0.1", "29501", {"--", example("04_all_reduce")}), how[0]).code == 1);
  CHECK(stranger.finish().code == 1);
}

TEST_CASE("launcher: --timeout on one node ends the job on all of them") {
  setup how;
  how.environment = {{"COHORT_SECRET", secret}};
  const std::string port = std::to_string(24000 + (::getpid() + 1) % 4000);
  const words forever{"--", example("data_parallel_training"), "--data", "digits", "--epochs", "1000000"};
  running_tool second(on_node(1, "127.0.0.1", port, forever), how);
  const outcome first = run_tool(on_node(0, "127.0.0.1", port, words{"--timeout", "4"} + forever), how);
  const outcome other = second.finish();
  CHECK(first.code == 124);
  CHECK(contains(first.err, "timeout"));
  CHECK(other.code == 1);
  CHECK_MESSAGE(contains(other.err, "rank 2 on "), other.err);  // its ranks have failed by themselves, and say why
}

TEST_CASE("launcher: after a failure all ranks are started again") {
  const scratch files;
  const std::string script =
      "echo attempt $COHORT_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
      "[ $RANK = 1 ] && [ $COHORT_RESTART_COUNT -lt 2 ] && exit 5; exit 0";
  const auto restarted = [&](const char* most) {
    return run_tool({"run", "-n", "2", "--max-restarts", most, "--settle", "10", "--log-dir", files.path(), "--rdzv-id",
                     std::string("restart") + most, "--", "sh", "-c", script});
  };
  const outcome good = restarted("3");
  CHECK_MESSAGE(good.code == 0, good.err);
  for (const char* each : {"[0] attempt 0 of 3", "[1] attempt 1 of 3", "[0] attempt 2 of 3"})
    CHECK(contains(good.out, each));
  CHECK_FALSE(contains(good.out, "attempt 3"));
  CHECK(contains(good.err, "starting all ranks again (restart 2 of 3)"));
  CHECK(read_file(files / "restart3/attempt_2/1/stdout.log") == "attempt 2 of 3\n");
  const outcome bad = restarted("1");
  CHECK(bad.code == 5);
  CHECK(contains(bad.out, "attempt 1 of 1"));
  CHECK_FALSE(contains(bad.out, "attempt 2"));
}

TEST_CASE("launcher: Ctrl-C between two attempts ends the run") {
  running_tool tool({"run", "-n", "1", "--max-restarts", "5", "--restart-delay", "600", "--", "false"});
  tool.wait_for("failed first");
  tool.send(SIGINT);
  CHECK(tool.finish().code == 130);
}

TEST_CASE("launcher: told to end after a failure, it starts nothing again, and the signal is its exit code") {
  // The second attempt would end well, and at once.
  const std::string script =
      "[ $COHORT_RESTART_COUNT = 0 ] || exit 0; [ $RANK = 1 ] && exit 6; echo up; exec sleep 600";
  for (const int told : {SIGINT, SIGTERM}) {
    running_tool running(words{"run", "-n", "2", "--max-restarts", "3", "--settle", "600", "--", "sh", "-c", script});
    running.wait_for("[0] up");
    running.wait_for("rank 1 failed");
    running.send(told);
    const outcome result = running.finish();
    CHECK(result.code == 128 + told);
    CHECK(contains(result.err, "rank 1 failed first (root cause)"));
    CHECK_FALSE(contains(result.err, "starting all ranks again"));
  }
}

TEST_CASE("launcher: told to end while nobody reads what a failed attempt has printed, it starts nothing again") {
  int output[2];  // read by nobody, and too small for what is written
  REQUIRE(::pipe2(output, O_CLOEXEC) == 0);
  setup how;
  how.output = output[1];
  const std::string script = "[ $COHORT_RESTART_COUNT = 0 ] || exit 0; head -c 200000 /dev/zero | tr '\\0' x; exit 6";
  running_tool running({"run", "-n", "1", "--max-restarts", "3", "--", "sh", "-c", script}, how);
  running.wait_for("failed first");
  running.send(SIGTERM);
  const outcome result = running.finish();
  for (const int end : output) ::close(end);
  CHECK(result.code == 128 + SIGTERM);
  CHECK_FALSE(contains(result.err, "starting all ranks again"));
}

TEST_CASE("launcher: --timeout is for all attempts together, and for what is between them") {
  // 21 attempts would take more than 6 seconds.
  const outcome many =
      run_tool({"run", "-n", "1", "--timeout", "3", "--max-restarts", "20", "--", "sh", "-c", "sleep 0.3; exit 3"});
  CHECK(many.code == 124);
  CHECK(contains(many.err, "--timeout"));  // during an attempt, or by chance just between two
  CHECK(contains(many.err, "starting all ranks again (restart 1 of 20)"));
  const outcome between =
      run_tool({"run", "-n", "1", "--timeout", "60", "--max-restarts", "1", "--restart-delay", "600", "--", "false"});
  CHECK(between.code == 124);
  CHECK(contains(between.err, "--timeout (60 s) is over before another attempt can start; not starting again\n"));
}

TEST_CASE("launcher: --timeout ends ranks that are still settling after a failure") {
  const words slow{"--settle", "600", "--grace", "600"};
  const words actions{"1:exit=6", "hang"};
  const outcome last = run_tool(run_words(2, words{"--timeout", "3"} + slow, actions));
  CHECK(last.code == 6);
  CHECK(contains(last.err, "not finished after 3 s (--timeout); the ranks:\n"));
  CHECK(contains(last.err, "sending SIGTERM to rank 0;"));
  const outcome first = run_tool(run_words(2, words{"--timeout", "1", "--max-restarts", "3"} + slow, actions));
  CHECK(first.code == 124);
  CHECK_FALSE(contains(first.err, "starting all ranks again"));
}

TEST_CASE("launcher: what goes to files only, and what to both") {
  const scratch files;
  const outcome result = run_tool({"run", "-n", "2", "-r", "0:1", "-t", "1:2", "--log-dir", files.path(), "--rdzv-id",
                                   "r", "--", "sh", "-c", "echo out; echo err >&2"});
  CHECK(result.code == 0);
  CHECK(result.out == "[1] out\n");
  CHECK(contains(result.err, "[0] err"));
  CHECK(contains(result.err, "[1] err"));
  CHECK(read_file(files / "r/0/stdout.log") == "out\n");
  CHECK(read_file(files / "r/1/stderr.log") == "err\n");
  CHECK_FALSE(std::filesystem::exists(files / "r/0/stderr.log"));
  CHECK_FALSE(std::filesystem::exists(files / "r/1/stdout.log"));
  // What is asked for by both is printed.
  const outcome both = run_tool({"run", "-n", "2", "-r", "3", "-t", "0:1", "--log-dir", files.path(), "--rdzv-id", "b",
                                 "--", "sh", "-c", "echo out; echo err >&2"});
  CHECK(both.out == "[0] out\n");
  CHECK_FALSE(contains(both.err, "] err"));
  for (const char* rank : {"0", "1"}) {
    CHECK(read_file(files / ("b/" + std::string(rank) + "/stdout.log")) == "out\n");
    CHECK(read_file(files / ("b/" + std::string(rank) + "/stderr.log")) == "err\n");
  }
  CHECK(contains(run_tool({"run", "-n", "2", "-r", "3", "--", "true"}).err, "--redirects and --tee need --log-dir"));
  CHECK(contains(run_tool({"run", "-n", "2", "-r", "2:1", "--log-dir", files.path(), "--", "true"}).err,
                 "'2:1' is not RANK:STREAMS with a rank of this node, 0..1"));
  CHECK(contains(run_tool({"run", "-n", "2", "-t", "4", "--log-dir", files.path(), "--", "true"}).err,
                 "'4' is not 0 (nothing)"));
}

TEST_CASE("launcher: --bind deals the processors out") {
  const outcome result =
      run_tool({"run", "-n", "2", "--bind", "core", "--", "sh", "-c", "grep Cpus_allowed_list /proc/self/status"});
  CHECK(result.code == 0);
  const std::string first = line_with(result.out, "[0] ");
  const std::string second = line_with(result.out, "[1] ");
  CHECK(contains(first, "Cpus_allowed_list:"));
  const bool one_processor = contains(run_tool({"run", "-n", "1", "--bind", "core", "--", "nproc"}).out, "[0] 1\n");
  CHECK((first.substr(4) != second.substr(4)) == !one_processor);
  CHECK(run_tool({"run", "-n", "2", "--bind", "numa", "--", "true"}).code == 0);
}

TEST_CASE("launcher: --signals says what is passed on") {
  running_tool tool({"run", "-n", "1", "--signals", "TERM,SIGINT", "--", "sh", "-c",
                     "trap 'exit 7' USR1; echo ready; sleep 60 & wait"});
  tool.wait_for("ready");
  tool.send(SIGUSR1);  // not among them: it does to the tool what it does by itself
  CHECK(tool.finish().code == 128 + SIGUSR1);
  CHECK(contains(run_tool({"run", "--signals", "KILL", "--", "true"}).err, "--signals: 'KILL' is not one of TERM"));
}

TEST_CASE("cohort env: which launcher it was") {
  setup how;
  how.environment = {
      {"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_NAMESPACE", "77"},      {"PMIX_RANK", "1"}};
  how.unset = {"RANK", "WORLD_SIZE", "COHORT_RANK", "COHORT_WORLD_SIZE"};
  const outcome text = run_tool({"env"}, how);
  CHECK(text.code == 0);
  CHECK(contains(line_with(text.out, "* Open MPI"), "taken     OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2"));
  CHECK(contains(line_with(text.out, "  PMIx"), "here too  PMIX_RANK=1"));
  CHECK(contains(text.out, "Open MPI: rank 1 of 2, on this host 1 of 2, meeting at 127.0.0.1 port "));
  const outcome json = run_tool({"env", "--json"}, how);
  CHECK(contains(json.out, "\"source\":\"Open MPI\",\"rank\":1,\"world_size\":2"));
  how.environment = {{"OMPI_COMM_WORLD_RANK", "1"}};
  const outcome half = run_tool({"env"}, how);
  CHECK(half.code == 1);
  CHECK(contains(half.out, "A rank could not start: OMPI_COMM_WORLD_RANK is set but OMPI_COMM_WORLD_SIZE is not"));
}
