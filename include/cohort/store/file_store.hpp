// SPDX-License-Identifier: BSL-1.0
// A store in a file that all ranks can reach (one host, or NFS with locking): nothing has to listen anywhere.
#pragma once

#include <cohort/store.hpp>
#include <cohort/store/file_log.hpp>
#include <cohort/store/table.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

/// A store whose table is the sum of a log of changes.
///
/// Needs:    one thread at a time per object, and no use across fork(): open the file again instead
/// Errors:   store_failed naming the offset for a file that this library did not write; wrong_job for one that another
///           job wrote; timed_out when a stopped process holds its lock
/// Lifetime: the file stays when the object goes, and `remove()` deletes its name; a temporary one goes with the last
///           object that has it open, and one that a crash has left behind is begun anew by the first
/// Order:    of several that wait in queue_pop, whoever looks first gets the item: there is no line in a file
/// Cost:     the file keeps every change, up to 1 GiB; waiting looks at it every 1 to 10 ms
class file_store {
 public:
  /// `job` tells a file that an older job left behind from this job's.
  explicit file_store(std::string path, std::uint64_t job = 0,
                      deadline until = deadline_after(std::chrono::seconds(30)), store_limits limits = {},
                      file_lifetime lifetime = file_lifetime::kept)
      : log_(std::move(path), job, until, lifetime), table_(limits) {}

  void set(std::string_view key, std::string_view value, deadline until) {
    table_.check_key("set", key);
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    table_.check_set("set", key, value);
    write(key, value);
  }

  [[nodiscard]] std::string get(std::string_view key, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    table_.check_key("get", key);
    const std::string name(key);
    const bool came = look_until(until, [&] {
      read(until);
      table_.check_value_key("get", key);
      return table_.exists(key);
    });
    if (!came) {
      throw detail::missing_keys_error("get", {&name, 1}, 1, std::chrono::steady_clock::now() - started, describe());
    }
    return *table_.find(key);
  }

  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline until) {
    table_.check_key("try_get", key);
    read(until);
    table_.check_value_key("try_get", key);
    const std::string* const held = table_.find(key);
    return held == nullptr ? std::nullopt : std::optional<std::string>(*held);
  }

  std::int64_t add(std::string_view key, std::int64_t amount, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    const detail::store_change change = table_.plan_add(key, amount);
    write(key, change.result);
    return *detail::whole_integer(change.result);
  }

  std::size_t append(std::string_view key, std::string_view value, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    table_.check_append(key, value);
    log_.append(detail::file_log::record_kind::append, key, value);
    return table_.append(key, value);
  }

  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    const detail::store_change change = table_.plan_compare_set(key, expected, desired);
    if (change.writes) write(key, change.result);
    return change.result;
  }

  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    std::vector<std::string> missing;
    const bool came = look_until(until, [&] {
      read(until);
      for (const std::string& key : keys) table_.check_value_key("multi_get", key);
      missing = table_.missing(keys);
      return missing.empty();
    });
    if (came) return table_.multi_get(keys);
    throw detail::missing_keys_error("multi_get", missing, keys.size(), std::chrono::steady_clock::now() - started,
                                     describe());
  }

  void multi_set(std::span<const key_value> pairs, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    table_.check_multi_set(pairs);
    std::vector<detail::file_log::entry> entries;
    for (const auto& [key, value] : pairs) entries.push_back({detail::file_log::record_kind::set, key, value});
    if (!entries.empty()) log_.append(entries);
    table_.multi_set(pairs);
  }

  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    for (const std::string& key : keys) table_.check_key("wait", key);
    std::vector<std::string> missing;
    (void)look_until(until, [&] {
      read(until);
      missing = table_.missing(keys);
      return missing.empty();
    });
    return missing;
  }
  void wait(std::span<const std::string> keys, deadline until) { detail::wait_or_throw(*this, keys, until); }

  [[nodiscard]] bool check(std::span<const std::string> keys, deadline until) {
    for (const std::string& key : keys) table_.check_key("check", key);
    read(until);
    return table_.missing(keys).empty();
  }

  bool delete_key(std::string_view key, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    table_.check_key("delete_key", key);
    if (!table_.exists(key)) return false;
    log_.append(detail::file_log::record_kind::erase, key, {});
    return table_.erase(key);
  }

  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) {
    read(until);
    return table_.count(prefix);
  }

  void queue_push(std::string_view key, std::string_view item, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    table_.check_push(key, item);
    log_.append(detail::file_log::record_kind::push, key, item);
    table_.push(key, item);
  }

  [[nodiscard]] std::string queue_pop(std::string_view key, deadline until) {
    const auto started = std::chrono::steady_clock::now();
    detail::store_table::shared_text item;
    const auto taken = [&] { return (item = pop("queue_pop", key, until)) != nullptr; };
    if (look_until(until, taken)) return *item;
    throw detail::empty_queue_error(key, std::chrono::steady_clock::now() - started, describe());
  }

  [[nodiscard]] std::optional<std::string> try_queue_pop(std::string_view key, deadline until) {
    const auto item = pop("try_queue_pop", key, until);
    return item == nullptr ? std::nullopt : std::optional<std::string>(*item);
  }

  [[nodiscard]] std::size_t queue_len(std::string_view key, deadline until) {
    read(until);
    table_.check_queue_key("queue_len", key);
    return table_.queue_size(key);
  }

  /// Deletes the name of the file, if it still has one. Ranks that have it open get store_failed from then on.
  void remove() noexcept { (void)::unlink(log_.path().c_str()); }

  [[nodiscard]] std::string describe() const { return log_.describe(); }

 private:
  void refresh() {
    using kind = detail::file_log::record_kind;
    log_.read_new(table_.limits(), [this](kind what, std::string_view key, std::string_view value) {
      switch (what) {
        case kind::set: return table_.set_again(key, value);
        case kind::erase: return static_cast<void>(table_.erase(key));
        case kind::append: return static_cast<void>(table_.append(key, value));
        case kind::push: return table_.push(key, value);
        case kind::pop: return static_cast<void>(table_.pop(key));
      }
    });
  }

  void read(deadline until) {
    const detail::file_log::lock held(log_, F_RDLCK, until);
    refresh();
  }

  void write(std::string_view key, std::string_view value) {
    log_.append(detail::file_log::record_kind::set, key, value);
    table_.set(key, value);
  }

  /// Looks before it locks for writing, so that many who wait do not stand in each other's way.
  [[nodiscard]] detail::store_table::shared_text pop(std::string_view call, std::string_view key, deadline until) {
    table_.check_key(call, key);
    read(until);
    table_.check_queue_key(call, key);
    if (table_.queue_size(key) == 0) return nullptr;
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    table_.check_queue_key(call, key);
    if (table_.queue_size(key) == 0) return nullptr;
    log_.append(detail::file_log::record_kind::pop, key, {});
    return table_.pop(key);
  }

  /// No file system tells every process on every host of a change: look again, ever less often.
  template <class Look>
  [[nodiscard]] bool look_until(deadline until, const Look& look) {
    auto pause = std::chrono::microseconds(1000);
    while (!look()) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= std::chrono::nanoseconds(0)) return false;
      detail::file_log::pause_for(std::min(pause, std::chrono::ceil<std::chrono::microseconds>(left)));
      pause = std::min(pause * 2, detail::file_log::longest_pause);
    }
    return true;
  }

  detail::file_log log_;
  detail::store_table table_;
};

static_assert(store<file_store>);

}  // namespace cohort
