// SPDX-License-Identifier: BSL-1.0
// Carries out the calls of an async_store with any blocking store, on one thread: a call that waits is tried again from
// time to time and holds up none behind it.
#pragma once

#include <cohort/detail/own_thread.hpp>
#include <cohort/store.hpp>
#include <cohort/store/store_operation.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cohort::detail {

template <store Store>
class store_worker final : public store_driver, public std::enable_shared_from_this<store_worker<Store>> {
 public:
  using call_pointer = std::shared_ptr<store_pending>;

  explicit store_worker(Store s) : store_(std::move(s)) {}
  void start() {
    // The thread keeps this alive, until `close`.
    thread_.start("the calls of a store", [self = this->shared_from_this()] { self->run(); });
  }

  void submit(call_pointer call) override {
    call->driver = this->weak_from_this();
    {
      const std::lock_guard lock(mutex_);
      if (!closing_) {
        incoming_.push_back(std::move(call));
        changed_.notify_one();
        return;
      }
    }
    call->fail(closed(*call));
  }
  [[nodiscard]] bool taken(call_pointer) override { return true; }
  void abandoned(call_pointer call, std::optional<std::string> item) override {
    if (item) give_back({call->key, std::move(*item)});
  }
  [[nodiscard]] std::string describe() const override { return name_; }

