// SPDX-License-Identifier: BSL-1.0
// The rules of a store without locks, files or sockets: the one table that memory_store, file_store and the TCP
// server all keep.
#pragma once

#include <cohort/store.hpp>
#include <cohort/uri.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort::detail {

/// A change that a call decided on, for a store that writes it elsewhere before it applies it.
struct store_change {
  std::string result;  ///< the value that the key holds afterwards
  bool writes = false;
};

inline void check_store_key(const store_limits& limits, std::string_view call, std::string_view key) {
  if (key.empty()) throw store_error(call, "the key is empty, expected 1.." + std::to_string(limits.key) + " bytes");
  if (key.size() <= limits.key) return;
  throw store_error(call,
                    "a key of " + std::to_string(key.size()) + " bytes, the limit is " + std::to_string(limits.key));
}

inline void check_store_value(const store_limits& limits, std::string_view call, std::string_view key,
                              std::string_view value) {
  if (value.size() <= limits.value) return;
  throw store_error(call, "a value of " + std::to_string(value.size()) + " bytes for " + detail::quoted(key) +
                              ", the limit is " + std::to_string(limits.value));
}

/// What one multi_set may carry; larger ones would not fit into a request.
inline void check_multi_set_size(const store_limits& limits, std::span<const key_value> pairs) {
  std::size_t asked = 0;
  for (const auto& [key, value] : pairs) asked += 8 + key.size() + value.size();
  if (asked <= 2 * limits.value) return;
  throw store_error("multi_set", std::to_string(pairs.size()) + " keys and values of " + std::to_string(asked) +
                                     " bytes, the limit for one call is " + std::to_string(2 * limits.value) +
                                     "; use several calls");
}

/// How many keys one call may name; a request of more is none.
inline void check_store_count(const store_limits& limits, std::string_view call, std::size_t keys) {
  if (keys <= limits.keys) return;
  throw store_error(call, std::to_string(keys) + " keys, the limit for one call is " + std::to_string(limits.keys) +
                              "; use several calls");
}

class store_table {
 public:
  using shared_text = std::shared_ptr<const std::string>;
  /// What an item costs beside its bytes, so that a flood of empty ones is counted too.
  static constexpr std::size_t item_cost = 64;

  store_table() = default;
  explicit store_table(store_limits limits) : limits_(limits) {}

  /// The value of a key; null when it is absent or a queue.
  [[nodiscard]] const std::string* find(std::string_view key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : at->second.get();
  }
  /// The value as it is now, for a reader who takes his time: a thousand of them share one copy.
  [[nodiscard]] shared_text share(std::string_view key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : at->second;
  }
  /// Whether it holds a value or a queue with items.
  [[nodiscard]] bool exists(std::string_view key) const {
    return values_.find(key) != values_.end() || queue_size(key) > 0;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const store_limits& limits() const noexcept { return limits_; }

  void check_key(std::string_view call, std::string_view key) const { check_store_key(limits_, call, key); }
  /// Throws when `key` may not be used as a value, because it is a queue.
  void check_value_key(std::string_view call, std::string_view key) const {
    check_key(call, key);
    const auto at = queues_.find(key);
    if (at == queues_.end()) return;
    throw store_error(call, "key " + detail::quoted(key) + " holds a queue of " +
                                std::to_string(at->second.items.size()) +
                                " items, expected a value; use queue_pop, or delete_key first");
  }
  /// Throws when `key` may not be used as a queue, because it holds a value.
  void check_queue_key(std::string_view call, std::string_view key) const {
    check_key(call, key);
    const std::string* const held = find(key);
    if (held == nullptr) return;
    throw store_error(call, "key " + detail::quoted(key) + " holds a value of " + std::to_string(held->size()) +
                                " bytes, expected a queue; use get, or delete_key first");
  }

  // --- values

  /// Throws when `key` may not hold `value`.
  void check_set(std::string_view call, std::string_view key, std::string_view value) const {
    check_value_key(call, key);
    check_store_value(limits_, call, key, value);
    const std::string* const held = find(key);
    if (held == nullptr) check_room(call, key, 1);
    const std::size_t freed = held == nullptr ? 0 : key.size() + held->size();
    check_bytes(call, key, bytes_ - freed + key.size() + value.size());
  }

  void set(std::string_view key, std::string_view value) {
    check_set("set", key, value);
    put(key, value);
  }

  /// Sets what the process that wrote it has judged already. Of pairs that were set together the first may exceed a
  /// limit until the last is there.
  void set_again(std::string_view key, std::string_view value) {
    check_value_key("set", key);
    put(key, value);
  }

  /// Throws unless all pairs may be set together.
  void check_multi_set(std::span<const key_value> pairs) const {
    std::map<std::string_view, std::string_view> last;
    for (const auto& [key, value] : pairs) {
      check_value_key("multi_set", key);
      check_store_value(limits_, "multi_set", key, value);
      last.insert_or_assign(key, value);
    }
    check_multi_set_size(limits_, pairs);
    std::size_t fresh = 0;
    std::size_t after = bytes_;
    for (const auto& [key, value] : last) {
      const std::string* const held = find(key);
      if (held == nullptr) check_room("multi_set", key, ++fresh);
      after = after - (held == nullptr ? 0 : key.size() + held->size()) + key.size() + value.size();
    }
    if (!last.empty()) check_bytes("multi_set", last.rbegin()->first, after);
  }
  void multi_set(std::span<const key_value> pairs) {
    check_multi_set(pairs);
    for (const auto& [key, value] : pairs) put(key, value);
  }

  /// Throws when these keys hold more together than one call may give. They must exist.
  void check_multi_get(std::span<const std::string> keys) const {
    std::size_t given = 0;
    for (const std::string& key : keys) {
      check_value_key("multi_get", key);
      given += find(key)->size();
    }
    if (given <= limits_.value) return;
    throw store_error("multi_get", std::to_string(keys.size()) + " keys hold " + std::to_string(given) +
                                       " bytes together, the limit for one call is " + std::to_string(limits_.value) +
                                       "; use several calls");
  }
  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys) const {
    check_multi_get(keys);
    std::vector<std::string> values;
    values.reserve(keys.size());
    for (const std::string& key : keys) values.push_back(*find(key));
    return values;
  }

