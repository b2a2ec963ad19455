// SPDX-License-Identifier: BSL-1.0
// The meeting of all ranks: the same table for all, or the same error for all who are present.
#include <doctest/doctest.h>

#include <cohort/rendezvous.hpp>
#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/transport/tcp_open_store.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <boost/asio/io_context.hpp>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/child_process.hpp"
#include "../support/free_port.hpp"
#include "store_contract.hpp"

namespace {

using namespace std::chrono_literals;
using cohort::any_store;
using cohort::errc;
using cohort::peer_address;
using cohort::rendezvous;
using cohort::rendezvous_options;
using store_test::failure;
using store_test::soon;

struct outcome {
  std::vector<peer_address> peers{};
  errc code{};
  std::string text{"no error"};
  int peer = -2;
};

outcome attend(any_store& s, const peer_address& self, const rendezvous_options& options) {
  outcome got;
  try {
    got.peers = rendezvous(s, self, options);
  } catch (const cohort::error& e) {
    got.code = e.condition();
    got.text = e.what();
    got.peer = e.peer();
    if (e.operation() == "rendezvous") CHECK(e.rank() == self.rank);
  }
  return got;
}

peer_address someone(int rank, const std::string& host = "h") {
  peer_address p;
  p.rank = rank;
  p.host = host + std::to_string(rank);
  p.address = "10.0.0." + std::to_string(rank);
  p.port = static_cast<std::uint16_t>(1000 + rank);
  p.pid = 100 + rank;
  p.blob = std::string("blob\0", 5) + std::to_string(rank);
  return p;
}

struct guest {
  peer_address self;
  rendezvous_options options;
};

/// One thread per guest, all at one store in memory.
std::vector<outcome> meet_in_memory(const std::vector<guest>& guests,
                                    const cohort::memory_store& shared = cohort::memory_store()) {
  std::vector<outcome> got(guests.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < guests.size(); ++i) {
    threads.emplace_back([&, i] {
      any_store s{shared};
      got[i] = attend(s, guests[i].self, guests[i].options);
    });
  }
  for (std::thread& t : threads) t.join();
  return got;
}

/// Before every key of a meeting with default options.
const std::string prefix = "cohort/meet/" + std::to_string(cohort::detail::fnv1a("")) + "/0/world/";

rendezvous_options options_of(int world_size, std::chrono::nanoseconds timeout = 30s) {
  rendezvous_options o;
  o.world_size = world_size;
  o.timeout = timeout;
  return o;
}

}  // namespace

TEST_CASE("rendezvous: processes meet over TCP, and each has the same table") {
  // Forked first, while this process has no thread. Each rank exits with 0 when it has seen everyone.
  const auto port = static_cast<std::uint16_t>(harness::free_port());
  std::vector<harness::child_process> ranks;
  for (int r = 4; r >= 0; --r) {  // rank 0, which serves, comes last
    ranks.emplace_back([r, port] {
      cohort::launch_info info;
      info.rank = r;
      info.world_size = 5;
      info.master_addr = "127.0.0.1";
      info.master_port = port;
      cohort::opened_store opened = cohort::open_store(info, soon());
      peer_address self = cohort::this_process(r);
      self.port = static_cast<std::uint16_t>(2000 + r);
      const auto peers = rendezvous(opened.table, self, options_of(5));
      // Rank 0 keeps the store until the others have what they came for.
      opened.table.add("left", 1, soon());
      while (r == 0 && opened.table.add("left", 0, soon()) < 5) ::usleep(1000);
      for (int i = 0; i < 5; ++i) {
        const peer_address& p = peers.at(static_cast<std::size_t>(i));
        if (p.rank != i || p.port != 2000 + i || p.host != self.host || p.pid <= 0) return 1;
      }
      return peers.size() == 5 && peers[static_cast<std::size_t>(r)].pid == ::getpid() ? 0 : 2;
    });
  }
  for (harness::child_process& p : ranks) CHECK(p.wait() == 0);
}

