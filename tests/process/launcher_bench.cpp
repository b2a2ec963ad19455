// SPDX-License-Identifier: BSL-1.0
// `cohort bench`: what it prints, that its check of results is one, and what it says about mistakes.
#include "launcher_support.hpp"

using namespace launcher_test;

namespace {

void check_mistake(const words& arguments, const std::string& expected) {
  INFO("expected: " << expected);
  const outcome result = run_tool(words{"bench"} + arguments);
  CHECK(result.code == 2);
  CHECK(result.out == "");
  CHECK_MESSAGE(contains(result.err, "cohort bench: "), result.err);
  CHECK_MESSAGE(contains(result.err, expected), result.err);
  CHECK(contains(result.err, "--help"));
}

std::vector<words> csv_rows(const std::string& text) {
  std::vector<words> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    words cells;
    std::istringstream rest(line);
    for (std::string cell; std::getline(rest, cell, ',');) cells.push_back(cell);
    rows.push_back(cells);
  }
  return rows;
}

}  // namespace

TEST_CASE("bench: every operation, its results right, in a row for each size") {
  for (const char* operation :
       {"broadcast", "scatter", "scatter_v", "gather", "gather_v", "reduce", "all_reduce", "all_gather", "all_gather_v",
        "reduce_scatter", "reduce_scatter_v", "all_to_all", "all_to_all_v", "scan", "exclusive_scan", "exchange"}) {
    INFO(operation);
    const outcome result = run_tool({"bench", operation, "-n", "3", "-b", "12", "-e", "1200", "-f", "100", "--samples",
                                     "3", "-t", "int32", "--csv"});
    CHECK_MESSAGE(result.code == 0, result.err);
    const std::vector<words> rows = csv_rows(result.out);
    REQUIRE(rows.size() == 3);
    CHECK(rows[0][0] == "operation");
    CHECK(rows[0][11] == "wrong");
    for (std::size_t r = 1; r < rows.size(); ++r) {
      REQUIRE(rows[r].size() == rows[0].size());
      CHECK(rows[r][0] == operation);
      CHECK(rows[r][1] == "3");
      CHECK(rows[r][2] == (r == 1 ? "12" : "1200"));
      CHECK(rows[r][3] == (r == 1 ? "3" : "300"));
      CHECK(rows[r][4] == "int32");
      CHECK(std::stod(rows[r][6]) > 0);
      CHECK(std::stod(rows[r][7]) <= std::stod(rows[r][6]));
      CHECK(std::stod(rows[r][6]) <= std::stod(rows[r][8]));
      CHECK(rows[r][11] == "0");
    }
  }
}

