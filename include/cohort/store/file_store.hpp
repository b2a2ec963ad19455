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
/// Lifetime: the file stays when the object goes; `remove()` deletes its name
/// Cost:     the file keeps every change, up to 1 GiB; waiting looks at it every 1 to 10 ms
class file_store {
 public:
  /// `job` tells a file that an older job left behind from this job's.
  explicit file_store(std::string path, std::uint64_t job = 0,
                      deadline until = deadline_after(std::chrono::seconds(30)), store_limits limits = {})
      : log_(std::move(path), job, until), table_(limits) {}

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
    if (!poll({&name, 1}, until).empty()) {
      throw detail::missing_keys_error("get", {&name, 1}, 1, std::chrono::steady_clock::now() - started, describe());
    }
    return *table_.find(key);
  }

  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline until) {
    table_.check_key("try_get", key);
    read(until);
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

  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    const detail::file_log::lock held(log_, F_WRLCK, until);
    refresh();
    const detail::store_change change = table_.plan_compare_set(key, expected, desired);
    if (change.writes) write(key, change.result);
    return change.result;
  }

  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    for (const std::string& key : keys) table_.check_key("wait", key);
    return poll(keys, until);
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
    if (table_.find(key) == nullptr) return false;
    log_.append(detail::file_log::record_kind::erase, key, {});
    return table_.erase(key);
  }

  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) {
    read(until);
    return table_.count(prefix);
  }

  /// Deletes the name of the file, if it still has one. Ranks that have it open get store_failed from then on.
  void remove() noexcept { (void)::unlink(log_.path().c_str()); }

  [[nodiscard]] std::string describe() const { return log_.describe(); }

 private:
  void refresh() {
    using kind = detail::file_log::record_kind;
    log_.read_new(table_.limits(), [this](kind what, std::string_view key, std::string_view value) {
      if (what == kind::erase) {
        (void)table_.erase(key);
      } else {
        table_.set(key, value);
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

  /// No file system tells every process on every host of a change: look again, ever less often.
  [[nodiscard]] std::vector<std::string> poll(std::span<const std::string> keys, deadline until) {
    auto pause = std::chrono::microseconds(1000);
    for (;;) {
      read(until);
      std::vector<std::string> missing = table_.missing(keys);
      const auto left = until - std::chrono::steady_clock::now();
      if (missing.empty() || left <= std::chrono::nanoseconds(0)) return missing;
      detail::file_log::pause_for(std::min(pause, std::chrono::ceil<std::chrono::microseconds>(left)));
      pause = std::min(pause * 2, detail::file_log::longest_pause);
    }
  }

  detail::file_log log_;
  detail::store_table table_;
};

static_assert(store<file_store>);

}  // namespace cohort
