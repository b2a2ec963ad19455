// SPDX-License-Identifier: BSL-1.0
// A store is a table of keys and values that all ranks of a job can reach before they can reach each other. This
// header says what every store can do; store/ has them in memory, in a file and under a prefix, transport/
// tcp_store.hpp over a network. rendezvous.hpp is their main user.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// The moment at which a blocking call gives up.
using deadline = std::chrono::steady_clock::time_point;

/// The moment `after` from now; a duration too long for the clock means never.
[[nodiscard]] inline deadline deadline_after(std::chrono::nanoseconds after) {
  const deadline now = std::chrono::steady_clock::now();
  return after > deadline::max() - now ? deadline::max() : now + after;
}

/// How far past its deadline a call may run to hear that there is no answer.
inline constexpr std::chrono::milliseconds store_grace{500};

/// What a store refuses to exceed, so that no client can fill the memory of the process that serves it.
struct store_limits {
  std::size_t key = 1024;
  std::size_t value = std::size_t{8} << 20;
  std::size_t keys = std::size_t{128} << 10;
  std::size_t bytes = std::size_t{256} << 20;  ///< of all keys and values together
};

/// A table of bytes by name. Every call is atomic, and none returns before its effect is visible to all.
///
/// Shapes:    keys have 1..1024 bytes, values at most 8 MiB; both may hold any byte
/// Completes: `get`, `wait` and `wait_until` block until the keys exist; the others as long as a round trip takes.
///            An expired deadline still answers what can be answered at once
/// Errors:    timed_out naming the keys that are missing; store_failed when a limit is exceeded, when `add` meets a
///            value that is no integer, and when the store went away
/// Cost:      one round trip each
template <class S>
concept store = requires(S& s, std::string_view text, std::int64_t amount, deadline until,
                         std::span<const std::string> keys) {
  s.set(text, text, until);                                                 // overwrites
  { s.get(text, until) } -> std::same_as<std::string>;                      // waits for the key
  { s.try_get(text, until) } -> std::same_as<std::optional<std::string>>;   // does not wait
  { s.add(text, amount, until) } -> std::same_as<std::int64_t>;             // the new sum; an absent key is 0
  { s.compare_set(text, text, text, until) } -> std::same_as<std::string>;  // (key, expected, desired) -> held now
  { s.wait_until(keys, until) } -> std::same_as<std::vector<std::string>>;  // the keys that are still missing
  s.wait(keys, until);                                                      // throws when one is missing
  { s.check(keys, until) } -> std::same_as<bool>;                           // whether all exist, without waiting
  { s.delete_key(text, until) } -> std::same_as<bool>;                      // whether it existed
  { s.num_keys(text, until) } -> std::same_as<std::size_t>;                 // of those that begin with the text
  { s.describe() } -> std::same_as<std::string>;                            // for error messages
};

// compare_set: an `expected` of "" matches a key that is absent or empty. A key that is absent and was expected to
// hold something stays absent, and "" is returned.

namespace detail {

/// The failure of a wait; `missing` are quoted already.
[[nodiscard]] inline error missing_keys_error(std::string_view call, std::span<const std::string> missing,
                                              std::size_t total, std::chrono::nanoseconds waited,
                                              const std::string& where) {
  std::vector<std::string> names;
  for (const std::string& key : missing) names.push_back(quoted(key));
  error_details details;
  details.operation = std::string(call);
  details.elapsed = waited;
  return error(errc::timed_out,
               std::string(call) + ": missing: " + listed(names) + " (" + std::to_string(missing.size()) + " of " +
                   std::to_string(total) + ") after " + duration_text(waited) + " in " + where,
               details);
}

[[nodiscard]] inline error store_error(std::string_view call, const std::string& what) {
  error_details details;
  details.operation = std::string(call);
  return error(errc::store_failed, std::string(call) + ": " + what, details);
}

/// The throwing form of `wait_until`, the same for every store.
template <class S>
void wait_or_throw(S& s, std::span<const std::string> keys, deadline until) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<std::string> missing = s.wait_until(keys, until);
  if (missing.empty()) return;
  throw missing_keys_error("wait", missing, keys.size(), std::chrono::steady_clock::now() - started, s.describe());
}

}  // namespace detail

/// Any store, chosen at run time.
///
/// Lifetime: owns the store that it was made of
/// Cost:     one virtual call per operation, against a lock or a round trip
class any_store {
 public:
  template <class S>
    requires(!std::same_as<std::remove_cvref_t<S>, any_store> && store<std::remove_cvref_t<S>>)
  explicit any_store(S&& s) : held_(std::make_unique<holder<std::remove_cvref_t<S>>>(std::forward<S>(s))) {}

  void set(std::string_view key, std::string_view value, deadline until) { held_->set(key, value, until); }
  [[nodiscard]] std::string get(std::string_view key, deadline until) { return held_->get(key, until); }
  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline until) {
    return held_->try_get(key, until);
  }
  std::int64_t add(std::string_view key, std::int64_t amount, deadline until) { return held_->add(key, amount, until); }
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    return held_->compare_set(key, expected, desired, until);
  }
  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    return held_->wait_until(keys, until);
  }
  void wait(std::span<const std::string> keys, deadline until) { detail::wait_or_throw(*this, keys, until); }
  [[nodiscard]] bool check(std::span<const std::string> keys, deadline until) { return held_->check(keys, until); }
  bool delete_key(std::string_view key, deadline until) { return held_->delete_key(key, until); }
  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) { return held_->num_keys(prefix, until); }
  [[nodiscard]] std::string describe() const { return held_->describe(); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    virtual void set(std::string_view, std::string_view, deadline) = 0;
    virtual std::string get(std::string_view, deadline) = 0;
    virtual std::optional<std::string> try_get(std::string_view, deadline) = 0;
    virtual std::int64_t add(std::string_view, std::int64_t, deadline) = 0;
    virtual std::string compare_set(std::string_view, std::string_view, std::string_view, deadline) = 0;
    virtual std::vector<std::string> wait_until(std::span<const std::string>, deadline) = 0;
    virtual bool check(std::span<const std::string>, deadline) = 0;
    virtual bool delete_key(std::string_view, deadline) = 0;
    virtual std::size_t num_keys(std::string_view, deadline) = 0;
    virtual std::string describe() const = 0;
  };

  template <class S>
  struct holder final : interface {
    template <class From>
    explicit holder(From&& from) : it(std::forward<From>(from)) {}
    void set(std::string_view k, std::string_view v, deadline d) override { it.set(k, v, d); }
    std::string get(std::string_view k, deadline d) override { return it.get(k, d); }
    std::optional<std::string> try_get(std::string_view k, deadline d) override { return it.try_get(k, d); }
    std::int64_t add(std::string_view k, std::int64_t n, deadline d) override { return it.add(k, n, d); }
    std::string compare_set(std::string_view k, std::string_view e, std::string_view v, deadline d) override {
      return it.compare_set(k, e, v, d);
    }
    std::vector<std::string> wait_until(std::span<const std::string> k, deadline d) override {
      return it.wait_until(k, d);
    }
    bool check(std::span<const std::string> k, deadline d) override { return it.check(k, d); }
    bool delete_key(std::string_view k, deadline d) override { return it.delete_key(k, d); }
    std::size_t num_keys(std::string_view p, deadline d) override { return it.num_keys(p, d); }
    std::string describe() const override { return it.describe(); }
    S it;
  };

  std::unique_ptr<interface> held_;
};

static_assert(store<any_store>);

}  // namespace cohort
