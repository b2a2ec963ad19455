// SPDX-License-Identifier: BSL-1.0
// The store that a tcp_store_server keeps, over one connection with blocking calls. Where the ranks of a job on
// several hosts meet.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/store/table.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/tcp_store_options.hpp>

#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {
namespace transport {
class tcp_store_link;
}

/// A client of a tcp_store_server.
///
/// Needs:     one thread at a time; another thread opens a connection of its own
/// Completes: the constructor returns when the server has accepted the hello. Until `until` it tries again while the
///            connection is refused, because ranks start in any order
/// Errors:    cannot_resolve, connection_refused, timed_out, and when the server turns this process away
///            version_mismatch, wrong_job, world_size_mismatch or protocol_error; in calls store_failed when the
///            server goes away, after which every call fails
/// Cost:      one round trip per call
class tcp_store {
 public:
  tcp_store(const tcp_store_options& options, deadline until);
  tcp_store(tcp_store&&) noexcept;
  tcp_store& operator=(tcp_store&&) noexcept;
  tcp_store(const tcp_store&) = delete;
  tcp_store& operator=(const tcp_store&) = delete;
  ~tcp_store();

  void set(std::string_view key, std::string_view value, deadline until) {
    check(detail::store_call::set, key, value);
    detail::request_body body;
    body.key = key;
    body.value = value;
    (void)ask(detail::store_call::set, body, {}, until);
  }

  [[nodiscard]] std::string get(std::string_view key, deadline until) {
    check(detail::store_call::get, key, {});
    const auto started = std::chrono::steady_clock::now();
    detail::request_body body;
    body.key = key;
    answer got = ask(detail::store_call::get, body, {}, until);
    if (got.status != 0) {
      const std::string name(key);
      throw detail::missing_keys_error("get", {&name, 1}, 1, std::chrono::steady_clock::now() - started, describe());
    }
    return std::move(got.body);
  }

  [[nodiscard]] std::optional<std::string> try_get(std::string_view key, deadline until) {
    check(detail::store_call::try_get, key, {});
    detail::request_body body;
    body.key = key;
    answer got = ask(detail::store_call::try_get, body, {}, until);
    if (got.body.empty()) return std::nullopt;
    got.body.erase(0, 1);
    return std::move(got.body);
  }

  std::int64_t add(std::string_view key, std::int64_t amount, deadline until) {
    check(detail::store_call::add, key, {});
    detail::request_body body;
    body.key = key;
    body.amount = amount;
    return static_cast<std::int64_t>(number(ask(detail::store_call::add, body, {}, until)));
  }

