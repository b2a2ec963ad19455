// SPDX-License-Identifier: BSL-1.0
// From what the launcher said to the store at which the job meets: memory for a world of one, a file, or the TCP
// store, which rank 0 serves. The step between launch.hpp and rendezvous.hpp.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/launch.hpp>
#include <cohort/store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <memory>

namespace cohort {

/// A store, and on rank 0 the server behind it.
///
/// Lifetime: rank 0 keeps it until the other ranks are connected to it and to each other
struct opened_store {
  std::unique_ptr<tcp_store_server> server{};
  any_store table;
};

/// Opens the store that `info` names.
///
/// Errors: insecure_network on every rank when rank 0 would listen on more than loopback without a secret;
///         address_in_use on rank 0; those of file_store and tcp_store
[[nodiscard]] opened_store open_store(const launch_info& info, deadline until);

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/tcp_open_store.hpp>
#endif
