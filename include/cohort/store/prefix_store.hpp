// SPDX-License-Identifier: BSL-1.0
// A store inside a store: the same calls with a prefix before every key, so that users of one store stay apart.
#pragma once

#include <cohort/store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

/// The keys of `Inner` that begin with a prefix, under their names without it.
///
/// Lifetime: made of an lvalue it refers to that store, made of an rvalue it owns it
/// Errors:   those of the inner store; they name the whole key, with its prefix
template <class Inner>
  requires store<Inner>
class prefix_store {
 public:
  prefix_store(std::string prefix, Inner&& inner) : prefix_(std::move(prefix)), inner_(std::forward<Inner>(inner)) {}

  void set(std::string_view key, std::string_view value, deadline until) { inner_.set(full(key), value, until); }
  [[nodiscard]] std::string get(std::string_view key, deadline until) { return inner_.get(full(key), until); }
  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline until) {
    return inner_.try_get(full(key), until);
  }
  std::int64_t add(std::string_view key, std::int64_t amount, deadline until) {
    return inner_.add(full(key), amount, until);
  }
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    return inner_.compare_set(full(key), expected, desired, until);
  }
  std::size_t append(std::string_view key, std::string_view value, deadline until) {
    return inner_.append(full(key), value, until);
  }
  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys, deadline until) {
    return inner_.multi_get(full(keys), until);
  }
  void multi_set(std::span<const key_value> pairs, deadline until) {
    std::vector<key_value> whole(pairs.begin(), pairs.end());
    for (key_value& pair : whole) pair.first = full(pair.first);
    inner_.multi_set(whole, until);
  }
  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    std::vector<std::string> missing = inner_.wait_until(full(keys), until);
    for (std::string& key : missing) key.erase(0, prefix_.size());
    return missing;
  }
  void wait(std::span<const std::string> keys, deadline until) { inner_.wait(full(keys), until); }
  [[nodiscard]] bool check(std::span<const std::string> keys, deadline until) {
    return inner_.check(full(keys), until);
  }
  bool delete_key(std::string_view key, deadline until) { return inner_.delete_key(full(key), until); }
  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) {
    return inner_.num_keys(prefix_ + std::string(prefix), until);
  }
  void queue_push(std::string_view key, std::string_view item, deadline until) {
    inner_.queue_push(full(key), item, until);
  }
  [[nodiscard]] std::string queue_pop(std::string_view key, deadline until) {
    return inner_.queue_pop(full(key), until);
  }
  [[nodiscard]] std::optional<std::string> try_queue_pop(std::string_view key, deadline until) {
    return inner_.try_queue_pop(full(key), until);
  }
  [[nodiscard]] std::size_t queue_len(std::string_view key, deadline until) {
    return inner_.queue_len(full(key), until);
  }
  [[nodiscard]] std::string describe() const { return inner_.describe(); }

 private:
  // An empty key stays empty, so that the inner store refuses it as it would without the prefix.
  [[nodiscard]] std::string full(std::string_view key) const {
    return key.empty() ? std::string{} : prefix_ + std::string(key);
  }
  [[nodiscard]] std::vector<std::string> full(std::span<const std::string> keys) const {
    std::vector<std::string> names;
    names.reserve(keys.size());
    for (const std::string& key : keys) names.push_back(full(key));
    return names;
  }

  std::string prefix_;
  Inner inner_;
};

template <class Inner>
prefix_store(std::string, Inner&&) -> prefix_store<Inner>;

}  // namespace cohort
