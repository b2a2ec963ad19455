// SPDX-License-Identifier: BSL-1.0
// Stores whose calls are awaited: the contract of every store, on which thread an awaiter wakes, that a call which
// waits holds up none behind it, and what becomes of calls and items that nobody waits for any more.
#include <doctest/doctest.h>

#include <cohort/as_result.hpp>
#include <cohort/asio.hpp>
#include <cohort/run_local.hpp>
#include <cohort/store/async_store.hpp>
#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/tcp_async_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>
#include <cohort/when_all.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "store_contract.hpp"
#include "tcp_store_support.hpp"

using namespace store_test;
using cohort::async_store;
using cohort::sync_wait;
using cohort::task;
using cohort::timeout;
namespace asio = boost::asio;

namespace {

/// An async_store as a blocking one, so that it can be held to the contract.
class blocking {
 public:
  explicit blocking(async_store s) : s_(std::move(s)) {}
  void set(std::string_view k, std::string_view v, cohort::deadline d) { s_.set(k, v, left(d)).wait(); }
  std::string get(std::string_view k, cohort::deadline d) { return s_.get(k, left(d)).wait(); }
  std::optional<std::string> try_get(std::string_view k, cohort::deadline d) { return s_.try_get(k, left(d)).wait(); }
  std::int64_t add(std::string_view k, std::int64_t n, cohort::deadline d) { return s_.add(k, n, left(d)).wait(); }
  std::size_t append(std::string_view k, std::string_view v, cohort::deadline d) {
    return s_.append(k, v, left(d)).wait();
  }
  std::string compare_set(std::string_view k, std::string_view e, std::string_view v, cohort::deadline d) {
    return s_.compare_set(k, e, v, left(d)).wait();
  }
  std::vector<std::string> multi_get(std::span<const std::string> k, cohort::deadline d) {
    return s_.multi_get(k, left(d)).wait();
  }
  void multi_set(std::span<const cohort::key_value> p, cohort::deadline d) { s_.multi_set(p, left(d)).wait(); }
  std::vector<std::string> wait_until(std::span<const std::string> k, cohort::deadline d) {
    return s_.wait_until(k, left(d)).wait();
  }
  void wait(std::span<const std::string> k, cohort::deadline d) { s_.wait(k, left(d)).wait(); }
  bool check(std::span<const std::string> k, cohort::deadline d) { return s_.check(k, left(d)).wait(); }
  bool delete_key(std::string_view k, cohort::deadline d) { return s_.delete_key(k, left(d)).wait(); }
  std::size_t num_keys(std::string_view p, cohort::deadline d) { return s_.num_keys(p, left(d)).wait(); }
  void queue_push(std::string_view k, std::string_view v, cohort::deadline d) { s_.queue_push(k, v, left(d)).wait(); }
  std::string queue_pop(std::string_view k, cohort::deadline d) { return s_.queue_pop(k, left(d)).wait(); }
  std::optional<std::string> try_queue_pop(std::string_view k, cohort::deadline d) {
    return s_.try_queue_pop(k, left(d)).wait();
  }
  std::size_t queue_len(std::string_view k, cohort::deadline d) { return s_.queue_len(k, left(d)).wait(); }
  std::string describe() { return s_.describe(); }

 private:
  static timeout left(cohort::deadline d) { return timeout(d - std::chrono::steady_clock::now()); }
  async_store s_;
};
static_assert(cohort::store<blocking>);
static_assert(cohort::awaitable<cohort::store_operation<std::string>>);
static_assert(!std::is_copy_constructible_v<cohort::store_operation<int>>);

async_store over(const tcp_store_server& server) { return cohort::async_tcp_store(client_of(server), soon()); }

/// A coroutine of somebody else's: starts at once, belongs to nobody, has no executor.
struct detached {
  struct promise_type {
    detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

/// A thread that runs what is handed to it, and coroutines that belong to it.
class loop {
 public:
  loop() : thread_([this] { run(); }) {}
  ~loop() {
    execute(nullptr);
    thread_.join();
  }
  void execute(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_one();
  }
  [[nodiscard]] std::thread::id id() const { return thread_.get_id(); }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !work_.empty(); });
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      if (!next) return;
      next();
    }
  }
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<std::function<void()>> work_{};
  std::thread thread_;
};
struct on_loop {
  struct executor {
    loop* where;
    void execute(std::function<void()> work) const { where->execute(std::move(work)); }
  };
  struct promise_type : detached::promise_type {
    template <class... Rest>
    explicit promise_type(loop& l, Rest&...) : where(&l) {}
    on_loop get_return_object() const noexcept { return {}; }
    executor get_executor() const noexcept { return {where}; }
    loop* where;
  };
};

}  // namespace

