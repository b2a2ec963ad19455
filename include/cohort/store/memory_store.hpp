// SPDX-License-Identifier: BSL-1.0
// A store for the threads of one process: what ranks of an in-process world meet at.
#pragma once

#include <cohort/store.hpp>
#include <cohort/store/table.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
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
      state_->serve_line(key);
    }
    state_->changed.notify_all();
  }

  [[nodiscard]] std::string get(std::string_view key, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    std::unique_lock lock(state_->mutex);
    const std::string* held = nullptr;
    const auto found = [&] {
      state_->table.check_value_key("get", key);  // a queue may come instead
      return (held = state_->table.find(key)) != nullptr;
    };
    if (!sleep_until(lock, until, found)) {
      const std::string name(key);
      throw detail::missing_keys_error("get", {&name, 1}, 1, std::chrono::steady_clock::now() - started, describe());
    }
    return *held;
  }

  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline) {
    const std::lock_guard lock(state_->mutex);
    state_->table.check_value_key("try_get", key);
    const std::string* const held = state_->table.find(key);
    return held == nullptr ? std::nullopt : std::optional<std::string>(*held);
  }

  std::int64_t add(std::string_view key, std::int64_t amount, deadline) {
    std::int64_t sum = 0;
    {
      const std::lock_guard lock(state_->mutex);
      sum = state_->table.add(key, amount);
      state_->serve_line(key);
    }
    state_->changed.notify_all();
    return sum;
  }

  std::size_t append(std::string_view key, std::string_view value, deadline) {
    std::size_t size = 0;
    {
      const std::lock_guard lock(state_->mutex);
      size = state_->table.append(key, value);
      state_->serve_line(key);
    }
    state_->changed.notify_all();
    return size;
  }

  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline) {
    detail::store_change change;
    {
      const std::lock_guard lock(state_->mutex);
      change = state_->table.compare_set(key, expected, desired);
      if (change.writes) state_->serve_line(key);
    }
    if (change.writes) state_->changed.notify_all();
    return change.result;
  }

  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    std::unique_lock lock(state_->mutex);
    for (const std::string& key : keys) state_->table.check_value_key("multi_get", key);
    const std::vector<std::string> missing = wait_for(lock, keys, until);
    if (missing.empty()) return state_->table.multi_get(keys);
    throw detail::missing_keys_error("multi_get", missing, keys.size(), std::chrono::steady_clock::now() - started,
                                     describe());
  }

  void multi_set(std::span<const key_value> pairs, deadline) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->table.multi_set(pairs);
      for (const auto& [key, value] : pairs) state_->serve_line(key);
    }
    state_->changed.notify_all();
  }

  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    std::unique_lock lock(state_->mutex);
    for (const std::string& key : keys) state_->table.check_key("wait", key);
    return wait_for(lock, keys, until);
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

  void queue_push(std::string_view key, std::string_view item, deadline) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->table.push(key, item);
      state_->serve_line(key);
    }
    state_->changed.notify_all();
  }

  [[nodiscard]] std::string queue_pop(std::string_view key, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    std::unique_lock lock(state_->mutex);
    state_->table.check_queue_key("queue_pop", key);
    // There are no items while somebody stands in line.
    if (const auto item = state_->table.pop(key)) return *item;
    in_line me;
    const auto line = state_->lines.try_emplace(std::string(key)).first;
    line->second.push_back(&me);
    const auto served = [&] { return me.served; };
    if (!sleep_until(me.changed, lock, until, served)) {
      std::erase(line->second, &me);
      if (line->second.empty()) state_->lines.erase(line);
      throw detail::empty_queue_error(key, std::chrono::steady_clock::now() - started, describe());
    }
    if (me.refusal) std::rethrow_exception(me.refusal);
    return *me.item;
  }

  [[nodiscard]] std::optional<std::string> try_queue_pop(std::string_view key, deadline) {
    const std::lock_guard lock(state_->mutex);
    state_->table.check_queue_key("try_queue_pop", key);
    const auto item = state_->table.pop(key);
    return item == nullptr ? std::nullopt : std::optional<std::string>(*item);
  }

  [[nodiscard]] std::size_t queue_len(std::string_view key, deadline) {
    const std::lock_guard lock(state_->mutex);
    state_->table.check_queue_key("queue_len", key);
    return state_->table.queue_size(key);
  }

  [[nodiscard]] std::string describe() const { return "the store in memory"; }

 private:
  /// Somebody who waits in queue_pop.
  struct in_line {
    std::condition_variable changed{};
    detail::store_table::shared_text item{};
    std::exception_ptr refusal{};
    bool served = false;
  };

  struct state {
    explicit state(store_limits limits) : table(limits) {}
    std::mutex mutex{};
    std::condition_variable changed{};
    detail::store_table table;
    std::map<std::string, std::deque<in_line*>, std::less<>> lines{};

    /// Each item goes to the first in line, and wakes nobody else. A value that came instead is everybody's error.
    void serve_line(std::string_view key) {
      const auto line = lines.find(key);
      if (line == lines.end()) return;
      while (!line->second.empty() && table.exists(key)) {
        in_line& first = *line->second.front();
        line->second.pop_front();
        try {
          table.check_queue_key("queue_pop", key);
          first.item = table.pop(key);
        } catch (const error&) {
          first.refusal = std::current_exception();
        }
        first.served = true;
        first.changed.notify_one();
      }
      if (line->second.empty()) lines.erase(line);
    }
  };

  /// The keys that are missing at the end.
  [[nodiscard]] std::vector<std::string> wait_for(std::unique_lock<std::mutex>& lock, std::span<const std::string> keys,
                                                  deadline until) {
    std::vector<std::string> missing;
    // Looking at the first missing key only keeps a wait for many keys from being quadratic.
    const auto all_there = [&] {
      if (!missing.empty() && !state_->table.exists(missing.front())) return false;
      missing = state_->table.missing(keys);
      return missing.empty();
    };
    if (!sleep_until(lock, until, all_there)) missing = state_->table.missing(keys);
    return missing;
  }

  template <class Condition>
  bool sleep_until(std::unique_lock<std::mutex>& lock, deadline until, const Condition& condition) {
    return sleep_until(state_->changed, lock, until, condition);
  }
  template <class Condition>
  static bool sleep_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, deadline until,
                          const Condition& condition) {
    if (until == deadline::max()) {  // wait_until would overflow when it converts to the clock of the kernel
      changed.wait(lock, condition);
      return true;
    }
    return changed.wait_until(lock, until, condition);
  }

  std::shared_ptr<state> state_;
};

static_assert(store<memory_store>);

}  // namespace cohort
