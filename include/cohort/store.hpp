// SPDX-License-Identifier: BSL-1.0
// A store is a table of keys and values that all ranks of a job can reach before they can reach each other. This
// header says what every store can do; store/ has them in memory, in a file and under a prefix, transport/
// tcp_store.hpp over a network. rendezvous.hpp is their main user.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>

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

/// The moment at which a blocking call gives up.
using deadline = std::chrono::steady_clock::time_point;

/// The moment `after` from now; a duration too long for the clock means never.
[[nodiscard]] inline deadline deadline_after(std::chrono::nanoseconds after) {
  const deadline now = std::chrono::steady_clock::now();
  return after > deadline::max() - now ? deadline::max() : now + after;
}

/// How far past its deadline a call may run to hear that there is no answer.
inline constexpr std::chrono::milliseconds store_grace{500};

/// A key and its value, for calls that take several.
using key_value = std::pair<std::string, std::string>;

/// What a store refuses to exceed, so that no client can fill the memory of the process that serves it.
struct store_limits {
  std::size_t key = 1024;
  std::size_t value = std::size_t{8} << 20;
  std::size_t keys = std::size_t{128} << 10;
  std::size_t bytes = std::size_t{256} << 20;  ///< of all keys, values and queued items together
};

/// A table of bytes by name. A key holds a value or a queue of items. Every call is atomic, and none returns before its
/// effect is visible to all.
///
/// Shapes:    keys have 1..1024 bytes, values and items at most 8 MiB, each; all may hold any byte. The values of one
///            `multi_get` have 8 MiB together, the keys and values of one `multi_set` 16 MiB. Over TCP one call names
///            at most 131,072 keys
/// Order:     calls for one key are linearizable: each takes effect at one moment between its start and its return.
///            Items leave a queue in the order in which they came. Of several clients that wait in `queue_pop`, the
///            first to come is served first, and a push wakes one (in a file_store: whoever looks first)
/// Completes: `get`, `multi_get`, `wait`, `wait_until` and `queue_pop` block until there is what they ask for; the
///            others as long as a round trip takes. An expired deadline still answers what can be answered at once
/// Errors:    timed_out naming the keys that are missing; store_failed when a limit is exceeded, when `add` meets a
///            value that is no integer, when a call for values meets a queue or the reverse, and when the store went
///            away: what a call had done by then is not known
/// Cost:      one round trip each, also those for several keys
template <class S>
concept store = requires(S& s, std::string_view text, std::int64_t amount, deadline until,
                         std::span<const std::string> keys, std::span<const key_value> pairs) {
  s.set(text, text, until);                                                      // overwrites
  { s.get(text, until) } -> std::same_as<std::string>;                           // waits for the key
  { s.try_get(text, until) } -> std::same_as<std::optional<std::string>>;        // does not wait
  { s.add(text, amount, until) } -> std::same_as<std::int64_t>;                  // the new sum; an absent key is 0
  { s.append(text, text, until) } -> std::same_as<std::size_t>;                  // the new size; an absent key is ""
  { s.compare_set(text, text, text, until) } -> std::same_as<std::string>;       // (key, expected, desired) -> held now
  { s.multi_get(keys, until) } -> std::same_as<std::vector<std::string>>;        // waits for all, in one round trip
  s.multi_set(pairs, until);                                                     // all of them, in one step
  { s.wait_until(keys, until) } -> std::same_as<std::vector<std::string>>;       // the keys that are still missing
  s.wait(keys, until);                                                           // throws when one is missing
  { s.check(keys, until) } -> std::same_as<bool>;                                // whether all exist, without waiting
  { s.delete_key(text, until) } -> std::same_as<bool>;                           // whether it existed
  { s.num_keys(text, until) } -> std::same_as<std::size_t>;                      // of those that begin with the text
  s.queue_push(text, text, until);                                               // at the end of the queue
  { s.queue_pop(text, until) } -> std::same_as<std::string>;                     // waits for an item
  { s.try_queue_pop(text, until) } -> std::same_as<std::optional<std::string>>;  // does not wait
  { s.queue_len(text, until) } -> std::same_as<std::size_t>;                     // items; an absent key is 0
  { s.describe() } -> std::same_as<std::string>;                                 // for error messages
};

// compare_set: an `expected` of "" matches a key that is absent or empty. A key that is absent and was expected to
// hold something stays absent, and "" is returned.
//
// multi_set: of a key that is named twice the last value counts.
//
// Queues: a queue begins with the first push and ends when its last item is taken; an empty queue is an absent key for
// check, wait, num_keys and delete_key, and a queue with items is a present one. delete_key drops the items.
//
// An item is given to one client. A client that dies while it waits takes nothing with it. Over TCP an item that was
// on its way to a client whose connection ends goes back to the front of its queue, unless that client had said that it
// has it: no item is lost between two processes. The queue_pop of a tcp_store says so before it returns: one is given
// twice only when the network fails (not: when a process dies) between that word and the server. The thread of an
// async_store says so right after `co_await` has given the item, and before the last handle is gone: there it is given
// twice also when the process dies in between.

