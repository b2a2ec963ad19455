// SPDX-License-Identifier: BSL-1.0
// `cohort doctor`: what it says of a job that is well, and of each thing that may be wrong with one.
#include "launcher_networks.hpp"
#include "launcher_support.hpp"

#include <boost/json/src.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

using namespace launcher_test;

namespace {

namespace json = boost::json;

const std::string secret = "0123456789abcdef0123456789abcdef";

words doctor_on(int ranks, const words& options = {}) {
  return words{"run", "-n", std::to_string(ranks), "--tag", "none", "--", tool(), "doctor"} + options;
}

// Every rank is a shell that may do something first.
words doctor_after(int ranks, const std::string& commands) {
  return words{"run", "-n", std::to_string(ranks), "--tag", "none", "--", "sh", "-c", commands + " exec \"$0\" doctor",
               tool()};
}

// One rank by hand.
words by_hand(int rank, int size, const std::string& address, const std::string& port, const words& options = {}) {
  return words{"doctor",
               "--rank",
               std::to_string(rank),
               "--world-size",
               std::to_string(size),
               "--master-addr",
               address,
               "--master-port",
               port} +
         options;
}

std::string some_port() { return std::to_string(24000 + (::getpid() + 7) % 4000); }

/// Breaks of lines and indents are for readers.
std::string flat(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (!space) result += c;
    if (space && !result.empty() && result.back() != ' ') result += ' ';
  }
  return result;
}

void says(const outcome& result, const std::string& part) {
  CHECK_MESSAGE(contains(flat(result.out), part), part << " in " << result.out << result.err);
}

/// A port of this host that somebody listens on.
class taken_port {
 public:
  taken_port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof where;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&where), length) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&where), &length) == 0);
    number_ = ntohs(where.sin_port);
  }
  taken_port(const taken_port&) = delete;
  taken_port& operator=(const taken_port&) = delete;
  ~taken_port() { ::close(socket_); }
  [[nodiscard]] int number() const { return number_; }

 private:
  int socket_;
  int number_ = 0;
};

}  // namespace

TEST_CASE("doctor: a mistake in the options is one error") {
  const auto mistake = [](const words& options, const std::string& expected) {
    const outcome result = run_tool(words{"doctor"} + options);
    CHECK(result.code == 2);
    CHECK(result.out == "");
    CHECK_MESSAGE(contains(result.err, expected), result.err);
    CHECK(contains(result.err, "run 'cohort doctor --help'"));
  };
  mistake({"--jsno"}, "not expected: --jsno; did you mean --json?");
  mistake({"--rank", "2", "--world-size", "2", "--master-addr", "h"}, "--rank: '2' is not below --world-size 2");
  mistake({"--rank", "0", "--world-size", "2"}, "--master-addr is missing: the address of rank 0's host");
  mistake({"--rank", "0"}, "--rank requires --world-size");
  mistake({"--wait", "0"}, "--wait");
  mistake({"--master-port", "65536"}, "--master-port");
  mistake({"now"}, "now");
  const outcome help = run_tool({"doctor", "--help"});
  CHECK(help.code == 0);
  for (const char* option : {"--json", "--wait", "--rank", "--master-addr"}) CHECK(contains(help.out, option));
}

TEST_CASE("doctor: a job that is well") {
  const outcome result = run_tool(doctor_on(3));
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  says(result, "3 ranks, launcher: torchrun, meeting at 127.0.0.1 port ");
  says(result, "every rank is connected to every other: 3 pairs by shared memory");
  says(result, "Round trips of 8 bytes, in microseconds");
  says(result, "; the same on all ranks");
  says(result, "no problems");
  CHECK(contains(lines_of(result.out).back(), "export COHORT_MASTER_ADDR=127.0.0.1 COHORT_MASTER_PORT="));
  // One report, by rank 0.
  CHECK(result.out.find("launcher: torchrun") == result.out.rfind("launcher: torchrun"));
}

TEST_CASE("doctor: without shared memory") {
  setup how;
  how.environment = {{"COHORT_SHM", "0"}};
  const outcome result = run_tool(doctor_on(2), how);
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  says(result, "off on ranks 0, 1, by COHORT_SHM=0; they use TCP");
  says(result, "every rank is connected to every other: 1 pair by TCP");
  CHECK(contains(result.out, "unset COHORT_SHM\n"));
}