  /// What `add` would do. Absent counts as 0.
  [[nodiscard]] store_change plan_add(std::string_view key, std::int64_t amount) const {
    check_value_key("add", key);
    std::int64_t sum = 0;
    if (const std::string* const held = find(key)) {
      const std::optional<std::int64_t> value = whole_integer(*held);
      if (!value)
        throw store_error("add",
                          "key " + detail::quoted(key) + " holds " + detail::quoted(*held) + ", which is no integer");
      sum = *value;
    }
    std::int64_t total = 0;
    if (__builtin_add_overflow(sum, amount, &total)) {
      throw store_error("add", "key " + detail::quoted(key) + " holds " + std::to_string(sum) + "; adding " +
                                   std::to_string(amount) + " overflows 64 bits");
    }
    store_change change{std::to_string(total), true};
    check_set("add", key, change.result);
    return change;
  }

  /// What `compare_set` would do.
  [[nodiscard]] store_change plan_compare_set(std::string_view key, std::string_view expected,
                                              std::string_view desired) const {
    check_value_key("compare_set", key);
    const std::string* const held = find(key);
    if ((held == nullptr ? std::string_view{} : std::string_view(*held)) != expected) {
      return {held == nullptr ? std::string{} : *held, false};
    }
    check_set("compare_set", key, desired);
    return {std::string(desired), true};
  }

  std::int64_t add(std::string_view key, std::int64_t amount) {
    const store_change change = plan_add(key, amount);
    put(key, change.result);
    return *whole_integer(change.result);
  }

  store_change compare_set(std::string_view key, std::string_view expected, std::string_view desired) {
    store_change change = plan_compare_set(key, expected, desired);
    if (change.writes) put(key, change.result);
    return change;
  }

  /// Throws when `value` may not be appended to what `key` holds.
  void check_append(std::string_view key, std::string_view value) const {
    check_value_key("append", key);
    const std::string* const held = find(key);
    const std::size_t before = held == nullptr ? 0 : held->size();
    if (value.size() > limits_.value - before) {
      throw store_error("append", std::to_string(value.size()) + " bytes to the " + std::to_string(before) + " of " +
                                      detail::quoted(key) + ", the limit is " + std::to_string(limits_.value));
    }
    if (held == nullptr) check_room("append", key, 1);
    check_bytes("append", key, bytes_ + (held == nullptr ? key.size() : 0) + value.size());
  }
  std::size_t append(std::string_view key, std::string_view value) {
    check_append(key, value);
    const auto at = values_.find(key);
    if (at == values_.end()) {
      put(key, value);
      return value.size();
    }
    // Readers keep what they were given; without any there is nothing to keep, and no copy.
    if (at->second.use_count() > 1) at->second = std::make_shared<std::string>(*at->second);
    at->second->append(value);
    bytes_ += value.size();
    return at->second->size();
  }

  // --- queues

  /// Throws when `item` may not be pushed to `key`.
  void check_push(std::string_view key, std::string_view item) const {
    check_queue_key("queue_push", key);
    check_store_value(limits_, "queue_push", key, item);
    const bool fresh = queues_.find(key) == queues_.end();
    if (fresh) check_room("queue_push", key, 1);
    check_bytes("queue_push", key, bytes_ + (fresh ? key.size() : 0) + item.size() + item_cost);
  }
  void push(std::string_view key, std::string_view item) {
    check_push(key, item);
    auto fresh = std::make_shared<const std::string>(item);
    auto at = queues_.find(key);
    if (at == queues_.end()) {
      at = queues_.emplace(key, queue(++last_queue_)).first;
      bytes_ += key.size();
    }
    at->second.items.push_back(std::move(fresh));
    bytes_ += item.size() + item_cost;
  }
  [[nodiscard]] std::size_t queue_size(std::string_view key) const {
    const auto at = queues_.find(key);
    return at == queues_.end() ? 0 : at->second.items.size();
  }
  /// The next item, without taking it; null when there is none.
  [[nodiscard]] shared_text front(std::string_view key) const {
    return queue_size(key) == 0 ? nullptr : queues_.find(key)->second.items.front();
  }
  /// The next item, taken for good; null when there is none.
  shared_text pop(std::string_view key) {
    std::optional<loan> taken = lend(key);
    if (!taken) return nullptr;
    settle(*taken);
    return std::move(taken->item);
  }

