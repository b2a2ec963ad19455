// SPDX-License-Identifier: BSL-1.0
// The door of a rank, through real sockets: a hello lets one connection in, and never another one that has listened in
// and sends the same bytes again.
#include <doctest/doctest.h>

#include <cohort/transport/tcp_doorway.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace cohort::transport;
using tcp = boost::asio::ip::tcp;

const std::string secret = "0123456789abcdef";

hello guest(int rank, unsigned char nonce) {
  hello h;
  h.role = connection_role::data;
  h.job = job_id("run");
  h.world_size = 8;
  h.rank = rank;
  h.target = 2;
  h.nonce[5] = nonce;
  return h;
}

/// Rank 2 of 8 at its door, on this thread.
class host {
 public:
  explicit host(std::string with_secret) {
    hello_expectation mine;
    mine.role = connection_role::data;
    mine.job = job_id("run");
    mine.world_size = 8;
    mine.rank = 2;
    tcp::acceptor acceptor(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    where_ = acceptor.local_endpoint();
    door_ = std::make_shared<tcp_doorway>(std::move(acceptor), mine, std::move(with_secret), 8);
    door_->open(
        [this](const hello& h) {
          ++asked_;
          return h.rank == 7 ? hello_verdict{hello_field::capacity, 1, 0} : hello_verdict{};
        },
        [this](tcp_link link, const hello& h) {
          admitted_.push_back(h.rank);
          guests_.push_back(std::move(link));
        });
  }
  ~host() {
    door_->close();
    io_.poll();
  }

  /// What the door says to these bytes.
  [[nodiscard]] hello_verdict answer_to(const hello_bytes& bytes) {
    tcp::socket socket(io_);
    socket.connect(where_);
    boost::asio::write(socket, boost::asio::buffer(bytes));
    hello_bytes reply{};
    std::optional<std::size_t> read;
    boost::asio::async_read(socket, boost::asio::buffer(reply),
                            [&](const boost::system::error_code&, std::size_t n) { read = n; });
    for (int i = 0; i < 200 && !read; ++i) io_.run_one_for(std::chrono::milliseconds{50});
    io_.poll();  // the door learns that its reply has gone out
    REQUIRE(read == hello_size);
    return decode_reply(reply).value().verdict;
  }

  [[nodiscard]] int asked() const { return asked_; }
  [[nodiscard]] const std::vector<int>& admitted() const { return admitted_; }

 private:
  boost::asio::io_context io_{};
  tcp::endpoint where_{};
  std::shared_ptr<tcp_doorway> door_{};
  std::vector<tcp_link> guests_{};
  std::vector<int> admitted_{};
  int asked_ = 0;
};

constexpr hello_verdict seen_before{hello_field::proof, 1, 1};

}  // namespace

TEST_CASE("doorway: a hello that is recorded and sent again is refused") {
  host h(secret);
  const hello_bytes first = sealed(guest(3, 1), secret);
  CHECK(h.answer_to(first).accepted());
  CHECK(h.answer_to(first) == seen_before);
  CHECK(h.answer_to(first) == seen_before);
  CHECK(h.asked() == 1);  // nobody was asked about the replayed ones
  // The same rank with a nonce of its own, and another rank that happens to have drawn the same one.
  CHECK(h.answer_to(sealed(guest(3, 2), secret)).accepted());
  CHECK(h.answer_to(sealed(guest(4, 2), secret)) == seen_before);
  CHECK(h.admitted() == std::vector<int>{3, 3});
  CHECK(explain(seen_before).find("has seen this hello before") != std::string::npos);
}

TEST_CASE("doorway: a hello that was refused cannot be sent again until there is room for it") {
  host h(secret);
  const hello_bytes refused = sealed(guest(7, 1), secret);
  CHECK(h.answer_to(refused).field == hello_field::capacity);
  CHECK(h.answer_to(refused) == seen_before);
  CHECK(h.asked() == 1);
}

TEST_CASE("doorway: only genuine hellos are remembered") {
  host h(secret);
  const hello_bytes genuine = sealed(guest(3, 1), secret);
  hello_bytes forged = genuine;
  forged[40] ^= 1;  // its lane
  CHECK(h.answer_to(forged).field == hello_field::proof);
  CHECK(h.answer_to(genuine).accepted());
}

TEST_CASE("doorway: without a secret there is nothing to listen in for, and nothing is remembered") {
  host h("");
  const hello_bytes plain = encode(guest(3, 1));
  CHECK(h.answer_to(plain).accepted());
  CHECK(h.answer_to(plain).accepted());
  CHECK(h.admitted() == std::vector<int>{3, 3});
}

TEST_CASE("doorway: a memory that is full refuses, rather than forget") {
  hello_memory memory(2);
  CHECK(memory.judge(guest(1, 1)).accepted());
  CHECK(memory.judge(guest(1, 2)).accepted());
  CHECK(memory.judge(guest(1, 3)) == seen_before);
  CHECK(memory.judge(guest(1, 1)) == seen_before);
}
