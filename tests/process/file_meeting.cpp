// SPDX-License-Identifier: BSL-1.0
// Worlds that meet in a file: it is gone when they have met or given up, what a crash leaves behind does not stand in
// the next one's way, and no other file is ever removed.
#include "../support/child_process.hpp"
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>
#include <cohort/store/file_store.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;
using harness::run_ranks;

namespace {

/// A place for a file that is not there yet.
class place {
 public:
  place() : folder_(std::filesystem::temp_directory_path().string() + "/cohort-file-XXXXXX") {
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("place: mkdtemp failed");
  }
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  ~place() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/store"; }
  [[nodiscard]] bool taken() const { return std::filesystem::exists(path()); }
  [[nodiscard]] std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

 private:
  std::string folder_;
};

deadline soon() { return deadline_after(30s); }
file_store temporary(const place& p, std::uint64_t job = 0) {
  return file_store(p.path(), job, soon(), {}, file_lifetime::temporary);
}

harness::rank_options at(const place& p, harness::variables more = {}) {
  harness::rank_options options;
  options.environment = {
      {"COHORT_INIT", "file://" + p.path()}, {"MASTER_ADDR", std::nullopt}, {"MASTER_PORT", std::nullopt}};
  options.environment.insert(options.environment.end(), more.begin(), more.end());
  return options;
}

int add_up(int /*rank*/) {
  const auto rank_main = [](communicator<cpu> world) -> task<int> {
    co_return co_await world.all_reduce(world.rank(), sum{}) == world.size() * (world.size() - 1) / 2 ? 0 : 1;
  };
  return run(rank_main);
}

void expect_a_world(int n, const place& p) {
  const auto ranks = run_ranks(n, add_up, at(p));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
  CHECK_FALSE(p.taken());
}

/// As a job whose ranks are all killed while they meet.
void leave_behind(const place& p, std::uint64_t job = 0) {
  harness::child_process victim([&]() -> int {
    file_store s = temporary(p, job);
    s.set("cohort/meet/left/over", "1", soon());
    ::raise(SIGKILL);
    return 0;
  });
  CHECK(victim.wait() != 0);
  REQUIRE(p.taken());
}

}  // namespace

TEST_CASE("file meeting: the file is gone when the ranks have met, and the path can be used again") {
  const place p;
  for (const int n : {2, 4, 3}) expect_a_world(n, p);
}

TEST_CASE("file meeting: the file of a job that was killed does not stand in the way") {
  const place p;
  leave_behind(p);
  expect_a_world(3, p);
  leave_behind(p, 42);  // nor does that of a job with another id
  expect_a_world(2, p);
}

TEST_CASE("file meeting: a rank that is killed while they meet is named, and the file goes with the others") {
  const place p;
  const auto ranks = run_ranks(
      3,
      [&](int rank) {
        if (rank == 1) ::raise(SIGKILL);
        return add_up(rank);
      },
      at(p, {{"COHORT_JOIN_TIMEOUT", "2"}}));
  for (const int r : {0, 2}) {
    INFO(harness::describe(ranks[static_cast<std::size_t>(r)]));
    CHECK(ranks[static_cast<std::size_t>(r)].exit_code != 0);
    CHECK(ranks[static_cast<std::size_t>(r)].err.find("2/3 joined, missing rank 1") != std::string::npos);
  }
  CHECK_FALSE(p.taken());
  expect_a_world(3, p);
}

TEST_CASE("file meeting: a file of something else is named, and left as it is") {
  const place p;
  const std::string text = "rank,loss\n" + std::string(200, '1') + "\n";
  for (const std::string& content : {text, std::string("short")}) {
    p.write(content);
    const auto ranks = run_ranks(2, add_up, at(p));
    for (const auto& r : ranks) {
      INFO(harness::describe(r));
      CHECK(r.exit_code != 0);
      CHECK(r.err.find("the store in file " + p.path() + " is malformed at offset 0") != std::string::npos);
    }
    CHECK(p.content() == content);
  }
}

TEST_CASE("file meeting: a store that somebody keeps in the file is not touched") {
  const place p;
  file_store(p.path()).set("precious", "7", soon());
  const auto ranks = run_ranks(2, add_up, at(p));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
  CHECK(file_store(p.path()).get("precious", soon()) == "7");
}

TEST_CASE("file meeting: a job that is meeting is not disturbed by another one at the same path") {
  const place p;
  file_store first = temporary(p, 1);
  first.set("a", "1", soon());
  try {
    const file_store second = temporary(p, 2);
    FAIL("the second job must be refused");
  } catch (const error& e) {
    CHECK(e.condition() == errc::wrong_job);
    CHECK(std::string(e.what()).find("belongs to another job") != std::string::npos);
  }
  CHECK(temporary(p, 1).get("a", soon()) == "1");
  CHECK(first.get("a", soon()) == "1");
}

TEST_CASE("file meeting: the last that has a temporary store open removes it, whoever that is") {
  const place p;
  auto first = std::make_unique<file_store>(temporary(p));
  auto second = std::make_unique<file_store>(temporary(p));
  first->set("a", "1", soon());
  first.reset();
  CHECK(p.taken());
  CHECK(second->get("a", soon()) == "1");
  auto third = std::make_unique<file_store>(std::move(*second));
  second.reset();
  CHECK(p.taken());
  third.reset();
  CHECK_FALSE(p.taken());
}

TEST_CASE("file meeting: of two that leave at once, one removes the file") {
  const place p;
  const auto come_and_go = [&](std::barrier<>& together) {
    auto mine = std::make_unique<file_store>(temporary(p));
    together.arrive_and_wait();
    mine.reset();
    together.arrive_and_wait();
  };
  int left_behind = 0;
  for (int round = 0; round < 2000; ++round) {
    std::barrier together(2);
    std::thread other([&] { come_and_go(together); });
    come_and_go(together);
    other.join();
    if (p.taken()) ++left_behind;
  }
  CHECK(left_behind == 0);
}

TEST_CASE("file meeting: processes that come and go in any order always share one file") {
  const place p;
  constexpr int rounds = 40;
  std::vector<harness::child_process> processes;
  for (int i = 0; i < 4; ++i) {
    processes.emplace_back([&]() -> int {
      for (int round = 0; round < rounds; ++round) {
        file_store mine = temporary(p);
        const std::string key = std::to_string(::getpid()) + "/" + std::to_string(round);
        mine.set(key, "1", soon());
        if (temporary(p).get(key, soon()) != "1") return 1;
      }
      return 0;
    });
  }
  for (harness::child_process& each : processes) CHECK(each.wait() == 0);
  CHECK_FALSE(p.taken());
}
