// SPDX-License-Identifier: BSL-1.0
// An async_store over one connection to a tcp_store_server: requests are numbered and answered in any order, so that a
// call that waits, waits at the server and holds up none behind it.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/store/async_store.hpp>
#include <cohort/transport/tcp_store_options.hpp>

namespace cohort {

/// Connects to a tcp_store_server; blocks until that is done.
///
/// Result:   an async_store on one connection and one thread. At most 64 of its calls may be waiting at the server, or
///           be queue_pops whose item has not been taken by `co_await`
/// Order:    calls reach the server in the order in which they are made; of those that wait in queue_pop, here and
///           elsewhere, the first is served first
/// Errors:   those of tcp_store
/// Lifetime: where items were taken, the last handle stays until the server has heard of them, at most half a second
/// Cost:     one round trip per call, and many may be under way at once
/// Example:
///   cohort::async_store s = cohort::async_tcp_store(options, cohort::deadline_after(30s));
///   auto go = s.get("go");            // waits at the server
///   co_await s.set("ready", "");      // not behind it
///   co_await go;
[[nodiscard]] async_store async_tcp_store(const tcp_store_options& options, deadline until);

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/tcp_async_store.hpp>
#endif