  /// An item that has left its queue but may come back. It is still counted.
  struct loan {
    std::string key{};
    std::uint64_t queue = 0;  ///< tells a queue from a later one of the same name
    shared_text item{};
  };
  [[nodiscard]] std::optional<loan> lend(std::string_view key) {
    if (queue_size(key) == 0) return std::nullopt;
    queue& from = queues_.find(key)->second;
    loan out{std::string(key), from.number, from.items.front()};
    from.items.pop_front();
    ++from.lent;
    from.lent_bytes += out.item->size() + item_cost;
    return out;
  }
  /// The item has arrived.
  void settle(const loan& l) noexcept {
    const auto at = lender(l);
    if (at == queues_.end()) return;
    returned(at->second, l);
    bytes_ -= l.item->size() + item_cost;
    if (at->second.lent > 0 || !at->second.items.empty()) return;
    bytes_ -= at->first.size();
    queues_.erase(at);
  }
  /// The item comes back, to the front. False: its queue has been deleted meanwhile.
  bool give_back(const loan& l) {
    const auto at = lender(l);
    if (at == queues_.end()) return false;
    at->second.items.push_front(l.item);
    returned(at->second, l);
    return true;
  }

  // --- both

  bool erase(std::string_view key) {
    check_key("delete_key", key);
    if (const auto at = queues_.find(key); at != queues_.end()) {
      const bool existed = !at->second.items.empty();
      bytes_ -= at->first.size();
      for (const shared_text& item : at->second.items) bytes_ -= item->size() + item_cost;
      bytes_ -= at->second.lent_bytes;
      queues_.erase(at);
      return existed;
    }
    const auto at = values_.find(key);
    if (at == values_.end()) return false;
    bytes_ -= at->first.size() + at->second->size();
    values_.erase(at);
    return true;
  }

  [[nodiscard]] std::size_t count(std::string_view prefix) const {
    std::size_t n = 0;
    for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) ++n;
    for (auto at = queues_.lower_bound(prefix); at != queues_.end() && at->first.starts_with(prefix); ++at) {
      if (!at->second.items.empty()) ++n;
    }
    return n;
  }

  [[nodiscard]] std::vector<std::string> missing(std::span<const std::string> keys) const {
    std::vector<std::string> absent;
    for (const std::string& key : keys) {
      if (!exists(key)) absent.push_back(key);
    }
    return absent;
  }

 private:
  struct queue {
    explicit queue(std::uint64_t n) noexcept : number(n) {}
    std::uint64_t number;
    std::deque<shared_text> items{};
    std::size_t lent = 0;
    std::size_t lent_bytes = 0;
  };
  using queue_map = std::map<std::string, queue, std::less<>>;

  [[nodiscard]] queue_map::iterator lender(const loan& l) noexcept {
    const auto at = queues_.find(l.key);
    return at != queues_.end() && at->second.number == l.queue ? at : queues_.end();
  }

  static void returned(queue& q, const loan& l) noexcept {
    --q.lent;
    q.lent_bytes -= l.item->size() + item_cost;
  }

  /// Throws when there is no room for `more` further keys, of which `key` is the last.
  void check_room(std::string_view call, std::string_view key, std::size_t more) const {
    const std::size_t held = values_.size() + queues_.size();
    if (held + more <= limits_.keys) return;
    const std::string brought =
        more == 1 ? std::string(" keys, which is its limit; ")
                  : " keys and this call brings more, the limit is " + std::to_string(limits_.keys) + "; ";
    throw store_error(call,
                      "the store holds " + std::to_string(held) + brought + detail::quoted(key) + " is one too many");
  }
  void check_bytes(std::string_view call, std::string_view key, std::size_t after) const {
    if (after <= limits_.bytes) return;
    throw store_error(call, detail::quoted(key) + " would fill the store to " + std::to_string(after) +
                                " bytes, the limit is " + std::to_string(limits_.bytes));
  }

  void put(std::string_view key, std::string_view value) {
    auto fresh = std::make_shared<std::string>(value);
    const auto at = values_.find(key);
    if (at == values_.end()) {
      values_.emplace(key, std::move(fresh));
      bytes_ += key.size() + value.size();
    } else {
      bytes_ = bytes_ - at->second->size() + value.size();
      at->second = std::move(fresh);
    }
  }

  store_limits limits_{};
  std::map<std::string, std::shared_ptr<std::string>, std::less<>> values_{};
  queue_map queues_{};
  std::uint64_t last_queue_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace cohort::detail
