// SPDX-License-Identifier: BSL-1.0
// Where the writer of a ring puts its bytes: never over what has not been read, all of the room if nobody reads, and the same
// few lines if somebody does, or of longer messages, where that is slow, other ones each time.
#include <doctest/doctest.h>

#include <cohort/transport/shm/ring_room.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

using cohort::transport::ring_room;

namespace {

/// A room, and which of its bytes have not been read.
class modelled_room {
 public:
  explicit modelled_room(bool rounds) : room(rounds) {}

  /// What of `wanted` bytes could be written.
  std::size_t write(std::size_t wanted) {
    std::size_t done = 0;
    if (room.fits(wanted)) {
      put({room.next(), wanted});
      return wanted;
    }
    room.note_read(read_);
    while (done < wanted) {
      const ring_room::place p = room.find(wanted - done);
      if (p.bytes == 0) break;
      put(p);
      done += p.bytes;
    }
    return done;
  }
  /// The reader reads some, and says so now or later.
  void read(std::size_t bytes) {
    while (bytes > 0 && !unread_.empty()) {
      ring_room::place& first = unread_.front();
      const std::size_t part = std::min(bytes, first.bytes);
      std::memset(taken_.data() + first.start, 0, part);
      first.start += part;
      first.bytes -= part;
      read_ += part;
      bytes -= part;
      if (first.bytes == 0) unread_.pop_front();
    }
  }
  [[nodiscard]] std::size_t unread() const { return static_cast<std::size_t>(room.written() - read_); }
  [[nodiscard]] std::uint64_t position() const { return read_; }

  ring_room room;
  std::size_t overwritten = 0;
  std::size_t outside = 0;
  std::size_t highest = 0;

 private:
  void put(const ring_room::place& p) {
    if (p.start > ring_room::capacity || p.bytes > ring_room::capacity - p.start) {
      ++outside;
      return;
    }
    if (std::memchr(taken_.data() + p.start, 1, p.bytes) != nullptr) ++overwritten;
    std::memset(taken_.data() + p.start, 1, p.bytes);
    unread_.push_back(p);
    highest = std::max(highest, p.start + p.bytes);
    room.advance(p.bytes);
  }

  std::vector<unsigned char> taken_ = std::vector<unsigned char>(ring_room::capacity);
  std::deque<ring_room::place> unread_{};
  std::uint64_t read_ = 0;
};

}  // namespace

TEST_CASE("what has not been read is never written over, whoever is ahead") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 dice(seed);
    modelled_room m(seed % 2 == 0);
    std::size_t short_of_promise = 0;
    for (int i = 0; i < 4000; ++i) {
      const std::size_t longest = dice() % 8 == 0 ? 100000 : dice() % 2 == 0 ? 9000 : 200;
      const std::size_t wanted = 1 + dice() % longest;
      if (dice() % 16 == 0) {
        m.room.note_read(m.position());
        const std::size_t promised = m.room.room(2);
        const std::size_t done = m.write(wanted);
        if (done < std::min(wanted, promised)) ++short_of_promise;
      } else {
        static_cast<void>(m.write(wanted));
      }
      // A reader that keeps up, and one that is away for a while.
      if (dice() % 500 < 400) m.read(dice() % 4 == 0 ? m.unread() : 1 + dice() % longest);
    }
    CHECK(m.overwritten == 0);
    CHECK(m.outside == 0);
    CHECK(short_of_promise == 0);
    m.read(m.unread());
    m.room.note_read(m.position());
    CHECK(m.room.room(1) == ring_room::capacity);
  }
}