TEST_CASE("async_store: keeps the contract over memory, a file and TCP") {
  SUBCASE("memory") {
    store_test::check_store([] {
      const cohort::memory_store shared;
      return [shared] { return blocking(async_store(shared)); };
    });
  }
  SUBCASE("under a prefix") {
    store_test::check_store([] {
      const async_store shared{cohort::memory_store()};
      auto other = shared;
      other.set("p/not-mine", "").wait();
      other.set("q", "").wait();
      return [shared] { return blocking(shared.under("p/").under("x/")); };
    });
  }
  SUBCASE("TCP") {
    store_test::check_store([] {
      const auto server = std::make_shared<tcp_store_server>(tcp_store_server_options{});
      return [server] { return blocking(over(*server)); };
    });
  }
  SUBCASE("several threads on one connection") {
    const tcp_store_server server{tcp_store_server_options{}};
    const async_store shared = over(server);
    store_test::check_across_handles([&] { return blocking(shared); });
    store_test::check_queue_across_handles([&] { return blocking(shared.under("x/")); });
  }
}

namespace {

task<> waits_and_sets(async_store s) {
  const auto here = std::this_thread::get_id();
  auto first = s.get("a", timeout{30s});
  auto second = s.queue_pop("q", timeout{30s});
  std::vector<std::string> names{"a", "b"};
  auto third = s.multi_get(names);
  co_await s.set("b", "2");  // it would not come back from behind the three
  CHECK(std::this_thread::get_id() == here);
  CHECK_FALSE(first.ready());
  CHECK_FALSE(second.ready());
  co_await s.set("a", "1");
  const std::string one = co_await first;
  CHECK(one == "1");
  const std::vector<std::string> both = co_await third;
  CHECK(both == std::vector<std::string>{"1", "2"});
  co_await s.queue_push("q", "item");
  const std::string item = co_await second;
  CHECK(item == "item");
  const std::int64_t sum = co_await s.add("n", 3);
  CHECK(sum == 3);
  const auto nothing = co_await s.try_get("absent");
  CHECK(nothing == std::nullopt);
  auto late = as_result(s.get("absent", timeout{5ms}));
  const auto outcome = co_await late;
  REQUIRE(outcome.has_error());
  CHECK(std::error_code(outcome.error()) == errc::timed_out);
  CHECK(std::this_thread::get_id() == here);
}

}  // namespace

TEST_CASE("async_store: sync_wait wakes on its own thread, and a call that waits holds up none behind it") {
  const tcp_store_server server{tcp_store_server_options{}};
  auto in_memory = waits_and_sets(async_store(cohort::memory_store()));
  sync_wait(in_memory);
  auto over_tcp = waits_and_sets(over(server));
  sync_wait(over_tcp);
}

TEST_CASE("async_store: a rank that waits for the store is woken while the engine sleeps") {
  const tcp_store_server server{tcp_store_server_options{}};
  for (const bool tcp : {false, true}) {
    const cohort::memory_store memory;
    async_store s = tcp ? over(server) : async_store(memory);
    async_store theirs = s;
    // Only when both ranks are in their waits does the other thread do its part.
    std::thread other([theirs]() mutable {
      theirs.wait(std::vector<std::string>{"ready/0", "ready/1"}).wait();
      theirs.set("go", "now").wait();
    });
    const auto here = std::this_thread::get_id();
    const auto rank_main = [&](cohort::communicator<cohort::inproc> world) -> task<> {
      async_store mine = s;
      co_await mine.set("ready/" + std::to_string(world.rank()), "");
      if (world.rank() == 0) {
        const std::string go = co_await mine.get("go", timeout{30s});
        CHECK(go == "now");
      }
      CHECK(std::this_thread::get_id() == here);
      const int total = co_await world.all_reduce(1, cohort::sum{});
      CHECK(total == 2);
      auto both = when_all(mine.add("total", 1), world.barrier());
      co_await both;
      CHECK(std::this_thread::get_id() == here);
    };
    cohort::run_local(2, rank_main);
    other.join();
    CHECK(s.get("total").wait() == "2");
    s.delete_key("ready/0").wait();
    s.delete_key("ready/1").wait();
  }
}

namespace {

detached follow(cohort::communicator<cohort::inproc>& world, async_store s, bool& over, std::thread::id& woke) {
  std::vector<int> token(1);
  co_await world.recv(token, cohort::from{1});  // from here on the engine's turns resume it
  const std::string got = co_await s.get("k");
  CHECK(got == "v");
  woke = std::this_thread::get_id();
  over = true;
}

}  // namespace

