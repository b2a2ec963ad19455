// SPDX-License-Identifier: BSL-1.0
// Bodies of error.hpp.
#pragma once

#include <cohort/error.hpp>

#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace cohort {

COHORT_DECL std::string error_category_type::message(int value) const {
  switch (static_cast<errc>(value)) {
    case errc::aborted: return "aborted by another rank";
    case errc::cancelled: return "cancelled";
    case errc::timed_out: return "timed out";
    case errc::peer_lost: return "a rank was lost";
    case errc::peer_unresponsive: return "a rank does not respond";
    case errc::mismatch: return "ranks called different operations";
    case errc::truncated: return "message longer than the buffer";
    case errc::invalid_argument: return "invalid argument";
    case errc::not_a_member: return "not a member of this communicator";
    case errc::closed: return "communicator is closed";
    case errc::bad_environment: return "bad launch environment";
    case errc::rendezvous_timeout: return "not every rank joined";
    case errc::duplicate_rank: return "rank claimed twice";
    case errc::world_size_mismatch: return "world sizes differ";
    case errc::wrong_job: return "connection from another job";
    case errc::version_mismatch: return "protocol versions differ";
    case errc::protocol_error: return "protocol error";
    case errc::cannot_resolve: return "host name cannot be resolved";
    case errc::connection_refused: return "connection refused";
    case errc::address_in_use: return "address in use";
    case errc::insecure_network: return "non-loopback address without a secret";
    case errc::user_function_failed: return "a user function threw";
    case errc::store_failed: return "rendezvous store failed";
    case errc::out_of_memory: return "out of memory";
    case errc::io_error: return "input/output error";
    case errc::bad_message: return "malformed object message";
    case errc::wrong_type: return "object of another type";
    case errc::limit_exceeded: return "object exceeds the codec's limits";
    case errc::forked: return "call in a forked child";
    case errc::concurrent_use: return "call from two threads at once";
    case errc::tls_failed: return "TLS failed";
  }
  return "unknown cohort error";
}

COHORT_DECL const std::error_category& error_category() noexcept {
  static const error_category_type instance;
  return instance;
}

COHORT_DECL error::error(errc code, const std::string& text) : error(code, text, error_details{}) {}

COHORT_DECL error::error(errc code, const std::string& text, error_details details)
    : std::system_error(make_error_code(code)),
      text_(std::make_shared<const std::string>(text)),
      details_(std::make_shared<const error_details>(std::move(details))) {}

}  // namespace cohort