namespace detail {

/// The failure of a wait; `missing` are quoted already.
[[nodiscard]] inline error missing_keys_error(std::string_view call, std::span<const std::string> missing,
                                              std::size_t total, std::chrono::nanoseconds waited,
                                              const std::string& where) {
  std::vector<std::string> names;
  for (const std::string& key : missing) names.push_back(detail::quoted(key));
  error_details details;
  details.operation = std::string(call);
  details.elapsed = waited;
  return error(errc::timed_out,
               std::string(call) + ": missing: " + listed(names) + " (" + std::to_string(missing.size()) + " of " +
                   std::to_string(total) + ") after " + duration_text(waited) + " in " + where,
               details);
}

/// The failure of a queue_pop that waited in vain.
[[nodiscard]] inline error empty_queue_error(std::string_view key, std::chrono::nanoseconds waited,
                                             const std::string& where) {
  error_details details;
  details.operation = "queue_pop";
  details.elapsed = waited;
  return error(
      errc::timed_out,
      "queue_pop: no item for " + detail::quoted(key) + " came within " + duration_text(waited) + " in " + where,
      details);
}

[[nodiscard]] inline error store_error(std::string_view call, const std::string& what) {
  error_details details;
  details.operation = std::string(call);
  return error(errc::store_failed, std::string(call) + ": " + what, details);
}

/// The throwing form of `wait_until`, the same for every store.
template <class S>
void wait_or_throw(S& s, std::span<const std::string> keys, deadline until) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<std::string> missing = s.wait_until(keys, until);
  if (missing.empty()) return;
  throw missing_keys_error("wait", missing, keys.size(), std::chrono::steady_clock::now() - started, s.describe());
}

}  // namespace detail

/// Any store, chosen at run time.
///
/// Lifetime: owns the store that it was made of
/// Cost:     one virtual call per operation, against a lock or a round trip
class any_store {
 public:
  template <class S>
    requires(!std::same_as<std::remove_cvref_t<S>, any_store> && store<std::remove_cvref_t<S>>)
  explicit any_store(S&& s) : held_(std::make_unique<holder<std::remove_cvref_t<S>>>(std::forward<S>(s))) {}