TEST_CASE("bench: registered buffers") {
  for (const char* operation : {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce"}) {
    INFO(operation);
    const outcome result = run_tool({"bench", operation, "-n", "3", "-b", "12", "-e", "1200000", "-f", "1000",
                                     "--samples", "3", "--registered", "--csv"});
    CHECK_MESSAGE(result.code == 0, result.err);
    const std::vector<words> rows = csv_rows(result.out);
    REQUIRE(rows.size() == 3);
    for (std::size_t r = 1; r < rows.size(); ++r) CHECK(rows[r][11] == "0");
  }
  setup how;
  how.environment = {{"COHORT_SHM", "0"}};
  const outcome apart = run_tool({"bench", "all_reduce", "-n", "2", "-e", "8", "--registered"}, how);
  CHECK(apart.code != 0);
  CHECK_MESSAGE(contains(apart.err, "--registered: the ranks do not all share memory; leave it out"), apart.err);
}

TEST_CASE("bench: every functor and element type of all_reduce gives what was computed without the library") {
  for (const char* type : {"float", "double", "half", "bfloat16", "int8", "int16", "int32", "int64"}) {
    const bool integers = std::string(type).rfind("int", 0) == 0;
    for (const char* functor : {"sum", "product", "min", "max", "logical_and", "logical_or", "premultiplied_sum",
                                "user", integers ? "bit_and" : "average", integers ? "bit_xor" : "average"}) {
      INFO(type << " " << functor);
      const outcome result = run_tool({"bench", "all_reduce", "-n", "3", "-b", "1000", "-e", "1000", "-t", type, "-o",
                                       functor, "--samples", "1", "--csv"});
      CHECK_MESSAGE(result.code == 0, result.err);
      const std::vector<words> rows = csv_rows(result.out);
      REQUIRE(rows.size() == 2);
      CHECK(rows[1][5] == functor);
      CHECK(rows[1][11] == "0");
    }
  }
}

TEST_CASE("bench: a barrier, messages, JSON, the table, and the algorithm that was chosen") {
  CHECK(csv_rows(run_tool({"bench", "barrier", "-n", "2", "--samples", "2", "--csv"}).out).size() == 2);
  const outcome messages = run_tool({"bench", "p2p", "-n", "2", "-b", "64", "-e", "64", "--samples", "2", "--csv"});
  REQUIRE(csv_rows(messages.out).size() == 3);
  CHECK(csv_rows(messages.out)[1][5] == "ping-pong");
  CHECK(csv_rows(messages.out)[2][5] == "one-way");
  const outcome json = run_tool({"bench", "all_gather", "-n", "2", "-b", "8", "-e", "8", "--samples", "2", "--json"});
  CHECK(json.code == 0);
  CHECK(json.out.rfind("{\"operation\":\"all_gather\",\"ranks\":2,\"type\":\"float\",\"rows\":[{\"bytes\":8,", 0) == 0);
  const outcome table =
      run_tool({"bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--samples", "2", "--explain"});
  CHECK(table.code == 0);
  for (const char* column : {"size", "count", "type", "op", "time", "algbw", "busbw", "#wrong", "algorithm"}) {
    CHECK(contains(table.out, column));
  }
  CHECK(contains(table.out, "shared_memory: all ranks share memory\n"));
  const auto why_long = [](const char* operation) {
    return run_tool({"bench", operation, "-n", "2", "-b", "4M", "-e", "4M", "--samples", "2", "--explain"}).out;
  };
  CHECK(contains(why_long("all_to_all"), "all ranks share memory; but by reading each other's memory as long as"));
  CHECK(contains(why_long("scatter"), "all ranks share memory; but by messages as long as"));
}

TEST_CASE("bench: under a launcher it is one rank of many") {
  const outcome result = run_tool(
      {"run", "-n", "3", "--", tool(), "bench", "all_reduce", "-b", "8", "-e", "8", "--samples", "2", "--csv"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "all_reduce,3,8,2,float,sum,"));
}

TEST_CASE("bench: a mistake gets one answer that says what is expected") {
  check_mistake({}, "no operation given; it is one of p2p, barrier");
  check_mistake({"all_redcue"}, "did you mean all_reduce?");
  check_mistake({"all_reduce", "--tpye", "float"}, "did you mean --type?");
  check_mistake({"all_reduce", "-t", "floot"}, "-t: 'floot' is not one of float, double");
  check_mistake({"all_reduce", "-o", "summ"}, "did you mean sum?");
  check_mistake({"all_reduce", "-b", "8Q"}, "-b: '8Q' is not a size");
  check_mistake({"all_reduce", "-b", "99999999999G"}, "is not a size");
  check_mistake({"all_reduce", "-b", "1M", "-e", "1K"}, "-e: 1K is less than the smallest size, 1048576 bytes");
  check_mistake({"all_reduce", "-f", "1"}, "-f: expected more than 1");
  check_mistake({"all_reduce", "-n", "0"}, "-n: 0 is not a number of ranks, expected 1..4096");
  check_mistake({"all_reduce", "--samples", "0"}, "--samples: expected at least 1, got 0");
  check_mistake({"all_reduce", "--seconds", "0"}, "--seconds: expected more than 0");
  check_mistake({"all_reduce", "--csv", "--json"}, "--csv and --json exclude each other");
  check_mistake({"all_reduce", "--transport", "tcp", "--registered"},
                "--registered is about memory that ranks share, and --transport tcp lets them share none");
  check_mistake({"all_reduce", "--transport", "udp"}, "--transport: 'udp' is not one of auto, shm, tcp");
  check_mistake({"all_reduce", "-o", "bit_or"}, "bit_or is for integers, not for float");
  check_mistake({"all_reduce", "-o", "average", "-t", "int32"}, "average is for floating-point numbers, not for int32");
  check_mistake({"reduce", "-o", "product"}, "product is measured with all_reduce; reduce takes sum, max or user");
  check_mistake({"broadcast", "-o", "sum"}, "broadcast combines nothing, so it takes no functor");
  check_mistake({"reduce", "-n", "2", "--root", "2"}, "--root 2: expected 0..1");
  check_mistake({"p2p", "-n", "1"}, "p2p needs at least 2 ranks, and there is 1");
  const outcome other = run_tool({"run", "-n", "2", "--", tool(), "bench", "all_reduce", "-n", "3"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "-n 3: the launcher has started 2 ranks; leave -n out under a launcher"));
}
