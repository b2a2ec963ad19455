// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp_async_store.hpp: the connection, and the thread that reads and writes it.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/own_thread.hpp>
#include <cohort/store/store_operation.hpp>
#include <cohort/store/table.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/tcp_async_store.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_store_link.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {
namespace transport::tcp_detail {

/// The connection, and the thread that reads and writes it. Everything without "any thread" runs on that thread.
class store_pipeline final : public detail::store_driver, public std::enable_shared_from_this<store_pipeline> {
 public:
  using call_pointer = std::shared_ptr<detail::store_pending>;

  store_pipeline(const tcp_store_options& options, deadline until)
      : link_(options, until), work_(context().get_executor()), timer_(context()) {}

  void start() {
    context().restart();
    read_head();
    // The thread keeps this alive, until `close`.
    thread_.start("the calls of a store", [self = shared_from_this()] { self->run(); });
  }

  // --- any thread
  void submit(call_pointer call) override {
    call->driver = weak_from_this();
    detail::post_to(context(), [self = shared_from_this(), call = std::move(call)] { self->begin(call); });
  }
  [[nodiscard]] bool taken(call_pointer call) override {
    const bool here = context().get_executor().running_in_this_thread();
    // What has been posted when the end is noted comes before the end itself.
    const std::lock_guard lock(end_mutex_);
    if (has_ended_) return false;
    if (here) {
      confirm(call->id);
    } else {
      detail::post_to(context(), [self = shared_from_this(), id = call->id] { self->confirm(id); });
    }
    return true;
  }
  void abandoned(call_pointer call, std::optional<std::string>) override {
    detail::post_to(context(), [self = shared_from_this(), call = std::move(call)] { self->forget(*call); });
  }
  [[nodiscard]] std::string describe() const override { return link_.describe(); }
  void close() noexcept override {
    note_end();
    try {
      detail::post_to(context(), [self = shared_from_this()] { self->stop(); });
    } catch (...) {
      context().stop();
    }
    thread_.finish();  // perhaps from itself: a coroutine that it resumes may have held the last handle
  }

 private:
  struct asked {
    call_pointer call;
    deadline last;  ///< when the server should have answered
  };

  [[nodiscard]] boost::asio::io_context& context() noexcept { return link_.connection().context(); }

  void run() noexcept {
    for (;;) {
      try {
        context().run();
        return;
      } catch (const std::exception& e) {
        end(std::string("its client failed (") + e.what() + ")");
      }
    }
  }

  /// Of items that were taken the server hears before the connection ends, unless it does not listen.
  void stop() {
    work_.reset();
    conclude("the async_store was closed");
    if (!open_) return;
    if (!has_confirmed_) return hang_up();
    closing_ = true;
    timer_.expires_after(store_grace);
    detail::when_expired(timer_, [self = shared_from_this()](const boost::system::error_code& code) {
      if (!code) self->hang_up();
    });
    if (output_.empty()) see_off();
  }
  /// Who closes with unread bytes takes back what it has sent last: the server closes first.
  void see_off() {
    open_ = false;
    link_.connection().link().see_off(
        [self = shared_from_this()](const boost::system::error_code&) { self->hang_up(); });
  }

  void begin(const call_pointer& call) {
    if (call->done()) return;  // given up
    std::exception_ptr why;
    try {
      if (!ended_.empty()) throw gone(*call);
      check(*call);
      if (call->call == detail::store_call::num_keys && call->key.size() > limits_.key) {  // no key is that long
        detail::store_outcome none;
        (void)call->succeed(none);
        return;
      }
      do ++last_id_;
      while (last_id_ == 0 || asked_.find(last_id_) != asked_.end());
      call->id = last_id_;
      const auto now = std::chrono::steady_clock::now();
      const deadline last =
          call->until > deadline::max() - store_grace ? call->until : std::max(call->until, now) + store_grace;
      enqueue(encoded(*call, now));
      asked_.emplace(call->id, asked{call, last});
      if (last < timer_.expiry() || asked_.size() == 1) watch(last);
    } catch (...) {
      why = std::current_exception();
    }
    // Handed over outside of the handler: from here on the exception is the other thread's alone.
    if (why) call->fail(std::move(why));
  }

  void check(const detail::store_pending& c) const {
    const std::string_view name = detail::name_of(c.call);
    detail::check_store_count(limits_, name, std::max(c.keys.size(), c.pairs.size()));
    for (const std::string& key : c.keys) detail::check_store_key(limits_, name, key);
    for (const auto& [key, value] : c.pairs) {
      detail::check_store_key(limits_, name, key);
      detail::check_store_value(limits_, name, key, value);
    }
    detail::check_multi_set_size(limits_, c.pairs);
    const bool several = c.call == detail::store_call::wait || c.call == detail::store_call::multi_get ||
                         c.call == detail::store_call::multi_set;
    if (!several && c.call != detail::store_call::num_keys) detail::check_store_key(limits_, name, c.key);
    detail::check_store_value(limits_, name, c.key, c.value);
    detail::check_store_value(limits_, name, c.key, c.expected);
  }

