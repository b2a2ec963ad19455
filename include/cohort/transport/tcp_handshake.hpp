// SPDX-License-Identifier: BSL-1.0
// The opening of a connection between two ranks, both sides: TLS if it is asked for, one hello, one reply, within a
// deadline. Used for the data connections of tcp.hpp and the control connections of tcp_monitor.hpp.
#pragma once

#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_link.hpp>
#include <cohort/transport/tcp_refusal.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::transport {

[[nodiscard]] inline std::array<unsigned char, 16> fresh_nonce() {
  std::random_device source;
  std::array<unsigned char, 16> nonce{};
  for (std::size_t i = 0; i < nonce.size(); i += 4) detail::put_little(&nonce[i], static_cast<std::uint32_t>(source()));
  return nonce;
}

/// Answers one incoming connection. `decide` is asked when the hello is genuine and for this job; it may still
/// refuse. `accepted` gets the socket when the reply is on its way.
class tcp_greeting : public std::enable_shared_from_this<tcp_greeting> {
 public:
  using socket_type = boost::asio::ip::tcp::socket;
  using decide_type = std::function<hello_verdict(const hello&)>;
  using accepted_type = std::function<void(tcp_link, const hello&)>;
  using context_pointer = tcp_link::context_pointer;

  static constexpr auto patience = std::chrono::seconds{5};

  tcp_greeting(socket_type socket, const hello_expectation& mine, std::string secret, context_pointer tls,
               tcp_refusal& refused)
      : link_(std::move(socket)),
        timer_(link_.socket().get_executor()),
        mine_(mine),
        secret_(std::move(secret)),
        tls_(std::move(tls)),
        refused_(refused) {
    mine_.secret = secret_;
  }

  void start(decide_type decide, accepted_type accepted) {
    decide_ = std::move(decide);
    accepted_ = std::move(accepted);
    timer_.expires_after(patience);
    detail::when_expired(timer_, [weak = weak_from_this()](const boost::system::error_code& cancelled) {
      if (const auto self = weak.lock(); self && !cancelled) self->dismiss();
    });
    link_.shake_hands(tls_, tls_side::server, [self = shared_from_this()](const boost::system::error_code& failure) {
      if (self->over_) return self->stop();
      if (failure) return self->turn_away(failure);
      self->read_hello();
    });
  }
  /// Shows out one who has not been let in. What was promised to the others is kept.
  void dismiss() {
    if (!let_in_) stop();
  }

 private:
  void read_hello() {
    link_.read_all(boost::asio::buffer(bytes_),
                   [self = shared_from_this()](const boost::system::error_code& failure, std::size_t) {
                     if (failure || self->over_) return self->stop();
                     self->judge_hello();
                   });
  }
  void judge_hello() {
    hello_verdict verdict = judge(bytes_, mine_);
    if (verdict.field == hello_field::tls) refused_.write_tls_client(link_.peer());
    const std::optional<hello> asked = decode_hello(bytes_);
    if (verdict.accepted()) verdict = decide_(*asked);
    let_in_ = verdict.accepted();
    hello_reply reply;
    reply.verdict = verdict;
    reply.rank = mine_.rank;
    reply_ = sealed(reply, asked.value_or(hello{}), secret_);
    link_.write_all(boost::asio::buffer(reply_),
                    [self = shared_from_this(), asked, verdict](const boost::system::error_code& failure, std::size_t) {
                      self->timer_.cancel();
                      if (!failure && verdict.accepted()) self->accepted_(std::move(self->link_), *asked);
                      self->stop();
                    });
  }
  /// It must be able to read why before the connection goes: until then the timer runs.
  void turn_away(const boost::system::error_code& why) {
    if (!is_of_tls(why)) return stop();
    refused_.write(link_.peer(), why.message());
    if (why != tls_error(tls_trouble::no_tls)) return see_off();
    link_.give_up_tls();
    reply_ = refusal_of_plain_text(mine_.rank);
    link_.write_all(boost::asio::buffer(reply_),
                    [self = shared_from_this()](const boost::system::error_code&, std::size_t) { self->see_off(); });
  }
  void see_off() {
    link_.see_off([self = shared_from_this()](const boost::system::error_code&) { self->stop(); });
  }
  void stop() {
    over_ = true;
    link_.close();
    timer_.cancel();
  }

