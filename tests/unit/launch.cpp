// SPDX-License-Identifier: BSL-1.0
// launch_from_environment and uri.hpp against environments that are made up here: what is taken from where, and the
// one error of each bad input.
#include <doctest/doctest.h>

#include <cohort/launch.hpp>
#include <cohort/uri.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

using cohort::environment;
using cohort::errc;
using cohort::launch_from_environment;
using cohort::launch_info;
using variables = std::map<std::string, std::string>;

environment made_of(variables values) {
  return environment([held = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto at = held.find(name);
    return at == held.end() ? std::nullopt : std::optional<std::string>(at->second);
  });
}

launch_info launched(const variables& values, std::string_view init = {}) {
  return launch_from_environment(made_of(values), init);
}

/// The text of the bad_environment error; "no error" when there is none.
std::string refusal(const variables& values, std::string_view init = {}) {
  try {
    (void)launched(values, init);
  } catch (const cohort::error& e) {
    CHECK(e.code() == errc::bad_environment);
    return e.what();
  }
  return "no error";
}

variables torchrun() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "10.0.0.7"},
          {"MASTER_PORT", "29500"}};
}

variables with(variables base, const std::string& name, const std::string& value) {
  base[name] = value;
  return base;
}
variables without(variables base, const std::string& name) {
  base.erase(name);
  return base;
}

}  // namespace

TEST_CASE("launch: nothing set is a world of one") {
  const launch_info info = launched({});
  CHECK(info.rank == 0);
  CHECK(info.world_size == 1);
  CHECK(info.local_rank == 0);
  CHECK(info.local_world_size == 1);
  CHECK(info.master_addr.empty());
  CHECK(info.init_method == "env://");
  CHECK(info.source == "single process");
  CHECK(info.epoch == 0);
  CHECK_FALSE(info.insecure_network);
}

TEST_CASE("launch: addresses and local ranks alone do not make a job") {
  CHECK(launched({{"MASTER_ADDR", "h"}, {"LOCAL_RANK", "3"}}).source == "single process");
}

TEST_CASE("launch: the set of torchrun") {
  variables set = torchrun();
  set["TORCHELASTIC_RUN_ID"] = "job-9";
  set["TORCHELASTIC_RESTART_COUNT"] = "2";
  const launch_info info = launched(set);
  CHECK(info.rank == 5);
  CHECK(info.world_size == 8);
  CHECK(info.local_rank == 1);
  CHECK(info.local_world_size == 4);
  CHECK(info.master_addr == "10.0.0.7");
  CHECK(info.master_port == 29500);
  CHECK(info.run_id == "job-9");
  CHECK(info.epoch == 2);
  CHECK(info.source == "torchrun");
  CHECK(info.warnings.empty());
}

TEST_CASE("launch: the port that torchrun keeps for a store of torch's own is left to it") {
  const variables kept = with(torchrun(), "TORCHELASTIC_USE_AGENT_STORE", "True");
  CHECK(launched(kept).master_port == 29501);
  CHECK(launched(with(kept, "MASTER_PORT", "65535")).master_port == 65534);
  CHECK(launched(with(kept, "COHORT_MASTER_PORT", "7000")).master_port == 7000);
  CHECK(launched(with(kept, "TORCHELASTIC_USE_AGENT_STORE", "False")).master_port == 29500);
  // In a pod the name of rank 0 is that of a service, which comes late.
  CHECK(launched(with(torchrun(), "KUBERNETES_SERVICE_HOST", "10.96.0.1")).address_comes_late);
  CHECK_FALSE(launched(torchrun()).address_comes_late);
  CHECK(refusal(without(kept, "MASTER_PORT")).starts_with("MASTER_PORT is not set"));
}