  [[nodiscard]] std::string encoded(const detail::store_pending& c, deadline now) const {
    const bool waits = detail::may_wait(c.call) && c.form != detail::store_pending::waiting::checks;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(c.until, now) - now).count();
    detail::request_head head;
    head.id = c.id;
    head.call = c.call;
    head.patience_ms = waits ? std::min(static_cast<std::uint64_t>(left), detail::most_patience_ms) : 0;
    detail::request_body body;
    body.key = c.key;
    body.value = c.value;
    body.expected = c.expected;
    body.amount = c.amount;
    std::string bytes = detail::encoded_request(head, body, {c.keys, c.pairs});
    if (bytes.size() > detail::request_head_size + detail::largest_request(limits_))
      link_.fail(detail::name_of(c.call), errc::store_failed, "takes no request of this size");
    return bytes;
  }

  /// The item of an earlier request is its caller's.
  void confirm(std::uint32_t id) {
    has_confirmed_ = true;
    tell(detail::store_call::queue_taken, id);
  }

  /// A message about an earlier request; it has no answer.
  void tell(detail::store_call what, std::uint32_t id) {
    if (!open_ || id == 0) return;
    detail::request_head head;
    head.call = what;
    detail::request_body body;
    body.earlier = id;
    enqueue(detail::encoded_request(head, body, {}));
  }

  void forget(const detail::store_pending& call) {
    asked_.erase(call.id);
    if (detail::may_wait(call.call) || detail::takes_item(call.call)) tell(detail::store_call::forget, call.id);
  }

  void enqueue(std::string bytes) {
    output_.push_back(std::move(bytes));
    if (output_.size() == 1) write_next();
  }
  void write_next() {
    link_.connection().link().write_all(
        boost::asio::buffer(output_.front()),
        [self = shared_from_this()](const boost::system::error_code& code, std::size_t) {
          if (!self->open_) return;
          if (code) return self->end("it went away (" + code.message() + ")");
          self->output_.pop_front();
          if (!self->output_.empty()) return self->write_next();
          if (self->closing_) self->see_off();
        });
  }

  void read_head() {
    link_.connection().link().read_all(boost::asio::buffer(head_),
                                       [self = shared_from_this()](const boost::system::error_code& code, std::size_t) {
                                         if (!self->open_) return;
                                         if (code) return self->end("it went away (" + code.message() + ")");
                                         self->reply_ = detail::decode_reply_head(self->head_);
                                         if (self->reply_.size > detail::largest_reply(self->limits_))
                                           return self->end("it sent a reply that is too long to be one");
                                         self->body_.resize(self->reply_.size);
                                         self->read_body();
                                       });
  }
  void read_body() {
    link_.connection().link().read_all(boost::asio::buffer(body_),
                                       [self = shared_from_this()](const boost::system::error_code& code, std::size_t) {
                                         if (!self->open_) return;
                                         if (code) return self->end("it went away (" + code.message() + ")");
                                         self->answer();
                                         if (self->open_) self->read_head();
                                       });
  }

  void answer() {
    const auto at = asked_.find(reply_.id);
    if (at == asked_.end()) return;  // given up; an item in it goes back, as the server has been told or will be
    const call_pointer call = std::move(at->second.call);
    asked_.erase(at);
    std::exception_ptr why;
    try {
      detail::store_outcome got = decoded(*call);
      const bool item = detail::takes_item(call->call) && got.text.has_value();
      call->lent = item;
      if (!call->succeed(got) && item) tell(detail::store_call::forget, call->id);
    } catch (...) {
      why = std::current_exception();
    }
    if (why) call->fail(std::move(why));
  }

