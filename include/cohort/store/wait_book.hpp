// SPDX-License-Identifier: BSL-1.0
// Who waits for which keys, so that a change wakes exactly those whose last key it was. Pure bookkeeping of the TCP
// store's server.
#pragma once

#include <cohort/store/table.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::detail {

/// Waits by ticket, a number that the caller never uses twice.
class wait_book {
 public:
  using ticket = std::uint64_t;

  /// Enters a wait. False, and nothing is entered, when every key exists already.
  bool enter(ticket who, std::vector<std::string> keys, const store_table& table) {
    wait entry{std::move(keys), 0};
    if (watch_missing(who, entry, table)) return false;
    waits_.emplace(who, std::move(entry));
    return true;
  }

  /// The waits that are over now that `key` exists; they are forgotten.
  [[nodiscard]] std::vector<ticket> arrived(std::string_view key, const store_table& table) {
    std::vector<ticket> over;
    const auto at = watchers_.find(key);
    if (at == watchers_.end()) return over;
    const std::set<ticket> woken = std::move(at->second);
    watchers_.erase(at);
    for (const ticket who : woken) {
      const auto found = waits_.find(who);
      if (found == waits_.end() || --found->second.watched > 0) continue;
      // A key that had arrived may have been deleted since: the wait is for all of them at once.
      if (!watch_missing(who, found->second, table)) continue;
      waits_.erase(found);
      over.push_back(who);
    }
    return over;
  }

  /// Which keys of a wait do not exist, as indices into its list.
  [[nodiscard]] std::vector<std::uint32_t> missing(ticket who, const store_table& table) const {
    std::vector<std::uint32_t> absent;
    const auto found = waits_.find(who);
    if (found == waits_.end()) return absent;
    const std::vector<std::string>& keys = found->second.keys;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!table.exists(keys[i])) absent.push_back(static_cast<std::uint32_t>(i));
    }
    return absent;
  }

  void leave(ticket who) {
    const auto found = waits_.find(who);
    if (found == waits_.end()) return;
    for (const std::string& key : found->second.keys) {
      const auto at = watchers_.find(key);
      if (at == watchers_.end()) continue;
      at->second.erase(who);
      if (at->second.empty()) watchers_.erase(at);
    }
    waits_.erase(found);
  }

  [[nodiscard]] std::size_t size() const noexcept { return waits_.size(); }
  [[nodiscard]] std::size_t watched_keys() const noexcept { return watchers_.size(); }

 private:
  struct wait {
    std::vector<std::string> keys;
    std::size_t watched;  ///< different keys under which the ticket is in `watchers_`
  };

  /// Registers the ticket under every key that does not exist; true when there is none.
  bool watch_missing(ticket who, wait& entry, const store_table& table) {
    entry.watched = 0;
    for (const std::string& key : entry.keys) {
      if (!table.exists(key) && watchers_[key].insert(who).second) ++entry.watched;
    }
    return entry.watched == 0;
  }

  std::unordered_map<ticket, wait> waits_{};
  std::map<std::string, std::set<ticket>, std::less<>> watchers_{};
};

}  // namespace cohort::detail
