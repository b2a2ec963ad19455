// SPDX-License-Identifier: BSL-1.0
// A rank's mailbox has room for some ten letters, and is full while the rank is busy elsewhere: nothing counts as handed over
// that its reader cannot find without the writer's doing anything more.
#include <doctest/doctest.h>

#include <cohort/transport/shm/links.hpp>
#include <cohort/transport/shm/mail.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/stream.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace cohort;
using namespace cohort::transport;
using namespace std::chrono_literals;

namespace {

host_address address_of(int rank) {
  static std::atomic<int> worlds{0};
  host_address a;
  a.host = "this host";
  a.mail =
      "cohort-test-full-" + std::to_string(::getpid()) + "-" + std::to_string(worlds++) + "-" + std::to_string(rank);
  a.word = 7000U + static_cast<unsigned>(rank);
  return a;
}

/// Until there is no room in it for another; the letters are bells.
void fill(const host_address& mailbox) {
  host_mail stranger("cohort-test-stranger-" + std::to_string(::getpid()), 1);
  letter bell;
  bell.kind = letter_kind::bell;
  bell.from = 0;
  bell.word = mailbox.word;
  // More than any kernel keeps.
  for (int i = 0; i < 5000 && !stranger.has_waiting(); ++i) stranger.send(mailbox.mail, bell);
  REQUIRE(stranger.has_waiting());
}

/// Two ranks of a world of two that have met.
struct pair {
  std::vector<host_address> all{address_of(0), address_of(1)};
  neighbours first{0, 2, all[0]};
  neighbours second{1, 2, all[1]};

  pair() {
    const auto until = neighbours::clock::now() + 10s;
    std::vector<int> seen_by_second;
    std::thread other([&] { seen_by_second = second.meet(all, until); });
    const std::vector<int> seen_by_first = first.meet(all, until);
    other.join();
    REQUIRE(seen_by_first.size() == 2);
    REQUIRE(seen_by_second.size() == 2);
    first.agree({seen_by_first, seen_by_second});
    second.agree({seen_by_first, seen_by_second});
  }
};

std::array<std::byte, 100> numbers() {
  std::array<std::byte, 100> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  return all;
}

}  // namespace

TEST_CASE("a rank that has met all others goes on when they have met it") {
  const std::vector<host_address> all{address_of(0), address_of(1)};
  neighbours mine(0, 2, all[0]);
  host_mail other(all[1].mail, all[1].word);
  fill(all[1]);
  std::atomic<bool> met{false};
  std::vector<int> seen;
  std::thread meeting([&] {
    seen = mine.meet(all, neighbours::clock::now() + 20s);
    met = true;
  });
  const shared_segment desk = shared_segment::create(sizeof(host_desk));
  letter text;
  text.kind = letter_kind::desk;
  text.from = 1;
  text.word = all[0].word;
  text.bytes = desk.size();
  other.send(all[0].mail, text, desk.fd());
  // Long enough for it to read this, if it does not wait for the other's reading too.
  std::this_thread::sleep_for(50ms);
  CHECK_FALSE(met);
  bool found = false;
  for (const auto until = neighbours::clock::now() + 10s; !found && neighbours::clock::now() < until;) {
    const bool all_sent = met;  // asked before what has come is looked at
    const std::optional<received_letter> got = other.receive();
    found = got && got->text.kind == letter_kind::desk && got->text.from == 0;
    if (!got && all_sent) break;
  }
  meeting.join();
  CHECK(found);
  CHECK(seen == std::vector<int>{0, 1});
}

TEST_CASE("a connection in memory takes nothing before its reader can find it") {
  pair ranks;
  fill(ranks.all[1]);
  shm_stream writer(ranks.first, 1, ::getpid());
  shm_stream reader(ranks.second, 0, ::getpid());
  std::array<std::byte, 100> out = numbers();
  const piece all_out[] = {{out.data(), out.size()}};
  boost::system::error_code failure;
  CHECK(writer.has_room(1));  // as far as is known
  CHECK(writer.send(all_out, failure) == 0);
  CHECK_FALSE(failure);
  CHECK_FALSE(writer.has_room(1));
  CHECK(ranks.first.has_waiting(1));
  CHECK(writer.outgoing_cursor(0) != nullptr);
  (void)ranks.first.collect();
  CHECK(writer.send(all_out, failure) == 0);

  (void)ranks.second.collect();  // makes room
  (void)ranks.first.collect();   // which the letter is put into
  CHECK_FALSE(ranks.first.has_waiting(1));
  CHECK(writer.has_room(1));
  CHECK(writer.send(all_out, failure) == out.size());
  CHECK_FALSE(failure);
  // From here on the writer does nothing.
  (void)ranks.second.collect();
  const auto linked = [&reader](int) { return &reader; };
  const auto unusable = [](int, const error& e) { FAIL(e.what()); };
  shm_links::take_rings(ranks.second, linked, unusable);
  REQUIRE(reader.attached());
  std::array<std::byte, 100> in{};
  const piece all_in[] = {{in.data(), in.size()}};
  CHECK(reader.receive(all_in, failure) == in.size());
  CHECK(in == out);
}

TEST_CASE("a full mailbox holds up nobody else's letters") {
  pair ranks;
  fill(ranks.all[1]);
  ranks.first.send(1, letter_kind::refusal, 5, 0);
  CHECK(ranks.first.has_waiting());
  CHECK(ranks.first.has_waiting(1));
  CHECK_FALSE(ranks.first.has_waiting(0));
  CHECK(ranks.first.waiting() == 1);
  (void)ranks.second.collect();
  (void)ranks.first.collect();
  CHECK_FALSE(ranks.first.has_waiting(1));
  (void)ranks.second.collect();
  const auto refusal = [](const letter& l) { return l.kind == letter_kind::refusal && l.from == 0 && l.context == 5; };
  CHECK(ranks.second.take(refusal));
}
