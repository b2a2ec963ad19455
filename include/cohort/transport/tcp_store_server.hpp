// SPDX-License-Identifier: BSL-1.0
// Serves the TCP store, on a thread of its own or on a given io_context. Rank 0 or the launcher has one of these;
// every rank talks to it through tcp_store.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/own_thread.hpp>
#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/tls_options.hpp>
#include <cohort/uri.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cohort {
namespace transport::tcp_detail {
class store_service;
}

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
  explicit tcp_store_server(const tcp_store_server_options& options);
  /// Serves on the threads that run `context`.
  tcp_store_server(boost::asio::io_context& context, const tcp_store_server_options& options);

  tcp_store_server(const tcp_store_server&) = delete;
  tcp_store_server& operator=(const tcp_store_server&) = delete;
  ~tcp_store_server();

  /// Where it listens, with the port that the system chose.
  [[nodiscard]] const endpoint& where() const noexcept { return where_; }
  /// Connections that are open now, whether or not they have been accepted.
  [[nodiscard]] std::size_t connections() const noexcept;
  /// Who was turned away last because of TLS, and why; "" if nobody was.
  [[nodiscard]] std::string last_refusal() const;

 private:
  void open(boost::asio::io_context& context, const tcp_store_server_options& options);
  void run() noexcept;

  std::unique_ptr<boost::asio::io_context> own_{};
  std::shared_ptr<transport::tcp_detail::store_service> service_{};
  endpoint where_{};
  detail::own_thread thread_{};
};

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/tcp_store_server.hpp>
#endif