TEST_CASE("short messages stay in a lap while their reader keeps up, also one or two behind") {
  for (const bool rounds : {false, true}) {
    for (const std::size_t bytes : {121U, 500U, 1024U, 1064U, 2112U}) {
      if (rounds && bytes >= ring_room::shortest_round) continue;
      for (const std::size_t behind : {std::size_t{0}, bytes, 2 * bytes}) {
        modelled_room m(rounds);
        for (int i = 0; i < 1000; ++i) {
          REQUIRE(m.write(bytes) == bytes);
          if (m.unread() > behind) m.read(bytes);
        }
        CAPTURE(rounds);
        CAPTURE(bytes);
        CAPTURE(behind);
        CHECK(m.highest <= 2 * ring_room::lap);
        CHECK(m.overwritten == 0);
      }
    }
  }
}

TEST_CASE("messages of which one fits a lap take turns in two of them, also while their reader is one behind") {
  for (const std::size_t bytes : {3073U, 4144U, 6144U}) {
    for (const std::size_t behind : {std::size_t{0}, bytes}) {
      CAPTURE(bytes);
      CAPTURE(behind);
      modelled_room m(false);
      std::size_t first = 0;
      for (int i = 0; i < 1000; ++i) {
        const std::size_t before = m.highest;
        REQUIRE(m.write(bytes) == bytes);
        if (m.highest > before) ++first;  // never written to until now
        if (m.unread() > behind) m.read(bytes);
      }
      CHECK(first >= 2);
      CHECK(m.highest <= 2 * ring_room::lap + behind);
      CHECK(m.overwritten == 0);
    }
  }
}

TEST_CASE("where lines pass slowly between first-level caches longer messages go to another place each time") {
  const auto places = [](std::size_t bytes, std::size_t behind) {
    modelled_room m(true);
    std::size_t most = 0;
    for (int i = 0; i < 1000; ++i) {
      REQUIRE(m.write(bytes) == bytes);
      if (m.unread() > behind) m.read(bytes);
      most = std::max(most, m.highest);
    }
    CHECK(m.overwritten == 0);
    return most;
  };
  for (const std::size_t bytes : {2048U, 4144U, 6144U, 8192U, 16432U, 32816U}) {
    CAPTURE(bytes);
    for (const std::size_t behind : {bytes, 2 * bytes}) CHECK(places(bytes, behind) > ring_room::capacity / 2);
    // One at a time: the same place again, unless it is longer than a lap.
    if (bytes <= ring_room::lap) {
      CHECK(places(bytes, 0) <= 2 * ring_room::lap);
    } else {
      CHECK(places(bytes, 0) > ring_room::capacity / 2);
    }
  }
}

TEST_CASE("a reader that has read all leaves all of the room, in one piece") {
  for (const bool rounds : {false, true}) {
    for (const std::size_t bytes : {100U, 4144U, 8192U, 60000U}) {
      modelled_room m(rounds);
      for (int i = 0; i < 40; ++i) {
        REQUIRE(m.write(bytes) == bytes);
        m.read(m.unread());
        if (i < 20) continue;
        m.room.note_read(m.position());
        CHECK(m.room.room(1) == ring_room::capacity);
        ring_room copy = m.room;
        CHECK(copy.find(ring_room::capacity).bytes == ring_room::capacity);
      }
    }
  }
}

TEST_CASE("a reader that stops, wherever it is, leaves nearly all of the room") {
  for (std::size_t before = 0; before < 120; ++before) {
    modelled_room m(before % 2 == 0);
    for (std::size_t i = 0; i < before; ++i) {
      REQUIRE(m.write(1000) == 1000);
      if (m.unread() > 2000) m.read(1000);
    }
    while (m.write(1000) == 1000) continue;
    CAPTURE(before);
    CHECK(m.unread() >= ring_room::capacity - 2 * ring_room::lap);
    CHECK(m.overwritten == 0);
  }
}

TEST_CASE("a position that a reader cannot have is not believed") {
  ring_room room;
  const ring_room::place p = room.find(5000);
  REQUIRE(p.bytes == 5000);
  room.advance(5000);
  room.note_read(2000);
  room.note_read(5001);
  CHECK(room.read() == 2000);
  room.note_read(1999);
  CHECK(room.read() == 2000);
  room.note_read(~std::uint64_t{0});
  CHECK(room.read() == 2000);
}
