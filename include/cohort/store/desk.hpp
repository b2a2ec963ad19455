// SPDX-License-Identifier: BSL-1.0
// What the TCP store's server does with a request, without sockets: answers it from the table, at once or when another
// request brings what it waits for. Pure bookkeeping between wire.hpp and transport/tcp_store_service.hpp.
#pragma once

#include <cohort/store/table.hpp>
#include <cohort/store/wait_book.hpp>
#include <cohort/store/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::detail {

/// Requests by ticket, a number that the caller never uses twice.
class store_desk {
 public:
  using ticket = std::uint64_t;

  struct answer {
    ticket who = 0;
    std::uint32_t status = 0;  ///< as in a reply_head
    std::shared_ptr<const std::string> body{};
    bool lent = false;    ///< its item comes back unless `confirm` is called
    bool copied = false;  ///< its body is a copy of values; any other large one is shared with the table
  };
  using answers = std::vector<answer>;

  explicit store_desk(store_limits limits) : table_(limits) {}

  [[nodiscard]] const store_table& table() const noexcept { return table_; }

  /// Carries out a request. `out` gets its answer, if it has one now, and those of the requests that it wakes.
  /// `admit(keys)` throws when this client may not wait for so many keys, or have another item lent to it.
  template <class Admit>
  void serve(ticket who, store_call call, const request_body& body, const Admit& admit, answers& out) {
    try {
      carry_out(who, call, body, admit, out);
    } catch (const error& e) {
      out.push_back(refusal(who, e));
    }
  }

  /// The time of a waiting request is over.
  void give_up(ticket who, answers& out) {
    const auto at = waiting_.find(who);
    if (at == waiting_.end()) return;
    std::string indices;
    for (const std::uint32_t index : book_.missing(who, table_)) byte_writer(indices).number(index);
    out.push_back({who, static_cast<std::uint32_t>(errc::timed_out), text(std::move(indices))});
    leave(who);
  }

  /// A waiting request is of no interest any more.
  void leave(ticket who) noexcept {
    const auto at = waiting_.find(who);
    if (at == waiting_.end()) return;
    if (at->second.call == store_call::queue_pop) {
      leave_line(at->second.keys.front(), who);
    } else {
      book_.leave(who);
    }
    waiting_.erase(at);
  }

  /// The item that was lent to `who` has arrived.
  void confirm(ticket who) noexcept {
    const auto at = lent_.find(who);
    if (at == lent_.end()) return;
    table_.settle(at->second);
    lent_.erase(at);
  }
  /// They have not, and never will. `tickets` are in ascending order, as the items were lent.
  void give_back(std::span<const ticket> tickets, answers& out) {
    std::vector<std::string> keys;
    for (auto who = tickets.rbegin(); who != tickets.rend(); ++who) {
      const auto at = lent_.find(*who);
      if (at == lent_.end()) continue;
      const store_table::loan item = std::move(at->second);
      lent_.erase(at);
      if (table_.give_back(item)) keys.push_back(item.key);
    }
    for (const std::string& key : keys) arrived(key, out);  // all are back before the first is given to somebody else
  }

 private:
  struct waiting {
    store_call call;
    std::vector<std::string> keys;  ///< of get, multi_get and queue_pop
  };

  template <class Admit>
  void carry_out(ticket who, store_call call, const request_body& body, const Admit& admit, answers& out) {
    const std::string_view key = body.key;
    switch (call) {
      case store_call::set:
        table_.set(key, body.value);
        out.push_back({who});
        return arrived(key, out);
      case store_call::add: {
        const std::int64_t sum = table_.add(key, body.amount);
        out.push_back({who, 0, number(static_cast<std::uint64_t>(sum))});
        return arrived(key, out);
      }
      case store_call::append:
        out.push_back({who, 0, number(table_.append(key, body.value))});
        return arrived(key, out);
      case store_call::compare_set: {
        store_change change = table_.compare_set(key, body.expected, body.value);
        out.push_back({who, 0, text(std::move(change.result))});
        if (change.writes) arrived(key, out);
        return;
      }
      case store_call::multi_set:
        table_.multi_set(body.pairs);
        out.push_back({who});
        for (const auto& [each, value] : body.pairs) arrived(each, out);
        return;
      case store_call::try_get: {
        table_.check_value_key("try_get", key);
        const std::string* const value = table_.find(key);
        // One byte in front tells a key that is absent from one that holds nothing.
        out.push_back({who, 0, text(value != nullptr ? "+" + *value : std::string())});
        return;
      }
      case store_call::delete_key: out.push_back({who, 0, number(table_.erase(key) ? 1 : 0)}); return;
      case store_call::num_keys: out.push_back({who, 0, number(table_.count(key))}); return;
      case store_call::get:
        table_.check_value_key("get", key);
        return wait_for(who, call, {std::string(key)}, admit, out);
      case store_call::multi_get:
        for (const std::string& each : body.keys) table_.check_value_key("multi_get", each);
        return wait_for(who, call, body.keys, admit, out);
      case store_call::wait:
        for (const std::string& each : body.keys) table_.check_key("wait", each);
        return wait_for(who, call, body.keys, admit, out);
      case store_call::queue_push:
        table_.push(key, body.value);
        out.push_back({who});
        return arrived(key, out);
      case store_call::queue_len:
        table_.check_queue_key("queue_len", key);
        out.push_back({who, 0, number(table_.queue_size(key))});
        return;
      case store_call::try_queue_pop:
        table_.check_queue_key("try_queue_pop", key);
        if (table_.queue_size(key) == 0) {
          out.push_back({who, 0, nullptr});
          return;
        }
        admit(0);
        return lend(who, key, "+", out);
      case store_call::queue_pop:
        table_.check_queue_key("queue_pop", key);
        admit(1);
        // There are no items while somebody is in line: whoever comes now is the first or stands behind.
        if (table_.queue_size(key) > 0) return lend(who, key, "", out);
        lines_[std::string(key)].push_back(who);
        waiting_.emplace(who, waiting{call, {std::string(key)}});
        return;
      case store_call::queue_taken:
      case store_call::forget: return;  // the caller knows which ticket is meant: `confirm`, `leave` or `give_back`
    }
  }

