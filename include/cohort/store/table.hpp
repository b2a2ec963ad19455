// SPDX-License-Identifier: BSL-1.0
// The rules of a store without locks, files or sockets: the one table that memory_store, file_store and the TCP
// server all keep.
#pragma once

#include <cohort/store.hpp>
#include <cohort/uri.hpp>

#include <cstddef>
#include <cstdint>
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
  throw store_error(call, "a value of " + std::to_string(value.size()) + " bytes for " + quoted(key) +
                              ", the limit is " + std::to_string(limits.value));
}

class store_table {
 public:
  store_table() = default;
  explicit store_table(store_limits limits) : limits_(limits) {}

  [[nodiscard]] const std::string* find(std::string_view key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : at->second.get();
  }
  /// The value as it is now, for a reader who takes his time: a thousand of them share one copy.
  [[nodiscard]] std::shared_ptr<const std::string> share(std::string_view key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : at->second;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const store_limits& limits() const noexcept { return limits_; }

  void check_key(std::string_view call, std::string_view key) const { check_store_key(limits_, call, key); }

  /// Throws when `key` may not hold `value`.
  void check_set(std::string_view call, std::string_view key, std::string_view value) const {
    check_key(call, key);
    check_store_value(limits_, call, key, value);
    const std::string* const held = find(key);
    if (held == nullptr && values_.size() >= limits_.keys) {
      throw store_error(call, "the store holds " + std::to_string(values_.size()) + " keys, which is its limit; " +
                                  quoted(key) + " is one too many");
    }
    const std::size_t freed = held == nullptr ? 0 : key.size() + held->size();
    const std::size_t after = bytes_ - freed + key.size() + value.size();
    if (after > limits_.bytes) {
      throw store_error(call, quoted(key) + " would fill the store to " + std::to_string(after) +
                                  " bytes, the limit is " + std::to_string(limits_.bytes));
    }
  }

  void set(std::string_view key, std::string_view value) {
    check_set("set", key, value);
    put(key, value);
  }

  /// What `add` would do. Absent counts as 0.
  [[nodiscard]] store_change plan_add(std::string_view key, std::int64_t amount) const {
    check_key("add", key);
    std::int64_t sum = 0;
    if (const std::string* const held = find(key)) {
      const std::optional<std::int64_t> value = whole_integer(*held);
      if (!value) throw store_error("add", "key " + quoted(key) + " holds " + quoted(*held) + ", which is no integer");
      sum = *value;
    }
    std::int64_t total = 0;
    if (__builtin_add_overflow(sum, amount, &total)) {
      throw store_error("add", "key " + quoted(key) + " holds " + std::to_string(sum) + "; adding " +
                                   std::to_string(amount) + " overflows 64 bits");
    }
    store_change change{std::to_string(total), true};
    check_set("add", key, change.result);
    return change;
  }

  /// What `compare_set` would do.
  [[nodiscard]] store_change plan_compare_set(std::string_view key, std::string_view expected,
                                              std::string_view desired) const {
    check_key("compare_set", key);
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

  bool erase(std::string_view key) {
    check_key("delete_key", key);
    const auto at = values_.find(key);
    if (at == values_.end()) return false;
    bytes_ -= at->first.size() + at->second->size();
    values_.erase(at);
    return true;
  }

  [[nodiscard]] std::size_t count(std::string_view prefix) const {
    if (prefix.empty()) return values_.size();
    std::size_t n = 0;
    for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) ++n;
    return n;
  }

  [[nodiscard]] std::vector<std::string> missing(std::span<const std::string> keys) const {
    std::vector<std::string> absent;
    for (const std::string& key : keys) {
      if (find(key) == nullptr) absent.push_back(key);
    }
    return absent;
  }

  void clear() noexcept {
    values_.clear();
    bytes_ = 0;
  }

 private:
  void put(std::string_view key, std::string_view value) {
    auto fresh = std::make_shared<const std::string>(value);
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
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> values_{};
  std::size_t bytes_ = 0;
};

}  // namespace cohort::detail