TEST_CASE("async_store: a coroutine that an engine resumes is woken by that engine's turns") {
  const auto hub =
      std::make_shared<cohort::transport::inproc_hub>(2, cohort::transport::inproc_hub::threading::one_thread);
  auto zero = cohort::make_local_world(hub, 0);
  auto one = cohort::make_local_world(hub, 1);
  async_store s{cohort::memory_store()};
  bool over = false;
  std::thread::id woke;
  follow(zero, s, over, woke);
  const std::vector<int> token{1};
  one.send(token, cohort::to{0}).wait();
  while (s.num_keys().wait() == 0) {  // the get is in flight long before the key comes
    zero.poll();
    s.set("k", "v").wait();
  }
  CHECK(eventually([&] {
    zero.poll();
    return over;
  }));
  CHECK(woke == std::this_thread::get_id());
}

namespace {

on_loop belongs(loop&, async_store& s, std::promise<std::thread::id>& woke) {
  const std::string got = co_await s.get("k", timeout{30s});
  CHECK(got == "v");
  woke.set_value(std::this_thread::get_id());
}

detached alone(async_store& s, std::promise<std::thread::id>& woke) {
  const std::string got = co_await s.get("k", timeout{30s});
  CHECK(got == "v");
  woke.set_value(std::this_thread::get_id());
}

}  // namespace

TEST_CASE("async_store: a coroutine with an executor wakes there, one that nothing drives on the store's thread") {
  const tcp_store_server server{tcp_store_server_options{}};
  for (async_store s : {async_store(cohort::memory_store()), over(server)}) {
    std::promise<std::thread::id> on_executor;
    std::promise<std::thread::id> elsewhere;
    loop its;
    belongs(its, s, on_executor);
    alone(s, elsewhere);
    s.set("k", "v").wait();
    CHECK(on_executor.get_future().get() == its.id());
    CHECK(elsewhere.get_future().get() != std::this_thread::get_id());
  }
}

TEST_CASE("async_store: in asio::awaitable, as a future, and cancelled") {
  const tcp_store_server server{tcp_store_server_options{}};
  for (async_store s : {async_store(cohort::memory_store()), over(server)}) {
    asio::io_context io;
    const auto here = std::this_thread::get_id();
    const auto main = [&]() -> asio::awaitable<int> {
      auto later = s.get("a", timeout{30s});
      co_await s.set("a", "20");
      const std::string a = co_await std::move(later);
      const std::int64_t sum = co_await s.add("a", 22);
      CHECK(std::this_thread::get_id() == here);
      const auto [failure, none] = co_await s.get("b", timeout{2ms})(asio::as_tuple(asio::use_awaitable));
      CHECK(failure != nullptr);
      CHECK(a == "20");
      co_return static_cast<int>(sum);
    };
    auto result = asio::co_spawn(io, main(), asio::use_future);
    io.run();
    CHECK(result.get() == 42);
    CHECK(s.get("a")(asio::use_future).get() == "42");
    io.restart();
    asio::cancellation_signal stop;
    std::exception_ptr why;
    const auto on_end = [&](std::exception_ptr failure, std::string) { why = failure; };
    s.queue_pop("q")(asio::bind_cancellation_slot(stop.slot(), asio::bind_executor(io, on_end)));
    stop.emit(asio::cancellation_type::terminal);
    CHECK(why == nullptr);  // posted, not called from inside
    io.run();
    REQUIRE(why != nullptr);
    const failure cancelled = failure_of([&] { std::rethrow_exception(why); });
    CHECK(cancelled.code == errc::cancelled);
    CHECK(cancelled.text == "queue_pop: cancelled before the store answered");
    s.queue_push("q", "kept").wait();
    CHECK(s.queue_pop("q").wait() == "kept");
  }
}

TEST_CASE("async_store: a queue_pop that is dropped takes no item with it") {
  const tcp_store_server server{tcp_store_server_options{}};
  for (const bool tcp : {false, true}) {
    async_store s = tcp ? over(server) : async_store(cohort::memory_store());
    { [[maybe_unused]] auto waits = s.queue_pop("q"); }
    s.queue_push("q", "a").wait();
    {
      auto served = s.queue_pop("q");
      CHECK(eventually([&] { return served.ready(); }));
      CHECK(s.queue_len("q").wait() == 0);
    }
    CHECK(s.queue_pop("q").wait() == "a");
    if (!tcp) continue;
    // To its old place, where the server has lent it.
    s.queue_push("q", "b").wait();
    s.queue_push("q", "c").wait();
    {
      auto served = s.try_queue_pop("q");
      CHECK(eventually([&] { return served.ready(); }));
    }
    CHECK(s.queue_pop("q").wait() == "b");
    CHECK(s.queue_pop("q").wait() == "c");
    // The connection ends with an item that was not taken: the next client's, and an error here.
    s.queue_push("q", "d").wait();
    auto served = s.queue_pop("q");
    CHECK(eventually([&] { return served.ready(); }));
    s = async_store(cohort::memory_store());
    const failure gone = failure_of([&] { (void)served.wait(); });
    CHECK(gone.code == errc::store_failed);
    CHECK(gone.text ==
          "queue_pop: the connection ended before the item of \"q\" was taken; it has gone back to its queue");
    CHECK(connect_to(server).queue_pop("q", soon()) == "d");
  }
}

