// SPDX-License-Identifier: BSL-1.0
// The ranks tell each other what they have found, at the store at which a world meets: it is there before they can reach
// each other, and it is still there when they cannot.
#pragma once

#include <cohort/launch_info.hpp>
#include <cohort/store.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {

class meeting {
 public:
  meeting(any_store& table, const launch_info& info)
      : table_(&table),
        rank_(info.rank),
        size_(info.world_size),
        prefix_("cohort/doctor/" + info.run_id + "/" + std::to_string(info.epoch) + "/") {}

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] any_store& table() const noexcept { return *table_; }

  void tell(std::string_view what, std::string_view text) { table_->set(key(what, rank_), text, patience()); }

  /// What every rank has told, by rank; nothing of those that have not by then.
  [[nodiscard]] std::vector<std::optional<std::string>> hear(std::string_view what, deadline until) {
    (void)missing(what, until);
    std::vector<std::optional<std::string>> said(static_cast<std::size_t>(size_));
    for (int r = 0; r < size_; ++r) said[static_cast<std::size_t>(r)] = table_->try_get(key(what, r), patience());
    return said;
  }
  /// The ranks that have not told it by then.
  [[nodiscard]] std::vector<int> missing(std::string_view what, deadline until) {
    std::vector<int> all;
    for (int r = 0; r < size_; ++r) all.push_back(r);
    return wait_for(what, all, until);
  }
  /// Those of `ranks` that have not.
  std::vector<int> wait_for(std::string_view what, const std::vector<int>& ranks, deadline until) {
    std::vector<std::string> keys;
    for (const int r : ranks) keys.push_back(key(what, r));
    const std::vector<std::string> absent = table_->wait_until(keys, until);
    std::vector<int> late;
    for (const int r : ranks) {
      if (std::find(absent.begin(), absent.end(), key(what, r)) != absent.end()) late.push_back(r);
    }
    return late;
  }

  /// Rank 0 says it, all others wait for it.
  void decide(std::string_view what, std::string_view text) {
    table_->set(prefix_ + std::string(what), text, patience());
  }
  [[nodiscard]] std::string decided(std::string_view what, deadline until) {
    return table_->get(prefix_ + std::string(what), until);
  }

 private:
  [[nodiscard]] static deadline patience() { return deadline_after(std::chrono::seconds{10}); }
  [[nodiscard]] std::string key(std::string_view what, int rank) const {
    return prefix_ + std::string(what) + "/" + std::to_string(rank);
  }

  any_store* table_;
  int rank_;
  int size_;
  std::string prefix_;
};

}  // namespace cohort::tool
