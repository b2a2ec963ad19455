// SPDX-License-Identifier: BSL-1.0
// One key of a store as a sequential object, for linearizability.hpp: what every call gives when nothing else happens.
// Written from the documentation, without the library's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace harness {

enum class store_action : unsigned char {
  set,
  get,
  try_get,
  add,
  append,
  compare_set,
  check,
  erase,
  push,
  pop,
  try_pop,
  length,
  give_back,  ///< no call: the item of a pop whose client died returns to the front
};

/// A call for one key and its outcome.
struct store_operation {
  store_action action = store_action::set;
  int client = 0;
  std::string first{};                  ///< value, item, amount, or what compare_set expects
  std::string second{};                 ///< what compare_set wants
  bool pending = false;                 ///< its outcome is not known
  std::optional<std::string> result{};  ///< nothing: there was none, or the deadline came first
};

struct store_key_state {
  std::optional<std::string> value{};
  std::vector<std::string> items{};
  std::vector<std::pair<int, std::string>> lent{};  ///< items that died with a client, and may come back
  friend bool operator==(const store_key_state&, const store_key_state&) = default;
};

struct store_key_model {
  using state = store_key_state;
  using operation = store_operation;

  [[nodiscard]] state initial() const { return {}; }

  [[nodiscard]] std::size_t hash(const state& s) const {
    const std::hash<std::string> of{};
    std::size_t h = s.value ? of(*s.value) : 1;
    for (const std::string& item : s.items) h = h * 31 + of(item);
    for (const auto& [client, item] : s.lent) h = h * 37 + of(item) + static_cast<std::size_t>(client);
    return h;
  }

  [[nodiscard]] bool step(state& s, const operation& op) const {
    const auto gave = [&](const std::optional<std::string>& what) { return op.pending || op.result == what; };
    switch (op.action) {
      case store_action::set: s.value = op.first; return gave("");
      case store_action::get:  // one that waited in vain found nothing at some moment
      case store_action::try_get: return gave(s.value);
      case store_action::add:
        s.value = std::to_string(std::stoll(s.value.value_or("0")) + std::stoll(op.first));
        return gave(s.value);
      case store_action::append:
        s.value = s.value.value_or("") + op.first;
        return gave(std::to_string(s.value->size()));
      case store_action::compare_set:
        if (s.value.value_or("") == op.first) s.value = op.second;
        return gave(s.value.value_or(""));
      case store_action::check: return gave(s.value || !s.items.empty() ? "1" : "0");
      case store_action::erase: {
        const bool existed = s.value || !s.items.empty();
        s = {};
        return gave(existed ? "1" : "0");
      }
      case store_action::push: s.items.push_back(op.first); return gave("");
      case store_action::pop:
      case store_action::try_pop: return pop(s, op);
      case store_action::length: return gave(std::to_string(s.items.size()));
      case store_action::give_back:
        for (auto at = s.lent.begin(); at != s.lent.end(); ++at) {
          if (at->first != op.client) continue;
          s.items.insert(s.items.begin(), at->second);
          s.lent.erase(at);
          return true;
        }
        return false;
    }
    return false;
  }

 private:
  [[nodiscard]] static bool pop(state& s, const operation& op) {
    if (s.items.empty()) return op.pending || !op.result;
    const std::string item = s.items.front();
    s.items.erase(s.items.begin());
    if (op.pending) {
      s.lent.emplace_back(op.client, item);
      return true;
    }
    return op.result == item;
  }
};

}  // namespace harness
