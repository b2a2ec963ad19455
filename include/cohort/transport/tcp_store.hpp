// SPDX-License-Identifier: BSL-1.0
// The store that a tcp_store_server keeps, over one connection with blocking calls. Where the ranks of a job on
// several hosts meet.
#pragma once

#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/store/table.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_timed.hpp>
#include <cohort/uri.hpp>

#include <boost/asio/buffer.hpp>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

struct tcp_store_options {
  endpoint where{};
  std::string run_id{};
  std::uint32_t epoch = 0;
  int world_size = 0;  ///< told to the server
  int rank = -1;       ///< told to the server; -1 for a tool that is no rank
  std::string secret{};
};

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
  tcp_store(const tcp_store_options& options, deadline until)
      : options_(options), link_(std::make_unique<transport::timed_connection>()) {
    connect(until);
  }

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

  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, deadline until) {
    check(detail::store_call::compare_set, key, desired);
    detail::check_store_value(limits_, "compare_set", key, expected);
    detail::request_body body;
    body.key = key;
    body.expected = expected;
    body.value = desired;
    return ask(detail::store_call::compare_set, body, {}, until).body;
  }

  [[nodiscard]] std::vector<std::string> wait_until(std::span<const std::string> keys, deadline until) {
    for (const std::string& key : keys) detail::check_store_key(limits_, "wait", key);
    const answer got = ask(detail::store_call::wait, {}, keys, until);
    std::vector<std::string> missing;
    if (got.status == 0) return missing;
    detail::byte_reader from(got.body);
    while (from.left() > 0) {
      const std::size_t index = from.number<std::uint32_t>();
      if (!from.good() || index >= keys.size())
        fail("wait", errc::protocol_error, "the reply names keys that were not asked for");
      missing.push_back(keys[index]);
    }
    return missing;
  }
  void wait(std::span<const std::string> keys, deadline until) { detail::wait_or_throw(*this, keys, until); }

  [[nodiscard]] bool check(std::span<const std::string> keys, deadline until) {
    for (const std::string& key : keys) detail::check_store_key(limits_, "check", key);
    return ask(detail::store_call::wait, {}, keys, until, false).status == 0;
  }

  bool delete_key(std::string_view key, deadline until) {
    check(detail::store_call::delete_key, key, {});
    detail::request_body body;
    body.key = key;
    return number(ask(detail::store_call::delete_key, body, {}, until)) != 0;
  }

  [[nodiscard]] std::size_t num_keys(std::string_view prefix, deadline until) {
    detail::request_body body;
    body.key = prefix.substr(0, limits_.key);
    if (prefix.size() > limits_.key) return 0;
    return static_cast<std::size_t>(number(ask(detail::store_call::num_keys, body, {}, until)));
  }

  [[nodiscard]] std::string describe() const { return "the store at " + to_string(options_.where); }

 private:
  struct answer {
    std::uint32_t status = 0;
    std::string body{};
  };

  void check(detail::store_call call, std::string_view key, std::string_view value) const {
    detail::check_store_key(limits_, detail::name_of(call), key);
    detail::check_store_value(limits_, detail::name_of(call), key, value);
  }

  [[noreturn]] void fail(std::string_view doing, errc code, const std::string& what) const {
    error_details details;
    details.rank = options_.rank;
    details.operation = std::string(doing);
    throw error(code, std::string(doing) + ": " + describe() + " " + what, details);
  }

  /// One request and its reply. Whatever leaves the connection in an unknown state ends it.
  answer ask(detail::store_call call, const detail::request_body& body, std::span<const std::string> keys,
             deadline until, bool patient = true) {
    const std::string_view name = detail::name_of(call);
    if (!link_->is_open()) fail(name, errc::store_failed, "is not connected: " + ended_);
    const auto now = std::chrono::steady_clock::now();
    const bool waits = patient && (call == detail::store_call::get || call == detail::store_call::wait);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(until, now) - now).count();

    std::string bytes;
    detail::encode(detail::request_head{}, bytes);
    detail::encode(call, body, keys, bytes);
    detail::request_head head;
    head.size = static_cast<std::uint32_t>(bytes.size() - detail::request_head_size);
    head.id = ++last_id_;
    head.call = call;
    head.patience_ms = waits ? std::min(static_cast<std::uint64_t>(left), detail::most_patience_ms) : 0;
    std::string front;
    detail::encode(head, front);
    bytes.replace(0, front.size(), front);
    if (head.size > detail::largest_request(limits_)) fail(name, errc::store_failed, "takes no request of this size");

    // The server keeps the time of a wait; the grace is for its answer that there is none.
    const deadline last = until > deadline::max() - store_grace ? until : std::max(until, now) + store_grace;
    must(name, link_->write(boost::asio::buffer(bytes), last), now);
    std::array<unsigned char, detail::reply_head_size> reply{};
    must(name, link_->read(boost::asio::buffer(reply), last), now);
    const detail::reply_head got = detail::decode_reply_head(reply);
    if (got.id != head.id || got.size > detail::largest_reply(limits_)) {
      end("it sent a reply that does not belong to any request");
      fail(name, errc::protocol_error, "sent a reply that does not belong to the request");
    }
    answer result{got.status, std::string(got.size, '\0')};
    must(name, link_->read(boost::asio::buffer(result.body), last), now);
    if (got.status != 0 && got.status != static_cast<std::uint32_t>(errc::timed_out)) {
      error_details details;
      details.rank = options_.rank;
      details.operation = std::string(name);
      throw error(errc::store_failed, result.body, details);
    }
    return result;
  }

  void end(const std::string& why) {
    ended_ = why;
    link_->close();
  }

  void must(std::string_view doing, const boost::system::error_code& code, deadline started) {
    if (!code) return;
    const std::string waited = detail::duration_text(std::chrono::steady_clock::now() - started);
    if (code == boost::asio::error::timed_out) {
      end("it did not answer an earlier call");
      fail(doing, errc::timed_out, "did not answer within " + waited);
    }
    end("it went away (" + code.message() + ")");
    fail(doing, errc::store_failed,
         "went away during the call (" + code.message() + "); has the process that serves it ended?");
  }

  [[nodiscard]] std::uint64_t number(const answer& got) {
    detail::byte_reader from(got.body);
    const auto value = from.number<std::uint64_t>();
    if (!from.complete()) fail("reply", errc::protocol_error, "sent a number that is none");
    return value;
  }

  void connect(deadline until) {
    const auto started = std::chrono::steady_clock::now();
    boost::system::error_code last;
    bool reached = false;
    for (auto pause = std::chrono::milliseconds(5);; pause = std::min(pause * 2, std::chrono::milliseconds(500))) {
      const auto found = transport::resolve(options_.where.host, options_.where.port, until);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto now = std::chrono::steady_clock::now();
        const auto share = (std::max(until, now) - now) / static_cast<std::int64_t>(found.size() - i);
        last = link_->connect(found[i], now + share);
        reached = !last;
        if (reached && greet(until)) return;
      }
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= std::chrono::nanoseconds(0)) break;
      const auto rest = std::min<std::chrono::nanoseconds>(pause, left);
      const timespec nap{0, static_cast<long>(rest.count())};
      ::nanosleep(&nap, nullptr);
    }
    const std::string waited = " for " + detail::duration_text(std::chrono::steady_clock::now() - started);
    if (reached) fail("connect", errc::store_failed, "accepts connections but has not answered a hello" + waited);
    throw transport::network_error(
        "connect to the store at", options_.where, last,
        waited + "; is rank 0 running, and do MASTER_ADDR and MASTER_PORT name its address?");
  }

  /// The hello and its answer. False: the connection ended before the answer, which is worth another try.
  [[nodiscard]] bool greet(deadline until) {
    transport::hello h;
    h.role = transport::connection_role::store;
    h.job = transport::job_id(options_.run_id);
    h.epoch = options_.epoch;
    h.pid = static_cast<std::uint32_t>(::getpid());
    h.world_size = options_.world_size;
    h.rank = options_.rank;
    std::random_device entropy;
    for (unsigned char& byte : h.nonce) byte = static_cast<unsigned char>(entropy() & 0xffU);

    const transport::hello_bytes bytes = transport::sealed(h, options_.secret);
    if (link_->write(boost::asio::buffer(bytes), until)) return false;
    transport::hello_bytes reply_bytes{};
    const std::span all(reply_bytes);
    if (link_->read(boost::asio::buffer(reply_bytes.data(), 8), until)) return false;
    if (!transport::begins_as_reply(all.first<8>())) {
      link_->close();
      fail("connect", errc::protocol_error,
           "is not one of cohort: it answers with " + detail::quoted(detail::as_text(all.first(8))));
    }
    if (link_->read(boost::asio::buffer(reply_bytes.data() + 8, reply_bytes.size() - 8), until)) return false;
    const std::optional<transport::hello_reply> reply = transport::decode_reply(reply_bytes);
    if (!reply->verdict.accepted()) {
      fail("connect", transport::error_code_of(reply->verdict.field),
           "refused this process: " + transport::explain(reply->verdict));
    }
    if (!transport::is_genuine(reply_bytes, h, options_.secret)) {
      fail("connect", errc::wrong_job, "could not prove that it knows the job's secret");
    }
    return true;
  }

  tcp_store_options options_;
  std::unique_ptr<transport::timed_connection> link_;
  store_limits limits_{};
  std::uint32_t last_id_ = 0;
  std::string ended_{};
};

static_assert(store<tcp_store>);

}  // namespace cohort