TEST_CASE("async_store: a coroutine that is destroyed while it waits is not resumed") {
  const tcp_store_server server{tcp_store_server_options{}};
  for (async_store s : {async_store(cohort::memory_store()), over(server)}) {
    const auto first_ends = [](async_store store) -> task<> {
      const auto waits = [](async_store inner) -> task<> {
        co_await inner.get("never");
        FAIL("resumed");
      };
      const auto fails = [](async_store inner) -> task<> {
        co_await inner.set("k", "");
        throw std::runtime_error("as it should");
      };
      auto one = waits(store);
      auto two = fails(store);
      // The wait below is left by an exception: what it waited for goes with it.
      struct eager {
        struct promise_type : detached::promise_type {
          eager get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
          std::suspend_always final_suspend() const noexcept { return {}; }
        };
        std::coroutine_handle<promise_type> handle;
      };
      const auto start = [](task<>& t) -> eager { co_await t; };
      const eager background = start(one);
      try {
        co_await two;
      } catch (...) {
        background.handle.destroy();
        throw;
      }
    };
    auto all = first_ends(s);
    CHECK_THROWS_WITH_AS(sync_wait(all), "as it should", std::runtime_error);
    s.set("never", "after all").wait();
  }
}

TEST_CASE("async_store: the last handle, a server that dies, and one that is stopped") {
  auto server = std::make_unique<tcp_store_server>(tcp_store_server_options{});
  const std::string where = to_string(server->where());
  {
    std::optional<async_store> s(over(*server));
    auto waits = s->get("never");
    s.reset();
    const failure closed = failure_of([&] { (void)waits.wait(); });
    CHECK(closed.code == errc::store_failed);
    CHECK(closed.text == "get: the store at " + where + " is not connected: the async_store was closed");
    s.emplace(cohort::memory_store());
    auto also = s->wait(std::vector<std::string>{"never"});
    s.reset();
    CHECK(failure_of([&] { also.wait(); }).text == "wait: the async_store for the store in memory was closed");
  }
  async_store s = over(*server);
  auto waits = s.get("never");
  s.set("a", "1").wait();
  server.reset();
  const failure lost = failure_of([&] { (void)waits.wait(); });
  CHECK(lost.code == errc::store_failed);
  CHECK(lost.says("get: the store at " + where + " is not connected: it went away ("));
  CHECK(failure_of([&] { s.set("a", "2").wait(); }).code == errc::store_failed);

  asio::io_context context;  // not running: like a process that is stopped
  const tcp_store_server stuck(context, tcp_store_server_options{});
  std::thread opening([&] { context.run_for(100ms); });
  async_store slow = over(stuck);
  opening.join();
  const failure late = failure_of([&] { slow.set("a", "1", timeout{10ms}).wait(); });
  CHECK(late.code == errc::timed_out);
  CHECK(late.says("set: the store at "));
  CHECK(late.says(" did not answer within "));
}

TEST_CASE("async_store: many calls wait at once on one connection, and one more is refused") {
  const tcp_store_server server{tcp_store_server_options{}};
  async_store s = over(server);
  std::vector<cohort::store_operation<std::string>> waits;
  for (int i = 0; i < 64; ++i) waits.push_back(s.get("k" + std::to_string(i)));
  CHECK(failure_of([&] { (void)s.get("one more").wait(); }).says("this client has 64 calls waiting for 64 keys"));
  waits.pop_back();  // given up: there is room again
  auto again = s.get("one more");
  std::vector<cohort::store_operation<void>> sets;
  for (int i = 0; i < 63; ++i) sets.push_back(s.set("k" + std::to_string(i), std::to_string(i)));
  sets.push_back(s.set("one more", "!"));
  for (auto& each : sets) each.wait();
  for (int i = 0; i < 63; ++i) CHECK(waits[static_cast<std::size_t>(i)].wait() == std::to_string(i));
  CHECK(again.wait() == "!");
}