TEST_CASE("rendezvous: processes meet in a file") {
  std::string path = std::filesystem::temp_directory_path().string() + "/cohort-meet-XXXXXX";
  const int file = ::mkstemp(path.data());
  REQUIRE(file >= 0);
  ::close(file);
  std::vector<harness::child_process> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.emplace_back([r, &path] {
      any_store s{cohort::file_store(path)};
      return rendezvous(s, cohort::this_process(r), options_of(4)).size() == 4 ? 0 : 1;
    });
  }
  for (harness::child_process& p : ranks) CHECK(p.wait() == 0);

  // The file is still there: a second job at it is told what it has found.
  any_store again{cohort::file_store(path)};
  const outcome late = attend(again, cohort::this_process(2), options_of(4));
  CHECK(late.code == errc::duplicate_rank);
  CHECK(late.text.find("the first of them no longer runs: if the store in file " + path +
                       " is left over from an earlier run, remove it or give this run another id") !=
        std::string::npos);
  ::unlink(path.c_str());
}

TEST_CASE("rendezvous: a missing rank is named with the same text on every present rank, over TCP") {
  const auto port = static_cast<std::uint16_t>(harness::free_port());
  std::array<int, 2> pipe_ends{};
  REQUIRE(::pipe(pipe_ends.data()) == 0);
  std::vector<harness::child_process> ranks;
  for (const int r : {0, 1, 2}) {
    ranks.emplace_back([&, r] {
      cohort::launch_info info;
      info.rank = r;
      info.world_size = 4;
      info.master_addr = "127.0.0.1";
      info.master_port = port;
      cohort::opened_store opened = cohort::open_store(info, soon());
      // Rank 0 serves the store and is the first to give up, when the others have joined.
      if (r == 0) opened.table.wait(std::vector<std::string>{prefix + "rank/1", prefix + "rank/2"}, soon());
      const outcome got = attend(opened.table, cohort::this_process(r), options_of(4, r == 0 ? 300ms : 20s));
      const std::string line = got.text + "\n";
      if (::write(pipe_ends[1], line.data(), line.size()) != static_cast<ssize_t>(line.size())) return 2;
      return got.code == errc::rendezvous_timeout && got.peer == 3 ? 0 : 1;
    });
  }
  ::close(pipe_ends[1]);
  for (harness::child_process& p : ranks) CHECK(p.wait() == 0);
  std::string lines(4096, '\0');
  const ssize_t n = ::read(pipe_ends[0], lines.data(), lines.size());
  ::close(pipe_ends[0]);
  REQUIRE(n > 0);
  lines.resize(static_cast<std::size_t>(n));
  const std::string line = "rendezvous: 3/4 joined, missing rank 3 after 300 ms\n";
  CHECK(lines == line + line + line);
}

TEST_CASE("rendezvous: threads meet in memory") {
  for (const int size : {1, 2, 3, 8}) {
    std::vector<guest> guests;
    std::vector<peer_address> expected;
    for (int r = 0; r < size; ++r) {
      guests.push_back({someone(r), options_of(size)});
      expected.push_back(someone(r));
    }
    for (const outcome& got : meet_in_memory(guests)) {
      CHECK(got.text == "no error");
      CHECK(got.peers == expected);
    }
  }
}

TEST_CASE("rendezvous: rank 0 hears of everyone who joins") {
  std::vector<std::pair<int, std::vector<int>>> heard;
  cohort::memory_store shared;
  rendezvous_options first = options_of(3);
  first.on_progress = [&](int joined, const std::vector<int>& missing) {
    heard.emplace_back(joined, missing);
    // The next one comes only now, so the order is known.
    shared.set("let/" + std::to_string(joined), "", soon());
  };
  std::vector<std::thread> others;
  for (const int r : {2, 1}) {
    others.emplace_back([&shared, r] {
      any_store s{shared};
      (void)s.get(r == 2 ? "let/1" : "let/2", soon());
      CHECK(attend(s, someone(r), options_of(3)).text == "no error");
    });
  }
  any_store s{shared};
  CHECK(attend(s, someone(0), first).text == "no error");
  for (std::thread& t : others) t.join();
  REQUIRE(heard.size() == 3);
  CHECK(heard[0] == std::pair<int, std::vector<int>>{1, {1, 2}});
  CHECK(heard[1] == std::pair<int, std::vector<int>>{2, {1}});
  CHECK(heard[2] == std::pair<int, std::vector<int>>{3, {}});
}

