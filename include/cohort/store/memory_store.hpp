// SPDX-License-Identifier: BSL-1.0
// A store for the threads of one process: what ranks of an in-process world meet at.
#pragma once

#include <cohort/store.hpp>
#include <cohort/store/table.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// A handle to a table in memory. Copies are handles to the same table; any thread may use any of them.
///
/// Lifetime: the table lives as long as its last handle
class memory_store {
 public:
  explicit memory_store(store_limits limits = {}) : state_(std::make_shared<state>(limits)) {}

  void set(std::string_view key, std::string_view value, deadline) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->table.set(key, value);
    }
    state_->changed.notify_all();
  }

  [[nodiscard]] std::string get(std::string_view key, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    std::unique_lock lock(state_->mutex);
    state_->table.check_key("get", key);
    const std::string* held = state_->table.find(key);
    const auto found = [&] { return (held = state_->table.find(key)) != nullptr; };
    if (!sleep_until(lock, until, found)) {
      const std::string name(key);
      throw detail::missing_keys_error("get", {&name, 1}, 1, std::chrono::steady_clock::now() - started, describe());
    }
    return *held;
  }

  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline) {
    const std::lock_guard lock(state_->mutex);
    state_->table.check_key("try_get", key);
    const std::string* const held = state_->table.find(key);
    return held == nullptr ? std::nullopt : std::optional<std::string>(*held);
  }

  std::int64_t add(std::string_view key, std::int64_t amount, deadline) {
    std::int64_t sum = 0;
    {
      const std::lock_guard lock(state_->mutex);
      sum = state_->table.add(key, amount);
    }
    state_->changed.notify_all();
    return sum;
  }

  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline) {
    detail::store_change change;
    {
      const std::lock_guard lock(state_->mutex);
      change = state_->table.compare_set(key, expected, desired);
    }
    if (change.writes) state_->changed.notify_all();
    return change.result;
  }

  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    std::unique_lock lock(state_->mutex);
    for (const std::string& key : keys) state_->table.check_key("wait", key);
    std::vector<std::string> missing;
    // Looking at the first missing key only keeps a wait for many keys from being quadratic.
    const auto all_there = [&] {
      if (!missing.empty() && state_->table.find(missing.front()) == nullptr) return false;
      missing = state_->table.missing(keys);
      return missing.empty();
    };
    if (!sleep_until(lock, until, all_there)) missing = state_->table.missing(keys);
    return missing;
  }

  void wait(std::span<const std::string> keys, deadline until) { detail::wait_or_throw(*this, keys, until); }

  [[nodiscard]] bool check(std::span<const std::string> keys, deadline) {
    const std::lock_guard lock(state_->mutex);
    for (const std::string& key : keys) state_->table.check_key("check", key);
    return state_->table.missing(keys).empty();
  }

  bool delete_key(std::string_view key, deadline) {
    const std::lock_guard lock(state_->mutex);
    return state_->table.erase(key);
  }

  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline) {
    const std::lock_guard lock(state_->mutex);
    return state_->table.count(prefix);
  }

  [[nodiscard]] std::string describe() const { return "the store in memory"; }

 private:
  struct state {
    explicit state(store_limits limits) : table(limits) {}
    std::mutex mutex{};
    std::condition_variable changed{};
    detail::store_table table;
  };

  template <class Condition>
  bool sleep_until(std::unique_lock<std::mutex>& lock, deadline until, const Condition& condition) {
    if (until == deadline::max()) {  // wait_until would overflow when it converts to the clock of the kernel
      state_->changed.wait(lock, condition);
      return true;
    }
    return state_->changed.wait_until(lock, until, condition);
  }

  std::shared_ptr<state> state_;
};

static_assert(store<memory_store>);

}  // namespace cohort
