// SPDX-License-Identifier: BSL-1.0
// The command line of `cohort` and `cohort run`: what is understood, and what is said about mistakes.
#include "launcher_support.hpp"

#include <cohort/version.hpp>

#include <sched.h>

using namespace launcher_test;

namespace {

void check_mistake(const words& arguments, const std::string& expected, const setup& how = {}) {
  INFO("expected: " << expected);
  const outcome result = run_tool(arguments, how);
  CHECK(result.code == 2);
  CHECK(result.out == "");
  CHECK_MESSAGE(contains(result.err, expected), result.err);
  CHECK(contains(result.err, "--help"));
}

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  return CPU_COUNT(&set);
}

}  // namespace

static_assert(COHORT_VERSION_AT_LEAST(0, 1, 0));
static_assert(COHORT_VERSION_AT_LEAST(COHORT_VERSION_MAJOR, COHORT_VERSION_MINOR, COHORT_VERSION_PATCH));
static_assert(!COHORT_VERSION_AT_LEAST(COHORT_VERSION_MAJOR, COHORT_VERSION_MINOR, COHORT_VERSION_PATCH + 1));
static_assert(!COHORT_VERSION_AT_LEAST(COHORT_VERSION_MAJOR + 1, 0, 0));

TEST_CASE("launcher: the version is that of the headers") {
  const std::string expected = "cohort " + std::string(cohort::version_string) + "\n";
  CHECK(run_tool({"--version"}).out == expected);
  CHECK(run_tool({"version"}).out == expected);
  CHECK(run_tool({"version"}).code == 0);
}

TEST_CASE("launcher: help goes to stdout with 0, no arguments at all are a mistake") {
  const outcome help = run_tool({"--help"});
  CHECK(help.code == 0);
  CHECK(contains(help.out, "run "));
  const outcome of_run = run_tool({"run", "--help"});
  CHECK(of_run.code == 0);
  CHECK(contains(of_run.out, "Usage: cohort run [-n N] [options] [--] PROGRAM"));
  for (const char* option : {"--nproc", "--timeout", "--grace", "--settle", "--log-dir", "--ranks", "--dry-run"}) {
    CHECK(contains(of_run.out, option));
  }
  const outcome nothing = run_tool({});
  CHECK(nothing.code == 2);
  CHECK(contains(nothing.err, "Usage: cohort COMMAND"));
}

TEST_CASE("launcher: a mistyped word is answered with the one that was meant") {
  check_mistake({"rnu", "-n", "2", "true"}, "unknown command 'rnu'; did you mean run?");
  check_mistake({"--verison"}, "unknown option '--verison'; did you mean --version?");
  check_mistake({"frobnicate"}, "unknown command 'frobnicate'\n");
  check_mistake({"run", "--tiemout", "5", "true"}, "not expected: --tiemout; did you mean --timeout?");
  check_mistake({"run", "--nproc_per_nod=2", "true"}, "did you mean --nproc-per-node?");
  check_mistake({"run", "--tag", "rnak", "true"}, "--tag: 'rnak' is not one of rank, host, none; did you mean rank?");
  check_mistake({"run", "--status", "quiet", "true"}, "--status: 'quiet' is not one of auto, plain, off");
}

TEST_CASE("launcher: values are checked, and the message says what is expected") {
  for (const char* count : {"0", "-1", "abc", "2x", "65537", ""}) {
    check_mistake({"run", "-n", count, "true"},
                  "-n: '" + std::string(count) + "' is not a number of ranks, expected 1..65536, cpu or auto");
  }
  check_mistake({"run", "-n", "4", "--ranks", "1-4", "true"}, "--ranks: rank 4 does not exist, the ranks are 0..3");
  for (const char* list : {"", "a", "1,", "2-1", "-1", "1-", "1;2", "99999999999"}) {
    check_mistake({"run", "-n", "4", "--ranks=" + std::string(list), "true"}, "--ranks: ");
  }
  check_mistake({"run", "-n", "2", "--print-env", "2"}, "--print-env: '2' is not a rank, expected 0..1");
  check_mistake({"run", "--timeout", "0", "true"}, "--timeout: expected more than 0");
  check_mistake({"run", "--timeout", "nan", "true"}, "--timeout: expected more than 0");
  check_mistake({"run", "--timeout", "soon", "true"}, "--timeout");
  check_mistake({"run", "--grace", "-3", "true"}, "--grace: expected 0 to");
  check_mistake({"run", "--settle", "1e300", "true"}, "--settle: expected 0 to");
  check_mistake({"run", "--master-port", "70000", "true"}, "--master-port");
  check_mistake({"run", "-x", "COHORT_TEST_NOT_SET", "true"}, "-x: COHORT_TEST_NOT_SET is not set here");
  check_mistake({"run", "-x", "=5", "true"}, "-x: '=5' names no variable");
  check_mistake({"run", "-n"}, "-n");
  check_mistake({"run", "-n", "2"}, "no program given");
  check_mistake({"run", "-n", "2", "--"}, "no program given");
  check_mistake({"version", "now"}, "version takes no arguments");
}

