// SPDX-License-Identifier: BSL-1.0
// The CPU backend: processes that talk over TCP.
#pragma once

#include <cohort/backend/backend.hpp>
#ifdef COHORT_SEPARATE_COMPILATION
#include <cohort/backend/compiled_once.hpp>
#endif
#include <cohort/transport/cpu_transport.hpp>

namespace cohort {

struct cpu {
  using transport_type = transport::cpu_transport;
  static constexpr std::string_view name = "cpu";
};

static_assert(backend<cpu>);

#ifdef COHORT_SEPARATE_COMPILATION
COHORT_TEMPLATES_OF(extern template, transport::cpu_transport)
COHORT_WINDOW_TEMPLATES_OF(extern template, transport::cpu_transport)
#endif

}  // namespace cohort
