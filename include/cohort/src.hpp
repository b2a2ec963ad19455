// SPDX-License-Identifier: BSL-1.0
// The bodies of every function that is no template, for programs that define COHORT_SEPARATE_COMPILATION: exactly one
// of their sources includes this header, all others compile without Boost.Asio and several times faster.
#pragma once

#ifndef COHORT_SEPARATE_COMPILATION
#error "cohort/src.hpp is for programs that define COHORT_SEPARATE_COMPILATION in every source; without it include cohort.hpp alone"
#endif

#include <cohort/backend/compiled_once.hpp>
#include <cohort/backend/cpu.hpp>
#include <cohort/backend/inproc.hpp>
#include <cohort/codec/impl/message.hpp>
#include <cohort/codec/impl/writer.hpp>
#include <cohort/collective/impl/at_once.hpp>
#include <cohort/collective/impl/coalesced.hpp>
#include <cohort/collective/impl/copy_region.hpp>
#include <cohort/collective/impl/form_group.hpp>
#include <cohort/collective/impl/negotiate.hpp>
#include <cohort/collective/impl/offsets_of.hpp>
#include <cohort/collective/impl/pair_at_once.hpp>
#include <cohort/collective/impl/select.hpp>
#include <cohort/collective/impl/window.hpp>
#include <cohort/communicator/impl/front.hpp>
#include <cohort/communicator/impl/groups.hpp>
#include <cohort/detail/impl/inbox.hpp>
#include <cohort/detail/impl/print_failure.hpp>
#include <cohort/detail/impl/printable.hpp>
#include <cohort/detail/impl/wait_scope.hpp>
#include <cohort/impl/connect.hpp>
#include <cohort/impl/error.hpp>
#include <cohort/impl/launch.hpp>
#include <cohort/impl/launch_sources.hpp>
#include <cohort/impl/operation.hpp>
#include <cohort/impl/registration.hpp>
#include <cohort/impl/run_local.hpp>
#include <cohort/impl/tuning.hpp>
#include <cohort/messages/impl/objects.hpp>
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
