// SPDX-License-Identifier: BSL-1.0
// Calls of an async_store inside the ranks of a real world: the wait for a key and the wait for a message are one wait,
// and both wake the thread of the rank.
#include "../support/processes.hpp"
#include "../support/rank_checks.hpp"

#include <cohort/run.hpp>
#include <cohort/store/async_store.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/tcp_async_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>
#include <cohort/when_all.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

constexpr int process_count = 3;

task<int> meet(communicator<cpu> world) {
  const auto here = std::this_thread::get_id();
  std::optional<tcp_store_server> server;
  std::vector<std::uint16_t> port(1);
  if (world.rank() == 0) port.front() = server.emplace(tcp_store_server_options{}).where().port;
  co_await world.broadcast(port, root{0});
  tcp_store_options options;
  options.where = {"127.0.0.1", port.front()};
  async_store s = async_tcp_store(options, deadline_after(30s));

  // Each waits for the key of the next while all of them wait for the slowest: the keys come when the message has.
  const int next = (world.rank() + 1) % world.size();
  for (int round = 0; round < 50; ++round) {
    const std::string at = std::to_string(round) + "/";
    auto theirs = s.get(at + std::to_string(next), timeout{60s});
    const int total = co_await world.all_reduce(world.rank() + round, sum{});
    CO_REQUIRE_RANK(std::this_thread::get_id() == here);
    co_await s.set(at + std::to_string(world.rank()), std::to_string(total));
    const std::string told = co_await theirs;
    CO_REQUIRE_RANK(told == std::to_string(total));
    CO_REQUIRE_RANK(std::this_thread::get_id() == here);
  }

  // One waits for a key with nothing else to do: its engine sleeps, and the store wakes it.
  if (world.rank() == 0) {
    std::vector<std::string> all;
    for (int r = 1; r < world.size(); ++r) all.push_back("asleep/" + std::to_string(r));
    co_await s.wait(all, timeout{60s});
    const std::vector<key_value> news{{"go", "now"}};
    co_await s.multi_set(news);
  } else {
    auto go = s.get("go", timeout{60s});
    co_await s.set("asleep/" + std::to_string(world.rank()), "");
    const std::string said = co_await go;
    CO_REQUIRE_RANK(said == "now");
  }
  CO_REQUIRE_RANK(std::this_thread::get_id() == here);

  // A queue shares work among the ranks, each item to one of them.
  if (world.rank() == 0) {
    for (int i = 1; i <= 30; ++i) co_await s.queue_push("work", std::to_string(i));
    for (int r = 0; r < world.size(); ++r) co_await s.queue_push("work", "0");
  }
  int mine = 0;
  for (int item = -1; item != 0; mine += item) {
    const std::string text = co_await s.queue_pop("work", timeout{60s});
    item = std::stoi(text);
  }
  const int all = co_await world.all_reduce(mine, sum{});
  CO_REQUIRE_RANK(all == 30 * 31 / 2);
  CO_REQUIRE_RANK(std::this_thread::get_id() == here);
  co_await world.barrier();  // rank 0 serves until all are done
  co_return 0;
}

}  // namespace

TEST_CASE("store_async: ranks wait for keys and for each other") {
  const auto results = harness::run_ranks(process_count, [](int) { return cohort::run(meet); });
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}
