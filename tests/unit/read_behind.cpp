// SPDX-License-Identifier: BSL-1.0
// Many short messages in a stream in memory, of which a turn reads more than were asked for: what stands behind them can still be
// taken where it is asked for, also what comes in parts.
#include <doctest/doctest.h>

#include <cohort/transport/peer_connection.hpp>
#include <cohort/transport/shm/ring.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace cohort::transport;

constexpr std::size_t longest = 4000;

/// One direction, as between two ranks of a host.
class ring_stream final : public byte_stream {
 public:
  explicit ring_stream(ring& bytes) : bytes_(&bytes) {}
  std::size_t send(std::span<const piece> from, boost::system::error_code&) override {
    return bytes_->write(from).bytes;
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code&) override { return bytes_->read(into); }
  [[nodiscard]] std::byte* place(std::size_t bytes) noexcept { return bytes_->place_beside(bytes); }
  void placed(std::size_t bytes) noexcept { bytes_->wrote_beside(bytes); }
  [[nodiscard]] std::span<const std::byte> front() const noexcept { return bytes_->front(); }
  void take(std::size_t seen, const piece& into) noexcept { bytes_->take(seen, into); }
  void close() noexcept override {}
  [[nodiscard]] std::size_t eager_limit() const noexcept override { return longest; }
  [[nodiscard]] bool same_host() const noexcept override { return true; }

 private:
  ring* bytes_;
};

/// Keeps what nobody has asked for, in the order in which it came.
struct end : peer_connection_owner {
  std::vector<std::unique_ptr<early_message>> early{};
  std::string lost{};
  std::shared_ptr<peer_connection> connection;
  ring_stream memory;

  explicit end(ring& bytes)
      : connection(std::make_shared<peer_connection>(static_cast<peer_connection_owner&>(*this),
                                                     std::make_unique<ring_stream>(bytes), 1)),
        memory(bytes) {}

  bool send(const envelope& header, const piece& payload) {
    return connection->write_in_place(memory, header, payload) || connection->send_now(header, payload);
  }

  void on_message(peer_connection& c, const envelope& header) override {
    early.push_back(std::make_unique<early_message>());
    early_message& m = *early.back();
    m.header = header;
    m.along = static_cast<std::size_t>(header.bytes);
    m.payload = cohort::detail::byte_buffer(m.along);
    c.land_in(m);
  }
  void on_announce(peer_connection&, const envelope&, std::uint64_t) override { FAIL("no message is that long"); }
  void on_received(peer_connection&, request&) override {}
  void on_sent(request&) override {}
  void on_goodbye(peer_connection&) override {}
  void on_lost(peer_connection& c, const boost::system::error_code&, const char* what) override {
    lost = what;
    c.close();
  }
  void on_stripe_lost(peer_connection&, const boost::system::error_code&, const char*) override {}
};

envelope header_of(std::size_t number, std::size_t bytes) {
  envelope e;
  e.context = 7;
  e.sequence = static_cast<std::uint32_t>(number);
  e.bytes = bytes;
  return e;
}

std::vector<std::byte> contents(std::size_t number, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(number * 31 + i);
  return data;
}

constexpr auto no_rest = [](std::size_t) { return false; };

/// A message as it goes through the ring.
std::vector<std::byte> wire_bytes(const envelope& header, std::span<const std::byte> payload) {
  frame f;
  f.kind = frame_kind::message;
  f.header = header;
  const frame::bytes_type encoded = f.encode();
  std::vector<std::byte> bytes(encoded.size());
  std::memcpy(bytes.data(), encoded.data(), encoded.size());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

/// Fills the ring with messages and lets the reader take one turn.
void read_some(std::size_t bytes) {
  CAPTURE(bytes);
  ring all = ring::create();
  end writer(all);
  end reader(all);
  std::size_t sent = 0;
  std::vector<std::byte> data = contents(sent, bytes);
  while (all.room() >= frame::size + bytes && writer.send(header_of(sent, bytes), {data.data(), bytes})) {
    data = contents(++sent, bytes);
  }
  REQUIRE(sent > 10);

  CHECK(reader.connection->try_read());
  REQUIRE(reader.lost.empty());
  REQUIRE(!reader.early.empty());
  for (std::size_t i = 0; i < reader.early.size(); ++i) {
    const early_message& m = *reader.early[i];
    CHECK(m.header.sequence == i);
    REQUIRE(m.arrived == bytes);
    const std::vector<std::byte> expected = contents(i, bytes);
    CHECK(std::equal(expected.begin(), expected.end(), m.payload.data()));
  }
  // A turn is no longer than a stream that never ends lets it be.
  if (bytes > 256) CHECK(reader.early.size() < sent);
  std::vector<std::byte> into(bytes);
  for (std::size_t i = reader.early.size(); i < sent; ++i) {
    std::uint64_t came = ~std::uint64_t{0};
    REQUIRE(reader.connection->between_frames());
    REQUIRE(all.has_data());
    REQUIRE(reader.connection->take_in_place(reader.memory, header_of(i, bytes), {into.data(), bytes}, came));
    CHECK(came == bytes);
    CHECK(into == contents(i, bytes));
  }
}

}  // namespace

