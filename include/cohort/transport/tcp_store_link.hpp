// SPDX-License-Identifier: BSL-1.0
// A connection to a tcp_store_server that has been greeted and accepted: what tcp_store and async_tcp_store have in
// common.
#pragma once

#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_link.hpp>
#include <cohort/transport/tcp_store_options.hpp>
#include <cohort/transport/tcp_timed.hpp>
#include <cohort/transport/tls.hpp>
#include <cohort/uri.hpp>

#include <boost/asio/buffer.hpp>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace cohort::transport {

/// Completes: the constructor returns when the server has accepted the hello. Until `until` it tries again while the
///            connection is refused, because ranks start in any order
/// Errors:    cannot_resolve, connection_refused, timed_out, store_failed, tls_failed, and when the server turns this
///            process away
///            version_mismatch, wrong_job, world_size_mismatch or protocol_error
class tcp_store_link {
 public:
  tcp_store_link(const tcp_store_options& options, deadline until)
      : options_(options), tls_(open_tls(options.tls)), link_(std::make_unique<timed_connection>()) {
    connect(until);
  }

  [[nodiscard]] timed_connection& connection() noexcept { return *link_; }
  [[nodiscard]] int rank() const noexcept { return options_.rank; }
  /// When a call with this deadline gives up on an answer. The server keeps the time of a wait; the grace is for its
  /// answer that there is none.
  [[nodiscard]] deadline last_moment(deadline until, deadline now) const noexcept {
    if (until > deadline::max() - store_grace) return until;
    return std::max(std::max(until, now) + store_grace, options_.alive_until);
  }
  [[nodiscard]] std::string describe() const { return "the store at " + to_string(options_.where); }

  [[noreturn]] void fail(std::string_view doing, errc code, const std::string& what) const {
    throw failure(doing, code, what);
  }
  [[nodiscard]] error failure(std::string_view doing, errc code, const std::string& what) const {
    error_details details;
    details.rank = options_.rank;
    details.operation = std::string(doing);
    return error(code, std::string(doing) + ": " + describe() + " " + what, details);
  }

 private:
  void connect(deadline until) {
    const auto started = std::chrono::steady_clock::now();
    boost::system::error_code last;
    bool reached = false;
    for (auto pause = std::chrono::milliseconds(5);; pause = std::min(pause * 2, std::chrono::milliseconds(500))) {
      const auto found = resolve(options_.where.host, options_.where.port, until);
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
    throw network_error("connect to the store at", options_.where, last,
                        waited + "; is rank 0 running, and do MASTER_ADDR and MASTER_PORT name its address?");
  }

  /// Whether nothing has failed. A failure of TLS stays one, however often it is tried.
  [[nodiscard]] bool works(const boost::system::error_code& code) const {
    if (is_of_tls(code)) fail("connect", errc::tls_failed, "cannot be used: " + code.message());
    return !code;
  }

  /// The hello and its answer. False: the connection ended before the answer, which is worth another try.
  [[nodiscard]] bool greet(deadline until) {
    hello h;
    h.role = connection_role::store;
    h.job = job_id(options_.run_id);
    h.epoch = options_.epoch;
    h.pid = static_cast<std::uint32_t>(::getpid());
    h.world_size = options_.world_size;
    h.rank = options_.rank;
    std::random_device entropy;
    for (unsigned char& byte : h.nonce) byte = static_cast<unsigned char>(entropy() & 0xffU);

    const hello_bytes bytes = sealed(h, options_.secret);
    if (!works(link_->shake_hands(tls_, until))) return false;
    if (!works(link_->write(boost::asio::buffer(bytes), until))) return false;
    hello_bytes reply_bytes{};
    const std::span all(reply_bytes);
    if (!works(link_->read(boost::asio::buffer(reply_bytes.data(), 8), until))) return false;
    if (!begins_as_reply(all.first<8>())) {
      link_->close();
      fail("connect", errc::protocol_error,
           "is not one of cohort: it answers with " + detail::quoted(detail::as_text(all.first(8))));
    }
    if (link_->read(boost::asio::buffer(reply_bytes.data() + 8, reply_bytes.size() - 8), until)) return false;
    const std::optional<hello_reply> reply = decode_reply(reply_bytes);
    if (!reply->verdict.accepted()) {
      fail("connect", error_code_of(reply->verdict.field), "refused this process: " + explain(reply->verdict));
    }
    if (!is_genuine(reply_bytes, h, options_.secret)) {
      fail("connect", errc::wrong_job, "could not prove that it knows the job's secret");
    }
    return true;
  }

  tcp_store_options options_;
  tcp_link::context_pointer tls_;
  std::unique_ptr<timed_connection> link_;
};

}  // namespace cohort::transport
