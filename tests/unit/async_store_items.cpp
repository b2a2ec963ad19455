// SPDX-License-Identifier: BSL-1.0
// Items of queues in an async_store: whatever comes at the same time (a cancellation, the end of the store), each is
// taken once or goes back.
#include <doctest/doctest.h>

#include <cohort/store/async_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/transport/tcp_async_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store_contract.hpp"
#include "tcp_store_support.hpp"

using namespace store_test;
using cohort::async_store;

namespace {

async_store over(const tcp_store_server& server) { return cohort::async_tcp_store(client_of(server), soon()); }

/// Between two looks at what another thread does: this one may need the core.
void rest(int& looks) {
  if (++looks % 1000 == 0) std::this_thread::yield();
}

/// Serves nothing; counts what it is told.
class counting_driver final : public cohort::detail::store_driver {
 public:
  using call_pointer = std::shared_ptr<cohort::detail::store_pending>;
  void submit(call_pointer) override {}
  bool taken(call_pointer) override { return true; }
  void abandoned(call_pointer, std::optional<std::string>) override { ++given_up; }
  std::string describe() const override { return "nothing"; }
  void close() noexcept override {}
  std::atomic<int> given_up{0};
};

}  // namespace

TEST_CASE("async_store: a call that is answered while it is cancelled is answered or given up, never both") {
  constexpr int rounds = 60000;
  const auto driver = std::make_shared<counting_driver>();
  std::vector<std::shared_ptr<cohort::detail::store_pending>> calls;
  for (int i = 0; i < rounds; ++i) {
    calls.push_back(std::make_shared<cohort::detail::store_pending>());
    calls.back()->call = cohort::detail::store_call::queue_pop;
    calls.back()->driver = driver;
  }
  std::atomic<int> turn{-1};
  std::atomic<int> cancelled{-1};
  std::thread other([&] {
    for (int i = 0, looks = 0; i < rounds; ++i) {
      while (turn.load() < i) rest(looks);
      calls[static_cast<std::size_t>(i)]->cancel();
      cancelled = i;
    }
  });
  int answered = 0;
  int looks_for_cancel = 0;
  for (int i = 0; i < rounds; ++i) {
    cohort::detail::store_outcome item;
    item.text = "item";
    turn = i;
    for (int looks = i % 1000; looks > 0 && cancelled.load() < i; --looks) continue;  // sooner or later
    if (calls[static_cast<std::size_t>(i)]->succeed(item)) ++answered;
    while (cancelled.load() < i) rest(looks_for_cancel);
  }
  other.join();
  CHECK(answered + driver->given_up.load() == rounds);
}

TEST_CASE("async_store: items that were taken over TCP do not come back when the last handle goes") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  SUBCASE("many, one after the other") {
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 20; ++i) s.queue_push("q", std::to_string(i), soon());
      {
        async_store theirs = over(server);
        std::vector<cohort::store_operation<std::string>> pops;
        for (int i = 0; i < 20; ++i) pops.push_back(theirs.queue_pop("q"));
        for (auto& each : pops) (void)each.wait();
      }
      CHECK(eventually([&] { return server.connections() == 1; }));
      CHECK(s.queue_len("q", soon()) == 0);
    }
  }
  SUBCASE("one, behind much else that is to be sent") {
    s.queue_push("q", "item", soon());
    {
      async_store theirs = over(server);
      auto pop = theirs.queue_pop("q");
      CHECK(eventually([&] { return pop.ready(); }));
      auto large = theirs.set("large", std::string(std::size_t{4} << 20, 'x'));
      CHECK(pop.wait() == "item");
    }
    CHECK(eventually([&] { return server.connections() == 1; }));
    CHECK(s.queue_len("q", soon()) == 0);
  }
  SUBCASE("one, while the server has much to say") {
    const std::string value(std::size_t{8} << 20, 'x');
    s.set("large", value, soon());
    s.queue_push("q", "item", soon());
    {
      async_store theirs = over(server);
      auto pop = theirs.queue_pop("q");
      CHECK(eventually([&] { return pop.ready(); }));
      auto large = theirs.get("large");
      CHECK(pop.wait() == "item");
    }
    CHECK(eventually([&] { return server.connections() == 1; }));
    CHECK(s.queue_len("q", soon()) == 0);
  }
}

TEST_CASE("async_store: a server that no longer listens does not keep the last handle") {
  boost::asio::io_context context;
  std::optional<tcp_store_server> server;
  server.emplace(context, tcp_store_server_options{});
  std::thread serving([&] { context.run(); });
  connect_to(*server).queue_push("q", "item", soon());
  std::optional<async_store> s(over(*server));
  CHECK(s->queue_pop("q").wait() == "item");
  context.stop();
  serving.join();
  const auto started = std::chrono::steady_clock::now();
  s.reset();
  CHECK(std::chrono::steady_clock::now() - started < 20s);
}

TEST_CASE("async_store: an item of a blocking store goes back though the store is gone, or is still there to take") {
  cohort::memory_store shared;
  shared.queue_push("q", "item", soon());
  const auto left = [&] { return shared.queue_len("q", soon()); };
  std::optional<cohort::store_operation<std::string>> pop;
  const auto pop_now = [&](async_store& s) {
    pop.emplace(s.queue_pop("q"));
    CHECK(eventually([&] { return pop->ready(); }));
    CHECK(left() == 0);
  };
  {
    async_store s(shared);
    pop_now(s);
    pop.reset();
  }
  CHECK(left() == 1);
  {
    async_store s(shared);
    pop_now(s);
  }
  CHECK(left() == 0);
  pop.reset();
  CHECK(left() == 1);
  {
    async_store s(shared);
    pop_now(s);
  }
  CHECK(pop->wait() == "item");
  pop.reset();
  CHECK(left() == 0);
}