TEST_CASE("behind what a turn reads unasked the next message is whole") {
  for (std::size_t bytes = 0; bytes <= 300; ++bytes) read_some(bytes);
  for (const std::size_t bytes : {511U, 512U, 513U, 1000U, 2047U, 3999U, 4000U}) read_some(bytes);
}

TEST_CASE("a header that comes in two parts, and a payload behind it, wait for their rest") {
  ring all = ring::create();
  end reader(all);
  const std::vector<std::byte> payload = contents(0, 100);
  std::vector<std::byte> bytes = wire_bytes(header_of(0, 100), payload);
  for (std::size_t first = 1; first < bytes.size(); ++first) {
    CAPTURE(first);
    reader.early.clear();
    const piece before{bytes.data(), first};
    const piece behind{bytes.data() + first, bytes.size() - first};
    REQUIRE(all.write({&before, 1}).all);
    CHECK(reader.connection->try_read());
    CHECK_FALSE(reader.connection->between_frames());
    CHECK_FALSE(reader.connection->try_read());
    REQUIRE(all.write({&behind, 1}).all);
    CHECK(reader.connection->try_read());
    REQUIRE(reader.early.size() == 1);
    CHECK(reader.early[0]->arrived == 100);
    CHECK(std::equal(payload.begin(), payload.end(), reader.early[0]->payload.data()));
  }
}

TEST_CASE("a message in parts is taken where it is asked for, as long as its rest comes") {
  constexpr std::size_t size = 3000;
  for (const std::size_t first : {frame::size + 0, frame::size + 1, frame::size + 1000, frame::size + 2999}) {
    for (const std::size_t second : {std::size_t{1}, std::size_t{500}, size}) {
      CAPTURE(first);
      CAPTURE(second);
      ring all = ring::create();
      end reader(all);
      const std::vector<std::byte> payload = contents(3, size);
      std::vector<std::byte> bytes = wire_bytes(header_of(3, size), payload);
      std::size_t written = 0;
      const auto write = [&](std::size_t n) {
        const piece part{bytes.data() + written, std::min(n, bytes.size() - written)};
        REQUIRE(all.write({&part, 1}).all);
        written += part.bytes;
      };
      write(first);
      const auto rest = [&](std::size_t missing) {
        CHECK(missing == bytes.size() - written);
        write(second);
        return true;
      };
      std::vector<std::byte> into(size);
      std::uint64_t came = 0;
      REQUIRE(reader.connection->take_in_parts(reader.memory, header_of(3, size), {into.data(), size}, came, rest));
      CHECK(came == size);
      CHECK(into == payload);
      CHECK(reader.early.empty());
      CHECK(reader.connection->between_frames());
    }
  }
}

TEST_CASE("a message whose rest does not come soon goes where it would have gone") {
  constexpr std::size_t size = 3000;
  for (const std::size_t first : {frame::size + 0, frame::size + 1, frame::size + 1000, frame::size + 2999}) {
    CAPTURE(first);
    ring all = ring::create();
    end reader(all);
    const std::vector<std::byte> payload = contents(3, size);
    std::vector<std::byte> bytes = wire_bytes(header_of(3, size), payload);
    const piece before{bytes.data(), first};
    const piece behind{bytes.data() + first, bytes.size() - first};
    REQUIRE(all.write({&before, 1}).all);
    std::vector<std::byte> into(size);
    std::uint64_t came = 0;
    CHECK_FALSE(
        reader.connection->take_in_parts(reader.memory, header_of(3, size), {into.data(), size}, came, no_rest));
    CHECK(reader.lost.empty());
    CHECK_FALSE(reader.connection->between_frames());
    REQUIRE(reader.early.size() == 1);
    CHECK(reader.early[0]->arrived == first - frame::size);
    REQUIRE(all.write({&behind, 1}).all);
    CHECK(reader.connection->try_read());
    CHECK(reader.connection->between_frames());
    CHECK(reader.early[0]->arrived == size);
    CHECK(std::equal(payload.begin(), payload.end(), reader.early[0]->payload.data()));
  }
}

TEST_CASE("what says to be longer than any message is not taken in parts") {
  ring all = ring::create();
  end reader(all);
  std::vector<std::byte> bytes = wire_bytes(header_of(3, longest + 1), contents(3, 100));
  const piece part{bytes.data(), bytes.size()};
  REQUIRE(all.write({&part, 1}).all);
  std::vector<std::byte> into(longest + 1);
  std::uint64_t came = 0;
  const auto never = [](std::size_t) {
    FAIL("nothing is waited for");
    return false;
  };
  CHECK_FALSE(reader.connection->take_in_parts(reader.memory, header_of(3, longest + 1), {into.data(), into.size()},
                                               came, never));
  CHECK(reader.early.empty());
  CHECK(reader.connection->between_frames());
  CHECK(reader.connection->try_read());
  CHECK(reader.lost == "reading a message longer than its window");
}