TEST_CASE("launch: COHORT_* stands above torchrun, is not mixed with it, and a contradiction is told") {
  variables set = torchrun();
  set.insert({{"COHORT_RANK", "1"},
              {"COHORT_WORLD_SIZE", "2"},
              {"COHORT_MASTER_ADDR", "::1"},
              {"COHORT_MASTER_PORT", "4000"},
              {"COHORT_RUN_ID", "mine"},
              {"COHORT_RESTART_COUNT", "1"}});
  const launch_info info = launched(set);
  CHECK(info.source == "COHORT_*");
  CHECK(info.rank == 1);
  CHECK(info.world_size == 2);
  CHECK(info.local_rank == 1);
  CHECK(info.local_world_size == 2);
  CHECK(info.master_addr == "::1");
  CHECK(info.master_port == 4000);
  CHECK(info.run_id == "mine");
  CHECK(info.epoch == 1);
  REQUIRE(info.warnings.size() == 2);
  CHECK(info.warnings[0] == "COHORT_RANK=\"1\" but RANK=\"5\"; the variables of COHORT_* are taken");
  CHECK(info.warnings[1] == "COHORT_WORLD_SIZE=\"2\" but WORLD_SIZE=\"8\"; the variables of COHORT_* are taken");

  CHECK(refusal(without(set, "COHORT_MASTER_ADDR")).starts_with("COHORT_MASTER_ADDR is not set"));
}

TEST_CASE("launch: COHORT_MASTER_* give another launcher's ranks an address") {
  variables set = without(without(torchrun(), "MASTER_ADDR"), "MASTER_PORT");
  set["COHORT_MASTER_ADDR"] = "node0";
  set["COHORT_MASTER_PORT"] = "4001";
  const launch_info info = launched(set);
  CHECK(info.rank == 5);
  CHECK(info.master_addr == "node0");
  CHECK(info.master_port == 4001);
}

TEST_CASE("launch: a half-set source names what is missing") {
  CHECK(refusal({{"RANK", "0"}}) == "RANK is set but WORLD_SIZE is not; set it or use `cohort run`");
  CHECK(refusal({{"WORLD_SIZE", "2"}}) == "WORLD_SIZE is set but RANK is not; set it or use `cohort run`");
  CHECK(refusal({{"COHORT_RANK", "0"}}) ==
        "COHORT_RANK is set but COHORT_WORLD_SIZE is not; set it or use `cohort run`");
  // A complete weaker source does not repair it.
  CHECK(refusal(with(torchrun(), "COHORT_RANK", "0")).starts_with("COHORT_RANK is set but COHORT_WORLD_SIZE is not"));
}

TEST_CASE("launch: bad ranks and sizes") {
  const variables good = torchrun();
  CHECK(refusal(with(good, "RANK", "abc")) == "RANK=\"abc\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", "1x")) == "RANK=\"1x\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", "")) == "RANK=\"\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", " 1")) == "RANK=\" 1\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", "+1")) == "RANK=\"+1\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", "1.0")) == "RANK=\"1.0\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", "99999999999999999999")) ==
        "RANK=\"99999999999999999999\": expected an integer, 0..7");
  CHECK(refusal(with(good, "RANK", "-1")) == "RANK=-1: expected 0..7, because WORLD_SIZE=8");
  CHECK(refusal(with(good, "RANK", "8")) == "RANK=8: expected 0..7, because WORLD_SIZE=8");
  CHECK(refusal(with(good, "WORLD_SIZE", "0")) == "WORLD_SIZE=0: expected 1..65536");
  CHECK(refusal(with(good, "WORLD_SIZE", "-4")) == "WORLD_SIZE=-4: expected 1..65536");
  CHECK(refusal(with(good, "WORLD_SIZE", "65537")) == "WORLD_SIZE=65537: expected 1..65536");
  CHECK(refusal(with(good, "WORLD_SIZE", "eight")) == "WORLD_SIZE=\"eight\": expected an integer, 1..65536");
  CHECK(launched(with(good, "WORLD_SIZE", "65536")).world_size == 65536);
}