  template <class Admit>
  void wait_for(ticket who, store_call call, std::vector<std::string> keys, const Admit& admit, answers& out) {
    if (table_.missing(keys).empty()) {
      out.push_back(found(who, call, keys));
      return;
    }
    admit(keys.size());
    waiting_.emplace(who, waiting{call, call == store_call::wait ? std::vector<std::string>{} : keys});
    book_.enter(who, std::move(keys), table_);
  }

  /// The answer of a wait whose keys are all there.
  [[nodiscard]] answer found(ticket who, store_call call, const std::vector<std::string>& keys) const {
    try {
      if (call == store_call::get) {
        table_.check_value_key("get", keys.front());
        return {who, 0, table_.share(keys.front())};
      }
      if (call == store_call::multi_get) {
        return {who, 0, text(encode_values(table_.multi_get(keys))), false, true};
      }
      return {who};
    } catch (const error& e) {
      return refusal(who, e);
    }
  }

  /// A key has come, or has changed: whoever waits for it is served.
  void arrived(std::string_view key, answers& out) {
    for (const ticket who : book_.arrived(key, table_)) {
      const auto at = waiting_.find(who);
      if (at == waiting_.end()) continue;
      const waiting over = std::move(at->second);
      waiting_.erase(at);
      out.push_back(found(who, over.call, over.keys));
    }
    serve_line(key, out);
  }

  /// The items of a queue go to those who stand in line for it, first come first served.
  void serve_line(std::string_view key, answers& out) {
    const auto line = lines_.find(key);
    if (line == lines_.end()) return;
    while (!line->second.empty() && table_.exists(key)) {
      const ticket who = line->second.front();
      line->second.pop_front();
      waiting_.erase(who);
      try {
        table_.check_queue_key("queue_pop", key);  // a value may have come instead
        lend(who, key, "", out);
      } catch (const error& e) {
        out.push_back(refusal(who, e));
      }
    }
    if (line->second.empty()) lines_.erase(line);
  }

  void lend(ticket who, std::string_view key, std::string_view in_front, answers& out) {
    store_table::loan item = *table_.lend(key);
    std::shared_ptr<const std::string> body = item.item;
    if (!in_front.empty()) body = text(std::string(in_front) + *item.item);
    lent_.emplace(who, std::move(item));
    out.push_back({who, 0, std::move(body), true});
  }

  void leave_line(const std::string& key, ticket who) noexcept {
    const auto line = lines_.find(key);
    if (line == lines_.end()) return;
    std::erase(line->second, who);
    if (line->second.empty()) lines_.erase(line);
  }

  [[nodiscard]] static answer refusal(ticket who, const error& e) {
    return {who, static_cast<std::uint32_t>(e.condition()), text(e.what())};
  }
  [[nodiscard]] static std::shared_ptr<const std::string> text(std::string bytes) {
    return std::make_shared<const std::string>(std::move(bytes));
  }
  [[nodiscard]] static std::shared_ptr<const std::string> number(std::uint64_t value) {
    std::string bytes;
    byte_writer(bytes).number(value);
    return text(std::move(bytes));
  }

  store_table table_;
  wait_book book_{};
  std::unordered_map<ticket, waiting> waiting_{};
  std::map<std::string, std::deque<ticket>, std::less<>> lines_{};  ///< who stands in line for which queue
  std::map<ticket, store_table::loan> lent_{};
};

}  // namespace cohort::detail
