// SPDX-License-Identifier: BSL-1.0
// The TCP store: the contract of every store, clients and servers that are killed, and what each refusal says.
#include <doctest/doctest.h>

#include <cohort/launch.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_open_store.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../support/child_process.hpp"
#include "store_contract.hpp"
#include "tcp_store_support.hpp"

using namespace store_test;

TEST_CASE("tcp_store: processes use it while others are killed at random moments") {
  // The clients are forked before this process has a thread; the server comes after them and they wait for it.
  const endpoint where = unused();
  constexpr int survivors = 3;
  constexpr int rounds = 400;
  tcp_store_options options;
  options.where = where;
  std::vector<harness::child_process> working;
  for (int r = 0; r < survivors; ++r) {
    working.emplace_back([&options, r] {
      tcp_store s(options, soon());
      for (int i = 1; i <= rounds; ++i) {
        s.add("total", 1, soon());
        if (s.add("own/" + std::to_string(r), 1, soon()) != i) return 1;
      }
      s.set("done/" + std::to_string(r), "", soon());
      s.wait(std::vector<std::string>{"done/0", "done/1", "done/2"}, soon());
      return 0;
    });
  }
  constexpr int victims = 12;
  std::vector<harness::child_process> doomed;
  for (int v = 0; v < victims; ++v) {
    doomed.emplace_back([&options, v] {
      tcp_store s(options, soon());
      const std::string large(1000000, 'v');
      if (v % 3 == 0) (void)s.get("never", soon());
      for (;;) {
        s.add("total", 1, soon());
        s.add("victims", 1, soon());
        s.set("large", large, soon());
        (void)s.get("large", soon());
      }
      return 0;
    });
  }
  tcp_store_server_options served;
  served.where = where;
  const tcp_store_server server(served);
  std::mt19937 random(13);
  for (harness::child_process& victim : doomed) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));  // the random moment of the kill
    victim.send_signal(SIGKILL);
    CHECK(victim.wait() == 128 + SIGKILL);
  }
  for (harness::child_process& p : working) CHECK(p.wait() == 0);
  tcp_store s = connect_to(server);
  const std::int64_t by_victims = s.add("victims", 0, soon());
  const std::int64_t total = s.add("total", 0, soon());
  CHECK(total >= survivors * rounds + by_victims);
  CHECK(total <= survivors * rounds + by_victims + victims);
  CHECK(eventually([&] { return server.connections() == 1; }));
}

TEST_CASE("tcp_store: the server dies under its clients") {
  const endpoint where = unused();
  tcp_store_options options;
  options.where = where;
  harness::child_process server([&where] {
    tcp_store_server_options served;
    served.where = where;
    const tcp_store_server it(served);
    tcp_store(client_of(it), soon()).wait(std::vector<std::string>{"end"}, soon());
    std::raise(SIGKILL);
    return 0;
  });
  tcp_store s(options, soon());
  tcp_store other(options, soon());
  other.set("a", "1", soon());
  std::thread end([&s] { s.set("end", "", soon()); });
  const failure lost = failure_of([&] { (void)other.get("never", soon()); });
  end.join();
  CHECK(server.wait() == 128 + SIGKILL);
  CHECK(lost.code == errc::store_failed);
  CHECK(lost.says("get: the store at " + to_string(where) + " went away during the call ("));
  const failure later = failure_of([&] { other.set("a", "2", soon()); });
  CHECK(later.code == errc::store_failed);
  CHECK(later.says("is not connected: it went away ("));
}

TEST_CASE("tcp_store: keeps the contract") {
  store_test::check_store([] {
    const auto server = std::make_shared<tcp_store_server>(tcp_store_server_options{});
    return [server] { return connect_to(*server); };
  });
}

TEST_CASE("tcp_store: over IPv6, and under the type-erased store") {
  if (!has_ipv6()) {
    MESSAGE("skipped: this host has no IPv6 loopback address");
    return;
  }
  tcp_store_server_options served;
  served.where = {"::1", 0};
  const tcp_store_server server(served);
  CHECK(to_string(server.where()).starts_with("[::1]:"));
  cohort::any_store s(connect_to(server));
  s.set("a", "1", soon());
  CHECK(s.get("a", soon()) == "1");
  CHECK(s.describe() == "the store at " + to_string(server.where()));
}

TEST_CASE("tcp_store: a server on an io_context of the program's, with two threads") {
  boost::asio::io_context context;
  auto server = std::make_unique<tcp_store_server>(context, tcp_store_server_options{});
  std::thread one([&] { context.run(); });
  std::thread two([&] { context.run(); });
  store_test::check_across_handles([&] { return connect_to(*server); });
  server.reset();  // its handlers end, and with them the work of the context
  one.join();
  two.join();
}

TEST_CASE("tcp_store: a server whose io_context never runs again leaves nothing behind") {
  boost::asio::io_context context;
  {
    const tcp_store_server server(context, tcp_store_server_options{});
    context.poll();
    raw_client client(server.where());
    context.poll();
  }
}

