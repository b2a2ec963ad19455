// SPDX-License-Identifier: BSL-1.0
// `cohort tune` and COHORT_TUNING: what is measured can be read, what rank 0 says holds for all, and `bench --explain`
// tells what follows from it.
#include "launcher_support.hpp"

#include <cohort/tuning.hpp>

#include <unistd.h>

#include <cstdio>

using namespace launcher_test;

namespace {

struct temporary_file {
  char path[32] = "/tmp/cohort_tune_XXXXXX";
  temporary_file() { ::close(::mkstemp(path)); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() { ::unlink(path); }
};

words explained(const std::string& operation, const std::string& bytes) {
  return {"bench", operation, "-n", "2", "-b", bytes, "-e", bytes, "--samples", "2", "--transport", "tcp", "--explain"};
}

void check_mistake(const words& arguments, const std::string& expected) {
  const outcome result = run_tool(words{"tune"} + arguments);
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "cohort tune: "), result.err);
  CHECK_MESSAGE(contains(result.err, expected), result.err);
}

}  // namespace

TEST_CASE("tune: measures, and what it writes is a tuning that the next world goes by") {
  const temporary_file file;
  const outcome tuned = run_tool({"tune", "-n", "2", "-o", file.path, "--table"});
  REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
  CHECK(contains(tuned.out, "recursive_doubling"));
  const cohort::tuning read = cohort::read_tuning(file.path);
  REQUIRE(read.costs.has_value());
  CHECK(read.costs->latency > 0);
  CHECK(read.costs->overhead > 0);
  CHECK(read.costs->overhead <= read.costs->latency);
  CHECK(read.costs->byte > 0);
  CHECK(read.costs->combine > 0);
  setup how;
  how.environment.emplace_back("COHORT_TUNING", file.path);
  const outcome shown = run_tool(explained("all_reduce", "64"), how);
  CHECK_MESSAGE(shown.code == 0, shown.err);
  CHECK(contains(shown.out, "# The table follows from this tuning: latency="));
  CHECK(contains(shown.out, "recursive_doubling: the tuning: recursive_doubling "));
}

TEST_CASE("tune: to standard output, under a launcher, too") {
  const outcome tuned = run_tool({"run", "-n", "3", "--tag", "none", "--", tool(), "tune"});
  REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
  CHECK(contains(tuned.out, "# What messages cost between 3 ranks"));
  CHECK(cohort::parse_tuning(tuned.out).costs.has_value());
}

TEST_CASE("tuning: what rank 0 was told holds for all, and COHORT_ALGORITHMS comes before it") {
  const std::string bench = tool() + " bench all_reduce -b 4096 -e 4096 --samples 2 --transport tcp --csv";
  const std::string only_rank_0 = "if [ $RANK = 0 ]; then export COHORT_TUNING=latency=1us,all_reduce=ring; fi; ";
  const outcome told = run_tool({"run", "-n", "3", "--tag", "none", "--", "sh", "-c", only_rank_0 + "exec " + bench});
  CHECK_MESSAGE(told.code == 0, told.err);
  CHECK(contains(told.out, ",ring\n"));
  setup how;
  how.environment.emplace_back("COHORT_ALGORITHMS", "all_reduce=circulant");
  const outcome both =
      run_tool({"run", "-n", "3", "--tag", "none", "--", "sh", "-c", only_rank_0 + "exec " + bench}, how);
  CHECK_MESSAGE(both.code == 0, both.err);
  CHECK(contains(both.out, ",circulant\n"));
}

TEST_CASE("bench --explain: why each algorithm was chosen") {
  const outcome table = run_tool(explained("all_reduce", "64"));
  CHECK(contains(table.out, "recursive_doubling: the table, from 0 bytes and 1 rank\n"));
  const outcome memory =
      run_tool({"bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--samples", "2", "--explain"});
  CHECK(contains(memory.out, "shared_memory: all ranks share memory\n"));
  setup how;
  how.environment.emplace_back("COHORT_ALGORITHMS", "all_reduce=ring");
  CHECK(contains(run_tool(explained("all_reduce", "64"), how).out, "ring: an override\n"));
  // Two ranks on each of two hosts.
  const std::string on_hosts =
      "COHORT_HOST_ID=host$((RANK / 2)) exec \"$0\" bench all_reduce -b 64 -e 64 --samples 2 --explain";
  const outcome hosts = run_tool({"run", "-n", "4", "--", "sh", "-c", on_hosts, tool()});
  CHECK_MESSAGE(contains(hosts.out, "hierarchical: several ranks on each of 2 hosts\n"), hosts.out << hosts.err);
}

TEST_CASE("tune: a mistake gets one answer that says what is expected") {
  check_mistake({"-n", "1"}, "-n: 1 is not a number of ranks, expected 2..4096");
  check_mistake({"--outptu", "x"}, "did you mean --output?");
  const outcome alone = run_tool({"run", "-n", "1", "--", tool(), "tune"});
  CHECK(alone.code != 0);
  CHECK_MESSAGE(contains(alone.err, "there is 1 rank, and no message to measure"), alone.err);
  const outcome lost = run_tool({"tune", "-n", "2", "-o", "/no/such/directory/file"});
  CHECK(lost.code != 0);
  CHECK_MESSAGE(contains(lost.err, "cannot write /no/such/directory/file: No such file or directory"), lost.err);
  setup how;
  how.environment.emplace_back("COHORT_TUNING", "latency=3");
  const outcome wrong = run_tool(explained("all_reduce", "64"), how);
  CHECK(wrong.code != 0);
  CHECK_MESSAGE(contains(wrong.err, "latency=3: expected a time from 0 to 1 s with its unit"), wrong.err);
}
