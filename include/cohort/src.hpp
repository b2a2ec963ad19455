// SPDX-License-Identifier: BSL-1.0
// The bodies of every function that is no template, for programs that define COHORT_SEPARATE_COMPILATION: exactly one
// of their sources includes this header, all others compile without Boost.Asio and several times faster.
#pragma once

#ifndef COHORT_SEPARATE_COMPILATION
#error "cohort/src.hpp is for programs that define COHORT_SEPARATE_COMPILATION in every source; without it include cohort.hpp alone"
#endif

#include <cohort/backend/cpu.hpp>
#include <cohort/backend/inproc.hpp>
#include <cohort/collective/impl/select.hpp>
#include <cohort/impl/connect.hpp>
#include <cohort/impl/launch.hpp>
#include <cohort/impl/launch_sources.hpp>
#include <cohort/impl/tuning.hpp>
#include <cohort/transport/impl/call.hpp>
#include <cohort/transport/impl/engine.hpp>
#include <cohort/transport/impl/inproc.hpp>
#include <cohort/transport/impl/sharing_engine.hpp>
#include <cohort/transport/impl/tcp_async_store.hpp>
#include <cohort/transport/impl/tcp_open_store.hpp>
#include <cohort/transport/impl/tcp_store.hpp>
#include <cohort/transport/impl/tcp_store_server.hpp>
#include <cohort/transport/impl/tls.hpp>

namespace cohort {

COHORT_TEMPLATES_OF(template, transport::cpu_transport)
COHORT_WINDOW_TEMPLATES_OF(template, transport::cpu_transport)
COHORT_TEMPLATES_OF(template, transport::inproc_endpoint)

}  // namespace cohort
