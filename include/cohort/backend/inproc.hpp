// SPDX-License-Identifier: BSL-1.0
// The in-process backend: ranks of one program, for tests, quick starts and run_local.hpp.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/transport/inproc.hpp>

namespace cohort {

struct inproc {
  using transport_type = transport::inproc_endpoint;
  static constexpr std::string_view name = "inproc";
};

static_assert(backend<inproc>);

}  // namespace cohort