TEST_CASE("rendezvous: whoever gives up first decides for all") {
  for (const int impatient : {0, 2}) {
    std::vector<guest> guests;
    for (const int r : {0, 2, 5}) guests.push_back({someone(r), options_of(8, r == impatient ? 50ms : 30s)});
    const auto started = std::chrono::steady_clock::now();
    for (const outcome& got : meet_in_memory(guests)) {
      CHECK(got.code == errc::rendezvous_timeout);
      // Which of the others had joined by then is a matter of luck on a loaded machine, but not who is missing for
      // good.
      CHECK(got.text.find("/8 joined, missing ranks ") != std::string::npos);
      CHECK(got.text.ends_with("after 50 ms"));
      CHECK(got.peer == -1);
    }
    CHECK(std::chrono::steady_clock::now() - started < 20s);  // nobody waited for a time of its own
  }
}

TEST_CASE("rendezvous: rank 0 says who was missing also when the store then no longer answers") {
  for (const bool ends : {false, true}) {
    CAPTURE(ends);
    boost::asio::io_context reactor;
    std::optional<cohort::tcp_store_server> server{std::in_place, reactor, cohort::tcp_store_server_options{}};
    std::thread serving([&] { reactor.run(); });
    cohort::tcp_store_options where;
    where.where = server->where();
    any_store s{cohort::tcp_store(where, soon())};
    rendezvous_options o = options_of(3, 300ms);
    o.on_progress = [&](int, const std::vector<int>&) {
      reactor.stop();
      serving.join();
      if (!ends) return;
      server.reset();
      reactor.restart();
      reactor.run();
    };
    const outcome got = attend(s, someone(0), o);
    CHECK(got.code == (ends ? errc::store_failed : errc::rendezvous_timeout));
    const std::string name = "the store at 127.0.0.1:" + std::to_string(where.where.port);
    INFO(got.text);
    CHECK(got.text.starts_with("rendezvous: 1/3 joined, missing ranks 1, 2 when " + name +
                               " last answered; then try_get: " + name +
                               (ends ? " went away during the call" : " did not answer within ")));
  }
}

TEST_CASE("rendezvous: a rank that comes after the failure is told of it") {
  cohort::memory_store shared;
  any_store s{shared};
  const outcome first = attend(s, someone(0), options_of(2, 30ms));
  CHECK(first.text == "rendezvous: 1/2 joined, missing rank 1 after 30 ms");
  const outcome late = attend(s, someone(1), options_of(2));
  CHECK(late.code == errc::rendezvous_timeout);
  CHECK(late.text == first.text);
  // The next epoch begins with an empty table.
  rendezvous_options next = options_of(2);
  next.epoch = 1;
  for (const outcome& got : meet_in_memory({{someone(0), next}, {someone(1), next}}, shared))
    CHECK(got.peers.size() == 2);
}

TEST_CASE("rendezvous: jobs, epochs and names at one store do not see each other") {
  cohort::memory_store shared;
  std::vector<guest> guests;
  for (int job = 0; job < 2; ++job) {
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      for (const char* name : {"world", "other"}) {
        for (int r = 0; r < 2; ++r) {
          guest g{someone(r, std::to_string(job) + std::to_string(epoch) + name), options_of(2)};
          g.options.run_id = "job" + std::to_string(job);
          g.options.epoch = epoch;
          g.options.name = name;
          guests.push_back(g);
        }
      }
    }
  }
  const std::vector<outcome> got = meet_in_memory(guests, shared);
  for (std::size_t i = 0; i < guests.size(); ++i) {
    REQUIRE(got[i].peers.size() == 2);
    CHECK(got[i].peers[0] == guests[i - i % 2].self);
    CHECK(got[i].peers[1] == guests[i - i % 2 + 1].self);
  }
}