TEST_CASE("tcp_store: it listens on the given address only") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store_options elsewhere = client_of(server);
  elsewhere.where.host = "127.0.0.2";  // loopback too, but not what was asked for
  CHECK(failure_of([&] { tcp_store s(elsewhere, in(30ms)); }).code == errc::connection_refused);
  if (!has_ipv6()) return;
  elsewhere.where.host = "::1";
  CHECK(failure_of([&] { tcp_store s(elsewhere, in(30ms)); }).code == errc::connection_refused);
}

TEST_CASE("tcp_store: a port that is taken") {
  const tcp_store_server first{tcp_store_server_options{}};
  tcp_store_server_options same;
  same.where = first.where();
  const failure taken = failure_of([&] { const tcp_store_server second(same); });
  CHECK(taken.code == errc::address_in_use);
  CHECK(taken.text == "listen on " + to_string(first.where()) +
                          ": Address already in use; another program listens there: choose another port with "
                          "COHORT_MASTER_PORT on every rank");
  check_service(first);
}

TEST_CASE("tcp_store: an address of another host") {
  tcp_store_server_options far;
  far.where = {"192.0.2.1", 0};  // reserved for documentation
  far.insecure_network = true;
  const failure foreign = failure_of([&] { const tcp_store_server s(far); });
  CHECK(foreign.code == errc::io_error);
  CHECK(foreign.says("the address is not one of this host: MASTER_ADDR must name the host of rank 0"));
}

TEST_CASE("tcp_store: nobody there") {
  const endpoint where = unused();
  tcp_store_options options;
  options.where = where;
  const auto started = std::chrono::steady_clock::now();
  const failure refused = failure_of([&] { tcp_store s(options, in(120ms)); });
  CHECK(std::chrono::steady_clock::now() - started >= 120ms);  // it tries until the deadline
  CHECK(refused.code == errc::connection_refused);
  CHECK(refused.says("connect to the store at " + to_string(where) + ": Connection refused for "));
  CHECK(refused.says("is rank 0 running, and do MASTER_ADDR and MASTER_PORT name its address?"));
}

TEST_CASE("tcp_store: a host without an address") {
  tcp_store_options options;
  options.where = {"no-such-host.invalid", 1};
  const failure unknown = failure_of([&] { tcp_store s(options, in(2s)); });
  CHECK(unknown.code == errc::cannot_resolve);
  const std::string_view before_the_resolvers_words = "cannot resolve host \"no-such-host.invalid\": ";
  CHECK(unknown.text.starts_with(before_the_resolvers_words));
  CHECK(unknown.text.size() > before_the_resolvers_words.size());
}

TEST_CASE("tcp_store: host names are resolved") {
  CHECK_FALSE(cohort::transport::resolve("localhost", 5, soon()).empty());
  for (const auto& e : cohort::transport::resolve("localhost", 5, soon())) {
    CHECK(e.address().is_loopback());
    CHECK(e.port() == 5);
  }
}

TEST_CASE("tcp_store: what listens there is something else") {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor acceptor(context, {boost::asio::ip::make_address("127.0.0.1"), 0});
  tcp_store_options options;
  options.where = {"127.0.0.1", acceptor.local_endpoint().port()};
  SUBCASE("it speaks another protocol") {
    std::thread other([&] {
      boost::asio::ip::tcp::socket s = acceptor.accept();
      boost::asio::write(s, boost::asio::buffer(std::string_view("HTTP/1.1 400 Bad Request\r\n\r\n")));
      char one = 0;
      boost::system::error_code ended;
      while (!ended) s.read_some(boost::asio::buffer(&one, 1), ended);
    });
    const failure alien = failure_of([&] { tcp_store s(options, soon()); });
    other.join();
    CHECK(alien.code == errc::protocol_error);
    CHECK(alien.says("is not one of cohort: it answers with \"HTTP/1.1\""));
  }
  SUBCASE("it says nothing") {
    const failure silent = failure_of([&] { tcp_store s(options, in(50ms)); });
    CHECK(silent.code == errc::store_failed);
    CHECK(silent.says("accepts connections but has not answered a hello for "));
  }
}

TEST_CASE("tcp_store: a server that has stopped answering") {
  boost::asio::io_context context;  // not running: like a process that is stopped
  const tcp_store_server server(context, tcp_store_server_options{});
  std::thread opening([&] { context.run_for(100ms); });
  tcp_store s = connect_to(server);
  opening.join();
  const failure stuck = failure_of([&] { s.set("a", "1", in(20ms)); });
  CHECK(stuck.code == errc::timed_out);
  CHECK(stuck.says("did not answer within "));
  CHECK(failure_of([&] { s.set("a", "1", soon()); }).says("is not connected: it did not answer an earlier call"));
}

