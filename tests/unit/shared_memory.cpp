// SPDX-License-Identifier: BSL-1.0
// What ranks of one host share, below the communicators: segments that cannot shrink under their readers, letters that
// only ranks of the job can write, rings that carry every byte once and in order.
#include <doctest/doctest.h>

#include <cohort/transport/shm/mail.hpp>
#include <cohort/transport/shm/ring.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace cohort::transport;

namespace {

std::string unused_name(const char* what) {
  return std::string{"cohort-test-"} + what + "-" + std::to_string(::getpid());
}

letter text_of(std::uint64_t word) {
  letter l;
  l.kind = letter_kind::window;
  l.from = 3;
  l.word = word;
  l.context = 77;
  return l;
}

/// Anybody of this host who knows the name of a mailbox.
void send_raw(const std::string& to, const void* data, std::size_t bytes) {
  const int s = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path + 1, to.data(), to.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + to.size());
  CHECK(::sendto(s, data, bytes, 0, reinterpret_cast<const sockaddr*>(&where), length) == static_cast<ssize_t>(bytes));
  ::close(s);
}

errc code_of(const error& e) { return e.condition(); }

}  // namespace

TEST_CASE("a segment is seen by whoever maps its descriptor, and cannot shrink") {
  const shared_segment mine = shared_segment::create(10000);
  CHECK(mine.size() == 12288);
  std::memset(mine.data(), 7, mine.size());
  const shared_segment theirs = shared_segment::adopt(owned_fd(::dup(mine.fd())), 10000);
  CHECK(theirs.data() != mine.data());
  CHECK(theirs.data()[12287] == std::byte{7});
  theirs.data()[0] = std::byte{9};
  CHECK(mine.data()[0] == std::byte{9});
  CHECK(::ftruncate(mine.fd(), 0) != 0);
}

TEST_CASE("memory that a peer could take away again is refused") {
  const int plain = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(::ftruncate(plain, 4096) == 0);
  try {
    (void)shared_segment::adopt(owned_fd(plain), 4096);
    FAIL("accepted");
  } catch (const error& e) {
    CHECK(code_of(e) == errc::protocol_error);
    CHECK(std::string(e.what()).find("not sealed") != std::string::npos);
  }
  const shared_segment small = shared_segment::create(4096);
  CHECK_THROWS_AS((void)shared_segment::adopt(owned_fd(::dup(small.fd())), 1 << 20), error);
}

TEST_CASE("more memory than a host has is an error, not a signal") {
  try {
    (void)shared_segment::create(std::size_t{1} << 50);
    FAIL("created");
  } catch (const error& e) {
    CHECK((code_of(e) == errc::out_of_memory || code_of(e) == errc::io_error));
    CHECK(std::string(e.what()).find("bytes of shared memory") != std::string::npos);
  }
}

TEST_CASE("a letter brings a descriptor along") {
  host_mail a(unused_name("a"), 111);
  host_mail b(unused_name("b"), 222);
  const shared_segment memory = shared_segment::create(4096);
  memory.data()[5] = std::byte{42};
  a.send(unused_name("b"), text_of(222), memory.fd());
  std::optional<received_letter> got = b.receive();
  REQUIRE(got);
  CHECK(got->text.from == 3);
  CHECK(got->text.context == 77);
  const shared_segment theirs = shared_segment::adopt(std::move(got->enclosed), 4096);
  CHECK(theirs.data()[5] == std::byte{42});
  CHECK_FALSE(b.receive());
}

TEST_CASE("letters without the receiver's word, and scraps, are thrown away") {
  host_mail b(unused_name("word"), 222);
  const letter wrong = text_of(111);
  send_raw(unused_name("word"), &wrong, sizeof wrong);
  const letter right = text_of(222);
  send_raw(unused_name("word"), &right, sizeof right - 1);
  std::vector<char> longer(4 * sizeof right, 'x');
  std::memcpy(longer.data(), &right, sizeof right);
  send_raw(unused_name("word"), longer.data(), longer.size());
  send_raw(unused_name("word"), &right, sizeof right);
  const std::optional<received_letter> got = b.receive();
  REQUIRE(got);
  CHECK(got->text.word == 222);
  CHECK_FALSE(b.receive());
}

