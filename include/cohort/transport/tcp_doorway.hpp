// SPDX-License-Identifier: BSL-1.0
// A listening socket that lets in who says a genuine hello, and says it for the first time. Strangers who connect and say nothing cost a bounded
// number of descriptors and shut nobody out. The entrance of tcp.hpp and of tcp_monitor_server.hpp.
#pragma once

#include <cohort/transport/hello_memory.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_handshake.hpp>
#include <cohort/transport/tcp_refusal.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace cohort::transport {

class tcp_doorway : public std::enable_shared_from_this<tcp_doorway> {
 public:
  using tcp = boost::asio::ip::tcp;

  /// Listens already; `expected_guests` may say their hello at the same time, and strangers beside them. With `tls` nobody
  /// is heard who has not shown a certificate.
  tcp_doorway(tcp::acceptor acceptor, const hello_expectation& mine, std::string secret, std::size_t expected_guests,
              tcp_link::context_pointer tls = nullptr)
      : acceptor_(std::move(acceptor)),
        retry_(acceptor_.get_executor()),
        mine_(mine),
        secret_(std::move(secret)),
        tls_(std::move(tls)),
        most_waiting_(expected_guests + 64) {}

  /// Neither function is called after `close`.
  void open(tcp_greeting::decide_type decide, tcp_greeting::accepted_type accepted) {
    decide_ = std::move(decide);
    accepted_ = std::move(accepted);
    accept();
  }

  /// Who was turned away last because of TLS. Any thread.
  [[nodiscard]] const tcp_refusal& refused() const noexcept { return refused_; }

  void close() {
    closed_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    while (!waiting_.empty()) dismiss_oldest();
    decide_ = nullptr;
    accepted_ = nullptr;
  }

 private:
  void accept() {
    const auto next = std::make_shared<tcp::socket>(acceptor_.get_executor());
    detail::accept_into(acceptor_, *next, [self = shared_from_this(), next](const boost::system::error_code& failure) {
      if (self->closed_) return;
      if (failure) return self->accept_later();
      self->greet(std::move(*next));
      self->accept();
    });
  }

  // Out of descriptors: whoever has not said who it is gives its own back, and trying again at once would only spin.
  void accept_later() {
    dismiss_oldest();
    retry_.expires_after(std::chrono::milliseconds{50});
    detail::when_expired(retry_, [self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (!cancelled && !self->closed_) self->accept();
    });
  }

  void greet(tcp::socket socket) {
    close_on_exec(socket.native_handle());
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), [](const auto& g) { return g.expired(); }),
                   waiting_.end());
    if (waiting_.size() >= most_waiting_) dismiss_oldest();
    const auto greeting = std::make_shared<tcp_greeting>(std::move(socket), mine_, secret_, tls_, refused_);
    waiting_.push_back(greeting);
    greeting->start([self = shared_from_this()](const hello& h) { return self->decide(h); },
                    [self = shared_from_this()](tcp_link link, const hello& h) {
                      if (!self->closed_) self->accepted_(std::move(link), h);
                    });
  }

  hello_verdict decide(const hello& h) {
    if (closed_) return {hello_field::capacity, 0, 0};
    // Without a secret there is nothing that a recorded hello proves.
    if (const hello_verdict seen = secret_.empty() ? hello_verdict{} : seen_.judge(h); !seen.accepted()) return seen;
    return decide_(h);
  }

  void dismiss_oldest() {
    if (waiting_.empty()) return;
    const std::shared_ptr<tcp_greeting> oldest = waiting_.front().lock();
    waiting_.pop_front();
    if (oldest) oldest->dismiss();
  }

  tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  hello_expectation mine_;
  std::string secret_;
  tcp_link::context_pointer tls_;
  tcp_refusal refused_{};
  hello_memory seen_{};
  std::size_t most_waiting_;
  std::deque<std::weak_ptr<tcp_greeting>> waiting_{};
  tcp_greeting::decide_type decide_{};
  tcp_greeting::accepted_type accepted_{};
  bool closed_ = false;
};

}  // namespace cohort::transport