  tcp_link link_;
  boost::asio::steady_timer timer_;
  hello_expectation mine_;
  std::string secret_;
  context_pointer tls_;
  tcp_refusal& refused_;  // of the doorway, which outlives its greetings
  hello_bytes bytes_{};
  hello_bytes reply_{};
  decide_type decide_{};
  accepted_type accepted_{};
  bool let_in_ = false;
  bool over_ = false;
};

/// Opens one connection: connects, agrees on TLS if that is asked for, says hello, reads the reply.
class tcp_introduction : public std::enable_shared_from_this<tcp_introduction> {
 public:
  using socket_type = boost::asio::ip::tcp::socket;
  /// Exactly one of: an accepted socket, a refusal in `verdict`, a failure of the network in `why`.
  struct outcome {
    boost::system::error_code why{};
    hello_verdict verdict{};
    bool genuine = true;
  };
  using done_type = std::function<void(tcp_link, const outcome&)>;
  using context_pointer = tcp_link::context_pointer;

  tcp_introduction(socket_type socket, const hello& mine, std::string secret, context_pointer tls)
      : link_(std::move(socket)), mine_(mine), secret_(std::move(secret)), tls_(std::move(tls)) {
    mine_.nonce = fresh_nonce();
    bytes_ = sealed(mine_, secret_);
  }

  /// The socket may be open already, for options that must be set before it connects.
  void start(const boost::asio::ip::tcp::endpoint& where, done_type done) {
    done_ = std::move(done);
    boost::system::error_code failed;
    if (!link_.socket().is_open()) link_.socket().open(where.protocol(), failed);
    if (!failed) close_on_exec(link_.socket().native_handle());
    detail::connect_to(link_.socket(), where, [self = shared_from_this()](const boost::system::error_code& failure) {
      if (failure) return self->finish({failure, {}, true});
      self->link_.shake_hands(self->tls_, tls_side::client, [self](const boost::system::error_code& f) {
        if (f) return self->finish({f, {}, true});
        self->say_hello();
      });
    });
  }
  void cancel() {
    done_ = nullptr;
    link_.close();
  }

 private:
  void say_hello() {
    link_.write_all(boost::asio::buffer(bytes_),
                    [self = shared_from_this()](const boost::system::error_code& f, std::size_t) {
                      if (f) return self->finish({f, {}, true});
                      self->read_reply();
                    });
  }
  void read_reply() {
    link_.read_all(boost::asio::buffer(reply_),
                   [self = shared_from_this()](const boost::system::error_code& failure, std::size_t) {
                     if (failure) return self->finish({failure, {}, true});
                     const std::optional<hello_reply> r = decode_reply(self->reply_);
                     if (!r) return self->finish({{}, {hello_field::magic, 0, 0}, true});
                     self->finish({{}, r->verdict, is_genuine(self->reply_, self->mine_, self->secret_)});
                   });
  }
  void finish(const outcome& o) {
    if (const done_type done = std::exchange(done_, nullptr)) done(std::move(link_), o);
  }

  tcp_link link_;
  hello mine_;
  std::string secret_;
  context_pointer tls_;
  hello_bytes bytes_{};
  hello_bytes reply_{};
  done_type done_{};
};

/// Why a connection could not be opened.
[[nodiscard]] inline std::string reason_of(const tcp_introduction::outcome& o) {
  if (o.why) return o.why.message();
  return !o.verdict.accepted() ? explain(o.verdict) : std::string{"it does not know this job's secret"};
}

}  // namespace cohort::transport