TEST_CASE("letters that find no room wait, and keep their order") {
  host_mail a(unused_name("from"), 1);
  host_mail b(unused_name("full"), 2);
  constexpr std::uint64_t many = 2000;
  for (std::uint64_t n = 0; n < many; ++n) {
    letter l = text_of(2);
    l.number = n;
    a.send(unused_name("full"), l);
  }
  CHECK(a.has_waiting());
  std::uint64_t next = 0;
  while (next < many) {
    const std::optional<received_letter> got = b.receive();
    if (!got) {
      a.flush();
      continue;
    }
    REQUIRE(got->text.number == next);
    ++next;
  }
}

TEST_CASE("a ring carries every byte once and in order") {
  ring writer = ring::create();
  ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
  constexpr std::size_t total = std::size_t{24} << 20;
  std::thread other([&] {
    std::mt19937 dice(1);
    std::vector<std::byte> parts[3];
    std::size_t sent = 0;
    while (sent < total) {
      piece from[3];
      std::size_t at = sent;
      for (int i = 0; i < 3; ++i) {
        parts[i].resize(std::min<std::size_t>(dice() % 100000, total - at));
        for (std::byte& b : parts[i]) b = static_cast<std::byte>((at++ * 31) >> 3);
        from[i] = {parts[i].data(), parts[i].size()};
      }
      // What was not taken is offered again.
      std::size_t left = at - sent;
      std::size_t skip = 0;
      while (left > 0) {
        piece rest[3];
        std::size_t n = 0;
        std::size_t to_skip = skip;
        for (const piece& p : from) {
          if (to_skip >= p.bytes) {
            to_skip -= p.bytes;
            continue;
          }
          rest[n++] = {p.data + to_skip, p.bytes - to_skip};
          to_skip = 0;
        }
        const std::size_t done = writer.write({rest, n}).bytes;
        if (done == 0) std::this_thread::yield();
        skip += done;
        left -= done;
      }
      sent = at;
    }
  });
  std::mt19937 dice(2);
  std::size_t received = 0;
  std::size_t wrong = 0;
  std::vector<std::byte> a(70000);
  std::vector<std::byte> b(70000);
  while (received < total) {
    const piece into[2] = {{a.data(), dice() % a.size()}, {b.data(), 1 + dice() % (b.size() - 1)}};
    const std::size_t n = reader.read(into);
    if (n == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte found = i < into[0].bytes ? a[i] : b[i - into[0].bytes];
      if (found != static_cast<std::byte>((received * 31) >> 3)) ++wrong;
      ++received;
    }
  }
  other.join();
  CHECK(wrong == 0);
  CHECK(received == total);
  CHECK_FALSE(reader.has_data());
}

TEST_CASE("short writes, some of them read in parts, arrive once and in order") {
  ring writer = ring::create();
  ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
  constexpr std::size_t total = std::size_t{4} << 20;
  const auto byte_at = [](std::size_t i) { return static_cast<std::byte>((i * 31) >> 3); };
  std::atomic<std::size_t> taken{0};
  std::size_t placed = 0;
  std::thread other([&] {
    std::mt19937 dice(3);
    std::vector<std::byte> bytes;
    for (std::size_t sent = 0; sent < total;) {
      // Around what stands beside the word, and now and then more; often until it has been read, as in a ping-pong.
      const std::size_t most = dice() % 64 == 0 ? 5000 : 70;
      bytes.resize(std::min<std::size_t>(1 + dice() % most, total - sent));
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(sent + i);
      const std::size_t any = dice() % (bytes.size() + 1);
      const std::size_t half = dice() % 2 == 0 ? any : any / 8 * 8;  // headers are of whole words
      const piece from[2] = {{bytes.data(), half}, {bytes.data() + half, bytes.size() - half}};
      std::byte* const place = dice() % 2 == 0 ? writer.place_beside(bytes.size()) : nullptr;
      if (place != nullptr) {
        std::memcpy(place, bytes.data(), bytes.size());
        writer.wrote_beside(bytes.size());
        placed += 1;
      }
      const std::size_t done = place != nullptr ? bytes.size() : writer.write(from).bytes;
      sent += done;
      const bool waits = done < bytes.size() || dice() % 4 != 0;
      while (waits && taken.load(std::memory_order_relaxed) + dice() % 200 < sent) std::this_thread::yield();
    }
  });
  std::mt19937 dice(4);
  std::size_t received = 0;
  std::size_t wrong = 0;
  std::byte a[100];
  std::byte b[100];
  while (received < total) {
    taken.store(received, std::memory_order_relaxed);
    if (!reader.has_data()) {
      std::this_thread::yield();
      continue;
    }
    const std::size_t asked = dice() % sizeof a;
    const std::span<const std::byte> front = reader.front();
    const std::size_t there = front.size();
    for (std::size_t i = 0; i < std::min(asked, there); ++i) wrong += front[i] != byte_at(received + i) ? 1U : 0U;
    if (asked <= there && dice() % 2 == 0) {
      const std::size_t behind = std::min<std::size_t>(dice() % sizeof b, there - asked);
      reader.take(asked, {b, behind});
      received += asked;
      for (std::size_t i = 0; i < behind; ++i) wrong += b[i] != byte_at(received++) ? 1U : 0U;
      continue;
    }
    const piece into[2] = {{a, dice() % sizeof a}, {b, 1 + dice() % (sizeof b - 1)}};
    const std::size_t n = reader.read(into);
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte found = i < into[0].bytes ? a[i] : b[i - into[0].bytes];
      wrong += found != byte_at(received++) ? 1U : 0U;
    }
  }
  other.join();
  CHECK(wrong == 0);
  CHECK(received == total);
  CHECK(placed > 1000);
  CHECK_FALSE(reader.has_data());
}