TEST_CASE("launcher: the number of ranks comes from the option, then from the environment, then from the processors") {
  const words print{"run", "--print-env", "0"};
  const auto size = [&](const words& options, const variables& environment) {
    setup how;
    how.environment = environment;
    const outcome result = run_tool(print + options, how);
    CHECK(result.code == 0);
    return number_after(result.out, "\nWORLD_SIZE=");
  };
  CHECK(size({"-n", "3"}, {}) == 3);
  CHECK(size({"-n3"}, {}) == 3);
  CHECK(size({"--nproc", "3"}, {}) == 3);
  CHECK(size({"--nproc=3"}, {}) == 3);
  CHECK(size({"--nproc-per-node", "3"}, {}) == 3);
  CHECK(size({"--nproc_per_node=3"}, {}) == 3);
  CHECK(size({}, {{"COHORT_NPROC", "5"}, {"PET_NPROC_PER_NODE", "6"}}) == 5);
  CHECK(size({}, {{"PET_NPROC_PER_NODE", "6"}}) == 6);
  CHECK(size({"-n", "3"}, {{"COHORT_NPROC", "5"}}) == 3);
  CHECK(size({}, {}) == processors());
  CHECK(size({"-n", "auto"}, {}) == processors());
  CHECK(size({"-n", "cpu"}, {{"COHORT_NPROC", "1000"}}) == processors());
  setup wrong;
  wrong.environment = {{"COHORT_NPROC", "many"}};
  check_mistake({"run", "true"}, "COHORT_NPROC: 'many' is not a number of ranks", wrong);
}

TEST_CASE("launcher: what follows the program belongs to the program") {
  const words print{"/usr/bin/printf", "%s|", "-n", "4", "--tiemout", "--", "a b", "--help"};
  for (const words& separator : {words{}, words{"--"}}) {
    const outcome result = run_tool(words{"run", "-n", "1", "--tag", "none"} + separator + print);
    CHECK(result.code == 0);
    CHECK(result.out == "-n|4|--tiemout|--|a b|--help|\n");
  }
}

TEST_CASE("launcher: --dry-run tells the command and the variables of each rank, hides the secret, starts nothing") {
  const scratch directory;
  const outcome result =
      run_tool(run_words(2, {"--dry-run", "-x", "GREETING=good day"}, {"touch=" + (directory / "started"), "a b"}));
  CHECK(result.code == 0);
  CHECK(contains(result.out, "rank 0: " + rank_program() + " touch=" + (directory / "started") + " 'a b'\n"));
  CHECK(contains(result.out, "rank 1: "));
  CHECK(contains(result.out, "  RANK=1\n"));
  CHECK(contains(result.out, "  COHORT_SECRET=***\n"));
  CHECK(contains(result.out, "  GREETING='good day'\n"));
  CHECK_FALSE(std::filesystem::exists(directory / "started"));
}

TEST_CASE("launcher: --print-env prints the variables of one rank, the secret hidden") {
  const outcome result = run_tool({"run", "-n", "4", "--print-env", "2"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "RANK=2\n"));
  CHECK(contains(result.out, "WORLD_SIZE=4\n"));
  CHECK(contains(result.out, "COHORT_SECRET=***\n"));
  CHECK_FALSE(contains(result.out, "LOCAL_RANK=1"));
  CHECK_FALSE(contains(result.out, "COHORT_STATUS_FD"));  // there is no pipe
}
