// SPDX-License-Identifier: BSL-1.0
// async_store: any store as one whose calls are awaited. Made of a blocking store here, of a TCP connection in
// transport/tcp_async_store.hpp.
#pragma once

#include <cohort/store.hpp>
#include <cohort/store/store_operation.hpp>
#include <cohort/store/store_worker.hpp>
#include <cohort/types.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// A store whose calls start when they are called and are awaited later, in any kind of coroutine. The calls are those
/// of the `store` concept, with a `timeout{}` as the last argument where five minutes are not meant. Copies are handles
/// to the same store; any thread may use any of them.
///
/// Order:    calls for which there is nothing to wait take effect in the order in which they are called. One that waits
///           holds up none behind it
/// Completes: see store_operation
/// Errors:   those of the store; store_failed for calls in flight when the last handle goes
/// Lifetime: owns the store that it was made of, and the thread that serves it; the last handle ends both. A blocking
///           store stays for an item that a call still has, until that is taken or goes back
/// Cost:     a hand-over to that thread and back. Made of a blocking store, a call that waits is tried again every 1 to
///           10 ms, and after each other call of this object; async_tcp_store does better
/// Example:
///   cohort::async_store s{cohort::memory_store()};
///   co_await s.set("answer", "42");
///   const std::string v = co_await s.get("answer", cohort::timeout{5s});
class async_store {
 public:
  template <class S>
    requires(!std::same_as<std::remove_cvref_t<S>, async_store> && store<std::remove_cvref_t<S>>)
  explicit async_store(S&& s) {
    auto worker = std::make_shared<detail::store_worker<std::remove_cvref_t<S>>>(std::forward<S>(s));
    worker->start();
    open_ = std::make_shared<opened>(std::move(worker));
  }
  /// For transports.
  explicit async_store(std::shared_ptr<detail::store_driver> driver)
      : open_(std::make_shared<opened>(std::move(driver))) {}

  /// The same store with `prefix` before every key.
  [[nodiscard]] async_store under(std::string_view prefix) const {
    async_store inner(*this);
    inner.prefix_ += prefix;
    return inner;
  }