TEST_CASE("bytes are placed beside a word where they fit, and only while the reader keeps up") {
  ring writer = ring::create();
  ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
  CHECK(writer.place_beside(ring_head::beside + 1) == nullptr);
  // Asking changes nothing.
  CHECK(writer.place_beside(56) == writer.place_beside(ring_head::beside));
  CHECK_FALSE(reader.has_data());
  CHECK(reader.front().empty());
  std::size_t placed = 0;
  while (std::byte* const place = writer.place_beside(8)) {
    std::memset(place, static_cast<int>(placed + 1), 8);
    writer.wrote_beside(8);
    ++placed;
  }
  CHECK(placed == ring_head::entries);
  std::byte got[8];
  for (std::size_t i = 0; i < placed; ++i) {
    REQUIRE(reader.front().size() == 8);
    CHECK(reader.front()[7] == static_cast<std::byte>(i + 1));
    reader.take(0, {got, 8});
    CHECK(got[0] == static_cast<std::byte>(i + 1));
  }
  CHECK_FALSE(reader.has_data());
  CHECK(writer.place_beside(8) != nullptr);
}

TEST_CASE("a ring whose entries are used up has no room until one has been read, and a long write needs one alone") {
  ring writer = ring::create();
  ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
  constexpr std::size_t most = ring_head::entries;
  std::vector<std::byte> sent;
  const auto write = [&](std::size_t bytes) {
    std::vector<std::byte> now(bytes);
    for (std::size_t i = 0; i < bytes; ++i) now[i] = static_cast<std::byte>(((sent.size() + i) * 31) >> 3);
    const piece p{now.data(), bytes};
    const ring::outcome o = writer.write({&p, 1});
    sent.insert(sent.end(), now.begin(), now.begin() + static_cast<std::ptrdiff_t>(o.bytes));
    return o;
  };
  std::vector<std::byte> received;
  const auto read = [&](std::size_t bytes) {
    std::vector<std::byte> now(bytes);
    const piece p{now.data(), bytes};
    now.resize(reader.read({&p, 1}));
    received.insert(received.end(), now.begin(), now.end());
    return now.size();
  };
  for (std::size_t round = 0; round < 3; ++round) {
    // Of short writes and of those that stand in the ring itself.
    for (std::size_t i = 0; i < most; ++i) REQUIRE(write(i % 3 == 2 ? 300 : 1 + i % ring_head::beside).all);
    CHECK(writer.room() == 0);
    const ring::outcome refused = write(8);
    CHECK(refused.bytes == 0);
    CHECK_FALSE(refused.all);
    CHECK(read(1) == 1);  // all of the first write
    reader.tell_read();
    CHECK(writer.room() > 0);
    CHECK(write(100000).all);
    CHECK(writer.room() == 0);
    CHECK(read(200) == 200);
    CHECK(writer.room() == 0);  // said once it is worth it,
    while (read(70000) > 0) continue;
    CHECK(writer.room() == ring::capacity);  // or when nothing else has come
    CHECK(received == sent);
  }
}

