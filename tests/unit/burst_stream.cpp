// SPDX-License-Identifier: BSL-1.0
// Bursts of short messages over a stream that does what a kernel does with Nagle's algorithm, and acknowledges only what
// it is told to: no message is ever kept back for good, whatever the segments are that the bytes come in.
#include "../support/between.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/peer_connection.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace {

using namespace cohort;
using namespace cohort::transport;

using harness::between;
using harness::generator;

/// One direction: what waits at the sender, what has come, and what of it is not acknowledged.
class one_way {
 public:
  explicit one_way(std::size_t longest_segment) : longest_segment_(longest_segment) {}

  void write(const std::byte* from, std::size_t bytes) { waiting_.insert(waiting_.end(), from, from + bytes); }
  std::size_t read(std::byte* into, std::size_t most) {
    const std::size_t part = std::min(most, come_.size());
    std::copy_n(come_.begin(), part, into);
    come_.erase(come_.begin(), come_.begin() + static_cast<std::ptrdiff_t>(part));
    return part;
  }
  void let_wait(bool may) {
    may_wait_ = may;
    push();
  }
  void acknowledge() {
    ++acknowledged_;
    short_one_is_out_ = false;
    push();
  }
  void push() {
    while (!waiting_.empty()) {
      const std::size_t segment = std::min(longest_segment_, waiting_.size());
      const bool is_short = segment < longest_segment_;
      if (is_short && may_wait_ && short_one_is_out_) return;
      most_in_one_ = std::max(most_in_one_, segment);
      short_one_is_out_ = short_one_is_out_ || is_short;
      come_.insert(come_.end(), waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(segment));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(segment));
    }
  }
  [[nodiscard]] bool has_come() const { return !come_.empty(); }
  [[nodiscard]] bool empty() const { return come_.empty() && waiting_.empty(); }
  [[nodiscard]] int acknowledged() const { return acknowledged_; }
  [[nodiscard]] std::size_t most_in_one() const { return most_in_one_; }

 private:
  std::size_t longest_segment_;
  std::deque<std::byte> waiting_{};
  std::deque<std::byte> come_{};
  bool may_wait_ = false;
  bool short_one_is_out_ = false;
  int acknowledged_ = 0;
  std::size_t most_in_one_ = 0;
};

class nagle_stream final : public byte_stream {
 public:
  nagle_stream(one_way& out, one_way& in, generator& random) : out_(&out), in_(&in), random_(&random) {}
  std::size_t send(std::span<const piece> from, boost::system::error_code&) override {
    std::size_t sent = 0;
    for (const piece& p : from) {
      out_->write(p.data, p.bytes);
      sent += p.bytes;
    }
    out_->push();
    return sent;
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code&) override {
    if (!in_->has_come()) return 0;
    std::size_t most = between(*random_, 0, 3) == 0 ? between(*random_, 1, 5000) : std::size_t{1} << 20;
    std::size_t got = 0;
    for (const piece& p : into) {
      const std::size_t part = in_->read(p.data, std::min(most, p.bytes));
      got += part;
      most -= part;
      if (part < p.bytes) break;
    }
    return got;
  }
  void close() noexcept override {}
  bool let_wait(bool may) noexcept override {
    out_->let_wait(may);
    return true;
  }
  void acknowledge() noexcept override { in_->acknowledge(); }
  [[nodiscard]] std::size_t eager_limit() const noexcept override { return std::size_t{1} << 20; }

 private:
  one_way* out_;
  one_way* in_;
  generator* random_;
};

/// One end; counts what comes, whose bytes nobody keeps.
struct one_end : peer_connection_owner {
  std::uint64_t looks = 0;
  std::uint32_t next = 0;
  int wrong = 0;

  void on_message(peer_connection&, const envelope& header) override { wrong += header.sequence == next++ ? 0 : 1; }
  void on_announce(peer_connection&, const envelope&, std::uint64_t) override { ++wrong; }
  void on_received(peer_connection&, request&) override { ++wrong; }
  void on_sent(request&) override {}
  void on_goodbye(peer_connection&) override {}
  void on_lost(peer_connection&, const boost::system::error_code&, const char*) override { ++wrong; }
  void on_stripe_lost(peer_connection&, const boost::system::error_code&, const char*) override { ++wrong; }
  [[nodiscard]] std::uint64_t times_looked() const noexcept override { return looks; }
};

struct couple {
  generator random;
  one_way there;
  one_way back;
  one_end sender{};
  one_end receiver{};
  std::shared_ptr<peer_connection> out;
  std::shared_ptr<peer_connection> in;

  couple(std::uint64_t seed, std::size_t longest_segment)
      : random(seed),
        there(longest_segment),
        back(longest_segment),
        out(std::make_shared<peer_connection>(sender, std::make_unique<nagle_stream>(there, back, random), 1)),
        in(std::make_shared<peer_connection>(receiver, std::make_unique<nagle_stream>(back, there, random), 0)) {
    out->gather_bursts();
  }
  void read() {
    for (int i = 0; i < 100000 && in->try_read(); ++i) {}
  }
};

}  // namespace

TEST_CASE(
    "bursts: whatever is kept back comes when what came before has been read, without another word of the sender's") {
  std::vector<std::byte> bytes(send_burst::longest_message);
  for (const std::size_t longest_segment : {std::size_t{536}, std::size_t{1448}, std::size_t{65483}}) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CAPTURE(longest_segment);
      CAPTURE(seed);
      couple c(seed, longest_segment);
      const std::size_t longest = seed % 3 == 0 ? 8 : seed % 3 == 1 ? 4000 : bytes.size();
      const std::size_t messages = between(c.random, 1, 60);
      for (std::uint32_t i = 0; i < messages; ++i) {
        envelope header;
        header.sequence = i;
        header.tagged = true;
        header.bytes = between(c.random, 0, longest);
        REQUIRE(c.out->send_now(header, {bytes.data(), static_cast<std::size_t>(header.bytes)}));
        const std::size_t what = between(c.random, 0, 19);
        if (what < 3) c.in->try_read();
        if (what == 3) c.read();
        if (what == 4) {
          ++c.sender.looks;
          c.out->end_burst();
        }
      }
      c.read();
      CHECK(c.receiver.wrong == 0);
      CHECK(c.receiver.next == messages);
      CHECK(c.there.empty());
    }
  }
}

TEST_CASE("bursts: messages leave together, and only those of a burst are acknowledged by themselves") {
  constexpr std::uint32_t messages = 1000;
  std::vector<std::byte> bytes(8);
  for (const bool looks : {false, true}) {
    CAPTURE(looks);
    couple c(1, 65483);
    for (std::uint32_t i = 0; i < messages; ++i) {
      envelope header;
      header.sequence = i;
      header.tagged = true;
      header.bytes = bytes.size();
      if (looks) ++c.sender.looks;
      REQUIRE(c.out->send_now(header, {bytes.data(), bytes.size()}));
    }
    c.read();
    CHECK(c.receiver.next == messages);
    CHECK((c.there.most_in_one() > 10 * (frame::size + bytes.size())) == !looks);
    CHECK((c.there.acknowledged() > 0) == !looks);
  }
}