TEST_CASE("rendezvous: two processes with one rank") {
  cohort::memory_store shared;
  any_store s{shared};
  std::vector<outcome> waiting(2);
  std::vector<std::thread> threads;
  for (const int r : {0, 1}) {
    threads.emplace_back([&, r] {
      any_store mine{shared};
      waiting[static_cast<std::size_t>(r)] = attend(mine, someone(r, "first-"), options_of(3));
    });
  }
  s.wait(std::vector<std::string>{prefix + "rank/0", prefix + "rank/1"}, soon());
  const outcome second = attend(s, someone(1, "second-"), options_of(3));
  for (std::thread& t : threads) t.join();
  CHECK(second.code == errc::duplicate_rank);
  CHECK(second.text == "rendezvous: rank 1 is claimed twice: by host first-1, pid 101 and by host second-1, pid 101");
  for (const outcome& got : waiting) {
    CHECK(got.code == errc::duplicate_rank);
    CHECK(got.text == second.text);
    CHECK(got.peer == 1);
  }
}

TEST_CASE("rendezvous: world sizes that differ") {
  cohort::memory_store shared;
  outcome first;
  std::thread thread([&] {
    any_store mine{shared};
    first = attend(mine, someone(0), options_of(4));
  });
  any_store s{shared};
  s.wait(std::vector<std::string>{prefix + "rank/0"}, soon());
  const outcome other = attend(s, someone(2), options_of(3));
  thread.join();
  CHECK(other.code == errc::world_size_mismatch);
  CHECK(
      other.text ==
      "rendezvous: world sizes differ: rank 2 (host h2, pid 102) was started with 3, rank 0 (host h0, pid 100) with 4");
  CHECK(first.code == errc::world_size_mismatch);
  CHECK(first.text == other.text);
}

TEST_CASE("rendezvous: rank 0 stays for the one whose world size differs, who has not told its address yet") {
  cohort::memory_store shared;
  any_store s{shared};
  s.set(prefix + "size", cohort::detail::encode_record({someone(1), 3, 7}), soon());
  const auto started = std::chrono::steady_clock::now();
  const outcome first = attend(s, someone(0), options_of(2));
  CHECK(first.code == errc::world_size_mismatch);
  // Rank 1 never reads why, so that rank 0 has waited for as long as it waits for anybody.
  CHECK(std::chrono::steady_clock::now() - started >= 900ms);
  const outcome other = attend(s, someone(1), options_of(3));
  CHECK(other.code == errc::world_size_mismatch);
  CHECK(other.text == first.text);
}

TEST_CASE("rendezvous: a store that cannot be reached is named") {
  cohort::launch_info info;
  info.rank = 1;
  info.world_size = 2;
  info.master_addr = "127.0.0.1";
  info.master_port = static_cast<std::uint16_t>(harness::free_port());
  const failure alone = store_test::failure_of([&] { (void)cohort::open_store(info, store_test::in(50ms)); });
  CHECK(alone.code == errc::connection_refused);
  CHECK(alone.says("connect to the store at 127.0.0.1:" + std::to_string(info.master_port)));
}

TEST_CASE("rendezvous: a store that goes away in the middle") {
  auto server = std::make_unique<cohort::tcp_store_server>(cohort::tcp_store_server_options{});
  cohort::tcp_store_options options;
  options.where = server->where();
  any_store s{cohort::tcp_store(options, soon())};
  any_store watcher{cohort::tcp_store(options, soon())};
  outcome got;
  std::thread rank([&] { got = attend(s, someone(1), options_of(2)); });
  watcher.wait(std::vector<std::string>{prefix + "rank/1"}, soon());
  const std::string where = to_string(server->where());
  server.reset();
  rank.join();
  CHECK(got.code == errc::store_failed);
  CHECK(got.text.find("the store at " + where + " went away during the call") != std::string::npos);
}