  /// Overwrites what the key held.
  ///
  /// Errors: store_failed when it holds a queue, and at every limit
  void set(std::string_view key, std::string_view value, deadline until) { held_->set(key, value, until); }
  /// Result:    the value
  /// Completes: when the key has one
  /// Errors:    timed_out naming the key; store_failed when it holds a queue, also when one comes meanwhile
  [[nodiscard]] std::string get(std::string_view key, deadline until) { return held_->get(key, until); }
  /// Result: the value, or nothing when the key is absent; does not wait
  /// Errors: store_failed when it holds a queue
  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline until) {
    return held_->try_get(key, until);
  }
  /// Result: the new sum; an absent key is 0
  /// Errors: store_failed when the key holds no integer of 64 bits or the sum would be none, and when it holds a queue
  std::int64_t add(std::string_view key, std::int64_t amount, deadline until) { return held_->add(key, amount, until); }
  /// Result: the new size; an absent key is ""
  /// Errors: store_failed when the whole would be too long, and when the key holds a queue
  /// Cost:   what is appended, not what was there
  std::size_t append(std::string_view key, std::string_view value, deadline until) {
    return held_->append(key, value, until);
  }
  /// Sets `desired` if the key holds `expected`.
  ///
  /// Result: what the key holds afterwards, "" when it is absent
  /// Errors: store_failed when the key holds a queue
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    return held_->compare_set(key, expected, desired, until);
  }
  /// Result:    the values, in the order of the keys
  /// Shapes:    8 MiB together; a key may be named twice
  /// Completes: when all exist at one and the same time
  /// Errors:    timed_out naming the keys that are missing; store_failed when one holds a queue
  /// Cost:      one round trip
  /// Example:   const auto both = s.multi_get(std::vector<std::string>{"a", "b"}, deadline_after(5s));
  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys, deadline until) {
    return held_->multi_get(keys, until);
  }
  /// Sets all pairs in one step, or none of them.
  ///
  /// Shapes: keys and values of 16 MiB together; of a key that is named twice the last value counts
  /// Errors: store_failed when one of the keys holds a queue, and at every limit
  /// Cost:   one round trip
  void multi_set(std::span<const key_value> pairs, deadline until) { held_->multi_set(pairs, until); }
  /// Result:    the keys that are missing at the end; none when all exist
  /// Completes: when all keys exist at one and the same time, or at the deadline
  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    return held_->wait_until(keys, until);
  }
  /// Completes: when all keys exist at one and the same time
  /// Errors:    timed_out naming the keys that are missing
  void wait(std::span<const std::string> keys, deadline until) { detail::wait_or_throw(*this, keys, until); }
  /// Result: whether all exist; does not wait. A queue exists while it has items
  [[nodiscard]] bool check(std::span<const std::string> keys, deadline until) { return held_->check(keys, until); }
  /// Result: whether it existed. The items of a queue are dropped
  bool delete_key(std::string_view key, deadline until) { return held_->delete_key(key, until); }
  /// Result: how many keys begin with `prefix`, queues with items among them
  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) { return held_->num_keys(prefix, until); }
  /// Puts an item at the end of a queue, which begins with it if need be; or gives it to the first who waits.
  ///
  /// Errors: store_failed when the key holds a value, and at every limit: an item counts 64 bytes and its own
  void queue_push(std::string_view key, std::string_view item, deadline until) { held_->queue_push(key, item, until); }
  /// Result:    the item at the front, taken out of the queue
  /// Order:     first come, first served (not in a file_store); a push wakes one
  /// Completes: when there is an item
  /// Errors:    timed_out; store_failed when the key holds a value, also when one comes meanwhile
  /// Example:   s.queue_push("work", "1", until); const std::string one = s.queue_pop("work", until);
  [[nodiscard]] std::string queue_pop(std::string_view key, deadline until) { return held_->queue_pop(key, until); }
  /// Result: the item at the front, taken out of the queue, or nothing; does not wait
  /// Errors: store_failed when the key holds a value
  [[nodiscard]] std::optional<std::string> try_queue_pop(std::string_view key, deadline until) {
    return held_->try_queue_pop(key, until);
  }
  /// Result: how many items are in the queue; those on their way to a client are not
  /// Errors: store_failed when the key holds a value
  [[nodiscard]] std::size_t queue_len(std::string_view key, deadline until) { return held_->queue_len(key, until); }
  /// Result: what it is and where, for error messages
  [[nodiscard]] std::string describe() const { return held_->describe(); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    virtual void set(std::string_view, std::string_view, deadline) = 0;
    virtual std::string get(std::string_view, deadline) = 0;
    virtual std::optional<std::string> try_get(std::string_view, deadline) = 0;
    virtual std::int64_t add(std::string_view, std::int64_t, deadline) = 0;
    virtual std::size_t append(std::string_view, std::string_view, deadline) = 0;
    virtual std::string compare_set(std::string_view, std::string_view, std::string_view, deadline) = 0;
    virtual std::vector<std::string> multi_get(std::span<const std::string>, deadline) = 0;
    virtual void multi_set(std::span<const key_value>, deadline) = 0;
    virtual std::vector<std::string> wait_until(std::span<const std::string>, deadline) = 0;
    virtual bool check(std::span<const std::string>, deadline) = 0;
    virtual bool delete_key(std::string_view, deadline) = 0;
    virtual std::size_t num_keys(std::string_view, deadline) = 0;
    virtual void queue_push(std::string_view, std::string_view, deadline) = 0;
    virtual std::string queue_pop(std::string_view, deadline) = 0;
    virtual std::optional<std::string> try_queue_pop(std::string_view, deadline) = 0;
    virtual std::size_t queue_len(std::string_view, deadline) = 0;
    virtual std::string describe() const = 0;
  };

  template <class S>
  struct holder final : interface {
    template <class From>
    explicit holder(From&& from) : it(std::forward<From>(from)) {}
    void set(std::string_view k, std::string_view v, deadline d) override { it.set(k, v, d); }
    std::string get(std::string_view k, deadline d) override { return it.get(k, d); }
    std::optional<std::string> try_get(std::string_view k, deadline d) override { return it.try_get(k, d); }
    std::int64_t add(std::string_view k, std::int64_t n, deadline d) override { return it.add(k, n, d); }
    std::size_t append(std::string_view k, std::string_view v, deadline d) override { return it.append(k, v, d); }
    std::vector<std::string> multi_get(std::span<const std::string> k, deadline d) override {
      return it.multi_get(k, d);
    }
    void multi_set(std::span<const key_value> p, deadline d) override { it.multi_set(p, d); }
    std::string compare_set(std::string_view k, std::string_view e, std::string_view v, deadline d) override {
      return it.compare_set(k, e, v, d);
    }
    std::vector<std::string> wait_until(std::span<const std::string> k, deadline d) override {
      return it.wait_until(k, d);
    }
    bool check(std::span<const std::string> k, deadline d) override { return it.check(k, d); }
    bool delete_key(std::string_view k, deadline d) override { return it.delete_key(k, d); }
    std::size_t num_keys(std::string_view p, deadline d) override { return it.num_keys(p, d); }
    void queue_push(std::string_view k, std::string_view v, deadline d) override { it.queue_push(k, v, d); }
    std::string queue_pop(std::string_view k, deadline d) override { return it.queue_pop(k, d); }
    std::optional<std::string> try_queue_pop(std::string_view k, deadline d) override { return it.try_queue_pop(k, d); }
    std::size_t queue_len(std::string_view k, deadline d) override { return it.queue_len(k, d); }
    std::string describe() const override { return it.describe(); }
    S it;
  };

  std::unique_ptr<interface> held_;
};

static_assert(store<any_store>);

}  // namespace cohort
