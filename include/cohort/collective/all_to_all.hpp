// SPDX-License-Identifier: BSL-1.0
// The all-to-all: block j of rank i becomes block i of rank j. Called by communicator/exchanges.hpp.
#pragma once

#include <cohort/collective/body.hpp>

namespace cohort::collective {

template <class Channel>
task<> all_to_all_by(const Channel& ch, algorithm how, const layouts& where, std::size_t block_bytes);

/// `in` and `out` have a block for each rank; `block_bytes` is the size of the largest, and of each if even.
template <transport::message_transport Transport>
operation<> all_to_all(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t block_bytes,
                       block_table& keep);

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/all_to_all.hpp>
#endif
