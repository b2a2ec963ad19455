// SPDX-License-Identifier: BSL-1.0
// The barrier: nobody leaves before everybody has come. Called by communicator/everyone.hpp.
#pragma once

#include <cohort/collective/body.hpp>

namespace cohort::collective {

template <transport::message_transport Transport>
operation<> barrier(cohort::detail::ticket t);

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/barrier.hpp>
#endif
