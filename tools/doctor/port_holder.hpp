// SPDX-License-Identifier: BSL-1.0
// Who listens on a port of this host.
#pragma once

#include <cstdint>
#include <string>

namespace cohort::tool {

/// "process 4711 (python3)"; "" when that cannot be seen: it belongs to another user, or to another container.
[[nodiscard]] std::string holder_of_port(std::uint16_t port);

}  // namespace cohort::tool