TEST_CASE("doctor: one process alone") {
  setup how;
  how.unset = {"RANK", "WORLD_SIZE", "COHORT_RANK", "COHORT_WORLD_SIZE"};
  const outcome result = run_tool({"doctor"}, how);
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  says(result, "1 rank, launcher: single process");
  says(result, "lo 127.0.0.1 mtu ");
  CHECK_FALSE(contains(result.out, "Round trips"));
}

TEST_CASE("doctor: --json says the same to programs") {
  const outcome result = run_tool(doctor_on(4, {"--json"}));
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  const json::value report = json::parse(result.out);
  CHECK(report.at("world_size") == 4);
  CHECK(report.at("launcher") == "torchrun");
  CHECK(report.at("ranks").as_array().size() == 4);
  CHECK(report.at("round_trips_us").as_array().size() == 6);
  for (const json::value& each : report.at("round_trips_us").as_array()) {
    const double median = each.at("median").to_number<double>();
    CHECK(each.at("min").to_number<double>() <= median);
    CHECK(median <= each.at("max").to_number<double>());
    CHECK(each.at("min").to_number<double>() > 0);
    CHECK(each.at("from").as_int64() < each.at("to").as_int64());
  }
  for (const json::value& each : report.at("findings").as_array()) CHECK(each.at("level") != "problem");
  CHECK(report.at("ranks").at(3).at("rank") == 3);
  CHECK(report.at("ranks").at(3).at("address") == "127.0.0.1");
  CHECK(report.at("exports").as_array().size() >= 1);
  const json::value alone =
      json::parse(run_tool(by_hand(0, 2, "127.0.0.1", some_port(), {"--json", "--wait", "0.2"})).out);
  CHECK(alone.at("verdict") == "problem");
}

TEST_CASE("doctor: a rank that is missing is named") {
  const outcome first = run_tool(by_hand(0, 3, "127.0.0.1", some_port(), {"--wait", "0.3"}));
  CHECK(first.code == 1);
  says(first, "1 of 3 came within 300 ms, missing ranks 1, 2");
  says(first, "127.0.0.1 is each host itself, so ranks on other hosts cannot come here");
  says(first, "1 problem,");
  const outcome other = run_tool(by_hand(1, 3, "127.0.0.1", some_port(), {"--wait", "0.3"}));
  CHECK(other.code == 1);
  says(other, "connect to the store at 127.0.0.1:" + some_port() + ": Connection refused");
  says(other, "is rank 0 started, and does a firewall");
}

TEST_CASE("doctor: a port that is taken, and by whom") {
  const taken_port port;
  const outcome result = run_tool(by_hand(0, 2, "127.0.0.1", std::to_string(port.number()), {"--wait", "5"}));
  CHECK(result.code == 1);
  says(result, "rank 0 cannot listen at 127.0.0.1 port " + std::to_string(port.number()) +
                   ": it is taken, by process " + std::to_string(::getpid()));
  CHECK(contains(lines_of(result.out).back(), "export COHORT_MASTER_PORT="));
}

TEST_CASE("doctor: too few descriptors") {
  const outcome soft = run_tool(doctor_after(2, "[ $RANK = 1 ] || ulimit -S -n 40;"));
  CHECK(soft.code == 1);
  says(soft, "limit 40, a mesh of 2 ranks needs up to 43 [rank 0]");
  CHECK(contains(soft.out, "\nulimit -n "));
  const outcome hard = run_tool(doctor_after(2, "ulimit -n 38;"));
  CHECK(hard.code == 1);
  says(hard, "limit 38, a mesh of 2 ranks needs up to 41, and it cannot be raised beyond 38 [rank 1]");
}

TEST_CASE("doctor: versions that differ") {
  // What rank 1's loader finds under the name of Open MPI is another library, which no other rank finds there.
  const scratch files;
  std::string other;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line) && other.empty();) {
    const std::size_t slash = line.find('/');
    if (slash != std::string::npos && contains(line, "libm.so")) other = line.substr(slash);
  }
  REQUIRE(other != "");
  std::filesystem::create_symlink(other, files / "libmpi.so.40");
  const outcome result = run_tool(doctor_after(3, "[ $RANK != 1 ] || export LD_LIBRARY_PATH=" + files.path() + ";"));
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  says(result, "Open MPI differs: ");
  says(result, "libmpi.so.40 does not tell on rank 1");
  says(result, " on ranks 0, 2");
  says(result, "install the same version everywhere");
}