  [[nodiscard]] detail::store_outcome decoded(const detail::store_pending& c) {
    using form = detail::store_pending::waiting;
    const std::string_view name = detail::name_of(c.call);
    const bool late = reply_.status == static_cast<std::uint32_t>(errc::timed_out);
    if (reply_.status != 0 && !late) {
      error_details details;
      details.rank = link_.rank();
      details.operation = std::string(name);
      throw error(errc::store_failed, body_, details);
    }
    detail::store_outcome got;
    if (c.call == detail::store_call::wait && c.form == form::checks) {
      got.number = late ? 0 : 1;
      return got;
    }
    if (late) {
      const auto waited = std::chrono::steady_clock::now() - c.started;
      if (c.call == detail::store_call::queue_pop) throw detail::empty_queue_error(c.key, waited, describe());
      const std::span<const std::string> keys = c.call == detail::store_call::get
                                                    ? std::span<const std::string>(&c.key, 1)
                                                    : std::span<const std::string>(c.keys);
      got.list = missing(name, keys);
      if (c.call == detail::store_call::wait && c.form == form::lists) return got;
      throw detail::missing_keys_error(name, got.list, keys.size(), waited, describe());
    }
    switch (c.call) {
      case detail::store_call::get:
      case detail::store_call::compare_set:
      case detail::store_call::queue_pop: got.text = std::move(body_); break;
      case detail::store_call::try_get:
      case detail::store_call::try_queue_pop:
        if (!body_.empty()) got.text = body_.substr(1);
        break;
      case detail::store_call::multi_get: {
        auto values = detail::decode_values(body_, c.keys.size(), limits_);
        if (!values) link_.fail(name, errc::protocol_error, "sent values that are none");
        got.list = *std::move(values);
        break;
      }
      case detail::store_call::add:
      case detail::store_call::append:
      case detail::store_call::delete_key:
      case detail::store_call::num_keys:
      case detail::store_call::queue_len: {
        detail::byte_reader from(body_);
        got.number = static_cast<std::int64_t>(from.number<std::uint64_t>());
        if (!from.complete()) link_.fail(name, errc::protocol_error, "sent a number that is none");
        break;
      }
      default: break;
    }
    return got;
  }

  [[nodiscard]] std::vector<std::string> missing(std::string_view name, std::span<const std::string> keys) const {
    std::vector<std::string> absent;
    detail::byte_reader from(body_);
    while (from.left() > 0) {
      const std::size_t index = from.number<std::uint32_t>();
      if (!from.good() || index >= keys.size())
        link_.fail(name, errc::protocol_error, "sent a reply that names keys which were not asked for");
      absent.push_back(keys[index]);
    }
    // What a get waits for is not listed: it is the one key.
    return absent.empty() ? std::vector<std::string>(keys.begin(), keys.end()) : absent;
  }

  /// The server keeps the time of a wait. This is for one that does not answer at all.
  void watch(deadline next) {
    timer_.expires_at(next);
    detail::when_expired(timer_, [self = shared_from_this()](const boost::system::error_code& code) {
      if (code || !self->ended_.empty()) return;
      self->give_up_late_ones();
    });
  }
  void give_up_late_ones() {
    const auto now = std::chrono::steady_clock::now();
    std::vector<call_pointer> late;
    deadline next = deadline::max();
    for (const auto& [id, each] : asked_) {
      if (each.last <= now) {
        late.push_back(each.call);
      } else {
        next = std::min(next, each.last);
      }
    }
    for (const call_pointer& call : late) {
      forget(*call);
      call->fail(std::make_exception_ptr(
          link_.failure(detail::name_of(call->call), errc::timed_out,
                        "did not answer within " + detail::duration_text(now - call->started))));
    }
    if (ended_.empty() && !asked_.empty()) watch(next);
  }

  [[nodiscard]] error gone(const detail::store_pending& call) const {
    return link_.failure(detail::name_of(call.call), errc::store_failed, "is not connected: " + ended_);
  }

  void note_end() noexcept {
    const std::lock_guard lock(end_mutex_);
    has_ended_ = true;
  }
  void hang_up() {
    open_ = false;
    link_.connection().close();
    timer_.cancel();
  }
  void end(const std::string& why) {
    hang_up();
    conclude(why);
  }
  /// Every call that is in flight fails; what each had done is not known.
  void conclude(const std::string& why) {
    if (!ended_.empty()) return;
    ended_ = why;
    note_end();
    timer_.cancel();
    const std::map<std::uint32_t, asked> all = std::move(asked_);
    asked_.clear();
    for (const auto& [id, each] : all) each.call->fail(std::make_exception_ptr(gone(*each.call)));
  }

  tcp_store_link link_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
  store_limits limits_{};
  std::map<std::uint32_t, asked> asked_{};
  std::uint32_t last_id_ = 0;
  std::deque<std::string> output_{};
  std::array<unsigned char, detail::reply_head_size> head_{};
  detail::reply_head reply_{};
  std::string body_{};
  std::string ended_{};  ///< why; "": it has not
  bool open_ = true;     ///< the connection is, which outlives the calls until the last word is sent
  bool closing_ = false;
  bool has_confirmed_ = false;  ///< some item, at some time
  std::mutex end_mutex_{};
  bool has_ended_ = false;  ///< with end_mutex_
  detail::own_thread thread_{};
};

}  // namespace transport::tcp_detail

COHORT_DECL async_store async_tcp_store(const tcp_store_options& options, deadline until) {
  auto pipeline = std::make_shared<transport::tcp_detail::store_pipeline>(options, until);
  pipeline->start();
  return async_store(std::shared_ptr<detail::store_driver>(std::move(pipeline)));
}

}  // namespace cohort