TEST_CASE("as many bytes as a ring has room for can be written at once") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    ring writer = ring::create();
    ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
    std::mt19937 dice(seed);
    std::vector<std::byte> bytes(ring::capacity);
    std::size_t short_of_it = 0;
    for (int i = 0; i < 20000; ++i) {
      // Now and then all of the room, where there are many entries left or hardly any.
      const std::size_t room = writer.room();
      const std::size_t longest = dice() % 64 == 0 ? ring::capacity : dice() % 4 == 0 ? 30000 : 300;
      const std::size_t wanted = dice() % 32 == 0 ? room : std::min(room, 1 + dice() % longest);
      const piece p{bytes.data(), wanted};
      if (writer.write({&p, 1}).bytes < wanted) ++short_of_it;
      if (dice() % 100 < (seed % 2 == 0 ? 40 : 70)) {
        const piece into{bytes.data(), 1 + dice() % (2 * longest)};
        static_cast<void>(reader.read({&into, 1}));
        if (dice() % 2 == 0) reader.tell_read();
      }
    }
    CHECK(short_of_it == 0);
  }
}

namespace {

/// `longest`: of the messages that use the same memory again while they are read as they come
void in_a_lap(bool rounds, std::size_t longest) {
  ring writer = ring::create(cohort::transport::ring_room(rounds));
  ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
  const std::byte* const room = writer.memory().data() + ring::head_bytes;
  const auto used = [room] {
    std::size_t most = ring::capacity;
    while (most > 0 && room[most - 1] == std::byte{0}) --most;
    return most;
  };
  std::size_t wrong = 0;
  unsigned made = 0;
  const auto send = [&](std::size_t bytes) {
    const std::vector<std::byte> now(bytes, static_cast<std::byte>(1 + made++ % 255));
    const piece p{const_cast<std::byte*>(now.data()), bytes};
    return writer.write({&p, 1}).all;
  };
  unsigned seen = 0;
  const auto receive = [&](std::size_t bytes) {
    std::vector<std::byte> now(bytes);
    const piece p{now.data(), bytes};
    if (reader.read({&p, 1}) != bytes) ++wrong;
    for (const std::byte b : now) wrong += b != static_cast<std::byte>(1 + seen % 255) ? 1U : 0U;
    ++seen;
  };
  for (const std::size_t bytes : {130U, 700U, 4160U, 6100U, 9000U}) {
    if (bytes > longest) continue;
    for (int i = 0; i < 200; ++i) {
      CHECK(send(bytes));
      receive(bytes);
      CHECK_FALSE(reader.has_data());
    }
  }
  CHECK(used() <= std::size_t{18} << 10);  // a lap of the longest
  // One ahead, as in a stream.
  CHECK(send(1000));
  for (int i = 0; i < 500; ++i) {
    CHECK(send(1000));
    receive(1000);
  }
  CHECK(used() <= std::size_t{18} << 10);
  // Nobody reads: what there is stays as it is, and all of the room is used.
  int ahead = 0;
  for (; send(5000); ++ahead) {}
  CHECK(ahead >= static_cast<int>(ring::capacity / 5000) - 4);
  CHECK(used() > ring::capacity - 5000);
  receive(1000);
  for (; ahead > 0; --ahead) receive(5000);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("messages that are read as they come use the same memory again, and those that are not go on behind") {
  in_a_lap(false, 9000);
  // Where lines pass slowly between first-level caches.
  in_a_lap(true, 6100);
}

TEST_CASE("positions that cannot be do not lead out of the ring") {
  ring writer = ring::create();
  ring reader(shared_segment::adopt(owned_fd(::dup(writer.memory().fd())), ring::segment_bytes));
  for (const std::size_t start : {ring::capacity - 9, ring::capacity, std::size_t{0xffffffff}}) {
    writer.head().written[0].set_start(start);
    writer.head().written[0].word.store(ring_head::word(10, 0));
    CHECK_FALSE(reader.has_data());
  }
  writer.head().written[0].set_start(0);
  writer.head().written[0].word.store(ring_head::word(std::uint64_t{1} << 52, 255));
  std::vector<std::byte> into(ring::capacity * 2);
  const piece all{into.data(), into.size()};
  CHECK(reader.read({&all, 1}) <= ring::capacity);
  reader.head().read.store(~std::uint64_t{0});
  CHECK(writer.write({&all, 1}).bytes <= ring::capacity);
}