TEST_CASE("doctor: an environment that says half") {
  setup how;
  how.environment = {{"COHORT_RANK", "1"}};
  const outcome result = run_tool({"doctor"}, how);
  CHECK(result.code == 1);
  says(result, "COHORT_RANK is set but COHORT_WORLD_SIZE is not");
  how.environment = {{"COHORT_RANK", "0"},
                     {"COHORT_WORLD_SIZE", "2"},
                     {"COHORT_MASTER_ADDR", "no-such-host.invalid"},
                     {"COHORT_MASTER_PORT", "4000"}};
  const outcome nameless = run_tool({"doctor", "--wait", "1"}, how);
  CHECK(nameless.code == 1);
  says(nameless, "cannot resolve host \"no-such-host.invalid\"");
  says(nameless, "a name that all hosts can resolve");
}

TEST_CASE("doctor: two hosts") {
  const two_networks networks;
  if (!networks.made()) {
    MESSAGE("skipped: no network namespaces can be made here (needs iproute2 and the right to)");
    return;
  }
  const auto on_both = [&](const std::string& address, const variables& first, const variables& second) {
    setup how[] = {networks.in(0), networks.in(1)};
    how[0].environment = first;
    how[1].environment = second;
    running_tool other({"run", "-n", "1", "--nnodes", "2", "--node-rank", "1", "--tag", "none", "--master-addr",
                        address, "--", tool(), "doctor", "--wait", "4"},
                       how[1]);
    const outcome result = run_tool({"run", "-n", "1", "--nnodes", "2", "--node-rank", "0", "--tag", "none",
                                     "--master-addr", address, "--", tool(), "doctor", "--wait", "4"},
                                    how[0]);
    CHECK(other.finish().code == result.code);
    return result;
  };
  const variables safe{{"COHORT_SECRET", secret}};

  REQUIRE(networks.set_mtu(1, 1400));
  const outcome well = on_both(networks.address(0), safe, safe);
  CHECK_MESSAGE(well.code == 0, well.out << well.err);
  says(well, "every rank is connected to every other: 1 pair by TCP");
  says(well, "listens on 10.213.0.2 (c" + std::to_string(::getpid()) + "b), from which rank 0 is reached [rank 1]");
  says(well, "the interfaces differ: 1400 on ");
  CHECK(lines_of(well.out).back() == "export COHORT_MASTER_ADDR=10.213.0.1 COHORT_MASTER_PORT=29500");

  const outcome itself = on_both("127.0.0.1", safe, safe);
  CHECK(itself.code == 1);
  says(itself, "127.0.0.1: each host is that to itself, and the ranks are on several");
  CHECK(lines_of(itself.out).back() == "export COHORT_MASTER_ADDR=10.213.0.1");

  variables hidden = safe;
  hidden.emplace_back("COHORT_BIND_ADDRESS", "127.0.0.1");
  const outcome unreached = on_both(networks.address(0), safe, hidden);
  CHECK(unreached.code == 1);
  says(unreached, "COHORT_BIND_ADDRESS=127.0.0.1 is reached by this host alone, and the ranks are on several");
  says(unreached, "cannot reach rank 1 (");
  says(unreached, ", 127.0.0.1): Connection refused");
  CHECK(lines_of(unreached.out).back() == "unset COHORT_BIND_ADDRESS");

  // Without a launcher nobody knows that the ranks are on two hosts before they have met.
  setup near = networks.in(0);
  near.environment = safe;
  setup far = networks.in(1);
  far.environment = hidden;
  running_tool second(by_hand(1, 2, networks.address(0), "4001"), far);
  const outcome met = run_tool(by_hand(0, 2, networks.address(0), "4001"), near);
  CHECK(met.code == 1);
  CHECK(second.finish().code == 1);
  says(met, "rank 1: listening on 127.0.0.1, which only ");
  says(met, "and there are 2 hosts");

  setup bare = networks.in(0);
  bare.unset = {"COHORT_SECRET", "COHORT_SECRET_FILE", "COHORT_INSECURE_NETWORK"};
  const outcome open = run_tool(by_hand(0, 2, networks.address(0), "4000", {"--wait", "1"}), bare);
  CHECK(open.code == 1);
  says(open, "without a job secret would let anyone who reaches it join");
  CHECK(contains(lines_of(open.out).back(), "export COHORT_SECRET=$(openssl rand -hex 32)"));
}