TEST_CASE("tcp_store: hellos that are refused, with both values") {
  tcp_store_server_options served;
  served.run_id = "mine";
  served.epoch = 2;
  served.world_size = 4;
  served.compare_world_size = true;
  const tcp_store_server server(served);
  tcp_store_options good = client_of(server);
  good.run_id = "mine";
  good.epoch = 2;
  good.world_size = 4;
  good.rank = 3;
  { tcp_store s(good, soon()); }
  const auto refused = [&](auto change) {
    tcp_store_options bad = good;
    change(bad);
    return failure_of([&] { tcp_store s(bad, soon()); });
  };
  const failure job = refused([](tcp_store_options& o) { o.run_id = "yours"; });
  CHECK(job.code == errc::wrong_job);
  CHECK(job.says("connect: the store at " + to_string(server.where()) +
                 " refused this process: it belongs to another job"));
  const failure epoch = refused([](tcp_store_options& o) { o.epoch = 1; });
  CHECK(epoch.code == errc::wrong_job);
  CHECK(epoch.says("it is in another epoch of the job: it has 2, this process has 1"));
  const failure world = refused([](tcp_store_options& o) { o.world_size = 5; });
  CHECK(world.code == errc::world_size_mismatch);
  CHECK(world.says("the world sizes differ: it has 4, this process has 5"));
  const failure rank = refused([](tcp_store_options& o) { o.rank = 4; });
  CHECK(rank.code == errc::protocol_error);
  CHECK(rank.says("it knows ranks up to 3, this process is rank 4"));
  tcp_store s(good, soon());
  s.set("a", "1", soon());
}

TEST_CASE("tcp_store: the job's secret") {
  tcp_store_server_options served;
  served.secret = "0123456789abcdef";
  const tcp_store_server server(served);
  tcp_store_options options = client_of(server);
  options.secret = served.secret;
  tcp_store s(options, soon());
  s.set("a", "1", soon());
  options.secret = "fedcba9876543210";
  const failure wrong = failure_of([&] { tcp_store bad(options, soon()); });
  CHECK(wrong.code == errc::wrong_job);
  CHECK(wrong.says("it has another secret than this process"));
  options.secret.clear();
  CHECK(failure_of([&] { tcp_store bad(options, soon()); }).says("it has a secret, this process has none"));

  const tcp_store_server open{tcp_store_server_options{}};
  options = client_of(open);
  options.secret = served.secret;
  CHECK(failure_of([&] { tcp_store bad(options, soon()); }).says("it has no secret, this process has one"));

  // A hello that was overheard is not accepted twice.
  cohort::transport::hello h;
  h.nonce[0] = 1;
  const auto overheard = cohort::transport::sealed(h, served.secret);
  const auto verdict_of = [&] {
    raw_client c(server.where());
    c.send(cohort::detail::as_text(overheard));
    const std::string reply = c.receive(cohort::transport::hello_size);
    cohort::transport::hello_bytes bytes{};
    REQUIRE(reply.size() == bytes.size());
    std::copy(reply.begin(), reply.end(), bytes.begin());
    return cohort::transport::decode_reply(bytes)->verdict;
  };
  CHECK(verdict_of().accepted());
  CHECK(verdict_of().field == cohort::transport::hello_field::proof);
}

TEST_CASE("tcp_store: a listener that strangers could reach needs a secret") {
  tcp_store_server_options wide;
  wide.where = {"0.0.0.0", 0};
  const failure unsafe = failure_of([&] { const tcp_store_server s(wide); });
  CHECK(unsafe.code == errc::insecure_network);
  CHECK(unsafe.says("listening on 0.0.0.0:0 without a job secret"));
  CHECK(unsafe.says("start the ranks with `cohort run`"));
  CHECK(unsafe.says("COHORT_INSECURE_NETWORK=1"));
  wide.where.host = "::";
  CHECK(failure_of([&] { const tcp_store_server s(wide); }).code == errc::insecure_network);
  wide.insecure_network = true;
  { const tcp_store_server s(wide); }
  wide.insecure_network = false;
  wide.secret = "0123456789abcdef";
  { const tcp_store_server s(wide); }

  // Every rank says so, not only the one that would listen.
  cohort::launch_info info;
  info.world_size = 2;
  info.master_addr = "192.0.2.1";
  info.master_port = 1;
  for (info.rank = 0; info.rank < 2; ++info.rank) {
    CHECK(failure_of([&] { (void)cohort::open_store(info, soon()); }).code == errc::insecure_network);
  }
}

TEST_CASE("tcp_store: open_store serves on rank 0 and connects everywhere") {
  cohort::launch_info info;
  info.world_size = 2;
  info.master_addr = "127.0.0.1";
  info.master_port = unused().port;
  info.run_id = "r";
  cohort::launch_info other = info;
  other.rank = 1;
  std::string seen;
  std::thread second([&] {  // it starts first or second, as it happens
    cohort::opened_store s = cohort::open_store(other, soon());
    seen = s.table.get("hello", soon());
    s.table.set("seen", "", soon());
  });
  cohort::opened_store s = cohort::open_store(info, soon());
  CHECK(s.server != nullptr);
  s.table.set("hello", "from rank 0", soon());
  s.table.wait(std::vector<std::string>{"seen"}, soon());
  second.join();
  CHECK(seen == "from rank 0");

  CHECK(cohort::open_store(cohort::launch_info{}, soon()).table.describe() == "the store in memory");
}
