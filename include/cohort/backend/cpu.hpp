// SPDX-License-Identifier: BSL-1.0
// The CPU backend: processes that talk over TCP.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/transport/cpu_transport.hpp>

namespace cohort {

struct cpu {
  using transport_type = transport::cpu_transport;
  static constexpr std::string_view name = "cpu";
};

static_assert(backend<cpu>);

}  // namespace cohort
