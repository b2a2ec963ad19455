// SPDX-License-Identifier: BSL-1.0
// The server of the TCP store without its thread: accepts, judges hellos, reads bounded requests, answers them
// from one table. Everything is asynchronous, so a client that stalls, lies or floods costs only itself.
#pragma once

#include <cohort/store/desk.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/hello_memory.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_refusal.hpp>
#include <cohort/transport/tcp_store_session.hpp>

#include <boost/asio/buffer.hpp>

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
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::transport::tcp_detail {

/// What one client may cost.
struct store_budget {
  std::size_t clients = 128;                   ///< accepted ones; as many again may be saying hello
  std::size_t waits = 64;                      ///< waiting calls and unconfirmed items per client
  std::size_t copied = std::size_t{16} << 20;  ///< bytes of values copied for its waiting calls that it has not read
  std::chrono::nanoseconds hello = std::chrono::seconds(5);
};

class store_service : public std::enable_shared_from_this<store_service> {
 public:
  using session_pointer = std::shared_ptr<store_session>;

  store_service(acceptor_type acceptor, strand_type strand, const hello_expectation& expected, std::string secret,
                const store_budget& budget, store_limits limits, tcp_link::context_pointer tls)
      : strand_(std::move(strand)),
        acceptor_(std::move(acceptor)),
        retry_(strand_),
        expected_(expected),
        secret_(std::move(secret)),
        tls_(std::move(tls)),
        budget_(budget),
        desk_(limits) {
    expected_.secret = secret_;
  }

  void start() {
    detail::post_to(strand_, [self = shared_from_this()] { self->accept(); });
  }
  void stop() {
    detail::post_to(strand_, [self = shared_from_this()] { self->close_all(); });
  }
  /// Connections that are open now, whether or not they have been accepted. Any thread.
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.load(std::memory_order_relaxed); }
  /// Who was turned away last because of TLS. Any thread.
  [[nodiscard]] const tcp_refusal& refused() const noexcept { return refused_; }

 private:
  using phase = store_session::phase;
  [[nodiscard]] const store_limits& limits() const noexcept { return desk_.table().limits(); }
  static constexpr std::size_t read_step = std::size_t{64} << 10;
  static constexpr std::size_t pause_reading = std::size_t{1} << 20;

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
    detail::accept_into(acceptor_, next->link.socket(),
                        [self = shared_from_this(), next](const boost::system::error_code& code) {
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
    detail::when_expired(retry_, [self = shared_from_this()](const boost::system::error_code& code) {
      if (!code) self->accept();
    });
  } catch (...) {
    close_all();
  }

  void greet(const session_pointer& s) {
    tcp_link::socket_type& socket = s->link.socket();
    close_on_exec(socket.native_handle());
    boost::system::error_code ignored;
    socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    sessions_.emplace(s->id, s);
    greeting_.push_back(s->id);
    connections_.store(sessions_.size(), std::memory_order_relaxed);
    // Idle strangers push out the oldest of their kind, never one who has been accepted or has just arrived.
    if (greeting_.size() > budget_.clients) drop(sessions_.at(greeting_.front()));

    s->hello_timer.expires_after(budget_.hello);
    detail::when_expired(s->hello_timer, [self = shared_from_this(), s](const boost::system::error_code& code) {
      if (!code && s->state != phase::accepted) self->drop(s);
    });
    s->link.shake_hands(tls_, tls_side::server, [self = shared_from_this(), s](const boost::system::error_code& code) {
      self->guarded(s, [&] { code ? self->turn_away(s, code) : self->read_hello(s); });
    });
  }

  void read_hello(const session_pointer& s) {
    s->link.read_all(boost::asio::buffer(s->greeting),
                     [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                       self->guarded(s, [&] { code ? self->drop(s) : self->answer_hello(s); });
                     });
  }

  /// Who could not be agreed with on TLS is told why, as far as it understands, and has until the timer ends to read it.
  void turn_away(const session_pointer& s, const boost::system::error_code& why) {
    if (!is_of_tls(why)) return drop(s);
    refused_.write(s->link.peer(), why.message());
    s->state = phase::refused;
    if (why != tls_error(tls_trouble::no_tls)) return see_off(s);
    s->link.give_up_tls();
    s->answer = refusal_of_plain_text(expected_.rank);
    send_answer(s);
  }

  [[nodiscard]] hello_verdict judge_session(const store_session& s) {
    hello_verdict verdict = judge(s.greeting, expected_);
    if (!verdict.accepted()) return verdict;
    if (accepted_ >= budget_.clients) return {hello_field::capacity, 0, static_cast<std::int64_t>(accepted_)};
    if (secret_.empty()) return verdict;
    return seen_.judge(*decode_hello(s.greeting));
  }

  void answer_hello(const session_pointer& s) {
    hello_reply reply;
    reply.verdict = judge_session(*s);
    reply.rank = expected_.rank;
    reply.pid = static_cast<std::uint32_t>(::getpid());
    s->answer = sealed(reply, decode_hello(s->greeting).value_or(hello{}), secret_);
    const bool welcome = reply.verdict.accepted();
    if (reply.verdict.field == hello_field::tls) refused_.write_tls_client(s->link.peer());
    s->state = welcome ? phase::accepted : phase::refused;
    if (welcome) {
      ++accepted_;
      greeting_.remove(s->id);
      s->hello_timer.cancel();
    }
    send_answer(s);
  }

  void send_answer(const session_pointer& s) {
    s->link.write_all(boost::asio::buffer(s->answer),
                      [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                        self->guarded(s, [&] {
                          if (code) return self->drop(s);
                          if (s->state == phase::accepted) return self->read_head(s);
                          self->see_off(s);
                        });
                      });
  }

  /// It has read why it was refused when it closes.
  void see_off(const session_pointer& s) {
    s->link.see_off([self = shared_from_this(), s](const boost::system::error_code&) { self->drop(s); });
  }

  void read_head(const session_pointer& s) {
    if (s->reading || s->queued_bytes > pause_reading) return;  // resumed when it has read its replies
    s->reading = true;
    s->link.read_all(boost::asio::buffer(s->head),
                     [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                       self->guarded(s, [&] {
                         if (code) return self->drop(s);
                         s->request = detail::decode_request_head(s->head);
                         s->body.clear();
                         const bool known = !detail::name_of(s->request.call).starts_with("unknown");
                         if (!known || s->request.size > detail::largest_request(self->limits())) {
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
    s->link.read_all(
        boost::asio::buffer(s->body.data() + held, step),
        [self = shared_from_this(), s, next = held + step](const boost::system::error_code& code, std::size_t) {
          self->guarded(s, [&] { code ? self->drop(s) : self->read_body(s, next); });
        });
  }

  void serve(const session_pointer& s) {
    const detail::request_head request = s->request;
    const auto body = detail::decode_request_body(request.call, s->body, limits());
    if (!body) return drop(s);
    if (request.call == detail::store_call::queue_taken) {
      const auto item = s->lent.find(body->earlier);
      if (item == s->lent.end()) return drop(s);
      desk_.confirm(item->second);
      s->lent.erase(item);
    } else if (request.call == detail::store_call::forget) {
      forget(s, body->earlier);
    } else {
      carry_out(s, request, *body);
    }
    if (s->body.capacity() > read_step) std::string().swap(s->body);
  }

  /// The client has given up a request. Its answer may be on its way already: then there is nothing to do.
  void forget(const session_pointer& s, std::uint32_t id) {
    if (const auto item = s->lent.find(id); item != s->lent.end()) {
      const std::uint64_t ticket = item->second;
      s->lent.erase(item);
      return take_back({ticket});
    }
    for (const std::uint64_t ticket : s->waits) {
      if (waits_.at(ticket)->id != id) continue;
      desk_.leave(ticket);
      (void)take(ticket);
      return;
    }
  }

  void carry_out(const session_pointer& s, const detail::request_head& request, const detail::request_body& body) {
    const std::uint64_t ticket = ++last_ticket_;
    std::size_t waits_for = 0;
    bool waits = detail::may_wait(request.call);
    detail::store_desk::answers out;
    desk_.serve(
        ticket, request.call, body, [&](std::size_t keys) { admit(*s, request, waits_for = keys); }, out);
    for (const auto& answer : out) waits = waits && answer.who != ticket;
    if (waits) enter_wait(s, request, ticket, waits_for);
    for (detail::store_desk::answer& answer : out) {
      if (answer.who == ticket) {
        answer_one(s, request.id, answer);
      } else {
        answer_waiting(answer);
      }
    }
  }

  /// Throws when this client may have no further call waiting for `keys`, and no further item lent to it.
  void admit(const store_session& s, const detail::request_head& request, std::size_t keys) const {
    if (s.waits.size() + s.lent.size() < budget_.waits && s.waited_keys + keys <= limits().keys &&
        s.lent.find(request.id) == s.lent.end()) {
      return;
    }
    throw detail::store_error(detail::name_of(request.call),
                              "this client has " + std::to_string(s.waits.size()) + " calls waiting for " +
                                  std::to_string(s.waited_keys) + " keys, and " + std::to_string(s.lent.size()) +
                                  " items that it has not confirmed; the limits are " + std::to_string(budget_.waits) +
                                  " calls and items and " + std::to_string(limits().keys) +
                                  " keys, each with a number of its own");
  }

  void enter_wait(const session_pointer& s, const detail::request_head& request, std::uint64_t ticket,
                  std::size_t keys) {
    auto entry = std::make_unique<store_wait>(strand_, s, request.id, keys);
    entry->timer.expires_after(std::chrono::milliseconds(std::min(request.patience_ms, detail::most_patience_ms)));
    detail::when_expired(entry->timer, [self = shared_from_this(), ticket](const boost::system::error_code& code) {
      if (!code) self->give_up(ticket);
    });
    s->waits.insert(ticket);
    s->waited_keys += keys;
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

  /// An item that is lent stays in the books until the client has confirmed it or is gone.
  void answer_one(const session_pointer& s, std::uint32_t id, detail::store_desk::answer& answer) {
    if (answer.lent && !s->lent.emplace(id, answer.who).second) {  // two requests of one number: a liar
      take_back({answer.who});
      return drop(s);
    }
    reply(s, id, answer);
  }

  void answer_waiting(detail::store_desk::answer& answer) noexcept {
    const std::unique_ptr<store_wait> entry = take(answer.who);
    if (entry) {
      guarded(entry->session, [&] {
        bound_copies(*entry->session, answer);
        answer_one(entry->session, entry->id, answer);
      });
    } else if (answer.lent) {
      take_back({answer.who});  // its client went in the same moment
    }
  }

  /// All that a client waits for may come at once. What is shared with the table costs nothing; of what is not, as much
  /// is kept as fits, and a call beyond that fails.
  void bound_copies(const store_session& s, detail::store_desk::answer& answer) const {
    if (!answer.copied || s.copied_bytes + answer.body->size() <= budget_.copied) return;
    const error refusal = detail::store_error(
        "multi_get", "values of " + std::to_string(answer.body->size()) +
                         " bytes came while this client had not read " + std::to_string(s.copied_bytes) +
                         " bytes for other calls, the limit is " + std::to_string(budget_.copied) +
                         " together; call again when those are done");
    answer.status = static_cast<std::uint32_t>(refusal.condition());
    answer.body = std::make_shared<const std::string>(refusal.what());
    answer.copied = false;
  }

  void give_up(std::uint64_t ticket) noexcept {
    const auto at = waits_.find(ticket);
    if (at == waits_.end()) return;
    guarded(session_pointer(at->second->session), [&] {
      detail::store_desk::answers out;
      desk_.give_up(ticket, out);
      for (detail::store_desk::answer& answer : out) answer_waiting(answer);
    });
  }

  /// Items that will not arrive go back to their queues, and perhaps to other clients at once.
  void take_back(std::vector<std::uint64_t> tickets) noexcept {
    detail::store_desk::answers out;
    try {
      std::sort(tickets.begin(), tickets.end());
      desk_.give_back(tickets, out);
    } catch (...) {  // out of memory: some items are lost, the server is not
    }
    if (stopped_) return;
    for (detail::store_desk::answer& answer : out) answer_waiting(answer);
  }

  void reply(const session_pointer& s, std::uint32_t id, detail::store_desk::answer& answer) {
    outgoing out;
    out.body = std::move(answer.body);
    out.copied = answer.copied;
    detail::encode(detail::reply_head{out.body ? static_cast<std::uint32_t>(out.body->size()) : 0U, id, answer.status},
                   out.head);
    s->queued_bytes += out.size();
    if (out.copied) s->copied_bytes += out.body->size();
    s->queue.push_back(std::move(out));
    if (!s->writing) write_next(s);
  }

  void write_next(const session_pointer& s) {
    const outgoing& front = s->queue.front();
    const auto body = front.body ? boost::asio::buffer(*front.body) : boost::asio::const_buffer{};
    s->writing = true;
    s->link.write_all(boost::asio::buffer(front.head), body,
                      [self = shared_from_this(), s](const boost::system::error_code& code, std::size_t) {
                        self->guarded(s, [&] {
                          if (code) return self->drop(s);
                          s->writing = false;
                          const outgoing& sent = s->queue.front();
                          s->queued_bytes -= sent.size();
                          if (sent.copied) s->copied_bytes -= sent.body->size();
                          s->queue.pop_front();
                          if (!s->queue.empty()) self->write_next(s);
                          self->read_head(s);
                        });
                      });
  }

  void drop(const session_pointer& which) noexcept {
    if (which->state == phase::closed) return;
    const session_pointer s = which;  // what was given may stand in `sessions_`
    if (s->state == phase::accepted) --accepted_;
    s->state = phase::closed;
    s->link.close();
    s->hello_timer.cancel();
    greeting_.remove(s->id);
    while (!s->waits.empty()) {
      const std::uint64_t ticket = *s->waits.begin();
      s->waits.erase(s->waits.begin());
      desk_.leave(ticket);
      waits_.erase(ticket);
    }
    sessions_.erase(s->id);
    connections_.store(sessions_.size(), std::memory_order_relaxed);
    if (s->lent.empty()) return;
    try {
      std::vector<std::uint64_t> tickets;
      for (const auto& [id, ticket] : s->lent) tickets.push_back(ticket);
      s->lent.clear();
      take_back(std::move(tickets));
    } catch (...) {  // as in take_back
    }
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
  tcp_link::context_pointer tls_;
  tcp_refusal refused_{};
  store_budget budget_;
  detail::store_desk desk_;
  std::unordered_map<std::uint64_t, session_pointer> sessions_{};
  std::list<std::uint64_t> greeting_{};
  std::map<std::uint64_t, std::unique_ptr<store_wait>> waits_{};
  hello_memory seen_{};
  std::size_t accepted_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::atomic<std::size_t> connections_{0};
  bool stopped_ = false;
};

}  // namespace cohort::transport::tcp_detail