  std::size_t append(std::string_view key, std::string_view value, deadline until) {
    check(detail::store_call::append, key, value);
    detail::request_body body;
    body.key = key;
    body.value = value;
    return static_cast<std::size_t>(number(ask(detail::store_call::append, body, {}, until)));
  }

  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    check(detail::store_call::compare_set, key, desired);
    detail::check_store_value(limits_, "compare_set", key, expected);
    detail::request_body body;
    body.key = key;
    body.expected = expected;
    body.value = desired;
    return ask(detail::store_call::compare_set, body, {}, until).body;
  }

  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys, deadline until) {
    check_keys("multi_get", keys);
    const auto started = std::chrono::steady_clock::now();
    const answer got = ask(detail::store_call::multi_get, {}, {keys, {}}, until);
    if (got.status != 0) {
      throw detail::missing_keys_error("multi_get", missing_of(got, keys), keys.size(),
                                       std::chrono::steady_clock::now() - started, describe());
    }
    auto values = detail::decode_values(got.body, keys.size(), limits_);
    if (!values) fail("multi_get", errc::protocol_error, "sent values that are none");
    return *std::move(values);
  }

  void multi_set(std::span<const key_value> pairs, deadline until) {
    detail::check_store_count(limits_, "multi_set", pairs.size());
    for (const auto& [key, value] : pairs) check(detail::store_call::multi_set, key, value);
    detail::check_multi_set_size(limits_, pairs);
    (void)ask(detail::store_call::multi_set, {}, {{}, pairs}, until);
  }

  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    check_keys("wait", keys);
    const answer got = ask(detail::store_call::wait, {}, {keys, {}}, until);
    return got.status == 0 ? std::vector<std::string>{} : missing_of(got, keys);
  }
  void wait(std::span<const std::string> keys, deadline until) { detail::wait_or_throw(*this, keys, until); }

  [[nodiscard]] bool check(std::span<const std::string> keys, deadline until) {
    check_keys("check", keys);
    return ask(detail::store_call::wait, {}, {keys, {}}, until, false).status == 0;
  }

  bool delete_key(std::string_view key, deadline until) {
    check(detail::store_call::delete_key, key, {});
    detail::request_body body;
    body.key = key;
    return number(ask(detail::store_call::delete_key, body, {}, until)) != 0;
  }

  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) {
    if (prefix.size() > limits_.key) return 0;  // no key is that long
    detail::request_body body;
    body.key = prefix;
    return static_cast<std::size_t>(number(ask(detail::store_call::num_keys, body, {}, until)));
  }

  void queue_push(std::string_view key, std::string_view item, deadline until) {
    check(detail::store_call::queue_push, key, item);
    detail::request_body body;
    body.key = key;
    body.value = item;
    (void)ask(detail::store_call::queue_push, body, {}, until);
  }

  [[nodiscard]] std::string queue_pop(std::string_view key, deadline until) {
    check(detail::store_call::queue_pop, key, {});
    const auto started = std::chrono::steady_clock::now();
    detail::request_body body;
    body.key = key;
    answer got = ask(detail::store_call::queue_pop, body, {}, until);
    if (got.status != 0) {
      throw detail::empty_queue_error(key, std::chrono::steady_clock::now() - started, describe());
    }
    confirm("queue_pop", until);
    return std::move(got.body);
  }

  [[nodiscard]] std::optional<std::string> try_queue_pop(std::string_view key, deadline until) {
    check(detail::store_call::try_queue_pop, key, {});
    detail::request_body body;
    body.key = key;
    answer got = ask(detail::store_call::try_queue_pop, body, {}, until);
    if (got.body.empty()) return std::nullopt;
    confirm("try_queue_pop", until);
    got.body.erase(0, 1);
    return std::move(got.body);
  }

  [[nodiscard]] std::size_t queue_len(std::string_view key, deadline until) {
    check(detail::store_call::queue_len, key, {});
    detail::request_body body;
    body.key = key;
    return static_cast<std::size_t>(number(ask(detail::store_call::queue_len, body, {}, until)));
  }

  [[nodiscard]] std::string describe() const;

 private:
  struct answer {
    std::uint32_t status = 0;
    std::string body{};
  };

  void check(detail::store_call call, std::string_view key, std::string_view value) const {
    detail::check_store_key(limits_, detail::name_of(call), key);
    detail::check_store_value(limits_, detail::name_of(call), key, value);
  }
  void check_keys(std::string_view call, std::span<const std::string> keys) const {
    detail::check_store_count(limits_, call, keys.size());
    for (const std::string& key : keys) detail::check_store_key(limits_, call, key);
  }

  /// Tells the server that the item of the last reply has arrived. Until it has heard that, the item goes back to its
  /// queue should this connection end.
  void confirm(std::string_view name, deadline until);

  [[nodiscard]] std::vector<std::string> missing_of(const answer& got, std::span<const std::string> keys) const {
    std::vector<std::string> missing;
    detail::byte_reader from(got.body);
    while (from.left() > 0) {
      const std::size_t index = from.number<std::uint32_t>();
      if (!from.good() || index >= keys.size())
        fail("wait", errc::protocol_error, "sent a reply that names keys which were not asked for");
      missing.push_back(keys[index]);
    }
    return missing;
  }

  /// One request and its reply. Whatever leaves the connection in an unknown state ends it.
  answer ask(detail::store_call call, const detail::request_body& body, const detail::request_lists& lists,
             deadline until, bool patient = true);
  [[noreturn]] void fail(std::string_view doing, errc code, const std::string& what) const;
  void end(const std::string& why);
  void must(std::string_view doing, const boost::system::error_code& code, deadline started);

  [[nodiscard]] std::uint64_t number(const answer& got) {
    detail::byte_reader from(got.body);
    const auto value = from.number<std::uint64_t>();
    if (!from.complete()) fail("reply", errc::protocol_error, "sent a number that is none");
    return value;
  }

  std::unique_ptr<transport::tcp_store_link> link_;
  store_limits limits_{};
  std::uint32_t last_id_ = 0;
  std::string ended_{};
};

static_assert(store<tcp_store>);

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/tcp_store.hpp>
#endif
