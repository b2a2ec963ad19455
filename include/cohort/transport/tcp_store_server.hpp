// SPDX-License-Identifier: BSL-1.0
// Serves the TCP store, on a thread of its own or on a given io_context. Rank 0 or the launcher has one of these;
// every rank talks to it through tcp_store.
#pragma once

#include <cohort/detail/own_thread.hpp>
#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_store_service.hpp>
#include <cohort/transport/tls.hpp>
#include <cohort/uri.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace cohort {

struct tcp_store_server_options {
  endpoint where{"127.0.0.1", 0};  ///< only this address is listened on; port 0 lets the system choose
  std::string run_id{};
  std::uint32_t epoch = 0;
  int world_size = 1;  ///< sets how many clients are served: this many and 64
  /// Refuses clients of another world size. Off for a rendezvous, which compares them itself: a client refused here
  /// could not tell the other ranks why they wait.
  bool compare_world_size = false;
  std::string secret{};
  tls_options tls{};  ///< if it names files, only clients with a certificate of its authority are heard
  bool insecure_network = false;
  std::chrono::nanoseconds hello_timeout = std::chrono::seconds(5);
  store_limits limits{};
};

/// A running server. The table lives and dies with it.
///
/// Completes: the constructor returns when the port is listening
/// Errors:    address_in_use, cannot_resolve, insecure_network, io_error, tls_failed; clients' misdeeds end only their
///            connections
/// Lifetime:  a given io_context outlives the server; its handlers stop when the server goes
class tcp_store_server {
 public:
  /// Serves on a thread of its own.
  explicit tcp_store_server(const tcp_store_server_options& options)
      : own_(std::make_unique<boost::asio::io_context>(1)) {
    open(*own_, options);
    thread_.start("the store", [this] { run(); });
  }
  /// Serves on the threads that run `context`.
  tcp_store_server(boost::asio::io_context& context, const tcp_store_server_options& options) {
    open(context, options);
  }

  tcp_store_server(const tcp_store_server&) = delete;
  tcp_store_server& operator=(const tcp_store_server&) = delete;
  ~tcp_store_server() {
    if (service_) service_->stop();
    thread_.finish();
  }

  /// Where it listens, with the port that the system chose.
  [[nodiscard]] const endpoint& where() const noexcept { return where_; }
  /// Connections that are open now, whether or not they have been accepted.
  [[nodiscard]] std::size_t connections() const noexcept { return service_->connections(); }
  /// Who was turned away last because of TLS, and why; "" if nobody was.
  [[nodiscard]] std::string last_refusal() const { return service_->refused().text(); }

 private:
  void open(boost::asio::io_context& context, const tcp_store_server_options& options) {
    const auto found =
        transport::resolve(options.where.host, options.where.port, deadline_after(std::chrono::seconds(30)));
    const transport::tcp_endpoint at = found.front();
    require_safe(at, options);
    transport::tcp_link::context_pointer tls = transport::open_tls(options.tls);

    const transport::tcp_detail::strand_type strand(context.get_executor());
    transport::tcp_detail::acceptor_type acceptor(strand);
    boost::system::error_code code;
    acceptor.open(at.protocol(), code);
    if (!code) transport::close_on_exec(acceptor.native_handle());
    if (!code) acceptor.set_option(boost::asio::socket_base::reuse_address(true), code);
    if (!code && at.address().is_v6()) acceptor.set_option(boost::asio::ip::v6_only(true), code);
    if (!code) acceptor.bind(at, code);
    if (!code) acceptor.listen(boost::asio::socket_base::max_listen_connections, code);
    const transport::tcp_endpoint bound = code ? at : acceptor.local_endpoint(code);
    if (code) throw refusal(transport::plain(at), code);
    where_ = transport::plain(bound);

    transport::hello_expectation expected;
    expected.role = transport::connection_role::store;
    expected.job = transport::job_id(options.run_id);
    expected.epoch = options.epoch;
    expected.world_size = options.compare_world_size ? options.world_size : 0;
    transport::tcp_detail::store_budget budget;
    budget.clients = static_cast<std::size_t>(std::max(options.world_size, 1)) + 64;
    budget.hello = options.hello_timeout;
    service_ = std::make_shared<transport::tcp_detail::store_service>(
        std::move(acceptor), strand, expected, options.secret, budget, options.limits, std::move(tls));
    service_->start();
  }

  static void require_safe(const transport::tcp_endpoint& at, const tcp_store_server_options& options) {
    transport::require_safe_listener(transport::plain(at), !options.secret.empty(), options.insecure_network);
  }

  [[nodiscard]] static error refusal(const endpoint& at, const boost::system::error_code& code) {
    std::string advice;
    if (code == boost::asio::error::address_in_use) {
      advice = "; another program listens there: choose another port with COHORT_MASTER_PORT on every rank";
    } else if (code == std::errc::address_not_available) {
      advice = "; the address is not one of this host: MASTER_ADDR must name the host of rank 0";
    }
    return transport::network_error("listen on", at, code, advice);
  }

  void run() noexcept {
    for (;;) {
      try {
        own_->run();
        return;
      } catch (...) {  // no handler lets one out; should the reactor itself throw, the others are still served
      }
    }
  }

  std::unique_ptr<boost::asio::io_context> own_{};
  std::shared_ptr<transport::tcp_detail::store_service> service_{};
  endpoint where_{};
  detail::own_thread thread_{};
};

}  // namespace cohort
