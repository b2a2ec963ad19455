// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp_store_server.hpp.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_store_server.hpp>
#include <cohort/transport/tcp_store_service.hpp>
#include <cohort/transport/tls.hpp>

#include <boost/asio/ip/v6_only.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace cohort {
namespace transport::tcp_detail {

[[nodiscard]] inline error cannot_listen(const endpoint& at, const boost::system::error_code& code) {
  std::string advice;
  if (code == boost::asio::error::address_in_use) {
    advice = "; another program listens there: choose another port with COHORT_MASTER_PORT on every rank";
  } else if (code == std::errc::address_not_available) {
    advice = "; the address is not one of this host: MASTER_ADDR must name the host of rank 0";
  }
  return network_error("listen on", at, code, advice);
}

}  // namespace transport::tcp_detail

COHORT_DECL tcp_store_server::tcp_store_server(const tcp_store_server_options& options)
    : own_(std::make_unique<boost::asio::io_context>(1)) {
  open(*own_, options);
  thread_.start("the store", [this] { run(); });
}

COHORT_DECL tcp_store_server::tcp_store_server(boost::asio::io_context& context,
                                               const tcp_store_server_options& options) {
  open(context, options);
}

COHORT_DECL tcp_store_server::~tcp_store_server() {
  if (service_) service_->stop();
  thread_.finish();
}

COHORT_DECL std::size_t tcp_store_server::connections() const noexcept { return service_->connections(); }

COHORT_DECL std::string tcp_store_server::last_refusal() const { return service_->refused().text(); }

COHORT_DECL void tcp_store_server::open(boost::asio::io_context& context, const tcp_store_server_options& options) {
  const auto found =
      transport::resolve(options.where.host, options.where.port, deadline_after(std::chrono::seconds(30)));
  const transport::tcp_endpoint at = found.front();
  transport::require_safe_listener(transport::plain(at), !options.secret.empty(), options.insecure_network);
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
  if (code) throw transport::tcp_detail::cannot_listen(transport::plain(at), code);
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

COHORT_DECL void tcp_store_server::run() noexcept {
  for (;;) {
    try {
      own_->run();
      return;
    } catch (...) {  // no handler lets one out; should the reactor itself throw, the others are still served
    }
  }
}

}  // namespace cohort