TEST_CASE("launch: bad addresses and ports") {
  const variables good = torchrun();
  CHECK(refusal(without(good, "MASTER_ADDR")) ==
        "MASTER_ADDR is not set, but a world of 8 needs the host of rank 0; set it, give "
        "COHORT_INIT=tcp://host:port, or use `cohort run`");
  CHECK(refusal(without(good, "MASTER_PORT")) ==
        "MASTER_PORT is not set, but a world of 8 needs the port on which rank 0 listens, 1..65535; set it, give "
        "COHORT_INIT=tcp://host:port, or use `cohort run`");
  CHECK(refusal(with(good, "MASTER_PORT", "0")) == "MASTER_PORT=0: expected 1..65535");
  CHECK(refusal(with(good, "MASTER_PORT", "70000")) == "MASTER_PORT=70000: expected 1..65535");
  CHECK(refusal(with(good, "MASTER_PORT", "http")) == "MASTER_PORT=\"http\": expected an integer, 1..65535");
  const std::string host = ": expected a host name, an IPv4 address or an IPv6 address";
  CHECK(refusal(with(good, "MASTER_ADDR", "")) == "MASTER_ADDR=\"\"" + host);
  CHECK(refusal(with(good, "MASTER_ADDR", "a b")) == "MASTER_ADDR=\"a b\"" + host);
  CHECK(refusal(with(good, "MASTER_ADDR", "host:80")) == "MASTER_ADDR=\"host:80\"" + host);
  CHECK(refusal(with(good, "MASTER_ADDR", "a\nb")) == "MASTER_ADDR=\"a\\x0ab\"" + host);
  CHECK(refusal(with(good, "MASTER_ADDR", "[::g]")) ==
        "MASTER_ADDR=\"[::g]\": expected an IPv6 address between the brackets");
  CHECK(launched(with(good, "MASTER_ADDR", "[fd00::2]")).master_addr == "fd00::2");
  CHECK(launched(with(good, "MASTER_ADDR", "fe80::1%eth0")).master_addr == "fe80::1%eth0");
  // A world of one needs no address; a malformed one is an error all the same.
  const variables one{{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  CHECK(launched(one).master_addr.empty());
  CHECK(refusal(with(one, "MASTER_PORT", "http")).starts_with("MASTER_PORT=\"http\""));
}

TEST_CASE("launch: local ranks that are not given") {
  const variables both = without(without(torchrun(), "LOCAL_RANK"), "LOCAL_WORLD_SIZE");
  CHECK(launched(both).local_rank == 5);
  CHECK(launched(both).local_world_size == 8);
  CHECK(launched(with(both, "LOCAL_WORLD_SIZE", "4")).local_rank == 1);
  CHECK(launched(with(both, "LOCAL_RANK", "2")).local_rank == 2);
  CHECK(launched(with(both, "LOCAL_RANK", "2")).local_world_size == 8);
  CHECK(refusal(with(torchrun(), "LOCAL_RANK", "4")) == "LOCAL_RANK=4: expected 0..3");
  CHECK(refusal(with(torchrun(), "LOCAL_WORLD_SIZE", "9")) == "LOCAL_WORLD_SIZE=9: expected 1..8");
}

TEST_CASE("launch: init methods") {
  const launch_info tcp = launched(with(torchrun(), "COHORT_INIT", "tcp://[fd00::2]:4002"));
  CHECK(tcp.rank == 5);
  CHECK(tcp.master_addr == "fd00::2");
  CHECK(tcp.master_port == 4002);
  CHECK(tcp.init_method == "tcp://[fd00::2]:4002");

  const launch_info file = launched(without(torchrun(), "MASTER_ADDR"), "file:///shared/a%20b");
  CHECK(file.file_path == "/shared/a b");
  CHECK(file.init_method == "file:///shared/a b");
  CHECK(file.rank == 5);

  const launch_info named = launched({}, "tcp://head:4003?rank=2&world_size=3");
  CHECK(named.rank == 2);
  CHECK(named.world_size == 3);
  CHECK(named.master_addr == "head");
  CHECK(named.source == "init_method");

  // An explicit method stands above COHORT_INIT, and its ranks above every variable.
  CHECK(launched(with(torchrun(), "COHORT_INIT", "tcp://a:1"), "tcp://b:2").master_addr == "b");
  CHECK(launched(torchrun(), "env://?rank=0&world_size=2").rank == 0);
  CHECK(launched(torchrun(), "env://?rank=0&world_size=2").master_addr == "10.0.0.7");

  const auto init = [](const std::string& text) { return refusal({{"COHORT_INIT", text}}); };
  CHECK(init("") == "COHORT_INIT=\"\": expected env://, tcp://host:port or file:///absolute/path");
  CHECK(init("http://a:1").starts_with("COHORT_INIT=\"http://a:1\": expected env://"));
  CHECK(init("file://relative").starts_with("COHORT_INIT=\"file://relative\": expected env://"));
  CHECK(init("tcp://a") == "COHORT_INIT=\"a\": expected host:port");
  CHECK(init("tcp://a:0") == "COHORT_INIT=0: expected 1..65535");
  CHECK(init("tcp://a:1/") == "COHORT_INIT=\"1/\": expected an integer, 1..65535");
  CHECK(init("tcp://::1:5").find("with brackets around an IPv6 address") != std::string::npos);
  CHECK(init("tcp://[::1:5").find("with brackets around an IPv6 address") != std::string::npos);
  CHECK(init("tcp://[localhost]:5").find("an IPv6 address between the brackets") != std::string::npos);
  CHECK(init("tcp://:5").find("expected a host name") != std::string::npos);
  CHECK(init("tcp://a:1?rank=1").find("rank and world_size together") != std::string::npos);
  CHECK(init("tcp://a:1?rank=2&world_size=2").find("a rank below world_size=2") != std::string::npos);
  CHECK(init("tcp://a:1?rank=0&rank=1&world_size=2").find("each once") != std::string::npos);
  CHECK(init("tcp://a:1?size=2").find("rank=R and world_size=N") != std::string::npos);
  CHECK(init("tcp://a:1?rank=x&world_size=2") == "COHORT_INIT ?rank=\"x\": expected an integer, 0..65535");
  CHECK(init("file:///a%2").find("two hexadecimal digits") != std::string::npos);
  CHECK(init("file:///a%00b").find("two hexadecimal digits") != std::string::npos);
}

TEST_CASE("launch: the network's safety") {
  CHECK(launched({{"COHORT_INSECURE_NETWORK", "1"}}).insecure_network);
  CHECK_FALSE(launched({{"COHORT_INSECURE_NETWORK", "0"}}).insecure_network);
  CHECK(refusal({{"COHORT_INSECURE_NETWORK", "yes"}}) == "COHORT_INSECURE_NETWORK=\"yes\": expected an integer, 0..1");
  CHECK(launched({{"COHORT_SECRET", "0123456789abcdef"}}).secret == "0123456789abcdef");
  CHECK(refusal({{"COHORT_SECRET", "short"}}) ==
        "COHORT_SECRET holds a secret of 5 bytes: expected at least 16 random bytes");

  const std::string directory = std::filesystem::temp_directory_path().string();
  std::string path = directory + "/cohort-secret-XXXXXX";
  const int file = ::mkstemp(path.data());
  REQUIRE(file >= 0);
  const std::string text = "fedcba9876543210\n";
  REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(file);
  const variables named{{"COHORT_SECRET_FILE", path}};
  CHECK(launched(named).secret == "fedcba9876543210");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(refusal(named).find("its mode is 0644, expected 0600") != std::string::npos);
  REQUIRE(::unlink(path.c_str()) == 0);
  CHECK(refusal(named).find("No such file") != std::string::npos);
  CHECK(refusal({{"COHORT_SECRET_FILE", directory}}).find("not a plain file") != std::string::npos);
}

TEST_CASE("launch: the files of TLS are named all three or not at all") {
  CHECK_FALSE(launched({}).tls.asked_for());
  const auto tls = launched({{"COHORT_TLS_CERTIFICATE", "rank.pem"},
                             {"COHORT_TLS_KEY", "rank.key"},
                             {"COHORT_TLS_AUTHORITY", "authority.pem"}})
                       .tls;
  CHECK(tls.asked_for());
  CHECK(tls.certificate == "rank.pem");
  CHECK(tls.key == "rank.key");
  CHECK(tls.authority == "authority.pem");
  const std::string otherwise = "; set it, or none of the three COHORT_TLS_ variables to talk without TLS";
  CHECK(refusal({{"COHORT_TLS_CERTIFICATE", "a"}}) ==
        "COHORT_TLS_CERTIFICATE is set but COHORT_TLS_KEY is not" + otherwise);
  CHECK(refusal({{"COHORT_TLS_CERTIFICATE", "a"}, {"COHORT_TLS_KEY", "b"}}) ==
        "COHORT_TLS_CERTIFICATE is set but COHORT_TLS_AUTHORITY is not" + otherwise);
  CHECK(refusal({{"COHORT_TLS_AUTHORITY", "c"}}) ==
        "COHORT_TLS_AUTHORITY is set but COHORT_TLS_CERTIFICATE is not" + otherwise);
  CHECK(refusal({{"COHORT_TLS_CERTIFICATE", "a"}, {"COHORT_TLS_KEY", ""}, {"COHORT_TLS_AUTHORITY", "c"}}) ==
        "COHORT_TLS_KEY is empty: expected the path of a file in PEM form");
}

TEST_CASE("launch: a source more is one entry more") {
  using cohort::env_source;
  env_source slurm{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "", "", "SLURM_JOB_ID", ""};
  slurm.detect = [](const environment& env) { return env.has("SLURM_PROCID") && env.has("SLURM_STEP_ID"); };
  slurm.complete = [](const environment& env, launch_info& info) {
    info.master_addr = env.get("SLURM_FIRST").value_or("");
    info.master_port = 15000;
  };
  const env_source table[] = {cohort::env_sources[0], cohort::env_sources[1], slurm};
  const variables step{{"SLURM_PROCID", "3"},
                       {"SLURM_NTASKS", "4"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_JOB_ID", "77"},
                       {"SLURM_FIRST", "n1"}};
  const launch_info info = launch_from_environment(made_of(step), {}, table);
  CHECK(info.source == "Slurm");
  CHECK(info.rank == 3);
  CHECK(info.master_addr == "n1");
  CHECK(info.run_id == "77");
  // A batch script has the rank but is no step.
  CHECK(launch_from_environment(made_of(without(step, "SLURM_STEP_ID")), {}, table).source == "single process");
  // Without an address of its own the advice names what this library reads.
  slurm.complete = nullptr;
  const env_source bare[] = {slurm};
  try {
    (void)launch_from_environment(made_of(step), {}, bare);
    FAIL("no error");
  } catch (const cohort::error& e) {
    CHECK(std::string(e.what()).starts_with("COHORT_MASTER_ADDR is not set, but a world of 4 needs"));
  }
}

TEST_CASE("launch: the process's own environment") {
  REQUIRE(::setenv("COHORT_TEST_LAUNCH_VARIABLE", "v", 1) == 0);
  CHECK(environment().get("COHORT_TEST_LAUNCH_VARIABLE") == "v");
  REQUIRE(::unsetenv("COHORT_TEST_LAUNCH_VARIABLE") == 0);
  CHECK_FALSE(environment().has("COHORT_TEST_LAUNCH_VARIABLE"));
}

TEST_CASE("uri: endpoints and loopback") {
  CHECK(cohort::parse_endpoint("host.example:1", "x") == cohort::endpoint{"host.example", 1});
  CHECK(to_string(cohort::parse_endpoint("[::1]:29500", "x")) == "[::1]:29500");
  CHECK(to_string(cohort::endpoint{"10.0.0.1", 2}) == "10.0.0.1:2");
  for (const char* near : {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"})
    CHECK(cohort::is_loopback_address(near));
  for (const char* far : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "fd00::2", "::ffff:10.0.0.1", "localhost", ""}) {
    CHECK_FALSE(cohort::is_loopback_address(far));
  }
}
