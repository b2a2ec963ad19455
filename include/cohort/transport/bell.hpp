// SPDX-License-Identifier: BSL-1.0
// What another thread rings so that an engine's own thread looks into an inbox. The body comes with engine.hpp.
#pragma once

#include <cohort/detail/inbox.hpp>

namespace cohort::transport {
class engine;
}

namespace cohort::detail {

[[nodiscard]] inbox::bell bell_of(transport::engine& e) noexcept;

}  // namespace cohort::detail
