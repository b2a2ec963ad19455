// SPDX-License-Identifier: BSL-1.0
// The server of the TCP store without its thread: accepts, judges hellos, reads bounded requests, answers them from
// one table. Everything is asynchronous, so a client that stalls, lies or floods costs only itself.
#pragma once

#include <cohort/store/table.hpp>
#include <cohort/store/wait_book.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_store_session.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::transport::tcp_detail {

/// What one client may cost.
struct store_budget {
  std::size_t clients = 128;                   ///< accepted ones; as many again may be saying hello
  std::size_t waits = 64;                      ///< per client
  std::size_t queued = std::size_t{16} << 20;  ///< bytes of unread replies per client
  std::chrono::nanoseconds hello = std::chrono::seconds(5);
};

class store_service : public std::enable_shared_from_this<store_service> {
 public:
  using session_pointer = std::shared_ptr<store_session>;

  store_service(acceptor_type acceptor, strand_type strand, const hello_expectation& expected, std::string secret,
                const store_budget& budget, store_limits limits)
      : strand_(std::move(strand)),
        acceptor_(std::move(acceptor)),
        retry_(strand_),
        expected_(expected),
        secret_(std::move(secret)),
        budget_(budget),
        table_(limits) {
    expected_.secret = secret_;
  }

  void start() {
    boost::asio::post(strand_, [self = shared_from_this()] { self->accept(); });
  }
  void stop() {
    boost::asio::post(strand_, [self = shared_from_this()] { self->close_all(); });
  }
  /// Connections that are open now, whether or not they have been accepted. Any thread.
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.load(std::memory_order_relaxed); }

 private:
  using phase = store_session::phase;
  static constexpr std::size_t read_step = std::size_t{64} << 10;
  static constexpr std::size_t pause_reading = std::size_t{1} << 20;
  static constexpr std::size_t most_nonces = std::size_t{1} << 20;

  /// Runs one step for one client. Whatever goes wrong in it ends that client and nothing else.
  template <class Step>
  void guarded(const session_pointer& s, const Step& step) noexcept {
    try {
      if (s->state != phase::closed) step();
    } catch (...) {
      drop(s);
    }
  }

  void accept() noexcept try {
    if (stopped_) return;
    auto next = std::make_shared<store_session>(strand_, ++last_id_);
    acceptor_.async_accept(next->socket, [self = shared_from_this(), next](const boost::system::error_code& code) {
      if (self->stopped_) return;
      if (code) return self->accept_later();
      self->guarded(next, [&] { self->greet(next); });
      self->accept();
    });
  } catch (...) {
    accept_later();
  }

  /// Out of descriptors or memory: the oldest connection that has not said who it is makes room.
  void accept_later() noexcept try {
    if (!greeting_.empty()) drop(sessions_.at(greeting_.front()));
    retry_.expires_after(std::chrono::milliseconds(50));
    retry_.async_wait([self = shared_from_this()](const boost::system::error_code& code) {
      if (!code) self->accept();
    });
  } catch (...) {
    close_all();
  }

  void greet(const session_pointer& s) {
    close_on_exec(s->socket.native_handle());
    boost::system::error_code ignored;
    s->socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    s->socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    sessions_.emplace(s->id, s);
    greeting_.push_back(s->id);
    connections_.store(sessions_.size(), std::memory_order_relaxed);
    // Idle strangers push out the oldest of their kind, never one who has been accepted or has just arrived.
    if (greeting_.size() > budget_.clients) drop(sessions_.at(greeting_.front()));

    s->hello_timer.expires_after(budget_.hello);
    s->hello_timer.async_wait([self = shared_from_this(), s](const boost::system::error_code& code) {
      if (!code && s->state != phase::accepted) self->drop(s);
    });
    boost::asio::async_read(s->socket, boost::asio::buffer(s->greeting),
                            [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                              self->guarded(s, [&] { code ? self->drop(s) : self->answer_hello(s); });
                            });
  }

  [[nodiscard]] hello_verdict judge_session(const store_session& s) {
    hello_verdict verdict = judge(s.greeting, expected_);
    if (!verdict.accepted()) return verdict;
    if (accepted_ >= budget_.clients) return {hello_field::capacity, 0, static_cast<std::int64_t>(accepted_)};
    if (secret_.empty()) return verdict;
    // Someone who has listened in could send an accepted hello again. The server lives for one epoch of one job, so
    // it can remember every one.
    const hello h = *decode_hello(s.greeting);
    if (nonces_.size() >= most_nonces || !nonces_.insert(h.nonce).second) return {hello_field::proof, 1, 1};
    return verdict;
  }

  void answer_hello(const session_pointer& s) {
    hello_reply reply;
    reply.verdict = judge_session(*s);
    reply.rank = expected_.rank;
    reply.pid = static_cast<std::uint32_t>(::getpid());
    s->answer = sealed(reply, decode_hello(s->greeting).value_or(hello{}), secret_);
    const bool welcome = reply.verdict.accepted();
    s->state = welcome ? phase::accepted : phase::refused;
    if (welcome) {
      ++accepted_;
      greeting_.remove(s->id);
      s->hello_timer.cancel();
    }
    boost::asio::async_write(s->socket, boost::asio::buffer(s->answer),
                             [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                               self->guarded(s, [&] {
                                 if (code) return self->drop(s);
                                 if (s->state == phase::accepted) return self->read_head(s);
                                 self->see_off(s);
                               });
                             });
  }

  /// A socket that is closed with unread bytes takes the refusal back; read them until the other side has seen it.
  void see_off(const session_pointer& s) {
    boost::system::error_code ignored;
    s->socket.shutdown(boost::asio::socket_base::shutdown_send, ignored);
    s->socket.async_read_some(boost::asio::buffer(s->greeting),
                              [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                                self->guarded(s, [&] { code ? self->drop(s) : self->see_off(s); });
                              });
  }

  void read_head(const session_pointer& s) {
    if (s->reading || s->queued_bytes > pause_reading) return;  // resumed when it has read its replies
    s->reading = true;
    boost::asio::async_read(s->socket, boost::asio::buffer(s->head),
                            [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                              self->guarded(s, [&] {
                                if (code) return self->drop(s);
                                s->request = detail::decode_request_head(s->head);
                                s->body.clear();
                                const bool known = !detail::name_of(s->request.call).starts_with("unknown");
                                if (!known || s->request.size > detail::largest_request(self->table_.limits())) {
                                  return self->drop(s);
                                }
                                self->read_body(s, 0);
                              });
                            });
  }

  /// The buffer grows with what has arrived, not with what was promised.
  void read_body(const session_pointer& s, std::size_t held) {
    if (held == s->request.size) {
      s->reading = false;
      serve(s);
      if (s->state == phase::accepted) read_head(s);
      return;
    }
    const std::size_t step = std::min<std::size_t>(s->request.size - held, read_step);
    s->body.resize(held + step);
    boost::asio::async_read(
        s->socket, boost::asio::buffer(s->body.data() + held, step),
        [self = shared_from_this(), s, next = held + step](const boost::system::error_code& code, std::size_t) {
          self->guarded(s, [&] { code ? self->drop(s) : self->read_body(s, next); });
        });
  }

  void serve(const session_pointer& s) {
    const detail::request_head request = s->request;
    const auto body = detail::decode_request_body(request.call, s->body, table_.limits());
    if (!body) return drop(s);
    try {
      carry_out(s, request, *body);
    } catch (const error& e) {
      reply(s, request.id, static_cast<std::uint32_t>(e.condition()), std::make_shared<const std::string>(e.what()));
    }
    if (s->body.capacity() > read_step) std::string().swap(s->body);
  }

  void carry_out(const session_pointer& s, const detail::request_head& request, const detail::request_body& body) {
    switch (request.call) {
      case detail::store_call::set:
        table_.set(body.key, body.value);
        reply(s, request.id, 0, nullptr);
        return wake(body.key);
      case detail::store_call::add: {
        const std::int64_t sum = table_.add(body.key, body.amount);
        reply(s, request.id, 0, number(static_cast<std::uint64_t>(sum)));
        return wake(body.key);
      }
      case detail::store_call::compare_set: {
        const detail::store_change change = table_.compare_set(body.key, body.expected, body.value);
        reply(s, request.id, 0, std::make_shared<const std::string>(change.result));
        if (change.writes) wake(body.key);
        return;
      }
      case detail::store_call::try_get: {
        table_.check_key("try_get", body.key);
        const auto value = table_.share(body.key);
        // One byte in front tells a key that is absent from one that holds nothing.
        return reply(s, request.id, 0, std::make_shared<const std::string>(value ? "+" + *value : std::string()));
      }
      case detail::store_call::delete_key:
        return reply(s, request.id, 0, number(table_.erase(body.key) ? 1 : 0));
      case detail::store_call::num_keys:
        return reply(s, request.id, 0, number(table_.count(body.key)));
      case detail::store_call::get:
        table_.check_key("get", body.key);
        if (const auto value = table_.share(body.key)) return reply(s, request.id, 0, value);
        return enter_wait(s, request, {std::string(body.key)});
      case detail::store_call::wait:
        for (const std::string& key : body.keys) table_.check_key("wait", key);
        if (table_.missing(body.keys).empty()) return reply(s, request.id, 0, nullptr);
        return enter_wait(s, request, body.keys);
    }
  }

  [[nodiscard]] static std::shared_ptr<const std::string> number(std::uint64_t value) {
    std::string bytes;
    detail::byte_writer(bytes).number(value);
    return std::make_shared<const std::string>(std::move(bytes));
  }

  void enter_wait(const session_pointer& s, const detail::request_head& request, std::vector<std::string> keys) {
    if (s->waits.size() >= budget_.waits || s->waited_keys + keys.size() > table_.limits().keys) {
      throw detail::store_error(detail::name_of(request.call),
                                "this client has " + std::to_string(s->waits.size()) + " calls waiting for " +
                                    std::to_string(s->waited_keys) + " keys; the limits are " +
                                    std::to_string(budget_.waits) + " calls and " +
                                    std::to_string(table_.limits().keys) + " keys");
    }
    const std::uint64_t ticket = ++last_ticket_;
    auto entry = std::make_unique<store_wait>(strand_, s, request);
    entry->keys = keys.size();
    if (request.call == detail::store_call::get) entry->key = keys.front();
    entry->timer.expires_after(std::chrono::milliseconds(std::min(request.patience_ms, detail::most_patience_ms)));
    entry->timer.async_wait([self = shared_from_this(), ticket](const boost::system::error_code& code) {
      if (!code) self->give_up(ticket);
    });
    book_.enter(ticket, std::move(keys), table_);
    s->waits.insert(ticket);
    s->waited_keys += entry->keys;
    waits_.emplace(ticket, std::move(entry));
  }

  [[nodiscard]] std::unique_ptr<store_wait> take(std::uint64_t ticket) noexcept {
    const auto at = waits_.find(ticket);
    if (at == waits_.end()) return nullptr;
    std::unique_ptr<store_wait> entry = std::move(at->second);
    waits_.erase(at);
    entry->session->waits.erase(ticket);
    entry->session->waited_keys -= entry->keys;
    return entry;
  }

  void wake(std::string_view key) {
    for (const std::uint64_t ticket : book_.arrived(key, table_)) {
      const std::unique_ptr<store_wait> entry = take(ticket);
      if (!entry) continue;
      const bool get = entry->request.call == detail::store_call::get;
      guarded(entry->session,
              [&] { reply(entry->session, entry->request.id, 0, get ? table_.share(entry->key) : nullptr); });
    }
  }

  void give_up(std::uint64_t ticket) noexcept {
    const std::unique_ptr<store_wait> entry = take(ticket);
    if (!entry) return;
    guarded(entry->session, [&] {
      std::string indices;
      for (const std::uint32_t index : book_.missing(ticket, table_)) detail::byte_writer(indices).number(index);
      reply(entry->session, entry->request.id, static_cast<std::uint32_t>(errc::timed_out),
            std::make_shared<const std::string>(std::move(indices)));
    });
    book_.leave(ticket);
  }

  void reply(const session_pointer& s, std::uint32_t id, std::uint32_t status,
             std::shared_ptr<const std::string> body) {
    outgoing out;
    out.body = std::move(body);
    detail::encode(detail::reply_head{out.body ? static_cast<std::uint32_t>(out.body->size()) : 0U, id, status},
                   out.head);
    if (s->queued_bytes + out.size() > budget_.queued) return drop(s);
    s->queued_bytes += out.size();
    s->queue.push_back(std::move(out));
    if (!s->writing) write_next(s);
  }

  void write_next(const session_pointer& s) {
    const outgoing& front = s->queue.front();
    const std::array<boost::asio::const_buffer, 2> parts = {
        boost::asio::buffer(front.head), front.body ? boost::asio::buffer(*front.body) : boost::asio::const_buffer{}};
    s->writing = true;
    boost::asio::async_write(s->socket, parts,
                             [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                               self->guarded(s, [&] {
                                 if (code) return self->drop(s);
                                 s->writing = false;
                                 s->queued_bytes -= s->queue.front().size();
                                 s->queue.pop_front();
                                 if (!s->queue.empty()) self->write_next(s);
                                 self->read_head(s);
                               });
                             });
  }

  void drop(const session_pointer& s) noexcept {
    if (s->state == phase::closed) return;
    if (s->state == phase::accepted) --accepted_;
    s->state = phase::closed;
    boost::system::error_code ignored;
    s->socket.close(ignored);
    s->hello_timer.cancel();
    greeting_.remove(s->id);
    while (!s->waits.empty()) {
      const std::uint64_t ticket = *s->waits.begin();
      s->waits.erase(s->waits.begin());
      book_.leave(ticket);
      waits_.erase(ticket);
    }
    sessions_.erase(s->id);
    connections_.store(sessions_.size(), std::memory_order_relaxed);
  }

  void close_all() noexcept {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    while (!sessions_.empty()) drop(session_pointer(sessions_.begin()->second));
  }

  strand_type strand_;
  acceptor_type acceptor_;
  timer_type retry_;
  hello_expectation expected_;
  std::string secret_;
  store_budget budget_;
  detail::store_table table_;
  detail::wait_book book_{};
  std::unordered_map<std::uint64_t, session_pointer> sessions_{};
  std::list<std::uint64_t> greeting_{};
  std::map<std::uint64_t, std::unique_ptr<store_wait>> waits_{};
  std::set<std::array<unsigned char, 16>> nonces_{};
  std::size_t accepted_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::atomic<std::size_t> connections_{0};
  bool stopped_ = false;
};

}  // namespace cohort::transport::tcp_detail
