// SPDX-License-Identifier: BSL-1.0
// What a communicator on a device keeps for those who wait for it on the host.
#pragma once

#include <cohort/gpu/event.hpp>
#include <cohort/gpu/guardian.hpp>
#include <cohort/gpu/milestone.hpp>
#include <cohort/gpu/poller.hpp>

#include <chrono>
#include <memory>

namespace cohort::detail {

class device_party : public guardian, public std::enable_shared_from_this<device_party> {
 public:
  /// Started at the first use.
  [[nodiscard]] virtual poller& watch() = 0;
  [[nodiscard]] virtual event_pool& events() noexcept = 0;
  [[nodiscard]] virtual where_on_device where(const char* operation) const noexcept = 0;
  [[nodiscard]] virtual std::chrono::nanoseconds default_timeout() const noexcept = 0;
};

}  // namespace cohort::detail