TEST_CASE("rendezvous: records that nobody here has written") {
  cohort::memory_store shared;
  any_store s{shared};
  shared.set(prefix + "size", "garbage", soon());
  const outcome bad_record = attend(s, someone(0), options_of(2));
  CHECK(bad_record.code == errc::protocol_error);
  CHECK(bad_record.text == "rendezvous: a record in the store in memory is malformed");
  shared.delete_key(prefix + "size", soon());
  shared.set(prefix + "outcome", std::string("T\1\0\0\0", 5), soon());
  shared.set(prefix + "table/0", std::string(100, 'x'), soon());
  const outcome bad_table = attend(s, someone(1), options_of(2));
  CHECK(bad_table.code == errc::protocol_error);
  CHECK(bad_table.text == "rendezvous: the table in the store in memory is malformed");
}

TEST_CASE("rendezvous: blobs larger together than one value of a store") {
  std::vector<guest> guests;
  for (int r = 0; r < 10; ++r) {
    guests.push_back({someone(r), options_of(10)});
    guests.back().self.blob.assign(std::size_t{1} << 20, static_cast<char>('a' + r));
  }
  for (const outcome& got : meet_in_memory(guests)) {
    REQUIRE(got.peers.size() == 10);
    for (std::size_t r = 0; r < 10; ++r) CHECK(got.peers[r] == guests[r].self);
  }
}

TEST_CASE("rendezvous: arguments that are refused before anything is written") {
  any_store s{cohort::memory_store()};
  const auto refused = [&](const peer_address& self, const rendezvous_options& options) {
    const outcome got = attend(s, self, options);
    CHECK(got.code == errc::invalid_argument);
    return got.text;
  };
  CHECK(refused(someone(2), options_of(2)) == "rendezvous: rank 2, expected 0..1");
  CHECK(refused(someone(-1), options_of(2)) == "rendezvous: rank -1, expected 0..1");
  CHECK(refused(someone(0), options_of(0)) == "rendezvous: world size 0, expected 1..65536");
  CHECK(refused(someone(0), options_of(2, 0s)) == "rendezvous: the timeout is not positive");
  peer_address large = someone(0);
  large.blob.assign((std::size_t{1} << 20) + 1, 'x');
  CHECK(refused(large, options_of(2)) == "rendezvous: a blob of 1048577 bytes, the limit is 1 MiB");
  CHECK(s.num_keys("", soon()) == 0);
}

TEST_CASE("rendezvous: rank 0 cannot publish, and everyone is told why") {
  cohort::store_limits limits;
  limits.bytes = std::size_t{6} << 20;  // enough for what the ranks bring, not for the table too
  std::vector<guest> guests;
  for (int r = 0; r < 4; ++r) {
    guests.push_back({someone(r), options_of(4)});
    guests.back().self.blob.assign(std::size_t{1} << 20, 'b');
  }
  const auto got = meet_in_memory(guests, cohort::memory_store(limits));
  for (const outcome& each : got) {
    CHECK(each.code == errc::store_failed);
    CHECK(each.peer == 0);
    CHECK(each.text == got[0].text);
    CHECK(each.text.find("bytes, the limit is 6291456") != std::string::npos);
  }
}

TEST_CASE("rendezvous: a record that is none fails the meeting for everyone") {
  const cohort::memory_store shared;
  cohort::memory_store(shared).set(prefix + "rank/2", "not a record", soon());
  const auto got = meet_in_memory({{someone(0), options_of(3)}, {someone(1), options_of(3)}}, shared);
  for (const outcome& each : got) {
    CHECK(each.code == errc::protocol_error);
    CHECK(each.text == "rendezvous: a record in the store in memory is malformed");
  }
}

TEST_CASE("rendezvous: a record of an impossible world size is not believed") {
  for (const int size : {0, -1, cohort::max_world_size + 1}) {
    const cohort::memory_store shared;
    cohort::detail::rendezvous_record record;
    record.world_size = size;
    record.peer = someone(1);
    cohort::memory_store(shared).set(prefix + "size", cohort::detail::encode_record(record), soon());
    const auto got = meet_in_memory({{someone(0), options_of(2)}}, shared);
    CHECK(got[0].code == errc::protocol_error);
    CHECK(got[0].text == "rendezvous: a record in the store in memory has a world size of " + std::to_string(size) +
                             ", expected 1.." + std::to_string(cohort::max_world_size));
  }
}