  /// Result: nothing. Overwrites what the key held.
  store_operation<void> set(std::string_view key, std::string_view value, std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::set, key, after);
    c->value = value;
    return send<void>(std::move(c));
  }
  /// Result:    the value
  /// Completes: when the key has one
  store_operation<std::string> get(std::string_view key, std::optional<timeout> after = {}) {
    return send<std::string>(call(detail::store_call::get, key, after));
  }
  /// Result: the value, or nothing when the key is absent
  store_operation<std::optional<std::string>> try_get(std::string_view key, std::optional<timeout> after = {}) {
    return send<std::optional<std::string>>(call(detail::store_call::try_get, key, after));
  }
  /// Result: the new sum; an absent key is 0
  store_operation<std::int64_t> add(std::string_view key, std::int64_t amount, std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::add, key, after);
    c->amount = amount;
    return send<std::int64_t>(std::move(c));
  }
  /// Result: the new size; an absent key is ""
  store_operation<std::size_t> append(std::string_view key, std::string_view value, std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::append, key, after);
    c->value = value;
    return send<std::size_t>(std::move(c));
  }
  /// Result: what the key holds afterwards: `desired` if it held `expected` ("": or was absent)
  store_operation<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                           std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::compare_set, key, after);
    c->expected = expected;
    c->value = desired;
    return send<std::string>(std::move(c));
  }
  /// Result:    the values, in the order of the keys
  /// Completes: when all exist at once
  store_operation<std::vector<std::string>> multi_get(std::span<const std::string> keys,
                                                      std::optional<timeout> after = {}) {
    return send<std::vector<std::string>>(call_for(detail::store_call::multi_get, keys, after));
  }
  /// Result: nothing. All are set in one step, or none
  store_operation<void> multi_set(std::span<const key_value> pairs, std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::multi_set, {}, after);
    c->key.clear();
    for (const auto& [key, value] : pairs) c->pairs.emplace_back(full(key), value);
    return send<void>(std::move(c));
  }
  /// Result:    nothing
  /// Completes: when all keys exist at once
  /// Errors:    timed_out naming those that are missing
  store_operation<void> wait(std::span<const std::string> keys, std::optional<timeout> after = {}) {
    return send<void>(call_for(detail::store_call::wait, keys, after));
  }
  /// Result:    the keys that are missing at the deadline; none when all exist
  /// Completes: when all keys exist at once, or at the deadline
  store_operation<std::vector<std::string>> wait_until(std::span<const std::string> keys,
                                                       std::optional<timeout> after = {}) {
    auto c = call_for(detail::store_call::wait, keys, after);
    c->form = detail::store_pending::waiting::lists;
    return send<std::vector<std::string>>(std::move(c));
  }
  /// Result: whether all exist; does not wait
  store_operation<bool> check(std::span<const std::string> keys, std::optional<timeout> after = {}) {
    auto c = call_for(detail::store_call::wait, keys, after);
    c->form = detail::store_pending::waiting::checks;
    return send<bool>(std::move(c));
  }
  /// Result: whether it existed
  store_operation<bool> delete_key(std::string_view key, std::optional<timeout> after = {}) {
    return send<bool>(call(detail::store_call::delete_key, key, after));
  }
  /// Result: how many keys begin with `prefix`
  store_operation<std::size_t> num_keys(std::string_view prefix = {}, std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::num_keys, prefix, after);
    if (prefix.empty()) c->key = prefix_;
    return send<std::size_t>(std::move(c));
  }
  /// Result: nothing. The item stands at the end of the queue, or has gone to the first who waits
  store_operation<void> queue_push(std::string_view key, std::string_view item, std::optional<timeout> after = {}) {
    auto c = call(detail::store_call::queue_push, key, after);
    c->value = item;
    return send<void>(std::move(c));
  }
  /// Result:    the first item, which is this caller's from the moment in which `co_await` gives it. Over TCP the
  ///            server hears of that right afterwards: the item of a process that dies in between goes back
  /// Completes: when there is one
  /// Cancels:   an item that was on its way goes back: over TCP to the front, else to the end of the queue
  store_operation<std::string> queue_pop(std::string_view key, std::optional<timeout> after = {}) {
    return send<std::string>(call(detail::store_call::queue_pop, key, after));
  }
  /// Result: the first item, or nothing; does not wait
  store_operation<std::optional<std::string>> try_queue_pop(std::string_view key, std::optional<timeout> after = {}) {
    return send<std::optional<std::string>>(call(detail::store_call::try_queue_pop, key, after));
  }
  /// Result: the number of items
  store_operation<std::size_t> queue_len(std::string_view key, std::optional<timeout> after = {}) {
    return send<std::size_t>(call(detail::store_call::queue_len, key, after));
  }
  [[nodiscard]] std::string describe() const { return open_->driver->describe(); }

 private:
  /// The last handle closes what serves it.
  struct opened {
    explicit opened(std::shared_ptr<detail::store_driver> d) : driver(std::move(d)) {}
    opened(const opened&) = delete;
    opened& operator=(const opened&) = delete;
    ~opened() { driver->close(); }
    std::shared_ptr<detail::store_driver> driver;
  };

  // An empty key stays empty, so that the store refuses it as it would without the prefix.
  [[nodiscard]] std::string full(std::string_view key) const {
    return key.empty() ? std::string{} : prefix_ + std::string(key);
  }
  [[nodiscard]] std::shared_ptr<detail::store_pending> call(detail::store_call which, std::string_view key,
                                                            const std::optional<timeout>& after) const {
    auto c = std::make_shared<detail::store_pending>();
    c->call = which;
    c->key = full(key);
    c->prefix = prefix_.size();
    c->until = deadline_after(after ? after->after : std::chrono::nanoseconds(std::chrono::minutes(5)));
    return c;
  }
  [[nodiscard]] std::shared_ptr<detail::store_pending> call_for(detail::store_call which,
                                                                std::span<const std::string> keys,
                                                                const std::optional<timeout>& after) const {
    auto c = call(which, {}, after);
    for (const std::string& key : keys) c->keys.push_back(full(key));
    return c;
  }
  template <class T>
  store_operation<T> send(std::shared_ptr<detail::store_pending> c) {
    open_->driver->submit(c);
    return store_operation<T>(std::move(c));
  }

  std::shared_ptr<opened> open_{};
  std::string prefix_{};
};

}  // namespace cohort