  void close() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_one();
    }
    thread_.finish();  // perhaps from itself: a coroutine that it resumes may have held the last handle
  }

 private:
  static constexpr std::chrono::milliseconds shortest_pause{1};
  static constexpr std::chrono::milliseconds longest_pause{10};
  struct unwanted {
    std::string key{};
    std::string item{};
  };

  void run() noexcept {
    auto pause = shortest_pause;
    std::vector<call_pointer> waiting;
    for (;;) {
      std::deque<call_pointer> fresh;
      {
        std::unique_lock lock(mutex_);
        const auto something = [this] { return closing_ || !incoming_.empty() || !unwanted_.empty(); };
        if (waiting.empty()) {
          changed_.wait(lock, something);
        } else {
          changed_.wait_for(lock, pause, something);
        }
        while (!unwanted_.empty()) {
          const unwanted next = std::move(unwanted_.front());
          unwanted_.pop_front();
          lock.unlock();
          push_again(next);
          lock.lock();
        }
        fresh.swap(incoming_);
        if (closing_) {
          over_ = true;
          lock.unlock();
          for (const call_pointer& call : waiting) call->fail(closed(*call));
          for (const call_pointer& call : fresh) call->fail(closed(*call));
          return;
        }
      }
      bool moved = false;
      const auto over = [&](const call_pointer& call) {
        const bool is_over = attempt(call);
        moved = moved || is_over;
        return is_over;
      };
      for (const call_pointer& call : fresh) {
        if (!over(call)) waiting.push_back(call);
      }
      // What was just done may be what another waits for. In the order in which they were called.
      std::erase_if(waiting, over);
      pause = moved ? shortest_pause : std::min(pause * 2, longest_pause);
    }
  }

  /// True when the call is over, one way or the other.
  [[nodiscard]] bool attempt(const call_pointer& call) noexcept {
    if (call->done()) return true;  // given up
    std::exception_ptr why;
    try {
      store_outcome got;
      if (!carry_out(*call, got)) return false;
      const bool item = takes_item(call->call) && got.text.has_value();
      if (item) call->hold(this->shared_from_this());
      if (!call->succeed(got)) {
        call->hold(nullptr);
        if (item) push_again({call->key, std::move(*got.text)});
      }
    } catch (...) {
      why = std::current_exception();
    }
    // Handed over outside of the handler: from here on the exception is the other thread's alone.
    if (why) call->fail(std::move(why));
    return true;
  }

  [[nodiscard]] bool carry_out(const store_pending& c, store_outcome& got) {
    switch (c.call) {
      case store_call::set: store_.set(c.key, c.value, c.until); return true;
      case store_call::try_get: got.text = store_.try_get(c.key, c.until); return true;
      case store_call::add: got.number = store_.add(c.key, c.amount, c.until); return true;
      case store_call::append:
        got.number = static_cast<std::int64_t>(store_.append(c.key, c.value, c.until));
        return true;
      case store_call::compare_set: got.text = store_.compare_set(c.key, c.expected, c.value, c.until); return true;
      case store_call::multi_set: store_.multi_set(c.pairs, c.until); return true;
      case store_call::delete_key: got.number = store_.delete_key(c.key, c.until) ? 1 : 0; return true;
      case store_call::num_keys: got.number = static_cast<std::int64_t>(store_.num_keys(c.key, c.until)); return true;
      case store_call::queue_push: store_.queue_push(c.key, c.value, c.until); return true;
      case store_call::try_queue_pop: got.text = store_.try_queue_pop(c.key, c.until); return true;
      case store_call::queue_len: got.number = static_cast<std::int64_t>(store_.queue_len(c.key, c.until)); return true;
      case store_call::wait: return wait(c, got);
      default: return look(c, got);
    }
  }

  [[nodiscard]] bool wait(const store_pending& c, store_outcome& got) {
    if (c.form == store_pending::waiting::checks) {
      got.number = store_.check(c.keys, c.until) ? 1 : 0;
      return true;
    }
    got.list = store_.wait_until(c.keys, at_once());
    if (!got.list.empty() && std::chrono::steady_clock::now() < c.until) return false;
    if (!got.list.empty() && c.form == store_pending::waiting::throws) {
      throw missing_keys_error("wait", got.list, c.keys.size(), std::chrono::steady_clock::now() - c.started, name_);
    }
    return true;
  }

  /// get, multi_get and queue_pop: what is there now.
  [[nodiscard]] bool look(const store_pending& c, store_outcome& got) {
    const std::span<const std::string> keys = c.call == store_call::multi_get ? std::span<const std::string>(c.keys)
                                                                              : std::span<const std::string>(&c.key, 1);
    std::vector<std::string> missing;
    try {
      missing = store_.wait_until(keys, at_once());
    } catch (const error& e) {
      if (e.condition() == errc::timed_out) throw;  // else the call itself says it better
    }
    if (missing.empty()) {
      try {
        if (c.call == store_call::get) got.text = store_.get(c.key, at_once());
        if (c.call == store_call::queue_pop) got.text = store_.queue_pop(c.key, at_once());
        if (c.call == store_call::multi_get) got.list = store_.multi_get(c.keys, at_once());
        return true;
      } catch (const error& e) {
        if (e.condition() != errc::timed_out) throw;  // somebody else was quicker
      }
    }
    const auto now = std::chrono::steady_clock::now();
    if (now < c.until) return false;
    if (c.call == store_call::queue_pop) throw empty_queue_error(c.key, now - c.started, name_);
    throw missing_keys_error(name_of(c.call), missing, keys.size(), now - c.started, name_);
  }

  /// Any thread. What is given back while the thread ends is its last work; after that it is whoever gives it back.
  void give_back(unwanted what) {
    const std::lock_guard lock(mutex_);
    if (over_) return push_again(what);
    unwanted_.push_back(std::move(what));
    changed_.notify_one();
  }
  /// Nobody is left to be told of a failure.
  void push_again(const unwanted& what) noexcept {
    try {
      store_.queue_push(what.key, what.item, patience());
    } catch (...) {}
  }

  [[nodiscard]] static deadline at_once() { return deadline_after(std::chrono::nanoseconds(0)); }
  [[nodiscard]] static deadline patience() { return deadline_after(std::chrono::seconds(30)); }
  [[nodiscard]] std::exception_ptr closed(const store_pending& c) const {
    return std::make_exception_ptr(store_error(name_of(c.call), "the async_store for " + name_ + " was closed"));
  }

  Store store_;
  const std::string name_ = store_.describe();
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<call_pointer> incoming_{};
  std::deque<unwanted> unwanted_{};  ///< items that go back to their queues
  bool closing_ = false;
  bool over_ = false;  ///< the thread touches the store no more
  own_thread thread_{};
};

}  // namespace cohort::detail
