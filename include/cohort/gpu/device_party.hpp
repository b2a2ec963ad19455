// SPDX-License-Identifier: BSL-1.0
// What a communicator on a device keeps for those who wait for it on the host.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/guardian.hpp>
#include <cohort/gpu/milestone.hpp>
#include <cohort/gpu/party_ticket.hpp>
#include <cohort/gpu/poller.hpp>

#include <chrono>
#include <memory>
#include <mutex>

namespace cohort::detail {

class device_party : public guardian, public std::enable_shared_from_this<device_party> {
  party_ticket::office office_{this};

 public:
  /// For its operations. Of a party that belongs to a std::shared_ptr.
  [[nodiscard]] party_ticket ticket() const noexcept { return office_.ticket(); }
  /// Started at the first use.
  [[nodiscard]] virtual poller& watch() = 0;
  [[nodiscard]] virtual event_pool& events() noexcept = 0;
  [[nodiscard]] virtual where_on_device where(const char* operation) const noexcept = 0;
  [[nodiscard]] virtual std::chrono::nanoseconds default_timeout() const noexcept = 0;
  /// Refuses `what` where what this thread has asked for is on no stream yet, and nothing could be seen of its end.
  virtual void require_enqueued(const char* /*operation*/, const char* /*what*/) const {}
};

inline std::shared_ptr<device_party> party_ticket::party() const {
  std::shared_ptr<device_party> found;
  if (place_ != nullptr) {
    const std::lock_guard lock(place_->mutex);
    // One that is going has no owners any more, and is not found.
    if (place_->party != nullptr && place_->number == number_) found = place_->party->weak_from_this().lock();
  }
  if (!found)
    throw error(errc::aborted, "the communicator of this operation has gone: keep it until the await is over");
  return found;
}

}  // namespace cohort::detail
