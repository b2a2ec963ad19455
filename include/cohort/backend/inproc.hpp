// SPDX-License-Identifier: BSL-1.0
// The in-process backend: ranks of one program, for tests, quick starts and run_local.hpp.
#pragma once

#include <cohort/backend/backend.hpp>
#ifdef COHORT_SEPARATE_COMPILATION
#include <cohort/backend/compiled_once.hpp>
#endif
#include <cohort/transport/inproc.hpp>

namespace cohort {

struct inproc {
  using transport_type = transport::inproc_endpoint;
  static constexpr std::string_view name = "inproc";
};

static_assert(backend<inproc>);

#ifdef COHORT_SEPARATE_COMPILATION
COHORT_TEMPLATES_OF(extern template, transport::inproc_endpoint)
#endif

}  // namespace cohort
